// The log posterior of some weights around a point: gradient, Gauss-Newton precision, and jumps
// made from them.
//
// A *part* is a set of units; its parameters are their biases and incoming weights. `Proposal`
// takes a Newton step from where a state stands, a deterministic function of that point, and puts a
// Gaussian around the place it reaches. Because the same function gives the density of the reverse
// move, Metropolis-Hastings with it is exact however rough the Gaussian is. More steps cost more
// than the moves they would have accepted.

#pragma once

#include "network.h"
#include "random.h"

namespace islab::sample {

using Part = std::vector<int>;  // units

inline std::size_t part_size(const State& s, const Part& part) {
    std::size_t size = 0;
    for (int u : part) size += 1 + s.in[u].size();
    return size;
}

inline Vector part_values(const State& s, const Part& part) {
    Vector values;
    for (int u : part) {
        values.push_back(s.bias[u]);
        for (const Edge& e : s.in[u]) values.push_back(e.weight);
    }
    return values;
}

inline void set_part(State& s, const Part& part, const Vector& values) {
    std::size_t at = 0;
    for (int u : part) {
        s.bias[u] = values[at++];
        for (Edge& e : s.in[u]) e.weight = values[at++];
    }
}

// Derivatives of every output by the sums of some units, (outputs, n) for each, and of those that
// they reach.
class Backward {
   public:
    Backward(const Model& model, const State& s, const Part& wanted)
        : by_unit(model.shape.units()) {
        const Shape& shape = model.shape;
        const std::size_t n = model.problem.n;
        const int outputs = shape.outputs();
        std::vector<char> needed(shape.units(), 0);
        for (int u : wanted) needed[u] = 1;
        for (int l = 1; l + 1 < shape.layers(); ++l)
            for (int t = shape.first[l]; t < shape.first[l + 1]; ++t)
                needed[t] = s.alive[t] && (needed[t] || model.reads_moved(s, t, needed));
        for (int u = shape.hidden() - 1; u >= 0; --u) {
            if (!needed[u] || !s.alive[u]) continue;
            Vector& d = by_unit[u];
            d.assign(outputs * n, 0.0);
            const int l = shape.layer[u] + 1;
            for (int t = shape.first[l]; t < shape.first[l + 1]; ++t) {
                const int k = s.alive[t] ? s.edge_to(t, shape.covariates + u) : -1;
                if (k < 0) continue;
                const double w = s.in[t][k].weight;
                if (shape.is_output(t)) {
                    double* own = &d[(t - shape.hidden()) * n];
                    for (std::size_t i = 0; i < n; ++i) own[i] += w;
                } else {
                    add_scaled(d.data(), w, by_unit[t].data(), outputs * n);
                }
            }
            for (int o = 0; o < outputs; ++o)
                shape.times_slope(&d[o * n], s.z[u]->data(), s.value[u]->data(), n);
        }
    }

