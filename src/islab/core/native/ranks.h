// Quantiles of the numbers of each column, by selection.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace islab::networks {

// Quantiles (levels, columns) of numbers (draws, columns), on the straight line between
// neighbouring ranks; levels rise. NaN for a column that has one.
inline void rank_quantiles(const double* numbers, std::size_t draws, std::size_t columns,
                           const double* levels, std::size_t n_levels, double* out) {
    constexpr std::size_t at_once = 8;  // columns of a cache line
    std::vector<double> memory(at_once * draws);
    for (std::size_t first = 0; first < columns; first += at_once) {
        const std::size_t count = std::min(at_once, columns - first);
        for (std::size_t d = 0; d < draws; ++d)
            for (std::size_t k = 0; k < count; ++k)
                memory[k * draws + d] = numbers[d * columns + first + k];
        for (std::size_t k = 0; k < count; ++k) {
            double *begin = &memory[k * draws], *end = begin + draws, *from = begin;
            const bool missing = std::any_of(begin, end, [](double a) { return std::isnan(a); });
            for (std::size_t l = 0; l < n_levels; ++l) {
                double& found = out[l * columns + first + k];
                if (missing) {
                    found = std::numeric_limits<double>::quiet_NaN();
                    continue;
                }
                const double rank = levels[l] * static_cast<double>(draws - 1);
                double* at = begin + static_cast<std::size_t>(rank);
                const double share = rank - std::floor(rank);
                std::nth_element(from, at, end);
                from = at;  // what is before is smaller than all that is looked for next
                const double next = at + 1 < end ? *std::min_element(at + 1, end) : *at;
                // From the nearer end, so that equal neighbours give their own value.
                found =
                    share < 0.5 ? *at + share * (next - *at) : next - (1 - share) * (next - *at);
            }
        }
    }
}

}  // namespace islab::networks
