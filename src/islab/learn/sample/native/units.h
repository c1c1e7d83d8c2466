// Hidden units in front of an output whose weights are integrated out: units come and go, edges
// into them are added, dropped and swapped, their weights move.
//
// A unit that reaches this output alone is one column of its regression. Whatever changes in the
// unit replaces that column by another, and the swept matrix says what the evidence gains: a
// proposal costs a pass over the rows for each column in the regression, and no other weight has to
// be guessed.

#pragma once

#include "columns.h"
#include "edges.h"
#include "moves.h"

namespace islab::sample {

// A bias puts the bend somewhere among the rows: covariates have spread 1.
inline double bias_sd(const State& s, int unit) {
    double square = 0.01;
    for (const Edge& e : s.in[unit]) square += e.weight * e.weight;
    return std::sqrt(square);
}

// Log prior minus log proposal of a new unit's own parameters: incoming weights come from their
// prior.
inline double log_own_parameters(const Model& model, const State& s, int unit) {
    return log_normal(s.bias[unit], 0.0, model.prior.bias_sd) -
           log_normal(s.bias[unit], 0.0, bias_sd(s, unit));
}

class UnitRegression final : public ColumnRegression {
   public:
    using ColumnRegression::ColumnRegression;

    // Structure, hyperparameters and weights of one output.
    void update(State& s, int which, const Effort& effort, Random& random, Counts& moves) {
        move(s, which, effort, random, moves);
        if (model.likelihood->has_noise()) update_noise(s, random);
        if (model.shape.reads_covariates(unit)) update_scale(s, model.shape.block(unit, 0), random);
        finish(s, random);
    }

    // How far the swept matrix is from one that is made anew, after moves of the structure.
    double drift(State& s, int which, const Effort& effort, Random& random, Counts& moves) {
        move(s, which, effort, random, moves);
        const Vector moved = swept;
        build();
        double largest = 0;
        for (std::size_t k = 0; k < swept.size(); ++k)
            largest = std::max(largest, std::abs(moved[k] - swept[k]) / (1 + std::abs(swept[k])));
        return largest;
    }

   private:
    void move(State& s, int which, const Effort& effort, Random& random, Counts& moves) {
        const Shape& shape = model.shape;
        last = shape.layers() - 2;
        observe(s, which, random);
        begin(s, which, random, last >= 0 && effort.units > 0 ? spares : 0);
        for (int t = 0; t < effort.toggles; ++t) {
            moves.add(toggle_move, toggle(s, random));
            if (t % 2 == 0) moves.add(swap_out_move, swap(s, random));
            if (sweeps > 100) build();
        }
        if (last >= 0) {
            build();
            for (int t = 0; t < effort.edges; ++t) change_edge(s, random, moves);
            if (shape.covariates > 0 && shape.reads_covariates(shape.first[last]))
                for (int t = 0; t < 2 * effort.units; ++t)
                    random.uniform() < 0.5 ? birth(s, random, moves) : death(s, random, moves);
            for (int t = 0; t < effort.parts; ++t) walk(s, random, moves);
        }
    }

    int last = 0;  // hidden layer in front of the outputs

    // -- edges
    // -----------------------------------------------------------------------------------------------

    double log_slab(const State& s, int u, const Edge& e) const {
        return log_normal(e.weight, 0.0, std::sqrt(model.slab_variance(s, u, e)));
    }

    // Log prior odds of one more edge, which is counted.
    double count_edge(int u, int source, int used) {
        const double odds = model.structures.log_odds(tally, u, source, used);
        tally.count(model.shape, u, source, used, true);
        return odds;
    }

    int used_levels(const State& s, int u, int source) const {
        return source < model.shape.covariates ? model.levels(s, u)[model.shape.group[source]] : 0;
    }

    void uncount_edge(int u, int source, int used) {
        tally.count(model.shape, u, source, used, false);
    }

    std::vector<EdgeOption> options_for(const State& s, int u, const Vector& residuals,
                                        double coefficient) const {
        const std::size_t n = model.problem.n;
        Vector slope(n, coefficient);
        Singles pull(n), stiffness(n);
        model.shape.times_slope(slope.data(), s.z[u]->data(), s.value[u]->data(), n);
        const double scale = 1 / s2;
        for (std::size_t i = 0; i < n; ++i) {
            pull[i] = static_cast<float>(slope[i] * residuals[i]);
            stiffness[i] = static_cast<float>(row_precision[i] * scale * slope[i] * slope[i]);
        }
        return edge_options(model, s, u, pull, stiffness, tally);
    }

