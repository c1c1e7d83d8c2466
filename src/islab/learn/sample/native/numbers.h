// Likelihoods of real numbers.

#pragma once

#include "problem.h"

namespace islab::sample {

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

}  // namespace islab::sample
