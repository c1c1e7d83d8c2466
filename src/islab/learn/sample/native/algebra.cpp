// Sums over rows, compiled for each kind of processor.

#include "algebra.h"

#include "lanes.h"

namespace islab::sample {

namespace {

inline const Lanes& load(const double* from) { return *reinterpret_cast<const Lanes*>(from); }

}  // namespace

ISLAB_FOR_EACH_PROCESSOR
double dot(const double* a, const double* b, std::size_t n) {
    Lanes first{}, second{};
    std::size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        first += load(a + i) * load(b + i);
        second += load(a + i + lanes) * load(b + i + lanes);
    }
    double sum = total(first) + total(second);
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

ISLAB_FOR_EACH_PROCESSOR
void add_scaled(double* out, double factor, const double* a, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] += factor * a[i];
}

namespace {

template <class Kind>
inline __attribute__((always_inline)) void all_exponentials(double* out, const double* a,
                                                            std::size_t n) {
    using Run = typename Kind::Run;
    constexpr std::size_t length = sizeof(Run) / sizeof(double);
    std::size_t i = 0;
    for (; i + length <= n; i += length) {
        Run value = *reinterpret_cast<const Run*>(a + i);
        exponential<Kind>(value);
        *reinterpret_cast<Run*>(out + i) = value;
    }
    double rest[length] = {};
    for (std::size_t k = i; k < n; ++k) rest[k - i] = a[k];
    Run value = *reinterpret_cast<const Run*>(rest);
    exponential<Kind>(value);
    *reinterpret_cast<Run*>(rest) = value;
    for (std::size_t k = i; k < n; ++k) out[k] = rest[k - i];
}

ISLAB_WIDE void wide_exponentials(double* out, const double* a, std::size_t n) {
    all_exponentials<Wide>(out, a, n);
}

ISLAB_FOR_EACH_PROCESSOR
void narrow_exponentials(double* out, const double* a, std::size_t n) {
    all_exponentials<Narrow>(out, a, n);
}

// Runs of rows stay in registers while all columns are added.
template <class Kind>
inline __attribute__((always_inline)) void sum_of_columns(double* out, const double* factors,
                                                          const double* const* columns,
                                                          std::size_t size, std::size_t n) {
    using Run = typename Kind::Run;
    constexpr std::size_t length = sizeof(Run) / sizeof(double), at_once = 4;
    std::size_t i = 0;
    for (; i + at_once * length <= n; i += at_once * length) {
        Run sums[at_once];
        for (std::size_t r = 0; r < at_once; ++r)
            sums[r] = *reinterpret_cast<const Run*>(out + i + r * length);
        for (std::size_t k = 0; k < size; ++k)
            for (std::size_t r = 0; r < at_once; ++r)
                sums[r] += factors[k] * *reinterpret_cast<const Run*>(columns[k] + i + r * length);
        for (std::size_t r = 0; r < at_once; ++r)
            *reinterpret_cast<Run*>(out + i + r * length) = sums[r];
    }
    for (; i + length <= n; i += length) {
        Run sum = *reinterpret_cast<const Run*>(out + i);
        for (std::size_t k = 0; k < size; ++k)
            sum += factors[k] * *reinterpret_cast<const Run*>(columns[k] + i);
        *reinterpret_cast<Run*>(out + i) = sum;
    }
    for (; i < n; ++i)
        for (std::size_t k = 0; k < size; ++k) out[i] += factors[k] * columns[k][i];
}

ISLAB_WIDE void wide_columns(double* out, const double* factors, const double* const* columns,
                             std::size_t size, std::size_t n) {
    sum_of_columns<Wide>(out, factors, columns, size, n);
}

ISLAB_FOR_EACH_PROCESSOR
void narrow_columns(double* out, const double* factors, const double* const* columns,
                    std::size_t size, std::size_t n) {
    sum_of_columns<Narrow>(out, factors, columns, size, n);
}

}  // namespace

void exponentials(double* out, const double* a, std::size_t n) {
    is_wide ? wide_exponentials(out, a, n) : narrow_exponentials(out, a, n);
}

void add_columns(double* out, const double* factors, const double* const* columns, std::size_t size,
                 std::size_t n) {
    is_wide ? wide_columns(out, factors, columns, size, n)
            : narrow_columns(out, factors, columns, size, n);
}

namespace {

template <class Number>
inline __attribute__((always_inline)) double scaled(float* out, const float* factor,
                                                    const float* pull, const Number* a,
                                                    std::size_t n) {
    constexpr std::size_t at_once = 32;
    float sums[at_once] = {};
    std::size_t i = 0;
    for (; i + at_once <= n; i += at_once)
        for (std::size_t k = 0; k < at_once; ++k) {
            const float value = static_cast<float>(a[i + k]);
            out[i + k] = factor[i + k] * value;
            sums[k] += pull[i + k] * value;
        }
    double sum = 0;
    for (float value : sums) sum += value;
    for (; i < n; ++i) {
        out[i] = factor[i] * static_cast<float>(a[i]);
        sum += pull[i] * static_cast<float>(a[i]);
    }
    return sum;
}

}  // namespace

