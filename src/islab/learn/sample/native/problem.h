// The data, and the likelihoods by value and derivatives.

#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include "algebra.h"

namespace islab::sample {

constexpr double log_two_pi = 1.8378770664093453;

// Columns of n rows, one after the other.
struct Problem {
    std::size_t n;
    int covariates, outputs;
    Vector x;       // (covariates, n)
    Vector y;       // (outputs, n); one-hot for classes
    Vector weight;  // (n), factors on the rows' log likelihood; empty if all are 1
    Vector offset;  // (outputs, n), added to the predictors; empty if there is none
    double total_weight = 0;
    Singles single_x;  // x once more, for sums that need not be exact

    const double* covariate(int j) const { return &x[j * n]; }
    const float* single_covariate(int j) const { return &single_x[j * n]; }
    const double* target(int o) const { return &y[o * n]; }
    double row_offset(int o, std::size_t i) const {
        return offset.empty() ? 0.0 : offset[o * n + i];
    }
    double row_weight(std::size_t i) const { return weight.empty() ? 1.0 : weight[i]; }
};

// What a likelihood says about predictors f (outputs, n).
class Likelihood {
   public:
    virtual ~Likelihood() = default;
    virtual bool has_noise() const { return false; }
    // Whether s2 are other numbers that are drawn: dispersions, gaps.
    virtual bool has_dispersion() const { return false; }
    // Whether s2 may have so many numbers.
    virtual bool takes_noise(const Problem& p, std::size_t size) const {
        return size == static_cast<std::size_t>(p.outputs);
    }
    // Log prior density of the k-th number's logarithm; a and b are the shape and scale of the
    // prior of noise variances.
    virtual double log_noise_prior(const Problem&, std::size_t, double value, double a,
                                   double b) const {
        return -a * std::log(value) - b / value;
    }
    // About how many rows tell of the k-th of these numbers.
    virtual double noise_rows(const Problem& p, std::size_t) const { return p.total_weight / 3; }
    virtual bool softmax() const { return false; }
    // Whether an output given the others is a logistic regression.
    virtual bool logistic() const { return false; }

    // Log likelihood of row i; s2 are noise variances by output.
    virtual double row(const Problem& p, const double* f, const Vector& s2,
                       std::size_t i) const = 0;

    // residual = d log p / d f, curvature = expected -d2 log p / d f2 (its diagonal part), both
    // (outputs, n); for softmax the curvature holds the class probabilities.
    virtual void derivatives(const Problem& p, const double* f, const Vector& s2, double* residual,
                             double* curvature) const = 0;

    virtual double total(const Problem& p, const double* f, const Vector& s2) const {
        double sum = 0;
        for (std::size_t i = 0; i < p.n; ++i) sum += p.row_weight(i) * row(p, f, s2, i);
        return sum;
    }

    // Derivatives and total at once, where they share what is costly.
    virtual double evaluate(const Problem& p, const double* f, const Vector& s2, double* residual,
                            double* curvature) const {
        derivatives(p, f, s2, residual, curvature);
        return total(p, f, s2);
    }
};

class Gaussian final : public Likelihood {
   public:
    bool has_noise() const override { return true; }

    double row(const Problem& p, const double* f, const Vector& s2, std::size_t i) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double d = p.y[o * p.n + i] - f[o * p.n + i];
            sum -= 0.5 * (d * d / s2[o] + std::log(s2[o]) + log_two_pi);
        }
        return sum;
    }

    double total(const Problem& p, const double* f, const Vector& s2) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            double square = 0;
            for (std::size_t i = 0; i < p.n; ++i) {
                const double d = p.y[o * p.n + i] - f[o * p.n + i];
                square += p.row_weight(i) * d * d;
            }
            sum -= 0.5 * (square / s2[o] + p.total_weight * (std::log(s2[o]) + log_two_pi));
        }
        return sum;
    }

    void derivatives(const Problem& p, const double* f, const Vector& s2, double* residual,
                     double* curvature) const override {
        for (int o = 0; o < p.outputs; ++o)
            for (std::size_t i = 0; i < p.n; ++i) {
                const std::size_t at = o * p.n + i;
                const double scale = p.row_weight(i) / s2[o];
                residual[at] = scale * (p.y[at] - f[at]);
                curvature[at] = scale;
            }
    }
};

