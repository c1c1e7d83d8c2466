// One chain over structures, weights, slab scales and noise. Every move leaves the posterior
// invariant.

#pragma once

#include <array>

#include "quadratic.h"
#include "units.h"

namespace islab::sample {

class Chain {
   public:
    Chain(Model& model, State start, std::uint64_t seed)
        : model(model), s(std::move(start)), random(seed) {
        if (!model.valid(s))
            throw std::invalid_argument("the starting network has edges on no active path");
        if (!model.permitted(s))
            throw std::invalid_argument("the starting network is not within its limits");
        keep.fill(0.0);
        if (OutputRegression::serves(model)) regression = std::make_unique<UnitRegression>(model);
        model.forward(s);
    }

    Model& model;
    State s;
    Random random;
    Counts counts;
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
    std::unique_ptr<UnitRegression> regression;

    bool decide(double log_ratio, Move move) {
        return counts.add(move, std::log(random.uniform()) < log_ratio);
    }

    bool exact(const Part& part) const {
        if (!model.likelihood->has_noise()) return false;
        for (int u : part)
            if (!model.shape.is_output(u)) return false;
        return true;
    }

    double slab_mixing() {
        return model.prior.df > 0 ? random.inverse_gamma(model.prior.df / 2, model.prior.df / 2)
                                  : 1.0;
    }

    // -- edges
    // ----------------------------------------------------------------------------------------------------

    // Edges that could be added to a unit, with probabilities that favour those the gradient asks
    // for.
    std::vector<EdgeOption> options_for(const State& state, int unit) const {
        const Shape& shape = model.shape;
        const Problem& p = model.problem;
        const std::size_t n = p.n;
        const int outputs = shape.outputs();
        const Slopes& slopes = model.slopes(state);
        Vector pull(n, 0.0), stiffness(n, 0.0), d;
        if (!shape.is_output(unit)) d = Backward(model, state, {unit}).by_unit[unit];
        for (int o = 0; o < outputs; ++o) {
            if (shape.is_output(unit) && o != unit - shape.hidden()) continue;
            const double* residual = &slopes.residual[o * n];
            const double* curvature = &slopes.curvature[o * n];
            for (std::size_t i = 0; i < n; ++i) {
                const double slope = d.empty() ? 1.0 : d[o * n + i];
                const double stiff = model.likelihood->softmax()
                                         ? curvature[i] * p.row_weight(i) * (1 - curvature[i])
                                         : curvature[i];
                pull[i] += residual[i] * slope;
                stiffness[i] += stiff * slope * slope;
            }
        }
        return edge_options(model, state, unit, Singles(pull.begin(), pull.end()),
                            Singles(stiffness.begin(), stiffness.end()), model.tally(state));
    }

    // A unit that edges may be added to: moves of edges leave their number as it is.
    // Edges into outputs whose weights are integrated out move elsewhere.
    int n_open() const { return regression ? model.shape.hidden() : model.shape.units(); }

    int living_unit() {
        std::vector<int> living;
        for (int u = 0; u < n_open(); ++u)
            if (s.alive[u]) living.push_back(u);
        return living.empty() ? -1 : living[random.below(static_cast<int>(living.size()))];
    }

    double n_living() const {
        return static_cast<double>(std::count(s.alive.begin(), s.alive.begin() + n_open(), 1));
    }

    std::vector<Place> droppable(const State& state) const {
        std::vector<Place> found;
        for (int u = 0; u < n_open(); ++u) {
            const auto& edges = state.in[u];
            if (!model.shape.is_output(u) && edges.size() < 2) continue;
            for (std::size_t k = 0; k < edges.size(); ++k) {
                const int source = edges[k].source - model.shape.covariates;
                if (source >= 0 && model.out_degree(state, source) < 2) continue;
                found.push_back({u, static_cast<int>(k)});
            }
        }
        return found;
    }

    // The log acceptance ratio of moving from s to `next`, whose part is drawn here. `start` has
    // its activations.
    double jump(const Part& part, State start, State& next) {
        const Proposal there(model, start, part);
        if (!there.ok) {
            next = std::move(start);  // a state to look at, though nobody goes there
            return -INFINITY;
        }
        const Vector values = there.draw(there.mean, 0.0, random);
        next = std::move(start);
        set_part(next, part, values);
        if (!model.permitted(next)) return -INFINITY;
        model.forward(next, part);
        double ratio = model.log_likelihood(next) - model.log_likelihood(s) +
                       model.log_structure(next) - model.log_structure(s);
        for (int u : part) ratio += model.log_weights(next, u) - model.log_weights(s, u);
        return ratio - there.log_density(values, there.mean, 0.0);
    }

    // Log density of the present weights of a part, proposed from `start`.
    double way_back(const Part& part, State start) {
        const Proposal back(model, start, part);
        if (!back.ok) return -INFINITY;
        return back.log_density(part_values(s, part), back.mean, 0.0);
    }

