// Standard normal numbers: xoshiro128++ in eight lanes, and the Box-Muller transform.
//
// Each lane is a generator of its own (Blackman and Vigna, 2021) with 128 bits of state, seeded
// from Python. The state is (4, 8) whatever the width of a vector, and so is the order of the
// numbers: the stream does not depend on the processor.

#pragma once

#include "lanes.h"

namespace {

constexpr int n_streams = 8;
constexpr int n_at_once = 2 * n_streams;  // Box-Muller turns two integers into two normals

using Words = Lanes<std::uint32_t>;
using Floats = Lanes<float>;

// What the generators give at once: a vector, or a part of one that is wider than their number.
#if defined(__GNUC__)
constexpr int stream_bytes = VECTOR_BYTES < 4 * n_streams ? VECTOR_BYTES : 4 * n_streams;
typedef std::uint32_t Streams __attribute__((vector_size(stream_bytes)));
#else
using Streams = std::uint32_t;
#endif
constexpr int n_lanes = sizeof(Streams) / sizeof(std::uint32_t);
constexpr int blocks_at_once = width<float> / n_lanes;

struct Parts {
    Streams of[blocks_at_once];
};

// A sweep over the streams takes whole vectors, and words and numbers lane by lane.
static_assert(n_streams % n_lanes == 0, "the streams must fill whole vectors");
static_assert(width<float> % n_lanes == 0, "vectors must fill wider ones");
static_assert(width<std::uint32_t> == width<float>, "a word for each number");
static_assert(n_at_once == 2 * n_streams, "Box-Muller makes two numbers of two words");

inline Streams rotate(Streams x, int by) { return (x << by) | (x >> (32 - by)); }

inline Streams next(Streams (&s)[4]) {
    const Streams result = rotate(s[0] + s[3], 7) + s[0];
    const Streams kept = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= kept;
    s[3] = rotate(s[3], 11);
    return result;
}

// The top 24 bits, which convert exactly.
inline Floats whole_24(Words word) { return to_float(bits<Lanes<std::int32_t>>(word >> 8)); }

// Two normals from two integers: a radius, and an angle in an eighth of the circle on each side
// of the axis, moved to another axis by two bits that the angle does not use.
inline void box_muller(Words first, Words second, Floats& z1, Floats& z2) {
    const float ulp = 1.0f / (1 << 24);
    const Floats uniform = (whole_24(first) + 0.5f) * ulp;
    const Floats radius = square_root<float>(-2.0f * logarithm(uniform));
    const Floats a = (whole_24(second) + (0.5f - (1 << 23))) * (1.57079633f * ulp);
    const Floats a2 = a * a;
    Floats s = a2 * -1.9515295891e-4f + 8.3321608736e-3f;
    s = s * a2 + -1.6666654611e-1f;
    s = s * a2 * a + a;
    Floats c = a2 * 2.443315711809948e-5f + -1.388731625493765e-3f;
    c = c * a2 + 4.166664568298827e-2f;
    c = c * (a2 * a2) - 0.5f * a2 + 1.0f;
    const auto swap = bits<Lanes<std::int32_t>>(second & 1u) != 0;
    const Words sign = (second & 2u) << 30;
    z1 = radius * bits<Floats>(bits<Words>(swap ? s : c) ^ sign);
    z2 = radius * bits<Floats>(bits<Words>(swap ? c : s) ^ sign);
}

// Writes the next n_at_once * n_blocks normals.
inline void normals(std::uint32_t* generator, float* out, Index n_blocks) {
    for (int lane = 0; lane < n_streams; lane += n_lanes) {
        Streams s[4];
        for (int word = 0; word < 4; ++word)
            std::memcpy(s + word, generator + word * n_streams + lane, sizeof *s);
        for (Index block = 0; block < n_blocks; block += blocks_at_once) {
            const Index left = n_blocks - block;
            const int now = left < blocks_at_once ? int(left) : blocks_at_once;
            Parts first{}, second{};
            for (int i = 0; i < now; ++i) {
                first.of[i] = next(s);
                second.of[i] = next(s);
            }
            Floats z1, z2;
            box_muller(bits<Words>(first), bits<Words>(second), z1, z2);
            first = bits<Parts>(z1);
            second = bits<Parts>(z2);
            for (int i = 0; i < now; ++i) {
                float* to = out + (block + i) * n_at_once + lane;
                std::memcpy(to, first.of + i, sizeof(Streams));
                std::memcpy(to + n_streams, second.of + i, sizeof(Streams));
            }
        }
        for (int word = 0; word < 4; ++word)
            std::memcpy(generator + word * n_streams + lane, s + word, sizeof *s);
    }
}

// Fills `count` numbers; what is left of the last block is thrown away, so that the state after
// a call depends on nothing else.
template <class T>
void fill_normal(std::uint32_t* generator, T* out, Index count) {
    constexpr Index portion = std::is_same_v<T, float> ? n_at_once : 16 * n_at_once;
    float some[portion];
    if constexpr (std::is_same_v<T, float>) {
        normals(generator, out, count / n_at_once);
        out += count / n_at_once * n_at_once;
        count %= n_at_once;
    }
    for (; count > 0; count -= portion, out += portion) {
        const Index n = count < portion ? count : portion;
        normals(generator, some, (n + n_at_once - 1) / n_at_once);
        for (Index i = 0; i < n; ++i) out[i] = T(some[i]);
    }
}

}  // namespace
