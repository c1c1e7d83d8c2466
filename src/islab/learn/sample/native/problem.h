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
    double total_weight = 0;

    const double* covariate(int j) const { return &x[j * n]; }
    const double* target(int o) const { return &y[o * n]; }
    double row_weight(std::size_t i) const { return weight.empty() ? 1.0 : weight[i]; }
};

// What a likelihood says about predictors f (outputs, n).
class Likelihood {
   public:
    virtual ~Likelihood() = default;
    virtual bool has_noise() const { return false; }
    virtual bool softmax() const { return false; }

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

class Bernoulli final : public Likelihood {
   public:
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
        for (int o = 0; o < p.outputs; ++o)
            for (std::size_t i = 0; i < p.n; ++i) {
                const std::size_t at = o * p.n + i;
                const double mean = 1 / (1 + std::exp(-f[at]));
                residual[at] = p.row_weight(i) * (p.y[at] - mean);
                curvature[at] = p.row_weight(i) * mean * (1 - mean);
            }
    }
};

class Categorical final : public Likelihood {
   public:
    bool softmax() const override { return true; }

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
        for (std::size_t i = 0; i < p.n; ++i) {
            double largest = f[i], sum = 0;
            for (int o = 1; o < p.outputs; ++o) largest = std::max(largest, f[o * p.n + i]);
            for (int o = 0; o < p.outputs; ++o) {
                curvature[o * p.n + i] = std::exp(f[o * p.n + i] - largest);
                sum += curvature[o * p.n + i];
            }
            for (int o = 0; o < p.outputs; ++o) {
                const std::size_t at = o * p.n + i;
                curvature[at] *= 1 / sum;
                residual[at] = p.row_weight(i) * (p.y[at] - curvature[at]);
            }
        }
    }
};

// Beyond this log rate the rate goes on as a straight line, as in training.
constexpr double largest_log_rate = 20;

class Poisson final : public Likelihood {
   public:
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
        for (int o = 0; o < p.outputs; ++o)
            for (std::size_t i = 0; i < p.n; ++i) {
                const std::size_t at = o * p.n + i;
                const double slope = std::exp(std::min(f[at], largest_log_rate));
                residual[at] = p.row_weight(i) * (p.y[at] - slope);
                curvature[at] = p.row_weight(i) * slope;
            }
    }

   private:
    static double rate(double eta) {
        return std::exp(std::min(eta, largest_log_rate)) *
               (1 + std::max(eta - largest_log_rate, 0.0));
    }
};

inline std::unique_ptr<Likelihood> make_likelihood(const std::string& name) {
    if (name == "gaussian") return std::make_unique<Gaussian>();
    if (name == "bernoulli") return std::make_unique<Bernoulli>();
    if (name == "categorical") return std::make_unique<Categorical>();
    if (name == "poisson") return std::make_unique<Poisson>();
    throw std::invalid_argument("unknown likelihood: " + name);
}

}  // namespace islab::sample