// Normal noise whose log SD is predicted too: the first half of the outputs are means, the second
// half log SDs. The second half of y is not read, and s2 is not used.
class Heteroscedastic final : public Likelihood {
   public:
    double row(const Problem& p, const double* f, const Vector&, std::size_t i) const override {
        const int half = p.outputs / 2;
        double sum = 0;
        for (int o = 0; o < half; ++o) {
            const double log_sd = inside(f[(half + o) * p.n + i]);
            const double d = (p.y[o * p.n + i] - f[o * p.n + i]) * std::exp(-log_sd);
            sum -= log_sd + 0.5 * (d * d + log_two_pi);
        }
        return sum;
    }

    void derivatives(const Problem& p, const double* f, const Vector&, double* residual,
                     double* curvature) const override {
        const std::size_t size = p.outputs / 2 * p.n;
        for (std::size_t at = 0; at < size; ++at) {
            const double weight = p.row_weight(at % p.n), log_sd = inside(f[size + at]);
            const double precision = std::exp(-2 * log_sd), d = p.y[at] - f[at];
            residual[at] = weight * d * precision;
            curvature[at] = weight * precision;
            residual[size + at] = log_sd == f[size + at] ? weight * (d * d * precision - 1) : 0;
            curvature[size + at] = 2 * weight;
        }
    }

   private:
    static double inside(double log_sd) { return std::min(std::max(log_sd, -15.0), 15.0); }
};

// The sum of weighted logarithms of numbers from 1 to `most`: those of products, where rows have no
// weights, because a logarithm costs more than a product.
inline double sum_of_logs(const Problem& p, const double* values, double most) {
    double sum = 0;
    if (!p.weight.empty()) {
        for (std::size_t i = 0; i < p.n; ++i) sum += p.weight[i] * std::log(values[i]);
        return sum;
    }
    const std::size_t at_once =
        std::max<std::size_t>(1, static_cast<std::size_t>(700 / std::log(std::max(most, 2.0))));
    for (std::size_t i = 0; i < p.n;) {
        double product = 1;
        for (const std::size_t end = std::min(p.n, i + at_once); i < end; ++i) product *= values[i];
        sum += std::log(product);
    }
    return sum;
}

class Bernoulli final : public Likelihood {
   public:
    bool logistic() const override { return true; }

