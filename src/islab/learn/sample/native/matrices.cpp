// The algebra of small matrices, compiled for each kind of processor.

#include "algebra.h"
#include "lanes.h"

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

namespace {

template <class Kind>
inline __attribute__((always_inline)) void take_rows_off(double* matrix, const double* row,
                                                         double pivot, std::size_t size) {
    using Run = typename Kind::Run;
    constexpr std::size_t length = sizeof(Run) / sizeof(double);
    for (std::size_t i = 0; i < size; ++i) {
        double* own = matrix + i * size;
        const double factor = row[i] / pivot;
        std::size_t k = 0;
        for (; k + length <= size; k += length)
            *reinterpret_cast<Run*>(own + k) -= factor * *reinterpret_cast<const Run*>(row + k);
        for (; k < size; ++k) own[k] -= factor * row[k];
    }
}

ISLAB_WIDE void wide_take_off(double* matrix, const double* row, double pivot, std::size_t size) {
    take_rows_off<Wide>(matrix, row, pivot, size);
}

ISLAB_FOR_EACH_PROCESSOR
void narrow_take_off(double* matrix, const double* row, double pivot, std::size_t size) {
    take_rows_off<Narrow>(matrix, row, pivot, size);
}

}  // namespace

void take_off(double* matrix, const double* row, double pivot, std::size_t size) {
    is_wide ? wide_take_off(matrix, row, pivot, size) : narrow_take_off(matrix, row, pivot, size);
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
