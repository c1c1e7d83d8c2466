// Quantiles of the numbers of each column, by selection.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace islab::networks {

// Finds numbers by their rank. They are first dealt into buckets of equal width, so that only the
// few of one or two buckets are put in order.
class Ranks {
   public:
    explicit Ranks(std::size_t size) : values(size), bucket(size) {}

    std::vector<double> values;

    // After all values are there.
    void prepare() {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        const double factor = (n_buckets - 1) / (*high - *low);
        dealt = values.size() >= 2 * n_buckets && std::isfinite(factor) && std::isfinite(*low);
        if (!dealt) return;
        std::fill(before, before + n_buckets + 1, 0);
        const double from = *low;
        for (std::size_t k = 0; k < values.size(); ++k)
            bucket[k] = static_cast<std::uint8_t>((values[k] - from) * factor);
        for (std::uint8_t number : bucket) ++before[number + 1];
        for (std::size_t b = 0; b < n_buckets; ++b) before[b + 1] += before[b];
    }

    // The value of a rank, counted from 0, and the next.
    std::pair<double, double> at(std::size_t rank) {
        const std::size_t next = std::min(rank + 1, values.size() - 1);
        if (!dealt) {
            some = values;
            return first_two(rank, next);
        }
        const std::uint8_t first = bucket_of(rank), last = bucket_of(next);
        some.clear();
        for (std::size_t k = 0; k < values.size(); ++k)
            if (bucket[k] >= first && bucket[k] <= last) some.push_back(values[k]);
        return first_two(rank - before[first], next - before[first]);
    }

   private:
    static constexpr std::size_t n_buckets = 256;
    std::vector<std::uint8_t> bucket;
    std::vector<double> some;
    std::size_t before[n_buckets + 1] = {};  // values in smaller buckets
    bool dealt = false;

    std::uint8_t bucket_of(std::size_t rank) const {
        const auto above = std::upper_bound(before, before + n_buckets + 1, rank);
        return static_cast<std::uint8_t>(above - before - 1);
    }

    std::pair<double, double> first_two(std::size_t rank, std::size_t next) {
        const auto place = some.begin() + static_cast<std::ptrdiff_t>(rank);
        std::nth_element(some.begin(), place, some.end());
        return {*place, next > rank ? *std::min_element(place + 1, some.end()) : *place};
    }
};

// Quantiles (levels, columns) of numbers (draws, columns), on the straight line between
// neighbouring ranks. NaN for a column that has one.
inline void rank_quantiles(const double* numbers, std::size_t draws, std::size_t columns,
                           const double* levels, std::size_t n_levels, double* out) {
    constexpr std::size_t at_once = 8;  // columns of a cache line
    std::vector<Ranks> all(at_once, Ranks(draws));
    for (std::size_t first = 0; first < columns; first += at_once) {
        const std::size_t count = std::min(at_once, columns - first);
        for (std::size_t d = 0; d < draws; ++d)
            for (std::size_t k = 0; k < count; ++k)
                all[k].values[d] = numbers[d * columns + first + k];
        for (std::size_t k = 0; k < count; ++k) {
            Ranks& ranks = all[k];
            const bool missing = std::any_of(ranks.values.begin(), ranks.values.end(),
                                             [](double a) { return std::isnan(a); });
            if (!missing) ranks.prepare();
            for (std::size_t l = 0; l < n_levels; ++l) {
                double& found = out[l * columns + first + k];
                found = std::numeric_limits<double>::quiet_NaN();
                if (missing) continue;
                const double place = levels[l] * static_cast<double>(draws - 1);
                const double share = place - std::floor(place);
                const auto [low, high] = ranks.at(static_cast<std::size_t>(place));
                // From the nearer end, so that equal neighbours give their own value.
                found =
                    share < 0.5 ? low + share * (high - low) : high - (1 - share) * (high - low);
            }
        }
    }
}

}  // namespace islab::networks
