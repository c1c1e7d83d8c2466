// Random numbers of a chain: xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64.
//
// A chain owns its generator, so that its draws depend on its seed alone, not on the number of
// threads.

#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace islab::sample {

class Random {
   public:
    explicit Random(std::uint64_t seed) {
        for (auto& word : state) {
            seed += 0x9e3779b97f4a7c15ULL;
            std::uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
            word = z ^ (z >> 31);
        }
    }

    std::array<std::uint64_t, 4> state;

    std::uint64_t bits() {
        const std::uint64_t result = rotate(state[0] + state[3], 23) + state[0];
        const std::uint64_t t = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= t;
        state[3] = rotate(state[3], 45);
        return result;
    }

    // In (0, 1): never 0, so that logarithms are finite.
    double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1.0p-53; }

    double normal() {
        constexpr double two_pi = 6.283185307179586;
        const double radius = std::sqrt(-2 * std::log(uniform()));
        return radius * std::cos(two_pi * uniform());
    }

    // Unit rate; Marsaglia and Tsang (2000).
    double gamma(double shape) {
        if (shape < 1) return gamma(shape + 1) * std::pow(uniform(), 1 / shape);
        const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
        for (;;) {
            const double x = normal(), v = std::pow(1 + c * x, 3);
            if (v > 0 && std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
                return d * v;
        }
    }

    double inverse_gamma(double shape, double scale) { return scale / gamma(shape); }

    // 0 to count - 1.
    int below(int count) { return static_cast<int>(uniform() * count); }

   private:
    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
};

}  // namespace islab::sample
