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
        z = 0.5 * std::abs(z);
        const double rate = 0.125 * pi * pi + 0.5 * z * z;
        for (;;) {
            const double x = is_right_of_cut(z, rate) ? cut - std::log(uniform()) / rate
                                                      : inverse_gaussian_below(z);
            // Terms of the alternating series of the density are (2n + 1) e^(n (n + 1) / 2) times
            // the first one, and e is at most exp(-4 / cut).
            const double level = uniform();
            if (level <= 1 - 3 * largest_term) return 0.25 * x;
            const double e = std::exp(x > cut ? -pi * pi * x : -4 / x);
            double sum = 1, term = 1, power = 1;
            for (int n = 1;; ++n) {
                power *= e;
                term *= power;
                sum += (n % 2 ? -1 : 1) * (2 * n + 1) * term;
                if (n % 2 ? level <= sum : level > sum) break;
            }
            if (level <= sum) return 0.25 * x;
        }
    }

    // 0 to count - 1.
    int below(int count) { return static_cast<int>(uniform() * count); }

   private:
    // Where the proposal of a Polya-Gamma variable changes.
    static constexpr double cut = 0.64, pi = 3.141592653589793;
    static constexpr double largest_term = 0.0020;  // exp(-4 / cut) is 0.00193

    // Whether a proposal lies to the right of the cut. The chance falls as z grows, so that for
    // most draws the chances at the next lower and higher numbers of a table decide.
    bool is_right_of_cut(double z, double rate) {
        constexpr int size = 512, per_one = 64;
        static const std::array<double, size + 1> table = [] {
            std::array<double, size + 1> found;
            for (int k = 0; k <= size; ++k) {
                const double tilt = static_cast<double>(k) / per_one;
                found[k] = right_of_cut(tilt, 0.125 * pi * pi + 0.5 * tilt * tilt);
            }
            return found;
        }();
        constexpr double rounding = 1e-12;
        const double level = uniform();
        const int k = z * per_one < size ? static_cast<int>(z * per_one) : size;
        if (level > table[k] + rounding) return false;
        if (k < size && level < table[k + 1] - rounding) return true;
        return level < right_of_cut(z, rate);
    }

    // Share of the proposal that lies to the right of the cut, where it is exponential.
    static double right_of_cut(double z, double rate) {
        constexpr double root_half = 0.7071067811865476;
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
    double inverse_gaussian_below(double z) {
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