ISLAB_FOR_EACH_PROCESSOR
double scaled_column(float* out, const float* factor, const float* pull, const double* a,
                     std::size_t n) {
    return scaled(out, factor, pull, a, n);
}

ISLAB_FOR_EACH_PROCESSOR
double scaled_column(float* out, const float* factor, const float* pull, const float* a,
                     std::size_t n) {
    return scaled(out, factor, pull, a, n);
}

namespace {

// Columns four at once, which share the factors that are loaded.
template <bool absolute, class Kind>
inline __attribute__((always_inline)) void sums_of_columns(Sums* out, const float* pull,
                                                           const float* stiffness,
                                                           const float* columns, std::size_t size,
                                                           std::size_t n) {
    using Run = typename Kind::Run;
    constexpr std::size_t length = sizeof(Run) / sizeof(float), at_once = 4;
    auto run = [](const float* from) -> const Run& { return *reinterpret_cast<const Run*>(from); };
    for (std::size_t j = 0; j < size; j += at_once) {
        const float* own[at_once];
        for (std::size_t k = 0; k < at_once; ++k)
            own[k] = columns + (j + k < size ? j + k : size - 1) * n;
        Run first[at_once] = {}, second[at_once] = {};
        std::size_t i = 0;
        for (; i + length <= n; i += length) {
            const Run p = run(pull + i), q = run(stiffness + i);
            for (std::size_t k = 0; k < at_once; ++k) {
                Run value = run(own[k] + i);
                if (absolute) value = value < 0 ? -value : value;
                first[k] += p * value;
                second[k] += q * value * value;
            }
        }
        for (std::size_t k = 0; k < at_once && j + k < size; ++k) {
            Sums sums{total(first[k]), total(second[k])};
            for (std::size_t r = i; r < n; ++r) {
                const float value = absolute ? std::abs(own[k][r]) : own[k][r];
                sums.pull += pull[r] * value;
                sums.stiffness += stiffness[r] * value * value;
            }
            out[j + k] = sums;
        }
    }
}

ISLAB_WIDE void wide_sums(Sums* out, const float* pull, const float* stiffness,
                          const float* columns, std::size_t size, std::size_t n, bool absolute) {
    absolute ? sums_of_columns<true, WideSingle>(out, pull, stiffness, columns, size, n)
             : sums_of_columns<false, WideSingle>(out, pull, stiffness, columns, size, n);
}

ISLAB_FOR_EACH_PROCESSOR
void narrow_sums(Sums* out, const float* pull, const float* stiffness, const float* columns,
                 std::size_t size, std::size_t n, bool absolute) {
    absolute ? sums_of_columns<true, NarrowSingle>(out, pull, stiffness, columns, size, n)
             : sums_of_columns<false, NarrowSingle>(out, pull, stiffness, columns, size, n);
}

}  // namespace

void newton_sums(Sums* out, const float* pull, const float* stiffness, const float* columns,
                 std::size_t size, std::size_t n) {
    is_wide ? wide_sums(out, pull, stiffness, columns, size, n, false)
            : narrow_sums(out, pull, stiffness, columns, size, n, false);
}

void bend_sums(Sums* out, const float* pull, const float* stiffness, const float* columns,
               std::size_t size, std::size_t n) {
    is_wide ? wide_sums(out, pull, stiffness, columns, size, n, true)
            : narrow_sums(out, pull, stiffness, columns, size, n, true);
}

ISLAB_FOR_EACH_PROCESSOR
void multiply(double* out, const double* a, double factor, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = a[i] * factor;
}

ISLAB_FOR_EACH_PROCESSOR
void multiply(double* out, const double* a, const double* b, double factor, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = a[i] * b[i] * factor;
}

