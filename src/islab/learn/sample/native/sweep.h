// The output layer of a Gaussian model given its hidden units: a linear regression with its weights
// integrated out.
//
// All candidate columns (the constant, covariates, hidden units of the last layer) and the target
// stand in one cross-product matrix, divided by the noise variance, with the prior's precisions on
// its diagonal. Sweeping a column (Goodnight, 1979) puts it into the regression or takes it out
// again, a rank-one update. The swept matrix then holds what every further column would change, so
// a proposal that is refused costs a few operations and one that is accepted the square of the
// number of columns. A model without hidden units is sampled by this alone.

#pragma once

#include "network.h"
#include "random.h"

namespace islab::sample {

class OutputRegression {
   public:
    // Classes need rows that count once: the auxiliary precisions of others are not at hand.
    static bool serves(const Model& model) {
        const Likelihood& likelihood = *model.likelihood;
        return model.problem.covariates <= 1500 && !model.limits.on_outputs() &&
               (likelihood.has_noise() || (likelihood.logistic() && model.problem.weight.empty()));
    }

    explicit OutputRegression(const Model& model) : model(model), tally(model.shape) {
        const Problem& p = model.problem;
        row_precision.assign(p.n, 1.0);
        target.resize(p.n);
        ones.assign(p.n, 1.0);
        if (!p.weight.empty()) row_precision = p.weight;
        if (model.likelihood->has_noise()) cross_covariates();
    }

   protected:
    const Model& model;
    Vector fixed;  // cross-products of the constant and the covariates, (1 + covariates)^2
    Vector row_precision, target, ones;  // of the regression, by row

    int output = 0, unit = 0;
    std::size_t size = 0;      // columns, the constant first; the target is column `size`
    std::vector<int> sources;  // of each column; -1 for the constant, -2 for a spare column
    Vector cross;              // (size + 1)^2, of columns and target
    Vector mixing, precision, weighted;
    std::vector<const double*> pointers;
    std::vector<char> in, fixed_in;
    Vector swept;
    int sweeps = 0;
    Tally tally;
    std::vector<int> levels;  // columns of each variable that are in
    double s2 = 1;

    double& at(std::size_t i, std::size_t j) { return swept[i * (size + 1) + j]; }

    // The rows as a linear regression sees them. A Gaussian output is one. Classes become one given
    // Polya-Gamma precisions; other classes shift the predictor (Holmes and Held, 2006).
    void observe(const State& s, int which, Random& random) {
        const Problem& p = model.problem;
        const double* y = p.target(which);
        if (model.likelihood->has_noise()) {
            for (std::size_t i = 0; i < p.n; ++i) target[i] = y[i] - p.row_offset(which, i);
            return;
        }
        const double* eta = s.f->data() + which * p.n;
        for (std::size_t i = 0; i < p.n; ++i) {
            const double shift =
                p.outputs > 1 && model.likelihood->softmax() ? others(s, which, i) : 0.0;
            row_precision[i] = random.polya_gamma(eta[i] - shift);
            target[i] = (y[i] - 0.5) / row_precision[i] + shift - p.row_offset(which, i);
        }
        cross_covariates();
    }

    // Log of the summed exponentials of the other outputs of a row.
    double others(const State& s, int which, std::size_t row) const {
        const Problem& p = model.problem;
        double largest = -INFINITY, sum = 0;
        for (int o = 0; o < p.outputs; ++o)
            if (o != which) largest = std::max(largest, (*s.f)[o * p.n + row]);
        for (int o = 0; o < p.outputs; ++o)
            if (o != which) sum += std::exp((*s.f)[o * p.n + row] - largest);
        return largest + std::log(sum);
    }

    void cross_covariates() {
        const Problem& p = model.problem;
        const std::size_t size = 1 + p.covariates;
        weighted.resize(size * p.n);
        pointers.resize(size);
        for (std::size_t i = 0; i < p.n; ++i) weighted[i] = std::sqrt(row_precision[i]);
        for (std::size_t j = 0; j < size; ++j) {
            double* column = &weighted[j * p.n];
            pointers[j] = column;
            if (j == 0) continue;
            const double* covariate = p.covariate(static_cast<int>(j) - 1);
            for (std::size_t i = 0; i < p.n; ++i) column[i] = weighted[i] * covariate[i];
        }
        fixed.assign(size * size, 0.0);
        add_gram(fixed.data(), pointers.data(), size, p.n);
        for (std::size_t i = 0; i < size; ++i)
            for (std::size_t j = 0; j < i; ++j) fixed[j * size + i] = fixed[i * size + j];
    }