    struct Spot {
        std::size_t column;
        int position;
    };

    // Edges that can leave their units: all but the last one.
    std::vector<Spot> droppable(const State& s) const {
        std::vector<Spot> found;
        for (std::size_t j : movable()) {
            const auto& edges = s.in[unit_of(j)];
            for (std::size_t k = 0; edges.size() > 1 && k < edges.size(); ++k) {
                const int below = edges[k].source - model.shape.covariates;
                if (below < 0 || model.out_degree(s, below) > 1)
                    found.push_back({j, static_cast<int>(k)});
            }
        }
        return found;
    }

    void change_edge(State& s, Random& random, Counts& moves) {
        const double which = random.uniform();
        if (which < 0.35)
            add_edge(s, random, moves);
        else if (which < 0.7)
            drop_edge(s, random, moves);
        else
            swap_edge(s, random, moves);
    }

    void add_edge(State& s, Random& random, Counts& moves) {
        const auto columns = movable();
        if (columns.empty()) return;
        const std::size_t j = columns[random.below(static_cast<int>(columns.size()))];
        const int u = unit_of(j);
        Vector coefficients(size, 0.0);
        for (std::size_t k = 0; k < size; ++k)
            if (in[k]) coefficients[k] = at(k, size);
        const auto options = options_for(s, u, residual(s, coefficients, 0, 0.0), at(j, size));
        if (options.empty()) return;
        const EdgeOption& chosen = choose(options, random);
        Kept kept = keep(s, u);
        double ratio =
            gain_of_leaving(j) + count_edge(u, chosen.source, used_levels(s, u, chosen.source));
        Edge e{chosen.source, chosen.mean + chosen.sd * random.normal(), slab_mixing(random)};
        s.in[u].push_back(e);
        ratio += log_slab(s, u, e) - log_normal(e.weight, chosen.mean, chosen.sd);
        ratio -= std::log(chosen.probability / static_cast<double>(columns.size()) *
                          static_cast<double>(droppable(s).size()));
        settle(s, j, kept, ratio, add_move, random, moves);
    }

    // Accepts a change of a unit or takes it back; `ratio` is without the gain of its column.
    void settle(State& s, std::size_t j, Kept& kept, double ratio, Move move, Random& random,
                Counts& moves) {
        const int u = unit_of(j);
        bool yes = model.permitted(s);
        if (yes) {
            activate(s, u);
            ratio += try_column(s, s.value[u]->data(), precision[j], j).gain;
            yes = std::log(random.uniform()) < ratio;
        }
        if (moves.add(move, yes))
            replace(s, j);
        else
            put_back(s, u, kept);
    }

    // A unit that has lost an edge. `ratio` is that of the loss, and of proposing the edge as it
    // was, without the gain of the new column.
    struct Loss {
        Edge gone;
        Kept kept;
        double ratio;
        Trial trial;
        std::vector<EdgeOption> options;  // to put in its place
    };

    Loss lose_edge(State& s, const Spot& spot) {
        const int u = unit_of(spot.column);
        const auto place = s.in[u].begin() + spot.position;
        const Edge gone = *place;
        Loss loss{gone, keep(s, u), gain_of_leaving(spot.column), {}, {}};
        s.in[u].erase(place);
        const int used = used_levels(s, u, gone.source);
        uncount_edge(u, gone.source, used);
        activate(s, u);
        loss.trial = try_column(s, s.value[u]->data(), precision[spot.column], spot.column);
        const double coefficient = loss.trial.coefficient;
        loss.options = options_for(
            s, u, residual(s, loss.trial.coefficients, spot.column, coefficient), coefficient);
        const EdgeOption* back = option_of(loss.options, gone.source);
        loss.ratio += std::log(back->probability) + log_normal(gone.weight, back->mean, back->sd) -
                      log_slab(s, u, gone) - model.structures.log_odds(tally, u, gone.source, used);
        return loss;
    }

    void drop_edge(State& s, Random& random, Counts& moves) {
        const auto spots = droppable(s);
        if (spots.empty()) return;
        const Spot& spot = spots[random.below(static_cast<int>(spots.size()))];
        Loss loss = lose_edge(s, spot);
        const double ratio =
            loss.ratio + loss.trial.gain +
            std::log(static_cast<double>(spots.size()) / static_cast<double>(movable().size()));
        const bool yes = std::log(random.uniform()) < ratio;
        if (moves.add(drop_move, yes))
            replace(s, spot.column);
        else
            put_back(s, unit_of(spot.column), loss.kept);
    }