namespace {

// The products of some columns with others. Eight and more sums at once hide the latency of the
// additions, and each column that is loaded serves several of them.
template <int tall, int wide, class Kind, class Number>
inline __attribute__((always_inline)) void products(double (*out)[wide], const Number* const* a,
                                                    const Number* const* b, std::size_t n) {
    using Run = typename Kind::Run;
    constexpr std::size_t length = sizeof(Run) / sizeof(Number);
    auto run = [](const Number* from) -> const Run& { return *reinterpret_cast<const Run*>(from); };
    Run sums[tall][wide] = {};
    std::size_t r = 0;
    for (; r + length <= n; r += length) {
        Run others[wide];
        for (int j = 0; j < wide; ++j) others[j] = run(b[j] + r);
        for (int i = 0; i < tall; ++i) {
            const Run x = run(a[i] + r);
            for (int j = 0; j < wide; ++j) sums[i][j] += x * others[j];
        }
    }
    for (int i = 0; i < tall; ++i)
        for (int j = 0; j < wide; ++j) {
            out[i][j] = total(sums[i][j]);
            for (std::size_t k = r; k < n; ++k) out[i][j] += double(a[i][k]) * b[j][k];
        }
}

constexpr std::size_t rows_at_once = 512;  // of doubles: their columns stay in the cache

template <class Kind, class Number>
inline __attribute__((always_inline)) void gram(double* out, const Number* const* columns,
                                                std::size_t size, std::size_t n) {
    constexpr std::size_t tall = 3, wide = 4, at_once = rows_at_once * 8 / sizeof(Number);
    for (std::size_t first = 0; first < n; first += at_once) {
        const std::size_t few = n - first < at_once ? n - first : at_once;
        // Beyond the last column the last one is taken again, and its products are not used.
        auto column = [&](std::size_t i) { return columns[i < size ? i : size - 1] + first; };
        for (std::size_t i = 0; i < size; i += tall) {
            const Number* a[tall] = {column(i), column(i + 1), column(i + 2)};
            const std::size_t last = i + tall < size ? i + tall : size;
            for (std::size_t j = 0; j < last; j += wide) {
                const Number* b[wide] = {column(j), column(j + 1), column(j + 2), column(j + 3)};
                double found[tall][wide];
                products<tall, wide, Kind>(found, a, b, few);
                for (std::size_t p = i; p < last; ++p)
                    for (std::size_t q = j; q < j + wide && q <= p; ++q)
                        out[p * size + q] += found[p - i][q - j];
            }
        }
    }
}

// Each of some columns with each of others.
template <int tall, int wide, class Kind>
inline __attribute__((always_inline)) void all_products(double* out, const double* const* a,
                                                        std::size_t n_a, const double* const* b,
                                                        std::size_t n_b, std::size_t n) {
    for (std::size_t k = 0; k < n_a * n_b; ++k) out[k] = 0;
    for (std::size_t first = 0; first < n; first += rows_at_once) {
        const std::size_t few = n - first < rows_at_once ? n - first : rows_at_once;
        for (std::size_t i = 0; i < n_a; i += tall)
            for (std::size_t j = 0; j < n_b; j += wide) {
                const double *own[tall], *other[wide];
                for (std::size_t p = 0; p < tall; ++p)
                    own[p] = a[i + p < n_a ? i + p : n_a - 1] + first;
                for (std::size_t q = 0; q < wide; ++q)
                    other[q] = b[j + q < n_b ? j + q : n_b - 1] + first;
                double found[tall][wide];
                products<tall, wide, Kind>(found, own, other, few);
                for (std::size_t p = 0; p < tall && i + p < n_a; ++p)
                    for (std::size_t q = 0; q < wide && j + q < n_b; ++q)
                        out[(i + p) * n_b + j + q] += found[p][q];
            }
    }
}

template <class Kind>
inline __attribute__((always_inline)) void all_products(double* out, const double* const* a,
                                                        std::size_t n_a, const double* const* b,
                                                        std::size_t n_b, std::size_t n) {
    if (n_a == 1)
        all_products<1, 8, Kind>(out, a, n_a, b, n_b, n);
    else
        all_products<3, 4, Kind>(out, a, n_a, b, n_b, n);
}

ISLAB_WIDE void wide_gram(double* out, const double* const* columns, std::size_t size,
                          std::size_t n) {
    gram<Wide>(out, columns, size, n);
}

ISLAB_WIDE void wide_gram(double* out, const float* const* columns, std::size_t size,
                          std::size_t n) {
    gram<WideSingle>(out, columns, size, n);
}

ISLAB_WIDE void wide_products(double* out, const double* const* a, std::size_t n_a,
                              const double* const* b, std::size_t n_b, std::size_t n) {
    all_products<Wide>(out, a, n_a, b, n_b, n);
}

ISLAB_FOR_EACH_PROCESSOR
void narrow_gram(double* out, const double* const* columns, std::size_t size, std::size_t n) {
    gram<Narrow>(out, columns, size, n);
}

ISLAB_FOR_EACH_PROCESSOR
void narrow_gram(double* out, const float* const* columns, std::size_t size, std::size_t n) {
    gram<NarrowSingle>(out, columns, size, n);
}

ISLAB_FOR_EACH_PROCESSOR
void narrow_products(double* out, const double* const* a, std::size_t n_a, const double* const* b,
                     std::size_t n_b, std::size_t n) {
    all_products<Narrow>(out, a, n_a, b, n_b, n);
}

}  // namespace

void add_gram(double* out, const double* const* columns, std::size_t size, std::size_t n) {
    is_wide ? wide_gram(out, columns, size, n) : narrow_gram(out, columns, size, n);
}

void add_gram(double* out, const float* const* columns, std::size_t size, std::size_t n) {
    is_wide ? wide_gram(out, columns, size, n) : narrow_gram(out, columns, size, n);
}

void cross_products(double* out, const double* const* a, std::size_t n_a, const double* const* b,
                    std::size_t n_b, std::size_t n) {
    is_wide ? wide_products(out, a, n_a, b, n_b, n) : narrow_products(out, a, n_a, b, n_b, n);
}

}  // namespace islab::sample
