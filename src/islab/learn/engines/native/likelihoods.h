// Likelihoods of classes and of numbers, and what every likelihood is given.
//
// Each has nll(outputs): the sum of the weighted NLL of the rows, and its gradient if wanted. What
// it learns besides the weights follows the mean of its noise_term, or has a way of its own,
// follow.

#pragma once

#include "lanes.h"

namespace {

// A batch's outputs (outputs, rows).
template <class T>
struct Outputs {
    Index n_outputs, n_rows, stride;
    const T *eta, *y;
    const T* weight;  // (rows,), 0 in the padding
    const T* noise;   // what the likelihood learns besides, mostly a number for each output
    T* gradient;      // null if only the NLL is wanted
};

template <class T>
struct Cost {
    Lanes<T> nll, gradient;
};

// Sums cost(eta, y, output) over all outputs and rows.
template <class T, class Function>
double independent_outputs(const Outputs<T>& out, Function cost) {
    Lanes<T> sum{};
    for (Index row = 0; row < out.n_rows; row += width<T>) {
        const Lanes<T> weight = load(out.weight + row);
        for (Index output = 0; output < out.n_outputs; ++output) {
            const Index at = output * out.stride + row;
            const Cost<T> part = cost(load(out.eta + at), load(out.y + at), output);
            sum += weight * part.nll;
            if (out.gradient) store(out.gradient + at, Lanes<T>(weight * part.gradient));
        }
    }
    return double(total<T>(sum));
}

template <class T>
struct Bernoulli {
    static constexpr const char* name = "bernoulli";
    explicit Bernoulli(double) {}
    double nll(const Outputs<T>& out) const {
        return independent_outputs(out, [](Lanes<T> eta, Lanes<T> y, Index) -> Cost<T> {
            const Logistic<T> part = logistic<T>(eta);
            return {part.softplus - y * eta, part.sigmoid - y};
        });
    }
};

template <class T>
struct Categorical {
    static constexpr const char* name = "categorical";
    explicit Categorical(double) {}
    double nll(const Outputs<T>& out) const {
        Lanes<T> sum{};
        for (Index row = 0; row < out.n_rows; row += width<T>) {
            const T *eta = out.eta + row, *y = out.y + row;
            const Lanes<T> weight = load(out.weight + row);
            Lanes<T> largest = load(eta);
            for (Index output = 1; output < out.n_outputs; ++output) {
                const Lanes<T> other = load(eta + output * out.stride);
                largest = other > largest ? other : largest;
            }
            Lanes<T> grown{}, chosen{};
            for (Index output = 0; output < out.n_outputs; ++output) {
                const Lanes<T> shifted = load(eta + output * out.stride) - largest;
                grown += exponential(shifted);
                chosen += load(y + output * out.stride) * shifted;
            }
            sum += weight * (logarithm(grown) - chosen);
            if (!out.gradient) continue;
            const Lanes<T> inverse = T(1) / grown;
            for (Index output = 0; output < out.n_outputs; ++output) {
                const Index at = output * out.stride;
                const Lanes<T> share = exponential(load(eta + at) - largest) * inverse;
                store(out.gradient + row + at, Lanes<T>(weight * (share - load(y + at))));
            }
        }
        return double(total<T>(sum));
    }
};

template <class T>
struct Gaussian {
    static constexpr const char* name = "gaussian";
    explicit Gaussian(double) {}
    double nll(const Outputs<T>& out) const {
        const double log_2pi = 1.8378770664093453;
        return independent_outputs(out, [&](Lanes<T> eta, Lanes<T> y, Index output) -> Cost<T> {
            const T precision = 1 / out.noise[output];
            const T constant = T(0.5 * (log_2pi + std::log(double(out.noise[output]))));
            const Lanes<T> error = eta - y;
            return {constant + T(0.5) * precision * error * error, precision * error};
        });
    }
};

// Noise with heavy tails; `noise` is the square of its scale.
template <class T>
struct StudentT {
    static constexpr const char* name = "student_t";
    double df;
    explicit StudentT(double constant) : df(constant) {}
    double nll(const Outputs<T>& out) const {
        const double log_pi = 1.1447298858494002;
        const double known =
            std::lgamma((df + 1) / 2) - std::lgamma(df / 2) - 0.5 * (log_pi + std::log(df));
        const T n = T(df);
        return independent_outputs(out, [&](Lanes<T> eta, Lanes<T> y, Index output) -> Cost<T> {
            const T noise = out.noise[output];
            const T constant = T(0.5 * std::log(double(noise)) - known);
            const Lanes<T> error = eta - y, square = error * error;
            const Lanes<T> tail = logarithm(Lanes<T>(T(1) + square / (n * noise)));
            return {constant + T(0.5) * (n + T(1)) * tail,
                    (n + T(1)) * error / (n * noise + square)};
        });
    }
    Lanes<T> noise_term(Lanes<T> eta, Lanes<T> y, T noise) const {
        const Lanes<T> error = y - eta, square = error * error;
        return T(df + 1) * square / (T(df) + square / noise);
    }
};

// Normal noise whose log SD is predicted too: the first half of the outputs are means, the second
// half log SDs, beyond the constant as there. The second half of y is not read.
template <class T>
struct Heteroscedastic {
    static constexpr const char* name = "heteroscedastic";
    T largest_log_sd;
    explicit Heteroscedastic(double constant) : largest_log_sd(T(constant)) {}