    double total(const Problem& p, const double* f, const Vector&) const override {
        Vector power(p.n);
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double *eta = f + o * p.n, *y = p.target(o);
            for (std::size_t i = 0; i < p.n; ++i) {
                power[i] = -std::abs(eta[i]);
                sum += p.row_weight(i) * (y[i] * eta[i] - std::max(eta[i], 0.0));
            }
            exponentials(power.data(), power.data(), p.n);
            for (double& value : power) value += 1;
            sum -= sum_of_logs(p, power.data(), 2);
        }
        return sum;
    }

    double evaluate(const Problem& p, const double* f, const Vector&, double* residual,
                    double* curvature) const override {
        const std::size_t size = p.outputs * p.n;
        for (std::size_t at = 0; at < size; ++at) curvature[at] = -std::abs(f[at]);
        exponentials(curvature, curvature, size);
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double *eta = f + o * p.n, *y = p.target(o);
            double *power = curvature + o * p.n, *rest = residual + o * p.n;
            for (std::size_t i = 0; i < p.n; ++i) {
                sum += p.row_weight(i) * (y[i] * eta[i] - std::max(eta[i], 0.0));
                rest[i] = 1 + power[i];
            }
            sum -= sum_of_logs(p, rest, 2);
            for (std::size_t i = 0; i < p.n; ++i) {
                const double inverse = 1 / rest[i], tail = power[i] * inverse;
                rest[i] = p.row_weight(i) * (y[i] - (eta[i] > 0 ? inverse : tail));
                power[i] = p.row_weight(i) * inverse * tail;
            }
        }
        return sum;
    }

    double row(const Problem& p, const double* f, const Vector&, std::size_t i) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double eta = f[o * p.n + i];
            sum += p.y[o * p.n + i] * eta -
                   (std::max(eta, 0.0) + std::log1p(std::exp(-std::abs(eta))));
        }
        return sum;
    }

    void derivatives(const Problem& p, const double* f, const Vector&, double* residual,
                     double* curvature) const override {
        const std::size_t size = p.outputs * p.n;
        for (std::size_t at = 0; at < size; ++at) curvature[at] = -f[at];
        exponentials(curvature, curvature, size);
        for (int o = 0; o < p.outputs; ++o)
            for (std::size_t i = 0; i < p.n; ++i) {
                const std::size_t at = o * p.n + i;
                const double mean = 1 / (1 + curvature[at]);
                residual[at] = p.row_weight(i) * (p.y[at] - mean);
                curvature[at] = p.row_weight(i) * mean * (1 - mean);
            }
    }
};

class Categorical final : public Likelihood {
   public:
    bool softmax() const override { return true; }
    bool logistic() const override { return true; }

    double total(const Problem& p, const double* f, const Vector&) const override {
        Vector power(p.outputs * p.n), largest(p.n), grown(p.n, 0.0);
        powers(p, f, power.data(), largest.data(), grown.data());
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double *y = p.target(o), *eta = f + o * p.n;
            for (std::size_t i = 0; i < p.n; ++i)
                sum += p.row_weight(i) * y[i] * (eta[i] - largest[i]);
        }
        return sum - sum_of_logs(p, grown.data(), p.outputs);
    }

    double evaluate(const Problem& p, const double* f, const Vector&, double* residual,
                    double* curvature) const override {
        Vector largest(p.n), grown(p.n, 0.0);
        powers(p, f, curvature, largest.data(), grown.data());
        double sum = -sum_of_logs(p, grown.data(), p.outputs);
        for (double& value : grown) value = 1 / value;
        for (int o = 0; o < p.outputs; ++o) {
            const double *y = p.target(o), *eta = f + o * p.n;
            double *share = curvature + o * p.n, *rest = residual + o * p.n;
            for (std::size_t i = 0; i < p.n; ++i) {
                sum += p.row_weight(i) * y[i] * (eta[i] - largest[i]);
                share[i] *= grown[i];
                rest[i] = p.row_weight(i) * (y[i] - share[i]);
            }
        }
        return sum;
    }

    double row(const Problem& p, const double* f, const Vector&, std::size_t i) const override {
        double largest = f[i], chosen = 0, sum = 0;
        for (int o = 1; o < p.outputs; ++o) largest = std::max(largest, f[o * p.n + i]);
        for (int o = 0; o < p.outputs; ++o) {
            sum += std::exp(f[o * p.n + i] - largest);
            chosen += p.y[o * p.n + i] * (f[o * p.n + i] - largest);
        }
        return chosen - std::log(sum);
    }

    void derivatives(const Problem& p, const double* f, const Vector&, double* residual,
                     double* curvature) const override {
        Vector largest(p.n), grown(p.n, 0.0);
        powers(p, f, curvature, largest.data(), grown.data());
        for (int o = 0; o < p.outputs; ++o)
            for (std::size_t i = 0; i < p.n; ++i) {
                const std::size_t at = o * p.n + i;
                curvature[at] /= grown[i];
                residual[at] = p.row_weight(i) * (p.y[at] - curvature[at]);
            }
    }

   private:
    // exp(f - largest of the row), and their sums over the classes.
    static void powers(const Problem& p, const double* f, double* power, double* largest,
                       double* grown) {
        std::copy(f, f + p.n, largest);
        for (int o = 1; o < p.outputs; ++o)
            for (std::size_t i = 0; i < p.n; ++i) largest[i] = std::max(largest[i], f[o * p.n + i]);
        for (int o = 0; o < p.outputs; ++o)
            for (std::size_t i = 0; i < p.n; ++i) power[o * p.n + i] = f[o * p.n + i] - largest[i];
        exponentials(power, power, p.outputs * p.n);
        for (int o = 0; o < p.outputs; ++o) add_scaled(grown, 1.0, power + o * p.n, p.n);
    }
};

