// A vector of numbers that reads like one number, and the functions of it that networks need.
//
// With GCC and Clang it has VECTOR_BYTES bytes; elsewhere it is one number and the same code is
// scalar. Everything is accurate to a few units in the last place.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>

namespace {

#if defined(__GNUC__)

typedef double Vec __attribute__((vector_size(VECTOR_BYTES)));
typedef std::int64_t Mask __attribute__((vector_size(VECTOR_BYTES)));

inline Vec fill(double value) { return Vec{} + value; }
inline Vec select(Mask where, Vec a, Vec b) { return where ? a : b; }

inline bool any(Mask where) {
    std::int64_t found = 0;
    for (unsigned k = 0; k < sizeof where / 8; ++k) found |= where[k];
    return found != 0;
}

inline double total(Vec a) {
    double sum = 0;
    for (unsigned k = 0; k < sizeof a / 8; ++k) sum += a[k];
    return sum;
}

inline Vec magnitude(Vec a) { return (Vec)((Mask)a & std::numeric_limits<std::int64_t>::max()); }

// exp(a) = 2^k exp(r) with |r| <= log(2) / 2, and the Taylor series of exp(r). What would be
// smaller than the smallest normal number is 0.
inline Vec exponential(Vec given) {
    constexpr double largest = 0x1.62e42fefa39efp+9, smallest = -0x1.6232bdd7abcd2p+9;
    constexpr double shift = 0x1.8p52;  // adding it rounds to a whole number, kept in the low bits
    Vec a = select(given > largest, fill(largest), given);
    a = select(given < smallest, fill(smallest), a);
    const Vec shifted = a * 1.4426950408889634 + shift;
    const Vec k = shifted - shift;
    const Vec r = (a - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b3ap-40;
    Vec sum = r * (1.0 / 479001600) + 1.0 / 39916800;
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
    const Vec found = (Vec)((Mask)sum + ((Mask)shifted << 52));
    const Vec inside = select(given < smallest, Vec{}, found);
    return select(given > largest, fill(std::numeric_limits<double>::infinity()), inside);
}

inline Vec square_root(Vec a) {
    for (unsigned k = 0; k < sizeof a / 8; ++k) a[k] = std::sqrt(a[k]);
    return a;
}

#else

typedef double Vec;
typedef bool Mask;

inline Vec fill(double value) { return Vec{} + value; }
inline Vec select(Mask where, Vec a, Vec b) { return where ? a : b; }
inline bool any(Mask where) { return where; }
inline double total(Vec a) { return a; }
inline Vec magnitude(Vec a) { return std::fabs(a); }
inline Vec exponential(Vec a) { return std::exp(a); }
inline Vec square_root(Vec a) { return std::sqrt(a); }

#endif

constexpr std::size_t lanes = sizeof(Vec) / sizeof(double);

inline Vec load(const double* from) {
    Vec a;
    std::memcpy(&a, from, sizeof a);
    return a;
}

inline void store(double* to, Vec a) { std::memcpy(to, &a, sizeof a); }

inline Vec smaller(Vec a, Vec b) { return select(a < b, a, b); }
inline Vec larger(Vec a, Vec b) { return select(a > b, a, b); }

}  // namespace