    // Empty for an output: its sum is its predictor.
    std::vector<Vector> by_unit;
};

struct Quadratic {
    Vector gradient;
    Vector factor;  // lower Cholesky factor of the precision
    bool ok = false;
};

// Factors of classes, whose derivatives are centred over the classes; of an output or of a unit
// with derivatives d.
inline void centred(const Slopes& slopes, const Vector& d, int output, int outputs, std::size_t n,
                    Singles& factors) {
    Vector mean(n, 0.0);
    for (int o = 0; o < outputs; ++o) {
        if (output >= 0 && output != o) continue;
        const double* share = &slopes.curvature[o * n];
        for (std::size_t i = 0; i < n; ++i)
            mean[i] += share[i] * (output >= 0 ? 1.0 : d[o * n + i]);
    }
    for (int o = 0; o < outputs; ++o)
        for (std::size_t i = 0; i < n; ++i) {
            const double slope = output >= 0 ? (output == o) : d[o * n + i];
            factors[o * n + i] = slopes.root[o * n + i] * static_cast<float>(slope - mean[i]);
        }
}

// Columns of the Jacobian are in single precision: a rough Gaussian is as good a proposal.
inline Quadratic expand(const Model& model, const State& s, const Part& part) {
    const Shape& shape = model.shape;
    const std::size_t n = model.problem.n, size = part_size(s, part);
    const int outputs = shape.outputs();
    const Slopes& slopes = model.slopes(s);
    const Backward backward(model, s, part);
    const bool softmax = model.likelihood->softmax();

    Quadratic q;
    q.gradient.assign(size, 0.0);
    q.factor.assign(size * size, 0.0);
    Vector diagonal(size), pull(n);
    Singles columns(size * outputs * n), factors(outputs * n), pulls(n);
    const Singles ones(n, 1.0f);
    std::vector<int> own(size);  // the output that alone a weight moves, else -1
    std::size_t at = 0;
    for (int u : part) {
        // Rows of a column are those of a source times these factors; by output.
        const int output = shape.is_output(u) ? u - shape.hidden() : -1;
        const int alone = softmax ? -1 : output;
        const Vector& d = backward.by_unit[u];
        if (output >= 0) {
            pull.assign(&slopes.residual[output * n], &slopes.residual[output * n] + n);
        } else {
            multiply(pull.data(), slopes.residual.data(), d.data(), 1.0, n);
            for (int o = 1; o < outputs; ++o)
                for (std::size_t i = 0; i < n; ++i)
                    pull[i] += slopes.residual[o * n + i] * d[o * n + i];
        }
        std::copy(pull.begin(), pull.end(), pulls.begin());
        if (softmax) {
            centred(slopes, d, output, outputs, n, factors);
        } else {
            for (int o = 0; o < outputs; ++o) {
                const float* root = &slopes.root[o * n];
                if (alone >= 0 && alone != o) continue;
                for (std::size_t i = 0; i < n; ++i)
                    factors[o * n + i] =
                        alone >= 0 ? root[i] : root[i] * static_cast<float>(d[o * n + i]);
            }
        }
        for (int k = -1; k < static_cast<int>(s.in[u].size()); ++k, ++at) {
            const int source = k < 0 ? -1 : s.in[u][k].source;
            const double variance = k < 0 ? model.prior.bias_sd * model.prior.bias_sd
                                          : model.slab_variance(s, u, s.in[u][k]);
            const double value = k < 0 ? s.bias[u] : s.in[u][k].weight;
            own[at] = alone;
            diagonal[at] = 1 / variance;
            for (int o = 0; o < outputs; ++o)
                if (alone < 0 || alone == o) {
                    float* column = &columns[(at * outputs + o) * n];
                    const float* factor = &factors[o * n];
                    q.gradient[at] =
                        source < shape.covariates
                            ? scaled_column(
                                  column, factor, pulls.data(),
                                  k < 0 ? ones.data() : model.problem.single_covariate(source), n)
                            : scaled_column(column, factor, pulls.data(), model.source(s, source),
                                            n);
                }
            q.gradient[at] -= value / variance;
        }
    }
    // Weights into one output have a column of that output alone.
    for (int o = 0; o < outputs; ++o) {
        std::vector<std::size_t> members;
        std::vector<const float*> pointers;
        for (std::size_t a = 0; a < size; ++a) {
            if (own[a] >= 0 && own[a] != o) continue;
            members.push_back(a);
            pointers.push_back(&columns[(a * outputs + o) * n]);
        }
        const std::size_t m = members.size();
        Vector gram(m * m, 0.0);
        add_gram(gram.data(), pointers.data(), m, n);
        for (std::size_t a = 0; a < m; ++a)
            for (std::size_t b = 0; b <= a; ++b)
                q.factor[members[a] * size + members[b]] += gram[a * m + b];
    }
    for (std::size_t a = 0; a < size; ++a) q.factor[a * size + a] += diagonal[a];
    q.ok = factorise(q.factor, size);
    return q;
}

// A Gaussian for the values of a part: a Newton step from where the state stands.
class Proposal {
   public:
    Proposal(const Model& model, const State& s, const Part& part) : size(part_size(s, part)) {
        Quadratic q = expand(model, s, part);
        if (!q.ok) return;
        solve_lower(q.factor, q.gradient.data(), size);
        solve_upper(q.factor, q.gradient.data(), size);
        mean = part_values(s, part);
        for (std::size_t i = 0; i < size; ++i) mean[i] += q.gradient[i];
        factor = std::move(q.factor);
        ok = true;
    }

    bool ok = false;
    std::size_t size;
    Vector mean, factor;

    // A draw, kept a share `keep` of the way from the mean to where the state stands (0:
    // independent of it).
    Vector draw(const Vector& here, double keep, Random& random) const {
        Vector values(size);
        for (double& value : values) value = random.normal();
        solve_upper(factor, values.data(), size);
        const double spread = std::sqrt(1 - keep * keep);
        for (std::size_t i = 0; i < size; ++i)
            values[i] = mean[i] + keep * (here[i] - mean[i]) + spread * values[i];
        return values;
    }

    double log_density(const Vector& values, const Vector& here, double keep) const {
        const double spread = std::sqrt(1 - keep * keep);
        Vector d(size);
        for (std::size_t i = 0; i < size; ++i)
            d[i] = (values[i] - mean[i] - keep * (here[i] - mean[i])) / spread;
        double square = 0;
        for (std::size_t i = 0; i < size; ++i) {  // |L' d|^2
            double sum = 0;
            for (std::size_t k = i; k < size; ++k) sum += factor[k * size + i] * d[k];
            square += sum * sum;
        }
        return log_diagonal(factor, size) -
               static_cast<double>(size) * (std::log(spread) + 0.5 * log_two_pi) - 0.5 * square;
    }
};

}  // namespace islab::sample
