// Likelihoods of counts, whose predictor is the logarithm of a rate.

#pragma once

#include "likelihoods.h"

namespace {

// Above the largest log rate the rate goes on as a straight line. Without log y!.
template <class T>
struct Poisson {
    static constexpr const char* name = "poisson";
    T largest_log_rate;
    explicit Poisson(double constant) : largest_log_rate(T(constant)) {}
    double nll(const Outputs<T>& out) const {
        const T largest = largest_log_rate;
        return independent_outputs(out, [largest](Lanes<T> eta, Lanes<T> y, Index) -> Cost<T> {
            const Lanes<T> capped = at_most<T>(eta, largest);
            const Lanes<T> slope = exponential(capped);
            return {slope * (T(1) + eta - capped) - y * eta, slope - y};
        });
    }
};

// Poisson's rates with a gamma factor of variance `noise`. What depends on the count and the
// dispersion alone is summed in double precision: its parts are large and nearly cancel.
template <class T>
struct NegativeBinomial {
    static constexpr const char* name = "negative_binomial";
    T largest_log_rate;
    explicit NegativeBinomial(double constant) : largest_log_rate(T(constant)) {}

    Lanes<T> rate(Lanes<T> eta) const {
        const Lanes<T> capped = at_most<T>(eta, largest_log_rate);
        return exponential(capped) * (T(1) + eta - capped);
    }

    double nll(const Outputs<T>& out) const {
        double sum = 0;
        for (Index output = 0; output < out.n_outputs; ++output) {
            const double dispersion = double(out.noise[output]), size = 1 / dispersion;
            const double log_dispersion = std::log(dispersion), at_zero = std::lgamma(size);
            const Index first = output * out.stride;
            for (Index row = 0; row < out.n_rows; ++row) {
                const double weight = double(out.weight[row]);
                if (weight == 0) continue;
                const double eta = double(out.eta[first + row]), y = double(out.y[first + row]);
                const double capped = std::fmin(eta, double(largest_log_rate));
                const double beyond = 1 + eta - capped, mean = std::exp(capped) * beyond;
                sum += weight * ((y + size) * std::log1p(dispersion * mean) -
                                 y * (capped + std::log(beyond) + log_dispersion) -
                                 std::lgamma(y + size) + at_zero + std::lgamma(y + 1));
            }
            if (!out.gradient) continue;
            const T noise = out.noise[output];
            for (Index row = 0; row < out.n_rows; row += width<T>) {
                const Lanes<T> eta = load(out.eta + first + row);
                const Lanes<T> beyond = T(1) + eta - at_most<T>(eta, largest_log_rate);
                const Lanes<T> mean = rate(eta);
                const Lanes<T> slope =
                    (mean - load(out.y + first + row)) / (beyond * (T(1) + noise * mean));
                store(out.gradient + first + row, Lanes<T>(load(out.weight + row) * slope));
            }
        }
        return sum;
    }

    // A step down the gradient of the NLL by the logarithm of the dispersion.
    Lanes<T> noise_term(Lanes<T> eta, Lanes<T> y, T noise) const {
        const Lanes<T> rates = rate(eta);
        const double dispersion = double(noise), size = 1 / dispersion, at_zero = digamma(size);
        Lanes<T> terms{};
        for (Index lane = 0; lane < width<T>; ++lane) {
            const double mean = double(rates[lane]), count = double(y[lane]);
            const double slope = digamma(count + size) - at_zero - std::log1p(dispersion * mean);
            terms[lane] =
                T(dispersion * (1 - 4 * size * (slope + (mean - count) / (size + mean))) + 1e-4);
        }
        return terms;
    }

    // Of positive numbers: recurrence up to 8, then the asymptotic series.
    static double digamma(double z) {
        double below = 0;
        for (; z < 8; z += 1) below += 1 / z;
        const double s = 1 / (z * z);
        const double series =
            s * (1.0 / 12 -
                 s * (1.0 / 120 -
                      s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * 691.0 / 32760)))));
        return std::log(z) - 0.5 / z - series - below;
    }
};

