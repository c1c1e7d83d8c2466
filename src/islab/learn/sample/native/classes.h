// Likelihoods of classes, ordered ones among them.

#pragma once

#include "problem.h"

namespace islab::sample {

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

    void rows(const Problem& p, const double* f, const Vector&, double* out) const override {
        Vector power(p.n);
        std::fill(out, out + p.n, 0.0);
        for (int o = 0; o < p.outputs; ++o) {
            const double *eta = f + o * p.n, *y = p.target(o);
            for (std::size_t i = 0; i < p.n; ++i) power[i] = -std::abs(eta[i]);
            exponentials(power.data(), power.data(), p.n);
            for (std::size_t i = 0; i < p.n; ++i)
                out[i] += y[i] * eta[i] - std::max(eta[i], 0.0) - std::log(1 + power[i]);
        }
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

    void rows(const Problem& p, const double* f, const Vector&, double* out) const override {
        Vector power(p.outputs * p.n), largest(p.n), grown(p.n, 0.0);
        powers(p, f, power.data(), largest.data(), grown.data());
        for (std::size_t i = 0; i < p.n; ++i) out[i] = -std::log(grown[i]);
        for (int o = 0; o < p.outputs; ++o) {
            const double *y = p.target(o), *eta = f + o * p.n;
            for (std::size_t i = 0; i < p.n; ++i) out[i] += y[i] * (eta[i] - largest[i]);
        }
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

}  // namespace islab::sample