    // The weights into the edge's unit move with it, or stay.
    void change_edge() {
        const double which = random.uniform();
        const bool alone = random.uniform() < 0.75;
        if (which < 0.4)
            add_edge(alone);
        else if (which < 0.8)
            drop_edge(alone);
        else
            swap_edge();
    }

    double log_slab(const State& state, int unit, const Edge& e) const {
        return log_normal(e.weight, 0.0, std::sqrt(model.slab_variance(state, unit, e)));
    }

    void add_edge(bool alone) {
        const int unit = living_unit();
        if (unit < 0) return;
        const Part part{unit};
        const std::vector<EdgeOption> options = options_for(s, unit);
        if (options.empty()) return;
        const EdgeOption& chosen = choose(options, random);
        State start = s, next;
        start.in[unit].push_back({chosen.source, 0.0, slab_mixing()});
        double ratio;
        if (alone) {
            next = std::move(start);
            Edge& e = next.in[unit].back();
            e.weight = chosen.mean + chosen.sd * random.normal();
            ratio = log_slab(next, unit, e) - log_normal(e.weight, chosen.mean, chosen.sd);
            ratio += difference(next, unit);
        } else {
            ratio = jump(part, std::move(start), next);
            State back = next;
            erase_edge(back, unit, chosen.source);
            model.forward(back, part);
            // The other edges keep their order, so values of the reverse move line up with s.
            ratio += way_back(part, std::move(back));
        }
        ratio -=
            std::log(chosen.probability / n_living() * static_cast<double>(droppable(next).size()));
        if (decide(ratio, add_move)) s = std::move(next);
    }

    // Log likelihood and log prior of the structure of `next` less those of s, its unit changed.
    double difference(State& next, int unit) const {
        if (!model.permitted(next)) return -INFINITY;
        model.forward(next, {unit});
        return model.log_likelihood(next) - model.log_likelihood(s) + model.log_structure(next) -
               model.log_structure(s);
    }

    void drop_edge(bool alone) {
        const std::vector<Place> places = droppable(s);
        if (places.empty()) return;
        const Place place = places[random.below(static_cast<int>(places.size()))];
        const Part part{place.unit};
        const Edge gone = s.in[place.unit][place.position];
        State start = s, next;
        start.in[place.unit].erase(start.in[place.unit].begin() + place.position);
        double ratio;
        if (alone) {
            next = std::move(start);
            ratio = difference(next, place.unit) - log_slab(s, place.unit, gone);
            if (!(ratio > -INFINITY)) return;
        } else {
            model.forward(start, part);
            ratio = jump(part, std::move(start), next);
            if (!(ratio > -INFINITY)) return;
            State back = next;
            back.in[place.unit].insert(back.in[place.unit].begin() + place.position,
                                       {gone.source, 0.0, gone.mixing});
            ratio += way_back(part, std::move(back));
        }
        const std::vector<EdgeOption> options = options_for(next, place.unit);
        const EdgeOption* back = option_of(options, gone.source);
        if (back == nullptr) return;
        if (alone) ratio += log_normal(gone.weight, back->mean, back->sd);
        ratio += std::log(back->probability / n_living() * static_cast<double>(places.size()));
        if (decide(ratio, drop_move)) s = std::move(next);
    }

    // One covariate of a unit for another, chosen as the network without either asks for it.
    void swap_edge() {
        std::vector<Place> places;
        for (int u = 0; u < n_open(); ++u)
            for (std::size_t k = 0; k < s.in[u].size(); ++k)
                if (s.in[u][k].source < model.shape.covariates)
                    places.push_back({u, static_cast<int>(k)});
        if (places.empty()) return;
        const auto [unit, position] = places[random.below(static_cast<int>(places.size()))];
        const Edge gone = s.in[unit][position];
        State base = s, next = s;
        base.in[unit].erase(base.in[unit].begin() + position);
        model.forward(base, {unit});
        const std::vector<EdgeOption> options = options_for(base, unit);
        const EdgeOption& there = choose(options, random);
        const EdgeOption* back = option_of(options, gone.source);
        if (back == nullptr || there.source >= model.shape.covariates) return;
        Edge& e = next.in[unit][position];
        e = {there.source, there.mean + there.sd * random.normal(), slab_mixing()};
        double ratio = log_slab(next, unit, e) - log_normal(e.weight, there.mean, there.sd) -
                       log_slab(s, unit, gone) + log_normal(gone.weight, back->mean, back->sd) +
                       std::log(back->probability / there.probability);
        ratio += difference(next, unit);
        if (decide(ratio, swap_move)) s = std::move(next);
    }

    // -- hidden units
    // ---------------------------------------------------------------------------------------------

    // Units of the last hidden layer come and go where weights into outputs are integrated out.
    int birth_layers() const { return model.shape.layers() - (regression ? 2 : 1); }

    // Layers in which a unit can be born, for a state.
    std::vector<int> open_layers(const State& state) const {
        std::vector<int> open;
        const Shape& shape = model.shape;
        if (shape.covariates == 0) return open;
        for (int l = 0; l < birth_layers(); ++l)
            if (shape.reads_covariates(shape.first[l]) && !units_where(state, l, false).empty() &&
                !units_where(state, l + 1, true).empty())
                open.push_back(l);
        return open;
    }

