// Sums over rows, compiled for each kind of processor.

#include "algebra.h"

namespace islab::sample {

namespace {

#if defined(__GNUC__)

typedef double Lanes __attribute__((vector_size(32), aligned(8)));
typedef float SingleLanes __attribute__((vector_size(32), aligned(4)));
constexpr std::size_t lanes = 4;

inline double total(const Lanes& a) { return (a[0] + a[1]) + (a[2] + a[3]); }
inline double total(const SingleLanes& a) {
    return double((a[0] + a[1]) + (a[2] + a[3])) + double((a[4] + a[5]) + (a[6] + a[7]));
}

// Twice as wide, where the processor is.
typedef double WideLanes __attribute__((vector_size(64), aligned(8)));
typedef float WideSingleLanes __attribute__((vector_size(64), aligned(4)));

inline __attribute__((always_inline)) double total(const WideLanes& a) {
    double sum = 0;
    for (int k = 0; k < 8; ++k) sum += a[k];
    return sum;
}
inline __attribute__((always_inline)) double total(const WideSingleLanes& a) {
    double sum = 0;
    for (int k = 0; k < 16; ++k) sum += a[k];
    return sum;
}

typedef long long Words __attribute__((vector_size(32)));

// exp(a) = 2^k exp(r) with |r| <= log(2) / 2, and the Taylor series of exp(r).
inline __attribute__((always_inline)) void exponential(Lanes& a) {
    constexpr double largest = 708;
    constexpr double shift = 0x1.8p52;  // adding it rounds to a whole number, kept in the low bits
    a = a > largest ? Lanes{} + largest : a;
    a = a < -largest ? Lanes{} - largest : a;
    const Lanes shifted = a * 1.4426950408889634 + shift;
    const Lanes k = shifted - shift;
    const Lanes r = (a - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b3ap-40;
    Lanes sum = r * (1.0 / 479001600) + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    a = (Lanes)((Words)sum + ((Words)shifted << 52));
}

#else  // Compilers without vector types: one number at a time.

typedef double Lanes;
typedef float SingleLanes;
constexpr std::size_t lanes = 1;

inline double total(double a) { return a; }
inline void exponential(Lanes& a) { a = std::exp(a); }

#endif

inline const Lanes& load(const double* from) { return *reinterpret_cast<const Lanes*>(from); }
inline void store(double* to, const Lanes& a) { *reinterpret_cast<Lanes*>(to) = a; }

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
double dot_squared(const double* a, const double* b, std::size_t n) {
    Lanes first{};
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) first += load(a + i) * load(b + i) * load(b + i);
    double sum = total(first);
    for (; i < n; ++i) sum += a[i] * b[i] * b[i];
    return sum;
}

ISLAB_FOR_EACH_PROCESSOR
void add_scaled(double* out, double factor, const double* a, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] += factor * a[i];
}

ISLAB_FOR_EACH_PROCESSOR
void exponentials(double* out, const double* a, std::size_t n) {
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        Lanes value = load(a + i);
        exponential(value);
        store(out + i, value);
    }
    double rest[lanes] = {};
    for (std::size_t k = i; k < n; ++k) rest[k - i] = a[k];
    Lanes value = load(rest);
    exponential(value);
    store(rest, value);
    for (std::size_t k = i; k < n; ++k) out[k] = rest[k - i];
}

ISLAB_FOR_EACH_PROCESSOR
double scaled_column(float* out, const float* factor, const float* pull, const double* a,
                     std::size_t n) {
    constexpr std::size_t at_once = 16;
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
        sum += pull[i] * a[i];
    }
    return sum;
}

namespace {

template <bool absolute, class Number>
inline __attribute__((always_inline)) Sums both_sums(const float* pull, const float* stiffness,
                                                     const Number* a, std::size_t n) {
    constexpr std::size_t at_once = 16;
    float first[at_once] = {}, second[at_once] = {};
    Sums sums{0, 0};
    std::size_t i = 0;
    for (; i + at_once <= n; i += at_once)
        for (std::size_t k = 0; k < at_once; ++k) {
            float value = static_cast<float>(a[i + k]);
            if (absolute) value = std::abs(value);
            first[k] += pull[i + k] * value;
            second[k] += stiffness[i + k] * value * value;
        }
    for (std::size_t k = 0; k < at_once; ++k) {
        sums.pull += first[k];
        sums.stiffness += second[k];
    }
    for (; i < n; ++i) {
        float value = static_cast<float>(a[i]);
        if (absolute) value = std::abs(value);
        sums.pull += pull[i] * value;
        sums.stiffness += stiffness[i] * value * value;
    }
    return sums;
}

}  // namespace

ISLAB_FOR_EACH_PROCESSOR
Sums newton_sums(const float* pull, const float* stiffness, const float* a, std::size_t n) {
    return both_sums<false>(pull, stiffness, a, n);
}

