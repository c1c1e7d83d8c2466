// The data, and what a likelihood must say of predictors.

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

    // Log likelihood of all rows.
    virtual void rows(const Problem& p, const double* f, const Vector& s2, double* out) const {
        for (std::size_t i = 0; i < p.n; ++i) out[i] = row(p, f, s2, i);
    }

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

}  // namespace islab::sample
