// Sums over rows, and the algebra of small dense matrices.
//
// Rows of the data are the long direction: a covariate, a unit's activation or a column of a
// Jacobian is one contiguous run of numbers. Matrices over parameters are small (tens of weights),
// symmetric and row-major.

#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace islab::sample {

using Vector = std::vector<double>;
using Singles = std::vector<float>;

// Processors differ in their widest instructions; the loader chooses. Elsewhere there is one
// version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define ISLAB_FOR_EACH_PROCESSOR __attribute__((target_clones("arch=haswell", "default")))
#else
#define ISLAB_FOR_EACH_PROCESSOR
#endif

double dot(const double* a, const double* b, std::size_t n);
// The sum of a times the square of b.
double dot_squared(const double* a, const double* b, std::size_t n);
void add_scaled(double* out, double factor, const double* a, std::size_t n);
// out = exp(a), within two units in the last place; out may be a.
void exponentials(double* out, const double* a, std::size_t n);
// out[i] += sum over rows of columns[i] * columns[j], for j <= i; `size` columns, out is size x
// size.
void add_gram(double* out, const double* const* columns, std::size_t size, std::size_t n);
void add_gram(double* out, const float* const* columns, std::size_t size, std::size_t n);
// out = factor * a, in single precision; returns the sum of pull * a.
double scaled_column(float* out, const float* factor, const float* pull, const double* a,
                     std::size_t n);
// The sums of pull * a and of stiffness * a squared, in single precision.
struct Sums {
    double pull, stiffness;
};
Sums newton_sums(const float* pull, const float* stiffness, const float* a, std::size_t n);
Sums newton_sums(const float* pull, const float* stiffness, const double* a, std::size_t n);
// The same for the absolute values of a.
Sums bend_sums(const float* pull, const float* stiffness, const float* a, std::size_t n);
// out = a * b * factor.
void multiply(double* out, const double* a, const double* b, double factor, std::size_t n);

// The lower Cholesky factor in place; false if the matrix is not positive definite.
inline bool factorise(Vector& a, std::size_t size) {
    for (std::size_t j = 0; j < size; ++j) {
        double* row = &a[j * size];
        for (std::size_t i = 0; i < j; ++i) {
            double sum = row[i];
            for (std::size_t k = 0; k < i; ++k) sum -= row[k] * a[i * size + k];
            row[i] = sum / a[i * size + i];
        }
        double pivot = row[j];
        for (std::size_t k = 0; k < j; ++k) pivot -= row[k] * row[k];
        if (!(pivot > 0) || !std::isfinite(pivot)) return false;
        row[j] = std::sqrt(pivot);
    }
    return true;
}

// Solves L x = b in place.
inline void solve_lower(const Vector& factor, double* b, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
        double sum = b[i];
        for (std::size_t k = 0; k < i; ++k) sum -= factor[i * size + k] * b[k];
        b[i] = sum / factor[i * size + i];
    }
}

// Solves L' x = b in place.
inline void solve_upper(const Vector& factor, double* b, std::size_t size) {
    for (std::size_t i = size; i-- > 0;) {
        double sum = b[i];
        for (std::size_t k = i + 1; k < size; ++k) sum -= factor[k * size + i] * b[k];
        b[i] = sum / factor[i * size + i];
    }
}

inline double log_diagonal(const Vector& factor, std::size_t size) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += std::log(factor[i * size + i]);
    return sum;
}

}  // namespace islab::sample
