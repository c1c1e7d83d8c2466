// Likelihoods and activations: each is a struct here and an entry of the lists at the end.
//
// A family is built from the one constant that Python gives with its name. Nothing else in the
// kernel asks which family it has; a family that is not here is learned by torch.

#pragma once

#include "lanes.h"

namespace {

using islab::Family;

// -- activations ------------------------------------------------------------------------------

// Each has its value, and its slope from its value.

template <class T>
struct Relu {
    static constexpr const char* name = "relu";
    explicit Relu(double) {}
    Lanes<T> value(Lanes<T> z) const { return at_least<T>(z, T(0)); }
    Lanes<T> slope(Lanes<T> h) const { return h > T(0) ? fill<T>(1) : fill<T>(0); }
};

template <class T>
struct LeakyRelu {
    static constexpr const char* name = "leaky_relu";
    T below;
    explicit LeakyRelu(double constant) : below(T(constant)) {}
    Lanes<T> value(Lanes<T> z) const { return z > T(0) ? z : below * z; }
    Lanes<T> slope(Lanes<T> h) const { return h > T(0) ? fill<T>(1) : fill<T>(below); }
};

template <class T>
struct Sigmoid {
    static constexpr const char* name = "sigmoid";
    explicit Sigmoid(double) {}
    Lanes<T> value(Lanes<T> z) const { return sigmoids<T>(z).yes; }
    Lanes<T> slope(Lanes<T> h) const { return h * (T(1) - h); }
};

template <class T>
struct Tanh {
    static constexpr const char* name = "tanh";
    explicit Tanh(double) {}
    Lanes<T> value(Lanes<T> z) const { return hyperbolic_tangent<T>(z); }
    Lanes<T> slope(Lanes<T> h) const { return T(1) - h * h; }
};

template <class T>
struct Identity {
    static constexpr const char* name = "identity";
    explicit Identity(double) {}
    Lanes<T> value(Lanes<T> z) const { return z; }
    Lanes<T> slope(Lanes<T>) const { return fill<T>(1); }
};

// -- likelihoods ------------------------------------------------------------------------------

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

// Each has nll(outputs): the sum of the weighted NLL of the rows, and its gradient if wanted.

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
                    (raw > -largest_log_sd) & (raw < largest_log_sd) ? T(1) - square : fill<T>(0);
                store(out.gradient + spread, Lanes<T>(weight * inside));
            }
        }
        return double(total<T>(sum));
    }
};

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

// What the noise follows the mean of: the squared error, or what a likelihood says.
template <class T, class Likelihood>
auto noise_term(const Likelihood& likelihood, Lanes<T> eta, Lanes<T> y, T noise, int)
    -> decltype(likelihood.noise_term(eta, y, noise)) {
    return likelihood.noise_term(eta, y, noise);
}

template <class T, class Likelihood>
Lanes<T> noise_term(const Likelihood&, Lanes<T> eta, Lanes<T> y, T, long) {
    const Lanes<T> error = y - eta;
    return error * error;
}

// Noise moves to the batch's mean by `rate`, unless a likelihood has its own way.
template <class T, class Likelihood>
auto follow_noise(const Likelihood& likelihood, const Outputs<T>& out, double rate, T* noise, int)
    -> decltype(likelihood.follow(out, rate, noise)) {
    likelihood.follow(out, rate, noise);
}

template <class T, class Likelihood>
void follow_noise(const Likelihood& likelihood, const Outputs<T>& out, double rate, T* noise,
                  long) {
    Lanes<T> rows{};
    for (Index row = 0; row < out.n_rows; row += width<T>) rows += load(out.weight + row);
    const T n_rows = total<T>(rows);
    for (Index output = 0; output < out.n_outputs; ++output) {
        Lanes<T> sum{};
        for (Index row = 0; row < out.n_rows; row += width<T>) {
            const Index at = output * out.stride + row;
            sum += load(out.weight + row) * noise_term<T>(likelihood, load(out.eta + at),
                                                          load(out.y + at), noise[output], 0);
        }
        noise[output] += T(rate) * (total<T>(sum) / n_rows - noise[output]);
    }
}

// How many numbers a likelihood learns besides the weights: one for each output, or its own.
template <class Likelihood>
auto noise_size(const Likelihood& likelihood, Index n_outputs, int)
    -> decltype(likelihood.n_noise(n_outputs)) {
    return likelihood.n_noise(n_outputs);
}

template <class Likelihood>
Index noise_size(const Likelihood&, Index n_outputs, long) {
    return n_outputs;
}

// -- the lists --------------------------------------------------------------------------------

template <class... Families>
struct List {
    // Names in order, then null.
    static constexpr const char* names[] = {Families::name..., nullptr};

    // Calls body with the family itself, so that it is known when body is compiled.
    template <class Body>
    static double call(const Family& family, Body body) {
        double result = 0;
        int number = 0;
        static_cast<void>(
            ((number++ == family.number && (result = body(Families(family.constant)), true)) ||
             ...));
        return result;
    }
};

template <class T>
using Activations = List<Relu<T>, LeakyRelu<T>, Sigmoid<T>, Tanh<T>, Identity<T>>;

template <class T>
using Likelihoods =
    List<Bernoulli<T>, Categorical<T>, Ordinal<T>, Gaussian<T>, Poisson<T>, NegativeBinomial<T>,
         StudentT<T>, Heteroscedastic<T>, ZeroInflatedPoisson<T>, ZeroInflatedNegativeBinomial<T>>;

}  // namespace
