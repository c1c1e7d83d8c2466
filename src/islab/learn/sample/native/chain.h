// One chain over structures, weights, slab scales and noise. Every move leaves the posterior
// invariant.

#pragma once

#include <array>

#include "jumps.h"

namespace islab::sample {

class Chain : public Jumps {
   public:
    Chain(Model& model, State start, std::uint64_t seed) : Jumps(model, std::move(start), seed) {
        keep.fill(0.0);
    }

    std::array<double, 3> keep;  // of the moves of weights: 0 is an independent draw
    bool warming = true;

    void step(const Effort& effort) {
        const Shape& shape = model.shape;
        if (regression)
            for (int t = 0; t < std::min(shape.outputs(), outputs_at_once); ++t) {
                const bool all = shape.outputs() <= outputs_at_once;
                const int o = all ? t : random.below(shape.outputs());
                regression->update(s, o, effort, random, counts);
                model.forward(s, {shape.hidden() + o});
            }
        const bool bends = shape.hidden() > 0;
        // Most edges have moved above; those into hidden units are few.
        int edges = effort.edges;
        if (regression)
            edges = std::min(
                (edges + 2) / 4,
                static_cast<int>(std::count(s.alive.begin(), s.alive.begin() + shape.hidden(), 1)));
        for (int t = 0; t < edges; ++t) change_edge();
        if (bends)
            for (int t = 0; t < effort.units; ++t) random.uniform() < 0.5 ? birth() : death();
        move_weights(effort);
        scale_units();
        update_scales();
        update_noise();
    }

   private:
    // Of more outputs some are drawn in each step, at random.
    static constexpr int outputs_at_once = 5;

    State next;  // that a move of weights proposes; kept, because copies into it take no memory

    bool exact(const Part& part) const {
        if (!model.likelihood->has_noise()) return false;
        for (int u : part)
            if (!model.shape.is_output(u)) return false;
        return true;
    }

    // -- weights
    // --------------------------------------------------------------------------------------------------

    void move_weights(const Effort& effort) {
        const Shape& shape = model.shape;
        Part living, hidden;
        for (int u = 0; u < shape.units(); ++u)
            if (s.alive[u]) (shape.is_output(u) ? living : hidden).push_back(u);
        if (!regression)
            for (int u : living) move_part({u}, unit_move);
        for (int t = 0; t < std::min<int>(effort.parts, 2 * static_cast<int>(hidden.size())); ++t) {
            const int u = hidden[random.below(static_cast<int>(hidden.size()))];
            Part pair{u};
            for (int to = shape.first[shape.layer[u] + 1]; to < shape.first[shape.layer[u] + 2];
                 ++to)
                if (s.alive[to] && s.edge_to(to, shape.covariates + u) >= 0) pair.push_back(to);
            if (random.uniform() < 0.5 ||
                static_cast<int>(part_size(s, pair)) > effort.largest_part)
                move_part({u}, unit_move);
            else
                move_part(pair, pair_move);
        }
        living.insert(living.begin(), hidden.begin(), hidden.end());
        if (!hidden.empty() && static_cast<int>(part_size(s, living)) <= effort.largest_part)
            move_part(living, all_move);
    }

    void move_part(const Part& part, Move move) {
        double& share = keep[move - unit_move];
        const Vector here = part_values(s, part);
        const Proposal there(model, s, part);
        if (!there.ok) return;
        const Vector values = there.draw(here, share, random);
        next = s;
        set_part(next, part, values);
        const bool permitted = model.permitted(next);
        model.forward(next, part);
        const Proposal back(model, next, part);
        if (!back.ok) return;
        double ratio = model.log_likelihood(next) - model.log_likelihood(s) +
                       back.log_density(here, values, share) -
                       there.log_density(values, here, share);
        for (int u : part) ratio += model.log_weights(next, u) - model.log_weights(s, u);
        const bool yes = decide(permitted ? ratio : -INFINITY, move);
        if (yes) std::swap(s, next);
        if (warming && !exact(part)) {
            double spread = std::sqrt(1 - share * share);
            spread = std::min(1.0, std::max(0.02, spread * std::exp(yes ? 0.06 : -0.04)));
            share = std::sqrt(std::max(0.0, 1 - spread * spread));
        }
    }

