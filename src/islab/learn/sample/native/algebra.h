// Sums over rows, and the algebra of small dense matrices.
//
// Rows of the data are the long direction: a covariate, a unit's activation or a column of a
// Jacobian is one contiguous run of numbers. Matrices over parameters are small (tens of weights),
// symmetric and row-major.

#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "memory.h"

namespace islab::sample {

using Vector = std::vector<double, Recycled<double>>;
using Singles = std::vector<float, Recycled<float>>;

// Processors differ in their widest instructions; the loader chooses. Elsewhere there is one
// version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define ISLAB_FOR_EACH_PROCESSOR __attribute__((target_clones("arch=haswell", "default")))
#else
#define ISLAB_FOR_EACH_PROCESSOR
#endif

double dot(const double* a, const double* b, std::size_t n);
void add_scaled(double* out, double factor, const double* a, std::size_t n);
// out = exp(a), within two units in the last place; out may be a.
void exponentials(double* out, const double* a, std::size_t n);
// out += the sum of factors[k] * columns[k].
void add_columns(double* out, const double* factors, const double* const* columns, std::size_t size,
                 std::size_t n);
// out (n_a, n_b) = sums over rows of a[i] * b[j].
void cross_products(double* out, const double* const* a, std::size_t n_a, const double* const* b,
                    std::size_t n_b, std::size_t n);
// out[i] += sum over rows of columns[i] * columns[j], for j <= i; `size` columns, out is size x
// size.
void add_gram(double* out, const double* const* columns, std::size_t size, std::size_t n);
void add_gram(double* out, const float* const* columns, std::size_t size, std::size_t n);
// out = factor * a, in single precision; returns the sum of pull * a.
double scaled_column(float* out, const float* factor, const float* pull, const double* a,
                     std::size_t n);
double scaled_column(float* out, const float* factor, const float* pull, const float* a,
                     std::size_t n);
// The sums of pull * a and of stiffness * a squared, in single precision.
struct Sums {
    double pull, stiffness;
};
// Of `size` columns, one after the other.
void newton_sums(Sums* out, const float* pull, const float* stiffness, const float* columns,
                 std::size_t size, std::size_t n);
// The same of their absolute values.
void bend_sums(Sums* out, const float* pull, const float* stiffness, const float* columns,
               std::size_t size, std::size_t n);
// out = a * factor.
void multiply(double* out, const double* a, double factor, std::size_t n);
// out = a * b * factor.
void multiply(double* out, const double* a, const double* b, double factor, std::size_t n);

// matrix -= row' row / pivot.
void take_off(double* matrix, const double* row, double pivot, std::size_t size);
// The lower Cholesky factor in place; false if the matrix is not positive definite.
bool factorise(Vector& a, std::size_t size);
// Solves L x = b in place.
void solve_lower(const Vector& factor, double* b, std::size_t size);
// Solves L' x = b in place.
void solve_upper(const Vector& factor, double* b, std::size_t size);

inline double log_diagonal(const Vector& factor, std::size_t size) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += std::log(factor[i * size + i]);
    return sum;
}

}  // namespace islab::sample