// Counts that are 0 with constant odds beside those of a rate: Poisson counts, or ones with a
// dispersion. Noise are the dispersions, if there are any, and then the odds.
template <class T, bool dispersed>
struct ZeroInflated {
    double largest_log_rate;
    explicit ZeroInflated(double constant) : largest_log_rate(constant) {}
    Index n_noise(Index n_outputs) const { return dispersed ? 2 * n_outputs : n_outputs; }

    double nll(const Outputs<T>& out) const {
        double sum = 0;
        each_row(out, out.noise, [&](Index at, Index, double weight, const Row& row) {
            sum += weight * row.nll;
            if (out.gradient) out.gradient[at] = T(weight * row.gradient);
        });
        return sum;
    }

    // Steps down the gradient of the NLL by the logarithms of the dispersion and the odds.
    void follow(const Outputs<T>& out, double rate, T* noise) const {
        double weights = 0;
        for (Index i = 0; i < out.n_rows; ++i) weights += double(out.weight[i]);
        for (Index output = 0; output < out.n_outputs; ++output) {
            double by_odds = 0, by_dispersion = 0;
            each_row(out, noise, [&](Index, Index of, double weight, const Row& row) {
                if (of != output) return;
                by_odds += weight * row.by_odds;
                by_dispersion += weight * row.by_dispersion;
            });
            T& odds = noise[n_noise(out.n_outputs) - out.n_outputs + output];
            const double old = double(odds), first = double(noise[output]);
            // Other outputs do not depend on these numbers.
            if (dispersed)
                noise[output] = T(first + rate * (1e-4 - first * 4 * by_dispersion / weights));
            odds = T(old + rate * (1e-4 - old * 4 * by_odds / weights));
        }
    }

   private:
    struct Row {
        double nll, gradient, by_odds, by_dispersion;
    };

    template <class Body>
    void each_row(const Outputs<T>& out, const T* noise, Body body) const {
        const T* all_odds = noise + (n_noise(out.n_outputs) - out.n_outputs);
        for (Index output = 0; output < out.n_outputs; ++output) {
            const double odds = double(all_odds[output]), dispersion = double(noise[output]);
            for (Index i = 0; i < out.n_rows; ++i) {
                const Index at = output * out.stride + i;
                const Row row = one(double(out.eta[at]), double(out.y[at]), odds, dispersion);
                body(at, output, double(out.weight[i]), row);
            }
        }
    }

    Row one(double eta, double y, double odds, double dispersion) const {
        const double capped = std::fmin(eta, largest_log_rate), beyond = 1 + eta - capped;
        const double grown = std::exp(capped), rate = grown * beyond;
        Row row{};
        if (dispersed) {
            const double size = 1 / dispersion, more = std::log1p(dispersion * rate);
            row.nll = (y + size) * more - y * (capped + std::log(beyond) + std::log(dispersion)) -
                      std::lgamma(y + size) + std::lgamma(size) + std::lgamma(y + 1);
            row.gradient = (rate - y) / (beyond * (1 + dispersion * rate));
            const double digammas =
                NegativeBinomial<T>::digamma(y + size) - NegativeBinomial<T>::digamma(size);
            row.by_dispersion = size * (digammas - more + (rate - y) / (size + rate));
        } else {
            row.nll = rate - y * eta + std::lgamma(y + 1);
            row.gradient = grown - y;
        }
        double counted = 1;
        if (y == 0) {
            const double largest = std::fmax(std::log(odds), -row.nll);
            const double zero = largest + std::log(std::exp(std::log(odds) - largest) +
                                                   std::exp(-row.nll - largest));
            counted = std::exp(-row.nll - zero);
            row.nll = -zero;
        }
        row.nll += std::log1p(odds);
        row.gradient *= counted;
        row.by_dispersion *= counted;
        row.by_odds = odds / (1 + odds) - (1 - counted);
        return row;
    }
};

template <class T>
struct ZeroInflatedPoisson : ZeroInflated<T, false> {
    static constexpr const char* name = "zero_inflated_poisson";
    using ZeroInflated<T, false>::ZeroInflated;
};

template <class T>
struct ZeroInflatedNegativeBinomial : ZeroInflated<T, true> {
    static constexpr const char* name = "zero_inflated_negative_binomial";
    using ZeroInflated<T, true>::ZeroInflated;
};

}  // namespace
