// The algebra of small matrices, compiled for each kind of processor.

#include "algebra.h"

namespace islab::sample {

// A column that is finished is taken off the rest at once: runs of numbers instead of sums.
ISLAB_FOR_EACH_PROCESSOR
bool factorise(Vector& a, std::size_t size) {
    Vector column(size);
    for (std::size_t k = 0; k < size; ++k) {
        const double pivot = a[k * size + k];
        if (!(pivot > 0) || !std::isfinite(pivot)) return false;
        const double root = std::sqrt(pivot), inverse = 1 / root;
        a[k * size + k] = root;
        for (std::size_t i = k + 1; i < size; ++i) column[i] = a[i * size + k] *= inverse;
        for (std::size_t i = k + 1; i < size; ++i) {
            double* row = &a[i * size];
            const double factor = column[i];
            for (std::size_t j = k + 1; j <= i; ++j) row[j] -= factor * column[j];
        }
    }
    return true;
}

ISLAB_FOR_EACH_PROCESSOR
void take_off(double* matrix, const double* row, double pivot, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
        const double factor = row[i] / pivot;
        for (std::size_t k = 0; k < size; ++k) matrix[i * size + k] -= factor * row[k];
    }
}

void solve_lower(const Vector& factor, double* b, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
        b[i] = (b[i] - dot(&factor[i * size], b, i)) / factor[i * size + i];
}

void solve_upper(const Vector& factor, double* b, std::size_t size) {
    for (std::size_t i = size; i-- > 0;) {
        b[i] /= factor[i * size + i];
        add_scaled(b, -b[i], &factor[i * size], i);
    }
}

}  // namespace islab::sample
