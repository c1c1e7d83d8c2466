// Networks from flat vectors: of each draw the units and edges that lead to an output, by target.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "networks.h"

namespace islab::networks {

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// Where a weight leads from and to, in an architecture whose weights lie in one flat vector: those
// from covariates of all units, then those from the hidden units of each layer.
class Wiring {
   public:
    Wiring(std::size_t n_covariates, const std::vector<long long>& hidden, std::size_t outputs,
           bool input_skip)
        : covariates(n_covariates) {
        for (long long width : hidden) {
            require(width >= 0 && width < (1LL << 31), "widths must not be negative");
            widths.push_back(static_cast<std::size_t>(width));
        }
        widths.push_back(outputs);
        for (std::size_t width : widths) {
            starts.push_back(units);
            units += width;
        }
        fed_units = input_skip ? units : widths[0];
        require(units + covariates < (std::size_t{1} << 31), "too many units and covariates");
    }

    std::size_t covariates, units = 0;

    // Source and target; sources count the covariates, then the units.
    std::pair<std::size_t, std::size_t> ends(long long slot) const {
        require(slot >= 0, "an edge outside the network");
        std::size_t at = static_cast<std::size_t>(slot);
        if (at < fed_units * covariates) return {at % covariates, at / covariates};
        at -= fed_units * covariates;
        for (std::size_t layer = 1; layer < widths.size(); ++layer) {
            const std::size_t below = widths[layer - 1], size = widths[layer] * below;
            if (at < size)
                return {covariates + starts[layer - 1] + at % below, starts[layer] + at / below};
            at -= size;
        }
        throw std::invalid_argument("an edge outside the network");
    }

   private:
    std::vector<std::size_t> widths, starts;
    std::size_t fed_units = 0;
};

// One draw: its edges by target, and the units that lead to an output.
class Draw {
   public:
    explicit Draw(const Wiring& wiring)
        : wiring(wiring), first(wiring.units + 1), leads(wiring.units), number(wiring.units) {}

    void read(const long long* slots, std::size_t n_edges, std::size_t outputs) {
        ends.clear();
        std::fill(first.begin(), first.end(), 0);
        for (std::size_t e = 0; e < n_edges; ++e) {
            ends.push_back(wiring.ends(slots[e]));
            ++first[ends.back().second + 1];
        }
        for (std::size_t u = 0; u < wiring.units; ++u) first[u + 1] += first[u];
        order.resize(n_edges);
        std::vector<std::size_t> next(first.begin(), first.end() - 1);
        for (std::size_t e = 0; e < n_edges; ++e) order[next[ends[e].second]++] = e;
        for (std::size_t u = 0; u < wiring.units; ++u) leads[u] = u + outputs >= wiring.units;
        for (std::size_t u = wiring.units; u-- > 0;)
            for (std::size_t k = first[u]; leads[u] && k < first[u + 1]; ++k) {
                const std::size_t source = ends[order[k]].first;
                if (source >= wiring.covariates) leads[source - wiring.covariates] = 1;
            }
    }

    // Calls use(covariate) for each edge from a covariate that leads to an output.
    template <class Use>
    void covariates(Use use) const {
        for (const auto& [source, target] : ends)
            if (leads[target] && source < wiring.covariates) use(source);
    }

    // `position` says where each covariate stands among the used ones.
    void append_to(Networks& net, const std::vector<std::int32_t>& position, const double* weights,
                   const double* biases, std::size_t given) {
        std::size_t n_units = 0;
        for (std::size_t u = 0; u < wiring.units; ++u) {
            if (!leads[u]) continue;
            number[u] = net.used.size() + n_units++;
            net.bias.push_back(biases[u]);
            net.given_unit.push_back(u);
            for (std::size_t k = first[u]; k < first[u + 1]; ++k) {
                const std::size_t source = ends[order[k]].first;
                net.source.push_back(
                    source < wiring.covariates
                        ? position[source]
                        : static_cast<std::int32_t>(number[source - wiring.covariates]));
                net.weight.push_back(weights[order[k]]);
                net.given_edge.push_back(given + order[k]);
            }
            net.first_edge.push_back(net.source.size());
        }
        net.first_unit.push_back(net.bias.size());
        net.most_units = std::max(net.most_units, n_units);
    }

   private:
    const Wiring& wiring;
    std::vector<std::pair<std::size_t, std::size_t>> ends;
    std::vector<std::size_t> first, order;
    std::vector<char> leads;
    std::vector<std::size_t> number;
};

// Draws one after the other: the edges of each, of which `ends` says where they end in the
// list, and the biases of all units.
struct FlatDraws {
    std::size_t n;
    const long long* slots;
    const double* weights;
    const long long* ends;
    const double* biases;  // (draws, units)
};

inline Networks make_networks(const Wiring& wiring, std::size_t outputs, const FlatDraws& draws) {
    Networks net;
    net.draws = draws.n;
    net.covariates = wiring.covariates;
    net.outputs = outputs;
    Draw draw(wiring);
    const auto read = [&](std::size_t d) {
        const long long from = d ? draws.ends[d - 1] : 0;
        draw.read(draws.slots + from, static_cast<std::size_t>(draws.ends[d] - from), outputs);
        return from;
    };
    std::vector<std::int32_t> position(wiring.covariates, -1);
    for (std::size_t d = 0; d < draws.n; ++d) {
        read(d);
        draw.covariates([&](std::size_t covariate) { position[covariate] = 0; });
    }
    for (std::size_t c = 0; c < wiring.covariates; ++c)
        if (position[c] == 0) {
            position[c] = static_cast<std::int32_t>(net.used.size());
            net.used.push_back(c);
        }
    net.first_unit.push_back(0);
    net.first_edge.push_back(0);
    for (std::size_t d = 0; d < draws.n; ++d) {
        const long long from = read(d);
        draw.append_to(net, position, draws.weights + from, draws.biases + d * wiring.units,
                       static_cast<std::size_t>(from));
    }
    return net;
}

}  // namespace islab::networks