    std::vector<int> units_where(const State& state, int layer, bool alive) const {
        std::vector<int> found;
        for (int u = model.shape.first[layer]; u < model.shape.first[layer + 1]; ++u)
            if (static_cast<bool>(state.alive[u]) == alive) found.push_back(u);
        return found;
    }

    double log_birth(const State& before, int layer, int n_sources) const {
        const double v = model.shape.covariates;
        const double ways = n_sources == 1 ? v : v * (v - 1) / 2;
        const double number = model.shape.covariates > 1 ? 0.5 : 1.0;
        return std::log(number / ways / static_cast<double>(open_layers(before).size()) /
                        static_cast<double>(units_where(before, layer, false).size()) /
                        static_cast<double>(units_where(before, layer + 1, true).size()));
    }

    // Units with one or two covariates and one edge out, which can leave.
    std::vector<int> mortal(const State& state) const {
        std::vector<int> found;
        const Shape& shape = model.shape;
        for (int u = 0; u < shape.first[birth_layers()]; ++u) {
            if (!state.alive[u] || state.in[u].size() > 2 || model.out_degree(state, u) != 1)
                continue;
            bool plain = shape.reads_covariates(u);
            for (const Edge& e : state.in[u]) plain = plain && e.source < shape.covariates;
            const int target = target_of(state, u);
            if (plain && (shape.is_output(target) || state.in[target].size() > 1))
                found.push_back(u);
        }
        return found;
    }

    int target_of(const State& state, int unit) const {
        const int l = model.shape.layer[unit] + 1;
        for (int t = model.shape.first[l]; t < model.shape.first[l + 1]; ++t)
            if (state.alive[t] && state.edge_to(t, model.shape.covariates + unit) >= 0) return t;
        return -1;
    }

    void birth() {
        const Shape& shape = model.shape;
        const std::vector<int> layers = open_layers(s);
        if (layers.empty()) return;
        const int layer = layers[random.below(static_cast<int>(layers.size()))];
        const std::vector<int> empty = units_where(s, layer, false),
                               targets = units_where(s, layer + 1, true);
        const int unit = empty[random.below(static_cast<int>(empty.size()))];
        const int target = targets[random.below(static_cast<int>(targets.size()))];
        const int n_sources = shape.covariates > 1 && random.uniform() < 0.5 ? 2 : 1;
        State start = s, next;
        start.alive[unit] = 1;
        while (static_cast<int>(start.in[unit].size()) < n_sources) {
            const int source = random.below(shape.covariates);
            if (start.edge_to(unit, source) >= 0) continue;
            Edge e{source, 0.0, slab_mixing()};
            e.weight = random.normal() * std::sqrt(model.slab_variance(start, unit, e));
            start.in[unit].push_back(e);
        }
        start.bias[unit] = bias_sd(start, unit) * random.normal();
        start.in[target].push_back({shape.covariates + unit, 0.0, slab_mixing()});
        model.forward(start, {unit});
        const Part part{target};
        double ratio = jump(part, std::move(start), next) + log_own_parameters(model, next, unit);
        State back = next;
        erase_edge(back, target, shape.covariates + unit);
        model.forward(back, part);
        ratio += way_back(part, std::move(back));
        ratio -=
            log_birth(s, layer, n_sources) + std::log(static_cast<double>(mortal(next).size()));
        if (decide(ratio, birth_move)) s = std::move(next);
    }

    void death() {
        const std::vector<int> options = mortal(s);
        if (options.empty()) return;
        const int unit = options[random.below(static_cast<int>(options.size()))];
        const int target = target_of(s, unit), layer = model.shape.layer[unit];
        const int position = s.edge_to(target, model.shape.covariates + unit);
        const Edge gone = s.in[target][position];
        const Part part{target};
        State start = s, next;
        start.in[target].erase(start.in[target].begin() + position);
        start.in[unit].clear();
        start.alive[unit] = 0;
        start.bias[unit] = 0;
        model.forward(start, part);
        double ratio = jump(part, std::move(start), next) - log_own_parameters(model, s, unit);
        if (!(ratio > -INFINITY)) return;
        State back = next;
        back.alive[unit] = 1;
        back.in[unit] = s.in[unit];
        back.bias[unit] = s.bias[unit];
        back.z[unit] = s.z[unit];
        back.value[unit] = s.value[unit];
        back.in[target].insert(back.in[target].begin() + position, {gone.source, 0.0, gone.mixing});
        ratio += way_back(part, std::move(back));
        ratio += log_birth(next, layer, static_cast<int>(s.in[unit].size())) +
                 std::log(static_cast<double>(options.size()));
        if (decide(ratio, death_move)) s = std::move(next);
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
        State next = s;
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
        if (yes) s = std::move(next);
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
        Part changed;
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
            changed.push_back(u);
        }
        if (!changed.empty()) model.forward(s, changed);
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