    // A unit that sends more where it is heard less: the predictor stays.
    void scale_units() {
        const Shape& shape = model.shape;
        if (!shape.homogeneous()) return;
        for (int u = 0; u < shape.hidden(); ++u) {
            if (!s.alive[u]) continue;
            const double factor = std::exp(0.5 * random.normal());
            int power = static_cast<int>(s.in[u].size()) + 1;
            double ratio = scaled(s.bias[u], model.prior.bias_sd * model.prior.bias_sd, factor);
            for (const Edge& e : s.in[u])
                ratio += scaled(e.weight, model.slab_variance(s, u, e), factor);
            std::vector<Edge*> out;
            for (int t = shape.first[shape.layer[u] + 1]; t < shape.first[shape.layer[u] + 2]; ++t)
                if (const int k = s.alive[t] ? s.edge_to(t, shape.covariates + u) : -1; k >= 0) {
                    out.push_back(&s.in[t][k]);
                    ratio += scaled(out.back()->weight, model.slab_variance(s, t, *out.back()),
                                    1 / factor);
                    --power;
                }
            if (!(std::log(random.uniform()) < ratio + power * std::log(factor))) continue;
            s.bias[u] *= factor;
            for (Edge& e : s.in[u]) e.weight *= factor;
            for (Edge* e : out) e->weight /= factor;
            for (Column* column : {&s.z[u], &s.value[u]}) {
                auto scaled = std::make_shared<Vector>(model.problem.n);
                multiply(scaled->data(), (*column)->data(), factor, model.problem.n);
                *column = std::move(scaled);
            }
        }
    }

    // What the log density of a normal variable gains if the variable is multiplied.
    static double scaled(double value, double variance, double factor) {
        return 0.5 * value * value * (1 - factor * factor) / variance;
    }

    // -- scales and noise
    // -----------------------------------------------------------------------------------------

    void update_scales() {
        const Shape& shape = model.shape;
        const double df = model.prior.df;
        Vector square(shape.blocks(), 0.0), count(shape.blocks(), 0.0);
        for (int u = 0; u < shape.units(); ++u)
            for (Edge& e : s.in[u]) {
                const int b = shape.block(u, e.source);
                if (df > 0)
                    e.mixing = random.inverse_gamma((df + 1) / 2,
                                                    (df + e.weight * e.weight / s.tau2[b]) / 2);
                square[b] += e.weight * e.weight / e.mixing;
                count[b] += 1;
            }
        for (int b = 0; b < shape.blocks(); ++b)
            s.tau2[b] = random.inverse_gamma(model.prior.tau_shape + count[b] / 2,
                                             model.prior.tau_scale + square[b] / 2);
    }

    // A random walk on the logarithms.
    void update_dispersion() {
        const Problem& p = model.problem;
        const double a = model.prior.noise_shape, b = model.prior.noise_scale;
        for (std::size_t o = 0; o < s.s2.size(); ++o) {
            const double step = 2.4 * std::sqrt(1 / (model.likelihood->noise_rows(p, o) + 1));
            double now = model.likelihood->total(p, s.f->data(), s.s2);
            for (int t = 0; t < 3; ++t) {
                Vector other = s.s2;
                other[o] *= std::exp(step * random.normal());
                const double then = model.likelihood->total(p, s.f->data(), other);
                const double ratio = then - now +
                                     model.likelihood->log_noise_prior(p, o, other[o], a, b) -
                                     model.likelihood->log_noise_prior(p, o, s.s2[o], a, b);
                if (!(std::log(random.uniform()) < ratio)) continue;
                s.s2 = std::move(other);
                now = then;
            }
        }
        s.slopes.reset();
    }

    void update_noise() {
        if (model.likelihood->has_dispersion()) return update_dispersion();
        if (!model.likelihood->has_noise()) return;
        const Problem& p = model.problem;
        for (int o = 0; o < p.outputs; ++o) {
            double square = 0;
            for (std::size_t i = 0; i < p.n; ++i) {
                const double d = p.y[o * p.n + i] - (*s.f)[o * p.n + i];
                square += p.row_weight(i) * d * d;
            }
            s.s2[o] = random.inverse_gamma(model.prior.noise_shape + p.total_weight / 2,
                                           model.prior.noise_scale + square / 2);
        }
        s.slopes.reset();
    }
};

}  // namespace islab::sample