    // One covariate of a unit for another, chosen as the unit without either asks for it.
    void swap_edge(State& s, Random& random, Counts& moves) {
        std::vector<Spot> spots;
        for (std::size_t j : movable())
            for (std::size_t k = 0; k < s.in[unit_of(j)].size(); ++k)
                if (s.in[unit_of(j)][k].source < model.shape.covariates)
                    spots.push_back({j, static_cast<int>(k)});
        if (spots.empty()) return;
        const auto [j, position] = spots[random.below(static_cast<int>(spots.size()))];
        const int u = unit_of(j);
        Loss loss = lose_edge(s, {j, position});
        const EdgeOption& there = choose(loss.options, random);
        if (there.source >= model.shape.covariates) {
            moves.add(swap_move, false);
            put_back(s, u, loss.kept);
            return;
        }
        const Edge e{there.source, there.mean + there.sd * random.normal(), slab_mixing(random)};
        double ratio = loss.ratio + count_edge(u, e.source, used_levels(s, u, e.source));
        s.in[u].insert(s.in[u].begin() + position, e);
        ratio += log_slab(s, u, e) - log_normal(e.weight, there.mean, there.sd) -
                 std::log(there.probability);
        settle(s, j, loss.kept, ratio, swap_move, random, moves);
    }

    // One weight or the bias of a unit, at a scale of its own.
    void walk(State& s, Random& random, Counts& moves) {
        const auto columns = movable();
        if (columns.empty()) return;
        const std::size_t j = columns[random.below(static_cast<int>(columns.size()))];
        const int u = unit_of(j);
        Kept kept = keep(s, u);
        const int which = random.below(static_cast<int>(s.in[u].size()) + 1) - 1;
        const double scale = std::pow(10.0, -2.5 * random.uniform());
        double ratio = gain_of_leaving(j);
        if (which < 0) {
            const double sd = model.prior.bias_sd;
            ratio -= log_normal(s.bias[u], 0.0, sd);
            s.bias[u] += scale * sd * random.normal();
            ratio += log_normal(s.bias[u], 0.0, sd);
        } else {
            Edge& e = s.in[u][which];
            ratio -= log_slab(s, u, e);
            e.weight += scale * std::sqrt(model.slab_variance(s, u, e)) * random.normal();
            ratio += log_slab(s, u, e);
        }
        settle(s, j, kept, ratio, unit_move, random, moves);
    }

    // -- hidden units
    // -----------------------------------------------------------------------------------------

    // Columns of units with one or two covariates, which can leave.
    std::vector<std::size_t> mortal(const State& s) const {
        std::vector<std::size_t> found;
        for (std::size_t j : movable()) {
            const auto& edges = s.in[unit_of(j)];
            bool plain = edges.size() <= 2;
            for (const Edge& e : edges) plain = plain && e.source < model.shape.covariates;
            if (plain) found.push_back(j);
        }
        return found;
    }

    std::vector<int> empty_units(const State& s) const {
        std::vector<int> found;
        for (int u = model.shape.first[last]; u < model.shape.hidden(); ++u)
            if (!s.alive[u]) found.push_back(u);
        return found;
    }

    // Probabilities of the covariates of a new unit: half of them as a bend at the centre would
    // take up the residuals.
    Vector shares_of_covariates(const Vector& residuals) const {
        const Problem& p = model.problem;
        Vector shares(p.covariates);
        const Singles pull(residuals.begin(), residuals.end()),
            stiffness(row_precision.begin(), row_precision.end());
        std::vector<Sums> sums(p.covariates);
        bend_sums(sums.data(), pull.data(), stiffness.data(), p.single_covariate(0), sums.size(),
                  p.n);
        double sum = 1e-300;
        for (int j = 0; j < p.covariates; ++j)
            sum += shares[j] = sums[j].pull * sums[j].pull / (1 + sums[j].stiffness / s2);
        for (double& share : shares)
            share = 0.5 * share / sum + 0.5 / static_cast<double>(p.covariates);
        double total = 0;
        for (double share : shares) total += share;
        for (double& share : shares) share /= total;
        return shares;
    }

    static int draw(const Vector& shares, int except, Random& random) {
        double left = random.uniform() * (1 - (except < 0 ? 0.0 : shares[except]));
        int chosen = -1;
        for (int j = 0; j < static_cast<int>(shares.size()); ++j) {
            if (j == except) continue;
            chosen = j;
            if ((left -= shares[j]) <= 0) break;
        }
        return chosen;
    }

