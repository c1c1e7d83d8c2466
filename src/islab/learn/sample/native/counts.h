// Likelihoods of counts.

#pragma once

#include "problem.h"

namespace islab::sample {

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

}  // namespace islab::sample
