// A sparse network as a chain holds it: its edges, and the activations they give.
//
// A structure is *valid* if every living hidden unit is fed and reaches an output, so that every
// edge lies on an active path; the chain visits valid structures only.

#pragma once

#include <memory>
#include <string>

#include "likelihoods.h"
#include "structure.h"

namespace islab::sample {

struct Prior {
    StructurePrior structure;
    double tau_shape = 1, tau_scale = 1;  // inverse gamma prior of each block's slab variance
    double noise_shape = 1, noise_scale = 0.01;
    double bias_sd = 2.5;
    double df = 0;  // degrees of freedom of a Student-t slab; 0 for the Gaussian
};

// What networks may do with covariates; empty vectors for no limits. See core/constraints.py.
struct Limits {
    std::vector<char> linear, include;
    std::vector<char> apart;  // (covariates, covariates), or empty
    std::vector<signed char> sign;
    int outputs = 1;  // that are constrained, the first ones

    bool on_weights() const {
        return std::count(sign.begin(), sign.end(), 0) < static_cast<long>(sign.size());
    }
    bool on_outputs() const {
        return on_weights() || std::count(include.begin(), include.end(), 1) > 0;
    }
};

struct Edge {
    int source;
    double weight;
    double mixing =
        1;  // of the slab's variance: 1, or an inverse gamma variable for a Student-t slab
};

using Column = std::shared_ptr<Vector>;

// What the likelihood says about a state's predictors: residual and curvature (outputs, n) as in
// `Likelihood::derivatives`, and the root of the curvature with the rows' weights.
struct Slopes {
    Vector residual, curvature;
    Singles root;
    double log_likelihood;
};

struct State {
    std::vector<std::vector<Edge>> in;  // edges into each unit
    Vector bias;                        // of each unit; 0 where it does not live
    std::vector<char> alive;            // outputs always live
    Vector tau2;                        // slab variance of each block
    Vector s2;                          // noise variance of each output
    std::vector<Column> z, value;       // of living hidden units
    Column f;                           // predictors (outputs, n)
    // Of f and s2; taken when it is first asked for, shared by copies.
    mutable std::shared_ptr<const Slopes> slopes;

    int edge_to(int unit, int source) const {
        const auto& edges = in[unit];
        for (std::size_t k = 0; k < edges.size(); ++k)
            if (edges[k].source == source) return static_cast<int>(k);
        return -1;
    }
};

class Model {
   public:
    Model(Problem problem, Shape shape, Prior prior, const std::string& likelihood)
        : problem(std::move(problem)),
          shape(std::move(shape)),
          prior(prior),
          likelihood(make_likelihood(likelihood)),
          structures(this->shape.prepare(), prior.structure) {}

    Problem problem;
    Shape shape;
    Prior prior;
    std::unique_ptr<Likelihood> likelihood;
    Structures structures;
    Limits limits;

    const double* source(const State& s, int source) const {
        return source < shape.covariates ? problem.covariate(source)
                                         : s.value[source - shape.covariates]->data();
    }

    double slab_variance(const State& s, int unit, const Edge& e) const {
        return s.tau2[shape.block(unit, e.source)] * e.mixing;
    }

    // The sum that a unit receives; outputs start from the offset.
    void receive(const State& s, int unit, double* out) const {
        std::fill(out, out + problem.n, s.bias[unit]);
        if (shape.is_output(unit) && !problem.offset.empty())
            add_scaled(out, 1.0, &problem.offset[(unit - shape.hidden()) * problem.n], problem.n);
        std::vector<const double*> columns;
        Vector factors;
        for (const Edge& e : s.in[unit]) {
            columns.push_back(source(s, e.source));
            factors.push_back(e.weight);
        }
        add_columns(out, factors.data(), columns.data(), columns.size(), problem.n);
    }

    // All activations.
    void forward(State& s) const {
        std::vector<int> all(shape.units());
        for (int u = 0; u < shape.units(); ++u) all[u] = u;
        s.f.reset();
        forward(s, all);
    }

    // Activations of units whose edges or biases have changed and of what they reach. Columns are
    // replaced, never written to: states share them.
    void forward(State& s, const std::vector<int>& changed) const {
        std::vector<char> moved(shape.units(), 0);
        for (int u : changed) moved[u] = 1;
        for (int u = 0; u < shape.hidden(); ++u) {
            if (!s.alive[u]) {
                s.z[u].reset();
                s.value[u].reset();
                continue;
            }
            if (!(moved[u] = moved[u] || reads_moved(s, u, moved))) continue;
            auto z = std::make_shared<Vector>(problem.n),
                 value = std::make_shared<Vector>(problem.n);
            receive(s, u, z->data());
            shape.activate(z->data(), value->data(), problem.n);
            s.z[u] = std::move(z);
            s.value[u] = std::move(value);
        }
        auto f = s.f && shape.outputs() > 1 ? std::make_shared<Vector>(*s.f)
                                            : std::make_shared<Vector>(problem.n * shape.outputs());
        for (int o = 0; o < shape.outputs(); ++o) {
            const int u = shape.hidden() + o;
            if (shape.outputs() == 1 || moved[u] || reads_moved(s, u, moved))
                receive(s, u, f->data() + o * problem.n);
        }
        s.f = std::move(f);
        s.slopes.reset();
    }