    double nll(const Outputs<T>& out) const {
        const T half_log_2pi = T(0.9189385332046727);
        const Index half = out.n_outputs / 2;
        Lanes<T> sum{};
        for (Index row = 0; row < out.n_rows; row += width<T>) {
            const Lanes<T> weight = load(out.weight + row);
            for (Index target = 0; target < half; ++target) {
                const Index at = target * out.stride + row, spread = at + half * out.stride;
                const Lanes<T> raw = load(out.eta + spread);
                const Lanes<T> log_sd =
                    at_least<T>(at_most<T>(raw, largest_log_sd), -largest_log_sd);
                const Lanes<T> precision = exponential(Lanes<T>(T(-2) * log_sd));
                const Lanes<T> error = load(out.y + at) - load(out.eta + at);
                const Lanes<T> square = error * error * precision;
                sum += weight * (half_log_2pi + log_sd + T(0.5) * square);
                if (!out.gradient) continue;
                store(out.gradient + at, Lanes<T>(-weight * error * precision));
                const Lanes<T> inside =
                    ((raw > -largest_log_sd) & (raw < largest_log_sd)) ? T(1) - square : fill<T>(0);
                store(out.gradient + spread, Lanes<T>(weight * inside));
            }
        }
        return double(total<T>(sum));
    }
};

// One of several ordered classes by cumulative logits: y is the class, counted from 1, and noise
// are the gaps between thresholds, the first of which is 0. Its constant is the number of gaps.
template <class T>
struct Ordinal {
    static constexpr const char* name = "ordinal";
    static constexpr Index most_gaps = 254;
    Index n_gaps;
    explicit Ordinal(double constant)
        : n_gaps(constant >= 0 && constant <= double(most_gaps) ? Index(constant) : 0) {}
    Index n_noise(Index) const { return n_gaps; }

    double nll(const Outputs<T>& out) const {
        double sum = 0;
        each_row(out, out.noise, [&](Index at, double weight, const Row& row) {
            sum += weight * row.nll;
            if (out.gradient) out.gradient[at] = T(weight * (row.above - row.below));
        });
        return sum;
    }

    // Each gap takes a step down the gradient of the NLL by its logarithm.
    void follow(const Outputs<T>& out, double rate, T* gaps) const {
        double slopes[most_gaps + 2] = {}, own[most_gaps + 2] = {}, weights = 0;
        for (Index i = 0; i < out.n_rows; ++i) weights += double(out.weight[i]);
        each_row(out, gaps, [&](Index, double weight, const Row& row) {
            // A gap moves all thresholds above it: these are summed up below.
            if (row.level >= 2) slopes[row.level - 2] -= weight * row.above;
            if (row.level >= 3) slopes[row.level - 3] += weight * row.below;
            if (row.level >= 2 && row.level <= n_gaps + 1) own[row.level - 2] += weight;
        });
        double sum = 0;
        for (Index k = n_gaps - 1; k >= 0; --k) {
            const double gap = double(gaps[k]);
            sum += slopes[k];
            const double slope = (sum - own[k] / std::expm1(gap)) / weights;
            gaps[k] = T(gap * (1 - rate * slope * gap / (1 + gap)));
        }
    }

   private:
    // NLL of a row, and its slopes by minus the threshold above and by the one below.
    struct Row {
        Index level;
        double nll = 0, above = 0, below = 0;
    };

    template <class Body>
    void each_row(const Outputs<T>& out, const T* gaps, Body body) const {
        double cuts[most_gaps + 1] = {}, widths[most_gaps + 1] = {};
        for (Index k = 0; k < n_gaps; ++k) {
            cuts[k + 1] = cuts[k] + double(gaps[k]);
            widths[k + 1] = std::log(-std::expm1(-double(gaps[k])));
        }
        for (Index output = 0; output < out.n_outputs; ++output)
            for (Index i = 0; i < out.n_rows; ++i) {
                const Index at = output * out.stride + i;
                const double weight = double(out.weight[i]), eta = double(out.eta[at]);
                const T y = out.y[at];
                Row row{y > T(1) ? (y < T(n_gaps + 2) ? Index(y) : n_gaps + 2) : 1};
                if (row.level > 1) {
                    row.nll += softplus(cuts[row.level - 2] - eta);
                    row.below = 1 / (1 + std::exp(eta - cuts[row.level - 2]));
                }
                if (row.level < n_gaps + 2) {
                    row.nll += softplus(eta - cuts[row.level - 1]) - widths[row.level - 1];
                    row.above = 1 / (1 + std::exp(cuts[row.level - 1] - eta));
                }
                body(at, weight, row);
            }
    }

    static double softplus(double z) {
        return std::fmax(z, 0.0) + std::log1p(std::exp(-std::fabs(z)));
    }
};

}  // namespace
