// Runs of numbers that a processor adds and multiplies at once.
//
// `Narrow` kinds are compiled for every processor that the loader knows, `Wide` ones for those
// with registers twice as wide.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>

namespace islab::sample {

#if defined(__GNUC__)

typedef double Lanes __attribute__((vector_size(32), aligned(8)));
typedef float SingleLanes __attribute__((vector_size(32), aligned(4)));
constexpr std::size_t lanes = 4;

typedef float HalfSingleLanes __attribute__((vector_size(16), aligned(4)));

inline __attribute__((always_inline)) double total(const Lanes& a) {
    return (a[0] + a[1]) + (a[2] + a[3]);
}
inline __attribute__((always_inline)) double total(const HalfSingleLanes& a) {
    return double(a[0] + a[1]) + double(a[2] + a[3]);
}

inline double total(const SingleLanes& a);

// The total of the lower half plus the upper one.
template <class Half, class Whole>
inline __attribute__((always_inline)) double total_of_halves(const Whole& a) {
    static_assert(2 * sizeof(Half) == sizeof(Whole));
    Half low, high;
    std::memcpy(&low, &a, sizeof(Half));
    std::memcpy(&high, reinterpret_cast<const char*>(&a) + sizeof(Half), sizeof(Half));
    low += high;
    return total(low);
}

inline __attribute__((always_inline)) double total(const SingleLanes& a) {
    return total_of_halves<HalfSingleLanes>(a);
}

// Twice as wide, where the processor is.
typedef double WideLanes __attribute__((vector_size(64), aligned(8)));
typedef float WideSingleLanes __attribute__((vector_size(64), aligned(4)));

inline __attribute__((always_inline)) double total(const WideLanes& a) {
    return total_of_halves<Lanes>(a);
}
inline __attribute__((always_inline)) double total(const WideSingleLanes& a) {
    return total_of_halves<SingleLanes>(a);
}

typedef long long Words __attribute__((vector_size(32)));
typedef long long WideWords __attribute__((vector_size(64)));

// exp(a) = 2^k exp(r) with |r| <= log(2) / 2, and the Taylor series of exp(r).
template <class Kind>
inline __attribute__((always_inline)) void exponential(typename Kind::Run& a) {
    using Run = typename Kind::Run;
    using Whole = typename Kind::Whole;
    constexpr double largest = 708;
    constexpr double shift = 0x1.8p52;  // adding it rounds to a whole number, kept in the low bits
    a = a > largest ? Run{} + largest : a;
    a = a < -largest ? Run{} - largest : a;
    const Run shifted = a * 1.4426950408889634 + shift;
    const Run k = shifted - shift;
    const Run r = (a - k * 0x1.62e42fefa0000p-1) - k * 0x1.cf79abc9e3b3ap-40;
    Run sum = r * (1.0 / 479001600) + 1.0 / 39916800;
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
    a = (Run)((Whole)sum + ((Whole)shifted << 52));
}

#else  // Compilers without vector types: one number at a time.

typedef double Lanes;
typedef float SingleLanes;
constexpr std::size_t lanes = 1;

typedef long long Words;

inline double total(double a) { return a; }
template <class Kind>
inline void exponential(double& a) {
    a = std::exp(a);
}

#endif

// Template arguments lose a type's alignment; members keep it.
struct Narrow {
    using Run = Lanes;
    using Whole = Words;
};
struct NarrowSingle {
    using Run = SingleLanes;
};

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define ISLAB_WIDE __attribute__((target("avx2,fma,avx512f,avx512dq,avx512vl")))

struct Wide {
    using Run = WideLanes;
    using Whole = WideWords;
};
struct WideSingle {
    using Run = WideSingleLanes;
};

const bool is_wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
#else
#define ISLAB_WIDE

using Wide = Narrow;
using WideSingle = NarrowSingle;

constexpr bool is_wide = false;
#endif

}  // namespace islab::sample
