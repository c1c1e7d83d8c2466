// Moves of structure by reversible jumps, wherever weights are not integrated out: edges and hidden
// units come and go, with the weights that fit them.

#pragma once

#include "quadratic.h"
#include "units.h"

namespace islab::sample {

class Jumps {
   public:
    Jumps(Model& model, State start, std::uint64_t seed)
        : model(model), s(std::move(start)), random(seed) {
        if (!model.valid(s))
            throw std::invalid_argument("the starting network has edges on no active path");
        if (!model.permitted(s))
            throw std::invalid_argument("the starting network is not within its limits");
        if (OutputRegression::serves(model)) regression = std::make_unique<UnitRegression>(model);
        model.forward(s);
    }

    Model& model;
    State s;
    Random random;
    Counts counts;

   protected:
    std::unique_ptr<UnitRegression> regression;

    bool decide(double log_ratio, Move move) {
        return counts.add(move, std::log(random.uniform()) < log_ratio);
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
};

}  // namespace islab::sample
