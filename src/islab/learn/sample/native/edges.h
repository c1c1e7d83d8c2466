// Edges that a unit could have besides: how probable a proposal makes each, and with which weight.

#pragma once

#include "network.h"
#include "random.h"

namespace islab::sample {

struct EdgeOption {
    int source;
    double probability;  // of being proposed
    double mean, sd;     // of the proposed weight: a Newton step from 0
};

inline double log_normal(double value, double mean, double sd) {
    const double d = (value - mean) / sd;
    return -0.5 * (d * d + log_two_pi) - std::log(sd);
}

// Options for a unit, in favour of those that the gradient asks for. `pull` and `stiffness` are
// minus the first and second derivatives of the loss by the sum the unit receives.
inline std::vector<EdgeOption> edge_options(const Model& model, const State& s, int unit,
                                            const Singles& pull, const Singles& stiffness,
                                            const Tally& tally) {
    const Shape& shape = model.shape;
    const std::size_t n = model.problem.n;
    const std::vector<int> levels = model.levels(s, unit);
    std::vector<char> taken(shape.covariates + shape.units(), 0);
    for (const Edge& e : s.in[unit]) taken[e.source] = 1;
    std::vector<EdgeOption> found;
    double largest = -INFINITY;
    auto consider = [&](int source, const Sums& sums) {
        const int block = shape.block(unit, source);
        const double g = sums.pull, h = 1 / s.tau2[block] + sums.stiffness;
        const double gain =
            0.5 * (g * g / h - std::log(h * s.tau2[block])) +
            model.structures.log_odds(tally, unit, source,
                                      source < shape.covariates ? levels[shape.group[source]] : 0);
        found.push_back({source, 0.5 * gain, g / h, 1 / std::sqrt(h)});
        largest = std::max(largest, found.back().probability);
    };
    if (shape.reads_covariates(unit) && shape.covariates > 0) {
        std::vector<Sums> sums(shape.covariates);
        newton_sums(sums.data(), pull.data(), stiffness.data(), model.problem.single_covariate(0),
                    sums.size(), n);
        for (int j = 0; j < shape.covariates; ++j)
            if (!taken[j]) consider(j, sums[j]);
    }
    const int layer = shape.layer[unit];
    std::vector<int> below;  // units whose activations the unit could receive
    for (int b = layer > 0 ? shape.first[layer - 1] : shape.first[layer]; b < shape.first[layer];
         ++b)
        if (s.alive[b] && !taken[shape.covariates + b]) below.push_back(b);
    if (!below.empty()) {
        Singles columns(below.size() * n);
        std::vector<Sums> sums(below.size());
        for (std::size_t k = 0; k < below.size(); ++k)
            std::copy(s.value[below[k]]->begin(), s.value[below[k]]->end(), &columns[k * n]);
        newton_sums(sums.data(), pull.data(), stiffness.data(), columns.data(), sums.size(), n);
        for (std::size_t k = 0; k < below.size(); ++k)
            consider(shape.covariates + below[k], sums[k]);
    }
    double sum = 0;
    for (EdgeOption& c : found) sum += c.probability = std::exp(c.probability - largest);
    for (EdgeOption& c : found)
        c.probability = 0.7 * c.probability / sum + 0.3 / static_cast<double>(found.size());
    return found;
}

inline const EdgeOption& choose(const std::vector<EdgeOption>& options, Random& random) {
    double left = random.uniform();
    std::size_t c = 0;
    while (c + 1 < options.size() && (left -= options[c].probability) > 0) ++c;
    return options[c];
}

inline const EdgeOption* option_of(const std::vector<EdgeOption>& options, int source) {
    for (const EdgeOption& c : options)
        if (c.source == source) return &c;
    return nullptr;
}

// An edge of a unit.
struct Place {
    int unit, position;
};

inline void erase_edge(State& s, int unit, int source) {
    auto& edges = s.in[unit];
    edges.erase(edges.begin() + s.edge_to(unit, source));
}

}  // namespace islab::sample