ISLAB_FOR_EACH_PROCESSOR
Sums newton_sums(const float* pull, const float* stiffness, const double* a, std::size_t n) {
    return both_sums<false>(pull, stiffness, a, n);
}

ISLAB_FOR_EACH_PROCESSOR
Sums bend_sums(const float* pull, const float* stiffness, const float* a, std::size_t n) {
    return both_sums<true>(pull, stiffness, a, n);
}

ISLAB_FOR_EACH_PROCESSOR
void multiply(double* out, const double* a, const double* b, double factor, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = a[i] * b[i] * factor;
}

namespace {

// Template arguments lose a type's alignment; members keep it.
struct Narrow {
    using Run = Lanes;
};
struct NarrowSingle {
    using Run = SingleLanes;
};

// The products of `wide` columns with four others. Twelve sums at once hide the latency of the
// additions, and each column that is loaded serves several of them.
template <int wide, class Kind, class Number>
inline __attribute__((always_inline)) void products(double (*out)[4], const Number* const* a,
                                                    const Number* const* b, std::size_t n) {
    using Run = typename Kind::Run;
    constexpr std::size_t length = sizeof(Run) / sizeof(Number);
    auto run = [](const Number* from) -> const Run& { return *reinterpret_cast<const Run*>(from); };
    Run sums[wide][4] = {};
    std::size_t r = 0;
    for (; r + length <= n; r += length) {
        const Run y0 = run(b[0] + r), y1 = run(b[1] + r), y2 = run(b[2] + r), y3 = run(b[3] + r);
        for (int i = 0; i < wide; ++i) {
            const Run x = run(a[i] + r);
            sums[i][0] += x * y0;
            sums[i][1] += x * y1;
            sums[i][2] += x * y2;
            sums[i][3] += x * y3;
        }
    }
    for (int i = 0; i < wide; ++i)
        for (int j = 0; j < 4; ++j) {
            out[i][j] = total(sums[i][j]);
            for (std::size_t k = r; k < n; ++k) out[i][j] += double(a[i][k]) * b[j][k];
        }
}

template <class Kind, class Number>
inline __attribute__((always_inline)) void gram(double* out, const Number* const* columns,
                                                std::size_t size, std::size_t n) {
    constexpr std::size_t tall = 3, wide = 4, rows = 512;  // rows whose columns stay in the cache
    for (std::size_t first = 0; first < n; first += rows) {
        const std::size_t few = n - first < rows ? n - first : rows;
        // Beyond the last column the last one is taken again, and its products are not used.
        auto column = [&](std::size_t i) { return columns[i < size ? i : size - 1] + first; };
        for (std::size_t i = 0; i < size; i += tall) {
            const Number* a[tall] = {column(i), column(i + 1), column(i + 2)};
            const std::size_t last = i + tall < size ? i + tall : size;
            for (std::size_t j = 0; j < last; j += wide) {
                const Number* b[wide] = {column(j), column(j + 1), column(j + 2), column(j + 3)};
                double found[tall][wide];
                products<tall, Kind>(found, a, b, few);
                for (std::size_t p = i; p < last; ++p)
                    for (std::size_t q = j; q < j + wide && q <= p; ++q)
                        out[p * size + q] += found[p - i][q - j];
            }
        }
    }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)

struct Wide {
    using Run = WideLanes;
};
struct WideSingle {
    using Run = WideSingleLanes;
};

__attribute__((target("avx2,fma,avx512f,avx512dq,avx512vl"))) void wide_gram(
    double* out, const double* const* columns, std::size_t size, std::size_t n) {
    gram<Wide>(out, columns, size, n);
}

__attribute__((target("avx2,fma,avx512f,avx512dq,avx512vl"))) void wide_gram(
    double* out, const float* const* columns, std::size_t size, std::size_t n) {
    gram<WideSingle>(out, columns, size, n);
}

const bool is_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");

#else

constexpr bool is_wide = false;
template <class Number>
void wide_gram(double*, const Number* const*, std::size_t, std::size_t) {}

#endif

ISLAB_FOR_EACH_PROCESSOR
void narrow_gram(double* out, const double* const* columns, std::size_t size, std::size_t n) {
    gram<Narrow>(out, columns, size, n);
}

ISLAB_FOR_EACH_PROCESSOR
void narrow_gram(double* out, const float* const* columns, std::size_t size, std::size_t n) {
    gram<NarrowSingle>(out, columns, size, n);
}

}  // namespace

void add_gram(double* out, const double* const* columns, std::size_t size, std::size_t n) {
    is_wide ? wide_gram(out, columns, size, n) : narrow_gram(out, columns, size, n);
}

void add_gram(double* out, const float* const* columns, std::size_t size, std::size_t n) {
    is_wide ? wide_gram(out, columns, size, n) : narrow_gram(out, columns, size, n);
}

}  // namespace islab::sample
