// Lanes: a SIMD vector that reads like a number, and the elementary functions on it.
//
// With GCC and Clang `Lanes<T>` is their vector type of VECTOR_BYTES bytes; elsewhere it is one
// number and the same code is scalar. Single precision has polynomials that stay in vectors and
// are accurate to about one unit in the last place; double precision calls the library.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernel.h"

namespace {

using islab::Index;

#if defined(__GNUC__)
template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
};
template <class T>
using Lanes = typename VectorOf<T>::type;
#else
template <class T>
using Lanes = T;
#endif

template <class T>
constexpr int width = sizeof(Lanes<T>) / sizeof(T);

// -- memory -----------------------------------------------------------------------------------

template <class T>
inline Lanes<T> load(const T* from) {
    Lanes<T> lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

template <class T>
inline void store(T* to, Lanes<T> lanes) {
    std::memcpy(to, &lanes, sizeof lanes);
}

template <class T>
inline Lanes<T> fill(T value) {
    return Lanes<T>{} + value;
}

// A place in flat vectors: a whole vector, or the last few numbers of a run.
template <class T>
struct Whole {
    Index at;
    Lanes<T> load(const T* from) const { return ::load(from + at); }
    void store(T* to, Lanes<T> lanes) const { ::store(to + at, lanes); }
};

template <class T>
struct Rest {
    Index at, count;
    Lanes<T> load(const T* from) const {
        Lanes<T> lanes{};
        std::memcpy(&lanes, from + at, count * sizeof(T));
        return lanes;
    }
    void store(T* to, Lanes<T> lanes) const { std::memcpy(to + at, &lanes, count * sizeof(T)); }
};

// Calls body(place) over [begin, end).
template <class T, class Body>
inline void sweep(Index begin, Index end, Body body) {
    Index at = begin;
    for (; at + width<T> <= end; at += width<T>) body(Whole<T>{at});
    if (at < end) body(Rest<T>{at, end - at});
}

// -- functions --------------------------------------------------------------------------------

template <class To, class From>
inline To bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

inline Lanes<float> to_float(Lanes<std::int32_t> whole) {
#if defined(__GNUC__)
    return __builtin_convertvector(whole, Lanes<float>);
#else
    return static_cast<float>(whole);
#endif
}

template <class T, class Function>
inline Lanes<T> each(Lanes<T> x, Function function) {
#if defined(__GNUC__)
    for (int i = 0; i < width<T>; ++i) x[i] = function(x[i]);
    return x;
#else
    return function(x);
#endif
}

template <class T>
inline T total(Lanes<T> x) {
#if defined(__GNUC__)
    T sum = 0;
    for (int i = 0; i < width<T>; ++i) sum += x[i];
    return sum;
#else
    return x;
#endif
}

#if defined(__GNUC__)
// Lanes of two vectors, numbered through.
template <class T, int... Lane>
inline Lanes<T> pick(Lanes<T> a, Lanes<T> b, std::integer_sequence<int, Lane...>) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, Lane...);
#else
    using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    return __builtin_shuffle(a, b, Lanes<Whole>{Lane...});
#endif
}

// Adds lanes `Step` apart: of a where the lane's number has no such bit, of b where it has.
template <int Step, class T, int... Lane>
inline Lanes<T> fold(Lanes<T> a, Lanes<T> b, std::integer_sequence<int, Lane...>) {
    constexpr int w = width<T>;
    using Near = std::integer_sequence<int, (Lane & Step ? w + Lane - Step : Lane)...>;
    using Far = std::integer_sequence<int, (Lane & Step ? w + Lane : Lane + Step)...>;
    return pick<T>(a, b, Near()) + pick<T>(a, b, Far());
}

// Lane i of the result is the sum of the lanes of x[i], as far as there are `Count` of them.
template <int Count, int Step, class T>
inline Lanes<T> fold_all(const Lanes<T>* x) {
    if constexpr (Count <= 0)
        return Lanes<T>{};
    else if constexpr (Step == 0)
        return x[0];
    else
        return fold<Step, T>(fold_all<(Count < Step ? Count : Step), Step / 2, T>(x),
                             fold_all<Count - Step, Step / 2, T>(x + Step),
                             std::make_integer_sequence<int, width<T>>());
}
#endif

// The sums of each of `Count` vectors, together: shuffles then serve several at once.
template <int Count, class T>
inline void totals(const Lanes<T>* x, T* to) {
#if defined(__GNUC__)
    constexpr int now = Count < width<T> ? Count : width<T>;
    const Lanes<T> sums = fold_all<now, width<T> / 2, T>(x);
    std::memcpy(to, &sums, now * sizeof(T));
    if constexpr (Count > now) totals<Count - now, T>(x + now, to + now);
#else
    for (int i = 0; i < Count; ++i) to[i] = x[i];
#endif
}