// Beyond this log rate the rate goes on as a straight line, as in training.
constexpr double largest_log_rate = 20;

class Poisson final : public Likelihood {
   public:
    // Without what no parameter moves.
    double total(const Problem& p, const double* f, const Vector&) const override {
        const std::size_t size = p.outputs * p.n;
        Vector power(size);
        double sum = 0;
        for (std::size_t at = 0; at < size; ++at) power[at] = std::min(f[at], largest_log_rate);
        exponentials(power.data(), power.data(), size);
        for (std::size_t at = 0; at < size; ++at)
            sum += p.row_weight(at % p.n) *
                   (p.y[at] * f[at] - power[at] * (1 + std::max(f[at] - largest_log_rate, 0.0)));
        return sum;
    }

    double evaluate(const Problem& p, const double* f, const Vector&, double* residual,
                    double* curvature) const override {
        const std::size_t size = p.outputs * p.n;
        for (std::size_t at = 0; at < size; ++at) curvature[at] = std::min(f[at], largest_log_rate);
        exponentials(curvature, curvature, size);
        double sum = 0;
        for (std::size_t at = 0; at < size; ++at) {
            const double weight = p.row_weight(at % p.n), power = curvature[at];
            sum +=
                weight * (p.y[at] * f[at] - power * (1 + std::max(f[at] - largest_log_rate, 0.0)));
            residual[at] = weight * (p.y[at] - power);
            curvature[at] = weight * power;
        }
        return sum;
    }

    double row(const Problem& p, const double* f, const Vector&, std::size_t i) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double y = p.y[o * p.n + i], eta = f[o * p.n + i];
            sum += y * eta - rate(eta) - std::lgamma(y + 1);
        }
        return sum;
    }

    void derivatives(const Problem& p, const double* f, const Vector&, double* residual,
                     double* curvature) const override {
        const std::size_t size = p.outputs * p.n;
        for (std::size_t at = 0; at < size; ++at) curvature[at] = std::min(f[at], largest_log_rate);
        exponentials(curvature, curvature, size);
        for (std::size_t at = 0; at < size; ++at) {
            const double weight = p.row_weight(at % p.n);
            residual[at] = weight * (p.y[at] - curvature[at]);
            curvature[at] *= weight;
        }
    }

   private:
    static double rate(double eta) {
        return std::exp(std::min(eta, largest_log_rate)) *
               (1 + std::max(eta - largest_log_rate, 0.0));
    }
};

// log of Gamma(y + 1 / s2) / Gamma(1 / s2) / y! * s2^y: by a table for small counts, because
// most rows share a few of them.
class LogCounts {
   public:
    LogCounts(const Problem& p, int o, double s2) : size(1 / s2), log_s2(std::log(s2)) {
        double largest = 0;
        for (std::size_t i = 0; i < p.n; ++i) largest = std::max(largest, p.target(o)[i]);
        table.assign(1 + static_cast<std::size_t>(std::min(largest, 255.0)), 0.0);
        for (std::size_t k = 1; k < table.size(); ++k)
            table[k] = table[k - 1] + std::log(s2 * (k - 1 + size) / k);
    }
    double operator()(double y) const {
        const auto k = static_cast<std::size_t>(std::min(y, 255.0));
        if (static_cast<double>(k) == y && k < table.size()) return table[k];
        return direct(y, size, log_s2);
    }
    static double direct(double y, double size, double log_s2) {
        return std::lgamma(y + size) - std::lgamma(size) - std::lgamma(y + 1) + y * log_s2;
    }