    const double* column_of(const State& s, std::size_t j) const {
        return j == 0 ? ones.data() : model.source(s, sources[j]);
    }

    // `spare` columns are for units that are yet to come.
    void begin(const State& s, int which, Random& random, std::size_t spare) {
        const Shape& shape = model.shape;
        const Problem& p = model.problem;
        output = which;
        unit = shape.hidden() + which;
        s2 = model.likelihood->has_noise() ? s.s2[which] : 1.0;
        tally = model.tally(s);
        levels = model.levels(s, unit);
        sources = {-1};
        if (shape.reads_covariates(unit))
            for (int j = 0; j < shape.covariates; ++j) sources.push_back(j);
        const std::size_t n_known = sources.size();
        if (shape.layers() > 1)
            for (int u = shape.first[shape.layers() - 2]; u < shape.hidden(); ++u)
                if (s.alive[u]) sources.push_back(shape.covariates + u);
        sources.resize(sources.size() + spare, -2);
        size = sources.size();
        cross.assign((size + 1) * (size + 1), 0.0);
        for (std::size_t i = 0; i < n_known; ++i)
            for (std::size_t j = 0; j < n_known; ++j)
                cross[i * (size + 1) + j] = fixed[i * (p.covariates + 1) + j];
        cross_others(s, n_known);
        in.assign(size, 0);
        fixed_in.assign(size, 0);
        mixing.assign(size, 1.0);
        in[0] = fixed_in[0] = 1;
        for (std::size_t j = 1; j < size; ++j) {
            const int k = s.edge_to(unit, sources[j]);
            in[j] = k >= 0;
            if (k >= 0) {
                mixing[j] = s.in[unit][k].mixing;
            } else if (model.prior.df > 0 && sources[j] >= 0) {
                mixing[j] = random.inverse_gamma(model.prior.df / 2, model.prior.df / 2);
            }
            // A unit must reach some output.
            if (k >= 0 && sources[j] >= shape.covariates)
                fixed_in[j] = model.out_degree(s, sources[j] - shape.covariates) == 1;
        }
        set_precision(s);
        build();
    }

    // Cross-products of all columns with those that are not known, the target among them.
    void cross_others(const State& s, std::size_t n_known) {
        const std::size_t n = model.problem.n, d = size + 1;
        std::vector<std::size_t> places;
        pointers.clear();
        for (std::size_t j = 0; j <= size; ++j) {
            if (j < size && sources[j] < -1) continue;
            places.push_back(j);
            pointers.push_back(j < size ? column_of(s, j) : target.data());
        }
        const std::size_t all = places.size(), few = all - n_known;
        Vector weighted(few * n), found(few * all);
        std::vector<const double*> own(few);
        for (std::size_t k = 0; k < few; ++k) {
            own[k] = &weighted[k * n];
            multiply(&weighted[k * n], row_precision.data(), pointers[n_known + k], 1.0, n);
        }
        cross_products(found.data(), own.data(), few, pointers.data(), all, n);
        for (std::size_t k = 0; k < few; ++k)
            for (std::size_t j = 0; j <= n_known + k; ++j) {
                const std::size_t a = places[n_known + k], b = places[j];
                cross[a * d + b] = cross[b * d + a] = found[k * all + j];
            }
    }

    void set_precision(const State& s) {
        precision.assign(size, 1 / (model.prior.bias_sd * model.prior.bias_sd));
        for (std::size_t j = 1; j < size; ++j)
            precision[j] = 1 / (s.tau2[model.shape.block(unit, sources[j])] * mixing[j]);
    }

    void build() {
        swept = cross;
        for (double& value : swept) value /= s2;
        for (std::size_t j = 0; j < size; ++j) at(j, j) += precision[j];
        for (std::size_t j = 0; j < size; ++j)
            if (in[j]) sweep(j, false);
        sweeps = 0;
    }