    const Slopes& slopes(const State& s) const {
        if (s.slopes) return *s.slopes;
        const std::size_t n = problem.n, size = n * shape.outputs();
        auto found = std::make_shared<Slopes>();
        found->residual.resize(size);
        found->curvature.resize(size);
        found->root.resize(size);
        found->log_likelihood = likelihood->evaluate(
            problem, s.f->data(), s.s2, found->residual.data(), found->curvature.data());
        const bool weighted = likelihood->softmax() && !problem.weight.empty();
        for (std::size_t at = 0; at < size; ++at) {
            const double factor = weighted ? problem.weight[at % n] : 1.0;
            found->root[at] = std::sqrt(static_cast<float>(factor * found->curvature[at]));
        }
        s.slopes = std::move(found);
        return *s.slopes;
    }

    double log_likelihood(const State& s) const { return slopes(s).log_likelihood; }

    bool reads_moved(const State& s, int unit, const std::vector<char>& moved) const {
        for (const Edge& e : s.in[unit])
            if (e.source >= shape.covariates && moved[e.source - shape.covariates]) return true;
        return false;
    }

    // Edges into a unit from each variable.
    std::vector<int> levels(const State& s, int unit) const {
        std::vector<int> found(shape.groups(), 0);
        for (const Edge& e : s.in[unit])
            if (e.source < shape.covariates) ++found[shape.group[e.source]];
        return found;
    }

    Tally tally(const State& s) const {
        Tally found(shape);
        std::vector<int> used(shape.groups(), 0);
        for (int u = 0; u < shape.units(); ++u) {
            for (const Edge& e : s.in[u])
                found.count(shape, u, e.source,
                            e.source < shape.covariates ? used[shape.group[e.source]]++ : 0, true);
            for (const Edge& e : s.in[u])
                if (e.source < shape.covariates) used[shape.group[e.source]] = 0;
        }
        return found;
    }

    // Log prior of the structure, its inclusion probabilities integrated out.
    double log_structure(const State& s) const {
        double sum = structures.log_prior(tally(s));
        for (int u = 0; u < shape.units(); ++u) {
            sum -= prior.structure.price * static_cast<double>(s.in[u].size());
            if (s.in[u].empty() || shape.groups() == shape.covariates) continue;
            const std::vector<int> used = levels(s, u);
            for (int g = 0; g < shape.groups(); ++g)
                sum += structures.log_levels(shape.group_size[g], used[g]);
        }
        return sum;
    }

    // Log prior density of a unit's bias and incoming weights.
    double log_weights(const State& s, int unit) const {
        const double b = s.bias[unit] / prior.bias_sd;
        double sum = -0.5 * (b * b + log_two_pi) - std::log(prior.bias_sd);
        for (const Edge& e : s.in[unit]) {
            const double variance = slab_variance(s, unit, e);
            sum -= 0.5 * (e.weight * e.weight / variance + std::log(variance) + log_two_pi);
        }
        return sum;
    }

    // Whether a network keeps to the limits: its prior is conditional on them.
    bool permitted(const State& s) const {
        if (limits.linear.empty()) return true;
        const int v = shape.covariates, last = shape.hidden() + limits.outputs;
        for (int u = 0; u < shape.hidden(); ++u)
            for (const Edge& e : s.in[u])
                if (e.source < v && limits.linear[e.source]) return false;
        for (int u = shape.hidden(); u < last; ++u)
            for (int j = 0; j < v; ++j)
                if (limits.include[j] && s.edge_to(u, j) < 0) return false;
        if (!limits.apart.empty() && meet(s)) return false;
        if (!limits.on_weights()) return true;
        std::vector<signed char> way(shape.hidden(), 0);  // of a unit as covariates go their sign's
        for (int u = 0; u < last; ++u)
            for (const Edge& e : s.in[u]) {
                const int source = e.source < v ? limits.sign[e.source] : way[e.source - v];
                const int moved = e.weight < 0 ? -source : source;
                if (!moved) continue;
                const int other = u < shape.hidden() ? way[u] : 1;
                if (moved == -other) return false;
                if (u < shape.hidden()) way[u] = static_cast<signed char>(moved);
            }
        return true;
    }

    // Whether a hidden unit reads two covariates that are to stay apart.
    bool meet(const State& s) const {
        const int v = shape.covariates;
        std::vector<std::vector<char>> reads(shape.hidden(), std::vector<char>(v, 0));
        for (int u = 0; u < shape.hidden(); ++u) {
            for (const Edge& e : s.in[u])
                for (int j = 0; j < v; ++j)
                    reads[u][j] |= e.source < v ? j == e.source : reads[e.source - v][j];
            for (int j = 0; j < v; ++j)
                for (int k = 0; reads[u][j] && k < j; ++k)
                    if (reads[u][k] && limits.apart[j * v + k]) return true;
        }
        return false;
    }

    int out_degree(const State& s, int unit) const {
        int degree = 0;
        const int l = shape.layer[unit] + 1;
        for (int t = shape.first[l]; t < shape.first[l + 1]; ++t)
            degree += s.alive[t] && s.edge_to(t, shape.covariates + unit) >= 0;
        return degree;
    }

    bool valid(const State& s) const {
        for (int u = 0; u < shape.hidden(); ++u) {
            if (!s.alive[u] && !s.in[u].empty()) return false;
            if (s.alive[u] && (s.in[u].empty() || out_degree(s, u) == 0)) return false;
        }
        for (int u = 0; u < shape.units(); ++u)
            for (const Edge& e : s.in[u]) {
                if (e.source >= shape.covariates && !s.alive[e.source - shape.covariates])
                    return false;
                if (e.source < shape.covariates && !shape.reads_covariates(u)) return false;
            }
        return true;
    }
};

}  // namespace islab::sample