   private:
    double size, log_s2;
    Vector table;
};

// Counts with variance mean + s2 * mean^2.
class NegativeBinomial final : public Likelihood {
   public:
    bool has_dispersion() const override { return true; }

    double total(const Problem& p, const double* f, const Vector& s2) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const LogCounts log_counts(p, o, s2[o]);
            for (std::size_t i = 0; i < p.n; ++i) {
                const double y = p.target(o)[i], eta = f[o * p.n + i];
                const double capped = std::min(eta, largest_log_rate), beyond = 1 + eta - capped;
                sum += p.row_weight(i) *
                       (log_counts(y) + y * (capped + std::log(beyond)) -
                        (y + 1 / s2[o]) * std::log1p(s2[o] * std::exp(capped) * beyond));
            }
        }
        return sum;
    }

    double row(const Problem& p, const double* f, const Vector& s2, std::size_t i) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double y = p.y[o * p.n + i], size = 1 / s2[o];
            const double capped = std::min(f[o * p.n + i], largest_log_rate);
            const double beyond = 1 + f[o * p.n + i] - capped, mean = std::exp(capped) * beyond;
            sum += std::lgamma(y + size) - std::lgamma(size) - std::lgamma(y + 1) +
                   y * (capped + std::log(beyond) + std::log(s2[o])) -
                   (y + size) * std::log1p(s2[o] * mean);
        }
        return sum;
    }

    void derivatives(const Problem& p, const double* f, const Vector& s2, double* residual,
                     double* curvature) const override {
        const std::size_t size = p.outputs * p.n;
        for (std::size_t at = 0; at < size; ++at) curvature[at] = std::min(f[at], largest_log_rate);
        exponentials(curvature, curvature, size);
        for (std::size_t at = 0; at < size; ++at) {
            const double beyond = 1 + std::max(f[at] - largest_log_rate, 0.0);
            const double mean = curvature[at] * beyond;
            const double scale = p.row_weight(at % p.n) / (1 + s2[at / p.n] * mean);
            residual[at] = scale * (p.y[at] - mean) / beyond;
            curvature[at] = scale * mean / (beyond * beyond);
        }
    }
};

// Real numbers with noise of 4 degrees of freedom and scale sqrt(s2).
class StudentT final : public Likelihood {
   public:
    bool has_dispersion() const override { return true; }

    double row(const Problem& p, const double* f, const Vector& s2, std::size_t i) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double d = p.y[o * p.n + i] - f[o * p.n + i];
            sum += log_constant - 0.5 * std::log(s2[o]) -
                   0.5 * (df + 1) * std::log1p(d * d / (df * s2[o]));
        }
        return sum;
    }

    void derivatives(const Problem& p, const double* f, const Vector& s2, double* residual,
                     double* curvature) const override {
        const std::size_t size = p.outputs * p.n;
        for (std::size_t at = 0; at < size; ++at) {
            const double d = p.y[at] - f[at], weight = p.row_weight(at % p.n), s = s2[at / p.n];
            residual[at] = weight * (df + 1) * d / (df * s + d * d);
            curvature[at] = weight * (df + 1) / ((df + 3) * s);
        }
    }

   private:
    static constexpr double df = 4;
    // lgamma(5 / 2) - lgamma(2) - log(4 pi) / 2
    static constexpr double log_constant = -0.9808292530117262;
};