    // Log probability that a birth proposes these covariates in an empty unit.
    double log_birth(const std::vector<Edge>& edges, const Vector& shares,
                     std::size_t n_empty) const {
        const double number = model.shape.covariates > 1 ? 0.5 : 1.0;
        const double a = shares[edges[0].source];
        const double b = edges.size() > 1 ? shares[edges[1].source] : 0.0;
        const double ways = edges.size() > 1 ? a * b / (1 - a) + a * b / (1 - b) : a;
        return std::log(number * ways / static_cast<double>(n_empty));
    }

    // Log prior odds of a unit's edges, in and out, which are counted.
    double count_unit(const State& s, int u) {
        double odds = count_edge(unit, model.shape.covariates + u, 0);
        std::vector<int> used(model.shape.groups(), 0);
        for (const Edge& e : s.in[u])
            odds += count_edge(u, e.source, used[model.shape.group[e.source]]++);
        return odds;
    }

    void uncount_unit(const State& s, int u) {
        uncount_edge(unit, model.shape.covariates + u, 0);
        std::vector<int> used(model.shape.groups(), 0);
        for (const Edge& e : s.in[u])
            uncount_edge(u, e.source, used[model.shape.group[e.source]]++);
    }

    void birth(State& s, Random& random, Counts& moves) {
        const std::vector<int> empty = empty_units(s);
        if (empty.empty()) return;
        const int u = empty[random.below(static_cast<int>(empty.size()))];
        Vector coefficients(size, 0.0);
        for (std::size_t k = 0; k < size; ++k)
            if (in[k]) coefficients[k] = at(k, size);
        const Vector shares = shares_of_covariates(residual(s, coefficients, 0, 0.0));
        Kept kept = keep(s, u);
        const bool two = model.shape.covariates > 1 && random.uniform() < 0.5;
        for (int k = 0; k < 1 + two; ++k) {
            Edge e{draw(shares, k ? s.in[u][0].source : -1, random), 0.0, slab_mixing(random)};
            e.weight = random.normal() * std::sqrt(model.slab_variance(s, u, e));
            s.in[u].push_back(e);
        }
        s.bias[u] = bias_sd(s, u) * random.normal();
        s.alive[u] = 1;
        const std::size_t j = spare_column();
        sources[j] = model.shape.covariates + u;
        mixing[j] = slab_mixing(random);
        precision[j] = 1 / (s.tau2[model.shape.block(unit, sources[j])] * mixing[j]);
        bool yes = model.permitted(s);
        if (yes) {
            activate(s, u);
            fixed_in[j] = 1;  // so that it counts among those that can leave
            double ratio = count_unit(s, u) + log_own_parameters(model, s, u) -
                           log_birth(s.in[u], shares, empty.size()) -
                           std::log(static_cast<double>(mortal(s).size()));
            ratio += try_column(s, s.value[u]->data(), precision[j], 0).gain;
            yes = std::log(random.uniform()) < ratio;
        }
        if (moves.add(birth_move, yes)) {
            enter(s, j);
            if (sweeps > 100) build();
        } else {
            put_back(s, u, kept);
            retire(s, u, j);
        }
    }

    void death(State& s, Random& random, Counts& moves) {
        const auto options = mortal(s);
        if (options.empty()) return;
        const std::size_t j = options[random.below(static_cast<int>(options.size()))];
        const int u = unit_of(j);
        Vector coefficients(size, 0.0);
        for (std::size_t k = 0; k < size; ++k)
            if (in[k]) coefficients[k] = at(k, size);
        leave_out(coefficients, j);
        const Vector shares = shares_of_covariates(residual(s, coefficients, 0, 0.0));
        const Tally before = tally;
        uncount_unit(s, u);
        const Tally after = tally;
        double ratio = gain_of_leaving(j) - count_unit(s, u) - log_own_parameters(model, s, u) +
                       log_birth(s.in[u], shares, empty_units(s).size() + 1) +
                       std::log(static_cast<double>(options.size()));
        if (!moves.add(death_move, std::log(random.uniform()) < ratio)) {
            tally = before;
            return;
        }
        tally = after;
        sweep(j, true);
        s.in[u].clear();
        s.bias[u] = 0;
        s.z[u].reset();
        s.value[u].reset();
        retire(s, u, j);
    }

    double slab_mixing(Random& random) const {
        const double df = model.prior.df;
        return df > 0 ? random.inverse_gamma(df / 2, df / 2) : 1.0;
    }
};

}  // namespace islab::sample
