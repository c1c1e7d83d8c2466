// Sums over rows, compiled for each kind of processor.

#include "algebra.h"

namespace islab::sample {

namespace {

#if defined(__GNUC__)

typedef double Lanes __attribute__((vector_size(32), aligned(8)));
constexpr std::size_t lanes = 4;

inline double total(const Lanes& a) { return (a[0] + a[1]) + (a[2] + a[3]); }

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
constexpr std::size_t lanes = 1;

inline double total(const Lanes& a) { return a; }
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
void add_gram(double* out, const double* const* columns, std::size_t size, std::size_t n) {
    // Two by two: each column that is read serves two products.
    for (std::size_t i = 0; i < size; i += 2) {
        const double* a0 = columns[i];
        const double* a1 = i + 1 < size ? columns[i + 1] : a0;
        for (std::size_t j = 0; j <= i; j += 2) {
            const double* b0 = columns[j];
            const double* b1 = j + 1 < size ? columns[j + 1] : b0;
            Lanes s00{}, s01{}, s10{}, s11{};
            std::size_t r = 0;
            for (; r + lanes <= n; r += lanes) {
                const Lanes x0 = load(a0 + r), x1 = load(a1 + r), y0 = load(b0 + r),
                            y1 = load(b1 + r);
                s00 += x0 * y0;
                s01 += x0 * y1;
                s10 += x1 * y0;
                s11 += x1 * y1;
            }
            double t00 = total(s00), t01 = total(s01), t10 = total(s10), t11 = total(s11);
            for (; r < n; ++r) {
                t00 += a0[r] * b0[r];
                t01 += a0[r] * b1[r];
                t10 += a1[r] * b0[r];
                t11 += a1[r] * b1[r];
            }
            out[i * size + j] += t00;
            if (j + 1 <= i) out[i * size + j + 1] += t01;
            if (i + 1 < size) {
                out[(i + 1) * size + j] += t10;
                if (j + 1 < size) out[(i + 1) * size + j + 1] += t11;
            }
        }
    }
}

}  // namespace islab::sample