// Counts that are 0 with constant odds beside those of a rate: Poisson counts, or ones with a
// dispersion. s2 are the dispersions, if there are any, and then the odds, whose prior makes the
// share of such zeros uniform.
class ZeroInflated final : public Likelihood {
   public:
    explicit ZeroInflated(bool dispersed) {
        if (dispersed) dispersion = 1;
    }
    bool has_dispersion() const override { return true; }
    bool takes_noise(const Problem& p, std::size_t size) const override {
        return size == static_cast<std::size_t>((1 + dispersion) * p.outputs);
    }
    double log_noise_prior(const Problem& p, std::size_t k, double value, double a,
                           double b) const override {
        if (k < static_cast<std::size_t>(dispersion * p.outputs))
            return Likelihood::log_noise_prior(p, k, value, a, b);
        return std::log(value) - 2 * std::log1p(value);
    }

    double row(const Problem& p, const double* f, const Vector& s2, std::size_t i) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double y = p.y[o * p.n + i], odds = s2[dispersion * p.outputs + o];
            const Counts counts(f[o * p.n + i], dispersion ? s2[o] : 0);
            const double none = counts.log_none;
            sum -= std::log1p(odds);
            sum += y == 0 ? log_sum(std::log(odds), none) : counts.log_density(y, nullptr);
        }
        return sum;
    }

    double total(const Problem& p, const double* f, const Vector& s2) const override {
        double sum = 0;
        for (int o = 0; o < p.outputs; ++o) {
            const double odds = s2[dispersion * p.outputs + o], log_odds = std::log(odds);
            const LogCounts log_counts(p, o, dispersion ? s2[o] : 1);
            for (std::size_t i = 0; i < p.n; ++i) {
                const double y = p.target(o)[i];
                const Counts counts(f[o * p.n + i], dispersion ? s2[o] : 0);
                sum += p.row_weight(i) * (y == 0 ? log_sum(log_odds, counts.log_none)
                                                 : counts.log_density(y, &log_counts));
            }
            sum -= p.total_weight * std::log1p(odds);
        }
        return sum;
    }

    void derivatives(const Problem& p, const double* f, const Vector& s2, double* residual,
                     double* curvature) const override {
        const std::size_t size = p.outputs * p.n;
        for (std::size_t at = 0; at < size; ++at) {
            const std::size_t o = at / p.n;
            const double odds = s2[dispersion * p.outputs + o], share = 1 / (1 + odds);
            const Counts counts(f[at], dispersion ? s2[o] : 0);
            const double none = share * std::exp(counts.log_none), y = p.y[at];
            const double zero = 1 - share + none;
            const double counted = y == 0 ? none / zero : 1;
            const double at_zero = counts.residual(0) * counts.residual(0);
            const double weight = p.row_weight(at % p.n);
            residual[at] = weight * counted * counts.residual(y);
            curvature[at] = weight * std::max(0.0, share * counts.information() - none * at_zero +
                                                       none * none / zero * at_zero);
        }
    }

   private:
    int dispersion = 0;  // whether counts have one

    static double log_sum(double a, double b) {
        return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
    }

    // Counts without the other zeros.
    struct Counts {
        double eta, dispersion, capped, beyond, rate, log_none;

        Counts(double eta, double dispersion)
            : eta(eta),
              dispersion(dispersion),
              capped(std::min(eta, largest_log_rate)),
              beyond(1 + eta - capped),
              rate(std::exp(capped) * beyond),
              log_none(dispersion > 0 ? -std::log1p(dispersion * rate) / dispersion : -rate) {}

        double log_density(double y, const LogCounts* known) const {
            if (dispersion == 0) return y * eta - rate - std::lgamma(y + 1);
            const double size = 1 / dispersion;
            return (known ? (*known)(y) : LogCounts::direct(y, size, std::log(dispersion))) +
                   y * (capped + std::log(beyond)) - (y + size) * std::log1p(dispersion * rate);
        }
        double residual(double y) const {
            if (dispersion == 0) return y - rate / beyond;
            return (y - rate) / (beyond * (1 + dispersion * rate));
        }
        double information() const {
            if (dispersion == 0) return rate / beyond;
            return rate / (beyond * beyond * (1 + dispersion * rate));
        }
    };
};