template <class T>
inline Lanes<T> square_root(Lanes<T> x) {
    return each<T>(x, [](T lane) { return std::sqrt(lane); });
}

// Bounds that let NaN through.
template <class T>
inline Lanes<T> at_most(Lanes<T> x, T bound) {
    return x > bound ? fill<T>(bound) : x;
}

template <class T>
inline Lanes<T> at_least(Lanes<T> x, T bound) {
    return x < bound ? fill<T>(bound) : x;
}

template <class T>
inline Lanes<T> magnitude(Lanes<T> x) {
    return x < T(0) ? -x : x;
}

// exp(x) = 2^n exp(r), |r| <= log(2)/2, exp(r) by a polynomial; x is held in [-87.3, 88].
inline Lanes<float> exponential(Lanes<float> x) {
    using Ints = Lanes<std::int32_t>;
    x = at_least<float>(at_most<float>(x, 88.0f), -87.3f);
    // Adding 1.5 * 2^23 leaves the nearest whole number in the low bits.
    const float shift = 12582912.0f;
    const Lanes<float> shifted = x * 1.44269504f + shift;
    const Lanes<float> n = shifted - shift;
    const Lanes<float> r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    const Lanes<float> r2 = r * r;
    const Lanes<float> low = r * 1.6666665459e-1f + 5.0000001201e-1f;
    const Lanes<float> middle = r * 8.3334519073e-3f + 4.1665795894e-2f;
    const Lanes<float> high = r * 1.9875691500e-4f + 1.3981999507e-3f;
    const Lanes<float> p = ((high * r2 + middle) * r2 + low) * r2 + (r + 1.0f);
    const Ints scale = (bits<Ints>(shifted) << 23) + (127 << 23);
    return p * bits<Lanes<float>>(scale);
}

// log(x) = e log(2) + log(m), m in [sqrt(1/2), sqrt(2)), log(m) by a polynomial; x > 0.
inline Lanes<float> logarithm(Lanes<float> x) {
    using Ints = Lanes<std::int32_t>;
    const std::int32_t root_half = 0x3f3504f3;
    const Ints offset = bits<Ints>(x) - root_half;
    const Ints exponent = offset >> 23;
    const Lanes<float> m = bits<Lanes<float>>(Ints((offset & 0x007fffff) + root_half));
    const Lanes<float> r = m - 1.0f, e = to_float(exponent), r2 = r * r;
    const Lanes<float> r4 = r2 * r2;
    const Lanes<float> p0 = r * -2.4999993993e-1f + 3.3333331174e-1f;
    const Lanes<float> p2 = r * -1.6668057665e-1f + 2.0000714765e-1f;
    const Lanes<float> p4 = r * -1.2420140846e-1f + 1.4249322787e-1f;
    const Lanes<float> p6 = r * -1.1514610310e-1f + 1.1676998740e-1f;
    const Lanes<float> p8 = r4 * 7.0376836292e-2f + (p6 * r2 + p4);
    const Lanes<float> p = p8 * r4 + (p2 * r2 + p0);
    const Lanes<float> small = r * r2 * p + e * -2.12194440e-4f - 0.5f * r2;
    return small + r + e * 0.693359375f;
}

inline Lanes<double> exponential(Lanes<double> x) {
    return each<double>(x, [](double lane) { return std::exp(lane); });
}

inline Lanes<double> logarithm(Lanes<double> x) {
    return each<double>(x, [](double lane) { return std::log(lane); });
}

// sigmoid and softplus share their exponential and their division.
template <class T>
struct Logistic {
    Lanes<T> sigmoid, softplus;
};

template <class T>
inline Logistic<T> logistic(Lanes<T> x) {
    const Lanes<T> e = exponential(-magnitude<T>(x));
    const Lanes<T> sum = T(1) + e;
    const Lanes<T> inverse = T(1) / sum;
    // What rounding took from 1 + e, so that small e keep their digits.
    const Lanes<T> log1p = logarithm(sum) + (e - (sum - T(1))) * inverse;
    return {(x < T(0) ? e : fill<T>(1)) * inverse, (x < T(0) ? fill<T>(0) : x) + log1p};
}

// sigmoid(x) and sigmoid(-x), neither of them by subtraction from 1.
template <class T>
struct Sigmoids {
    Lanes<T> yes, no;
};

template <class T>
inline Sigmoids<T> sigmoids(Lanes<T> x) {
    const Lanes<T> e = exponential(-magnitude<T>(x));
    const Lanes<T> large = T(1) / (T(1) + e), small = e * large;
    return {x < T(0) ? small : large, x < T(0) ? large : small};
}

template <class T>
inline Lanes<T> hyperbolic_tangent(Lanes<T> x) {
    return T(2) * sigmoids<T>(T(2) * x).yes - T(1);
}

}  // namespace