    void sweep(std::size_t j, bool out) {
        const std::size_t d = size + 1;
        const double pivot = at(j, j);
        const Vector row(swept.begin() + j * d, swept.begin() + (j + 1) * d);
        take_off(swept.data(), row.data(), pivot, d);
        const double sign = out ? -1.0 : 1.0;
        for (std::size_t i = 0; i < d; ++i) at(i, j) = at(j, i) = sign * row[i] / pivot;
        at(j, j) = -1 / pivot;
        ++sweeps;
    }

    // Log evidence gained by a column with this pivot and this cross-product with the target.
    static double gain(double pivot, double with_target, double precision) {
        return 0.5 * (with_target * with_target / pivot - std::log(pivot) + std::log(precision));
    }

    double gain_of_leaving(std::size_t j) {
        const double pivot = -1 / at(j, j);
        return -gain(pivot, at(j, size) * pivot, precision[j]);
    }

    bool is_covariate(std::size_t j) const {
        return sources[j] >= 0 && sources[j] < model.shape.covariates;
    }

    // Log prior odds that a column is in, the others as they are counted.
    double log_odds(std::size_t j, bool counted) const {
        const int source = sources[j];
        const int used = is_covariate(j) ? levels[model.shape.group[source]] - counted : 0;
        const long k = tally.edges[model.shape.block(unit, source)] - (counted && used == 0);
        return model.structures.log_odds(unit, source, k, used);
    }

    // Counts a column that enters (1) or leaves (-1).
    void count(std::size_t j, int change) {
        bool first = true;
        if (is_covariate(j)) {
            int& used = levels[model.shape.group[sources[j]]];
            used += change;
            first = used == (change > 0 ? 1 : 0);
        }
        if (first) tally.edges[model.shape.block(unit, sources[j])] += change;
    }

    bool toggle(State&, Random& random) {
        if (size < 2) return false;
        const std::size_t j = 1 + random.below(static_cast<int>(size) - 1);
        if (fixed_in[j] || sources[j] < -1) return false;
        const double change = in[j]
                                  ? gain_of_leaving(j) - log_odds(j, true)
                                  : gain(at(j, j), at(j, size), precision[j]) + log_odds(j, false);
        if (!(std::log(random.uniform()) < change)) return false;
        sweep(j, in[j]);
        count(j, in[j] ? -1 : 1);
        in[j] = !in[j];
        return true;
    }

    // One covariate for another, mostly one that is like it.
    bool swap(State&, Random& random) {
        std::vector<int> inside, outside;
        for (std::size_t j = 1; j < size; ++j)
            if (is_covariate(j)) (in[j] ? inside : outside).push_back(static_cast<int>(j));
        if (inside.empty() || outside.empty()) return false;
        const int i = inside[random.below(static_cast<int>(inside.size()))];
        const bool alike = random.uniform() < 0.5;
        Vector weights(outside.size());
        double sum = 0, back = 0;
        for (std::size_t c = 0; c < outside.size(); ++c) {
            weights[c] = alike ? likeness(i, outside[c]) : 1.0;
            sum += weights[c];
        }
        double left = random.uniform() * sum;
        std::size_t c = 0;
        while (c + 1 < outside.size() && (left -= weights[c]) > 0) ++c;
        const int j = outside[c];
        // In the reverse move the column i stands among those outside instead of j.
        for (std::size_t other = 0; other < outside.size(); ++other)
            back += !alike                ? 1.0
                    : outside[other] == j ? likeness(j, i)
                                          : likeness(j, outside[other]);
        const double pivot = at(j, j) - at(i, j) * at(i, j) / at(i, i);
        const double with_target = at(j, size) - at(i, j) * at(i, size) / at(i, i);
        double change =
            gain_of_leaving(i) + gain(pivot, with_target, precision[j]) + std::log(sum / back);
        change -= log_odds(i, true);
        count(i, -1);
        change += log_odds(j, false);
        const bool yes = std::log(random.uniform()) < change;
        count(yes ? j : i, 1);
        if (!yes) return false;
        sweep(i, true);
        sweep(j, false);
        in[i] = 0;
        in[j] = 1;
        return true;
    }