// Ordered classes by cumulative logits: y is the class, counted from 1, and s2 are the gaps
// between thresholds, the first of which is 0. The gaps' prior is exponential with mean 5.
class Ordinal final : public Likelihood {
   public:
    bool has_dispersion() const override { return true; }
    bool takes_noise(const Problem& p, std::size_t size) const override {
        const double classes = static_cast<double>(size) + 2;
        return size > 0 && std::all_of(p.y.begin(), p.y.end(),
                                       [=](double y) { return y >= 1 && y <= classes; });
    }
    double log_noise_prior(const Problem&, std::size_t, double gap, double, double) const override {
        return std::log(gap) - gap / 5;
    }
    double noise_rows(const Problem& p, std::size_t k) const override {
        double rows = 0;
        for (std::size_t i = 0; i < p.n; ++i)
            if (level(p.y[i]) == k + 2) rows += p.row_weight(i);
        return rows;
    }

    double row(const Problem& p, const double* f, const Vector& s2, std::size_t i) const override {
        return one(f[i], level(p.y[i]), s2, thresholds(s2));
    }

    double total(const Problem& p, const double* f, const Vector& s2) const override {
        const Vector cuts = thresholds(s2);
        double sum = 0;
        for (std::size_t i = 0; i < p.n; ++i)
            sum += p.row_weight(i) * one(f[i], level(p.y[i]), s2, cuts);
        return sum;
    }

    void derivatives(const Problem& p, const double* f, const Vector& s2, double* residual,
                     double* curvature) const override {
        const Vector cuts = thresholds(s2);
        Vector above(cuts.size() + 2, 0.0);  // probability of a level above each threshold
        above.front() = 1;
        for (std::size_t i = 0; i < p.n; ++i) {
            double information = 0;
            for (std::size_t j = 0; j < cuts.size(); ++j)
                above[j + 1] = 1 / (1 + std::exp(cuts[j] - f[i]));
            for (std::size_t j = 1; j <= cuts.size(); ++j)
                information += above[j] * (1 - above[j]) * (above[j - 1] - above[j + 1]);
            const std::size_t y = level(p.y[i]);
            residual[i] = p.row_weight(i) * (1 - above[y - 1] - above[y]);
            curvature[i] = p.row_weight(i) * information;
        }
    }

   private:
    static std::size_t level(double y) { return static_cast<std::size_t>(y); }

    static Vector thresholds(const Vector& gaps) {
        Vector cuts(gaps.size() + 1, 0.0);
        for (std::size_t k = 0; k < gaps.size(); ++k) cuts[k + 1] = cuts[k] + gaps[k];
        return cuts;
    }

    static double softplus(double z) {
        return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
    }

    static double one(double eta, std::size_t y, const Vector& gaps, const Vector& cuts) {
        double sum = 0;
        if (y > 1) sum -= softplus(cuts[y - 2] - eta);
        if (y <= cuts.size()) sum -= softplus(eta - cuts[y - 1]);
        if (y > 1 && y <= cuts.size()) sum += std::log(-std::expm1(-gaps[y - 2]));
        return sum;
    }
};

inline std::unique_ptr<Likelihood> make_likelihood(const std::string& name) {
    if (name == "gaussian") return std::make_unique<Gaussian>();
    if (name == "bernoulli") return std::make_unique<Bernoulli>();
    if (name == "categorical") return std::make_unique<Categorical>();
    if (name == "ordinal") return std::make_unique<Ordinal>();
    if (name == "poisson") return std::make_unique<Poisson>();
    if (name == "negative_binomial") return std::make_unique<NegativeBinomial>();
    if (name == "zero_inflated_poisson") return std::make_unique<ZeroInflated>(false);
    if (name == "zero_inflated_negative_binomial") return std::make_unique<ZeroInflated>(true);
    if (name == "heteroscedastic") return std::make_unique<Heteroscedastic>();
    if (name == "student_t") return std::make_unique<StudentT>();
    throw std::invalid_argument("unknown likelihood: " + name);
}

}  // namespace islab::sample
