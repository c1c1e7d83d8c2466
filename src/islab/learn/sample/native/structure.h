// A network's shape, and the prior of which edges it has.
//
// Edges of a block, those of the covariates into a layer or of one layer into the next, share an
// inclusion probability with a Beta prior. A hidden layer has variables that its units may read;
// each number of them is equally probable, and so is each choice of so many. Both are integrated
// out. Without the choice of variables a covariate that does not matter would have a chance in each
// of many units, and a network that needs many edges would use nearly all covariates.

#pragma once

#include <unordered_map>

#include "shape.h"

namespace islab::sample {

// What the prior of a structure depends on.
struct Tally {
    std::vector<long> edges;   // in each block, those of one variable into one unit counted once
    std::vector<int> readers;  // units that read each variable, (hidden layers, variables)
    std::vector<int> read;     // variables that some unit reads, by hidden layer

    explicit Tally(const Shape& shape)
        : edges(shape.blocks(), 0),
          readers((shape.layers() - 1) * shape.groups(), 0),
          read(shape.layers() - 1, 0) {}

    // One more edge, or one less; `used` are the unit's other edges from the same variable.
    void count(const Shape& shape, int unit, int source, int used, bool more) {
        if (used > 0) return;
        edges[shape.block(unit, source)] += more ? 1 : -1;
        if (source >= shape.covariates || shape.is_output(unit)) return;
        const int layer = shape.layer[unit];
        int& reading = readers[layer * shape.groups() + shape.group[source]];
        if (more)
            read[layer] += reading++ == 0;
        else
            read[layer] -= --reading == 0;
    }
};

struct StructurePrior {
    double inclusion_a = 1, inclusion_b = 1;  // Beta prior of each block's inclusion probability
    double hidden_width = 0;  // narrower layers of hidden units count as if they had this width
    bool by_variable = true;  // whether a hidden layer has a choice of variables
    double price = 0;         // of each edge, in units of log density
};

class Structures {
   public:
    Structures(const Shape& shape, const StructurePrior& prior) : shape(shape), prior(prior) {
        log_factorial.assign(1, 0.0);
        log_harmonic.assign(1, 0.0);
        for (double k = 1, sum = 0; k <= shape.covariates; ++k) {
            log_factorial.push_back(log_factorial.back() + std::log(k));
            log_harmonic.push_back(std::log(sum += 1 / k));
        }
        for (int b = 0; b < shape.blocks(); ++b) slots.push_back(assumed_slots(b));
    }

    // Log prior odds of one more edge from a source, where its variable has `used` into the unit.
    double log_odds(const Tally& tally, int unit, int source, int used) const {
        const int block = shape.block(unit, source);
        const long k = tally.edges[block];
        if (used > 0 || !has_choice(block)) return log_odds(unit, source, k, used);
        const int layer = shape.layer[unit], m = tally.read[layer];
        const bool first = tally.readers[layer * shape.groups() + shape.group[source]] == 0;
        return log_choice(block, m + first, k + 1) - log_choice(block, m, k) +
               log_levels(size_of(source), 1) - prior.price;
    }

    // The same where the block has k edges and no choice of variables.
    double log_odds(int unit, int source, long k, int used) const {
        const int block = shape.block(unit, source), size = size_of(source);
        if (used > 0) return std::log(double(used)) - std::log(double(size - used)) - prior.price;
        return std::log(prior.inclusion_a + k) -
               std::log(prior.inclusion_b + slots[block] - k - 1) + log_levels(size, 1) -
               prior.price;
    }

    // Log prior of the edges of all blocks, but for their prices and the levels of variables.
    double log_prior(const Tally& tally) const {
        double sum = 0;
        for (int b = 0; b < shape.blocks(); ++b) {
            if (!(slots[b] > 0)) continue;
            sum += has_choice(b) ? log_choice(b, tally.read[b], tally.edges[b])
                                 : log_edges(slots[b], tally.edges[b]);
        }
        return sum;
    }

    // Log prior of which of a variable's covariates a unit reads if it reads some: k of them with
    // a probability proportional to 1 / k, and each choice of k is as probable.
    double log_levels(int size, int used) const {
        if (size == 1 || used == 0) return 0.0;
        return log_factorial[used - 1] + log_factorial[size - used] - log_factorial[size] -
               log_harmonic[size];
    }

   private:
    const Shape& shape;
    const StructurePrior prior;
    std::vector<double> slots;          // of each block, those of a wider layer among them
    std::vector<double> log_factorial;  // up to all covariates
    std::vector<double> log_harmonic;   // of 1 + 1/2 + ... + 1/k, up to all covariates
    mutable std::vector<std::unordered_map<long, double>> choices;  // of log_choice, by block

    int size_of(int source) const {
        return source < shape.covariates ? shape.group_size[shape.group[source]] : 1;
    }

    bool has_choice(int block) const { return prior.by_variable && block < hidden_blocks(); }

    // Blocks of covariates into hidden layers, which come first.
    int hidden_blocks() const { return std::min(shape.covariate_blocks, shape.layers() - 1); }

    double assumed_width(int layer) const {
        const double own = shape.width[layer];
        return layer + 1 < shape.layers() ? std::max(own, prior.hidden_width) : own;
    }

    // Edges that a wider layer would have had count as left out, so that an edge is as probable in
    // a narrow network as in a wide one.
    double assumed_slots(int block) const {
        const int layer = block - shape.covariate_blocks;
        return layer < 0 ? shape.groups() * assumed_width(block)
                         : assumed_width(layer) * assumed_width(layer + 1);
    }

    // Log prior of k edges at given places of so many slots, the inclusion probability integrated
    // out.
    double log_edges(double size, double k) const {
        const double a = prior.inclusion_a, b = prior.inclusion_b;
        return std::lgamma(a + k) + std::lgamma(b + size - k) - std::lgamma(a + b + size) -
               std::lgamma(a) - std::lgamma(b) + std::lgamma(a + b);
    }

    // Log prior of k edges at given places, of m variables: a sum over the number of variables that
    // the layer may read, of which those m are some.
    double log_choice(int block, int m, long k) const {
        if (choices.empty()) choices.resize(hidden_blocks());
        auto& known = choices[block];
        const auto [place, unknown] = known.try_emplace(k * (shape.groups() + 1) + m, 0.0);
        if (!unknown) return place->second;
        const int all = shape.groups();
        std::vector<double> heights;
        for (int may = m; may <= all; ++may)
            heights.push_back(log_edges(may * assumed_width(block), static_cast<double>(k)) +
                              log_factorial[may] - log_factorial[may - m]);
        const double largest = *std::max_element(heights.begin(), heights.end());
        double sum = 0;
        for (double height : heights) sum += std::exp(height - largest);
        return place->second = largest + std::log(sum) + log_factorial[all - m] -
                               log_factorial[all] - std::log(all + 1.0);
    }
};

}  // namespace islab::sample