    // Symmetric, from the covariates alone; the small term keeps every swap possible.
    double likeness(int i, int j) const {
        const std::size_t d = size + 1;
        const double r2 =
            cross[i * d + j] * cross[i * d + j] / (cross[i * d + i] * cross[j * d + j] + 1e-300);
        return r2 * r2 + 1e-3;
    }

    struct Normal {
        std::vector<std::size_t> columns;
        Vector mean, factor;
        double log_evidence = 0;
    };

    // The weights given everything else, and their evidence.
    Normal normal(double noise) const {
        Normal result;
        for (std::size_t j = 0; j < size; ++j)
            if (in[j]) result.columns.push_back(j);
        const std::size_t m = result.columns.size(), d = size + 1;
        result.factor.assign(m * m, 0.0);
        result.mean.resize(m);
        double log_precision = 0;
        for (std::size_t a = 0; a < m; ++a) {
            for (std::size_t b = 0; b <= a; ++b)
                result.factor[a * m + b] = cross[result.columns[a] * d + result.columns[b]] / noise;
            result.factor[a * m + a] += precision[result.columns[a]];
            result.mean[a] = cross[result.columns[a] * d + size] / noise;
            log_precision += std::log(precision[result.columns[a]]);
        }
        if (!factorise(result.factor, m)) {
            result.log_evidence = -INFINITY;
            return result;
        }
        solve_lower(result.factor, result.mean.data(), m);
        double square = 0;
        for (double value : result.mean) square += value * value;
        solve_upper(result.factor, result.mean.data(), m);
        result.log_evidence = 0.5 * (log_precision + square - cross[size * d + size] / noise) -
                              log_diagonal(result.factor, m) -
                              0.5 * model.problem.total_weight * std::log(noise);
        return result;
    }

    // Random walks on the logarithm, the weights integrated out.
    void update_noise(State&, Random& random) {
        const double a = model.prior.noise_shape, b = model.prior.noise_scale;
        const double step = 2.4 * std::sqrt(2 / (model.problem.total_weight + 2));
        auto height = [&](double noise) {
            return normal(noise).log_evidence - a * std::log(noise) - b / noise;
        };
        double now = height(s2);
        for (int t = 0; t < 3; ++t) {
            const double other = s2 * std::exp(step * random.normal()), then = height(other);
            if (std::log(random.uniform()) < then - now) s2 = other, now = then;
        }
    }

    void update_scale(State& s, int block, Random& random) {
        // Other outputs share the block: their weights are given.
        double square = 0;
        long others = 0;
        for (int o = model.shape.hidden(); o < model.shape.units(); ++o)
            if (o != unit)
                for (const Edge& e : s.in[o])
                    if (model.shape.block(o, e.source) == block) {
                        square += e.weight * e.weight / e.mixing;
                        ++others;
                    }
        const double a = model.prior.tau_shape, b = model.prior.tau_scale;
        auto height = [&](double tau2) {
            s.tau2[block] = tau2;
            set_precision(s);
            return normal(s2).log_evidence - (a + 0.5 * others) * std::log(tau2) -
                   (b + 0.5 * square) / tau2;
        };
        double tau2 = s.tau2[block], now = height(tau2);
        for (int t = 0; t < 3; ++t) {
            const double other = tau2 * std::exp(1.2 * random.normal()), then = height(other);
            if (std::log(random.uniform()) < then - now) tau2 = other, now = then;
        }
        s.tau2[block] = tau2;
        set_precision(s);
    }

    void finish(State& s, Random& random) {
        if (model.likelihood->has_noise()) s.s2[output] = s2;
        const Normal found = normal(s2);
        const std::size_t m = found.columns.size();
        Vector values(m);
        for (double& value : values) value = random.normal();
        solve_upper(found.factor, values.data(), m);
        s.in[unit].clear();
        for (std::size_t c = 0; c < m; ++c) {
            const std::size_t j = found.columns[c];
            const double value = values[c] + found.mean[c];
            if (j == 0)
                s.bias[unit] = value;
            else
                s.in[unit].push_back({sources[j], value, mixing[j]});
        }
    }
};

}  // namespace islab::sample
