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

    // Polya-Gamma of shape 1, tilted by z (Polson, Scott and Windle, 2013): the precision of a
    // logistic observation whose predictor is z.
    double polya_gamma(double z) {
        constexpr double cut = 0.64, pi = 3.141592653589793;
        z = 0.5 * std::abs(z);
        const double rate = 0.125 * pi * pi + 0.5 * z * z;
        const double right = right_of_cut(z, rate, cut);
        for (;;) {
            const double x = uniform() < right ? cut - std::log(uniform()) / rate
                                               : inverse_gaussian_below(z, cut);
            double sum = series(0, x, cut);
            const double level = uniform() * sum;
            for (int n = 1;; ++n) {
                if (n % 2) {
                    sum -= series(n, x, cut);
                    if (level <= sum) return 0.25 * x;
                } else {
                    sum += series(n, x, cut);
                    if (level > sum) break;
                }
            }
        }
    }

    // 0 to count - 1.
    int below(int count) { return static_cast<int>(uniform() * count); }

   private:
    // Terms of the alternating series of the density.
    static double series(int n, double x, double cut) {
        constexpr double pi = 3.141592653589793;
        const double k = (n + 0.5) * pi;
        if (x > cut) return k * std::exp(-0.5 * k * k * x);
        return k * std::pow(2 / (pi * x), 1.5) * std::exp(-2 * (n + 0.5) * (n + 0.5) / x);
    }

    // Share of the proposal that lies to the right of the cut, where it is exponential.
    static double right_of_cut(double z, double rate, double cut) {
        constexpr double pi = 3.141592653589793, root_half = 0.7071067811865476;
        const double root = std::sqrt(1 / cut);
        const double lower = 0.5 * std::erfc(-root * (cut * z - 1) * root_half);
        const double upper = 0.5 * std::erfc(root * (cut * z + 1) * root_half);
        const double log_scale = std::log(rate) + rate * cut;
        const double left = 4 / pi *
                            (std::exp(log_scale - z) * lower +
                             (upper > 0 ? std::exp(log_scale + z + std::log(upper)) : 0));
        return 1 / (1 + left);
    }

    // Inverse Gaussian with mean 1 / z and shape 1, given that it is below the cut.
    double inverse_gaussian_below(double z, double cut) {
        if (z * cut < 1) {
            for (;;) {
                double e, f;
                do {
                    e = -std::log(uniform());
                    f = -std::log(uniform());
                } while (e * e > 2 * f / cut);
                const double x = cut / ((1 + cut * e) * (1 + cut * e));
                if (uniform() < std::exp(-0.5 * z * z * x)) return x;
            }
        }
        const double mean = 1 / z;
        for (;;) {
            const double y = normal(), square = y * y;
            double x = mean + 0.5 * mean * mean * square -
                       0.5 * mean * std::sqrt(4 * mean * square + mean * mean * square * square);
            if (uniform() > mean / (mean + x)) x = mean * mean / x;
            if (x < cut) return x;
        }
    }

    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
};

}  // namespace islab::sample
