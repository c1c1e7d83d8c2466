// What follows from draws of predictors: quantiles of equal mixtures, one distribution for each
// draw and one mixture for each column, and exponential functions.

#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "lanes.h"
#include "networks.h"

namespace {

using namespace islab::networks;

// -- distributions about a centre -------------------------------------------------------------

// The share below z in standard units, the density there and its derivative.
struct Point {
    Vec share, density, change;
};

struct Normal {
    static Point at(Vec z) {
        // The tail is the density times Mills' ratio, a polynomial of (x - 3.75) / (x + 3.75)
        // with x = |z| / sqrt(2), over 1 + 2 x: accurate to 3e-15 of the tail.
        constexpr double ratio[] = {
            1.2375126308378264,      -0.1402405985855061,    0.003585415485781718,
            0.08227673848712364,     -0.10880393015455231,   0.09230432122630407,
            -0.058693398387769276,   0.028362276757789878,   -0.009746581194305737,
            0.001755629509835044,    0.0002937214295671766,  -0.00029016629854870747,
            5.162601622259388e-05,   2.241001922861546e-05,  -1.1399726074440511e-05,
            -1.0083452170503317e-06, 1.6959958079369936e-06, -2.774961112169086e-08,
            -2.1430692275529703e-07, 8.526359817231193e-09,  1.7552176306831194e-08,
        };
        constexpr double root_half = 0.70710678118654752, density_at_0 = 0.39894228040143268;
        const Vec x = magnitude(z) * root_half;
        const Vec over = 1.0 / ((x + 3.75) * (x * 2.0 + 1.0));
        const Vec t = (x - 3.75) * (x * 2.0 + 1.0) * over;
        Vec sum = fill(ratio[20]);
        for (int k = 19; k >= 0; --k) sum = sum * t + ratio[k];
        const Vec shrunk = exponential(-x * x);
        const Vec tail = 0.5 * shrunk * sum * (x + 3.75) * over;
        const Vec density = density_at_0 * shrunk;
        return {select(z < 0.0, tail, 1.0 - tail), density, -z * density};
    }
};

struct Student4 {
    static Point at(Vec z) {
        const Vec inverse = 1.0 / (4.0 + z * z), root = square_root(inverse), part = z * root;
        const Vec density = 12.0 * inverse * inverse * root;
        return {0.5 + part * (3.0 - part * part) * 0.25, density, -5.0 * z * inverse * density};
    }
};

// -- their quantiles --------------------------------------------------------------------------

// A few columns of numbers (draws, columns); beyond the last column, the last again.
class Columns {
   public:
    Columns(Spread numbers, std::size_t columns, std::size_t first)
        : from(numbers.at + first * numbers.by_column),
          by_draw(numbers.by_draw),
          whole(numbers.by_column && first + lanes <= columns) {
        for (std::size_t k = 0; k < lanes; ++k)
            at[k] = std::min(k, columns - 1 - first) * numbers.by_column;
    }

    Vec operator()(std::size_t draw) const {
        const double* numbers = from + draw * by_draw;
        if (whole) return load(numbers);
        double found[lanes];
        for (std::size_t k = 0; k < lanes; ++k) found[k] = numbers[at[k]];
        return load(found);
    }

   private:
    const double* from;
    std::size_t by_draw;
    bool whole;
    std::size_t at[lanes];
};

constexpr int most_steps = 60;
// After a step of this size, in the smallest scale, what is left is its cube.
constexpr double small_step = 3e-5;

// Halley's steps from the quantile of one distribution with the same mean and variance, kept
// inside a bracket that shrinks: a step that would leave it goes to the middle. Each lane stops by
// itself, so that a column's quantile does not depend on its neighbours.
template <class Distribution>
Vec quantile(const Columns& centre, const Columns& inverse, std::size_t draws, double level,
             double reach) {
    const double share = 1.0 / static_cast<double>(draws);
    Vec low = fill(std::numeric_limits<double>::infinity()), high = -low, smallest = low;
    Vec mean{}, square{}, own{};
    const Vec shift = centre(0);  // so that squares do not cancel
    for (std::size_t d = 0; d < draws; ++d) {
        const Vec c = centre(d), scale = 1.0 / inverse(d), end = c + reach * scale, e = c - shift;
        low = smaller(end, low);
        high = larger(end, high);
        smallest = smaller(scale, smallest);
        mean += e;
        square += e * e;
        own += scale * scale;
    }
    mean *= share;
    const Vec variance = larger(square * share - mean * mean, Vec{}) + own * share;
    Vec x = shift + mean + reach * square_root(variance);
    Mask going = x == x;
    for (int step = 0; step < most_steps && any(going); ++step) {
        Mask inside = x >= low;
        inside = inside & (x <= high);
        const Vec here = select(inside, x, 0.5 * (low + high));
        Vec below{}, density{}, change{};
        for (std::size_t d = 0; d < draws; ++d) {
            const Vec rate = inverse(d);
            const Point point = Distribution::at((here - centre(d)) * rate);
            below += point.share;
            density += point.density * rate;
            change += point.change * rate * rate;
        }
        const Vec excess = below * share - level;
        density = larger(density * share, fill(std::numeric_limits<double>::min()));
        const Vec newton = excess / density;
        // Halley's correction, held where the density hardly changes over the step.
        const Vec bend = 0.5 * newton * change * share / density;
        const Vec factor = smaller(larger(1.0 - bend, fill(0.5)), fill(2));
        const Vec move = newton / factor;
        const Mask early = excess < 0.0;
        low = select(going, select(early, here, low), low);
        high = select(going, select(early, high, here), high);
        x = select(going, here - move, x);
        going = going & (magnitude(move) > small_step * smallest);
    }
    return smaller(larger(x, low), high);
}

template <class Distribution>
void all_quantiles(const double* centres, Spread inverse_scale, std::size_t draws,
                   std::size_t columns, double level, double reach, double* out) {
    for (std::size_t first = 0; first < columns; first += lanes) {
        const Columns centre({centres, columns, 1}, columns, first);
        const Columns inverse(inverse_scale, columns, first);
        double found[lanes];
        store(found, quantile<Distribution>(centre, inverse, draws, level, reach));
        std::memcpy(out + first, found, std::min(lanes, columns - first) * sizeof(double));
    }
}

void location_quantile(Location kind, const double* centres, Spread inverse_scale,
                       std::size_t draws, std::size_t columns, double level, double reach,
                       double* out) {
    (kind == Location::normal
         ? all_quantiles<Normal>
         : all_quantiles<Student4>)(centres, inverse_scale, draws, columns, level, reach, out);
}

// -- counts -----------------------------------------------------------------------------------

constexpr double least_log_share = -650;  // above that of denormal numbers
constexpr double no_log_share = -100;     // what is below a count of such a share is nothing
constexpr double farthest_sds = 12, most_counts = 30000;

// Goes through the counts with the share that each draw has there: the next is the share times
// (count + size) q / (count + 1), where q is rate / (size + rate), or times rate / (count + 1) for
// Poisson counts. Draws of large rates enter where their shares become numbers.
class CountWalk {
   public:
    explicit CountWalk(std::size_t draws)
        : draws(draws),
          padded((draws + lanes - 1) / lanes * lanes),
          scratch(4 * padded),
          rate(scratch.data()),
          size(rate + padded),
          factor(size + padded),
          share(factor + padded) {}

    double count = 0, below = 0;  // the share of the mixture up to and with the count

    // False if the counts are too many.
    bool start(const double* rates, std::size_t stride, const Spread* dispersion,
               std::size_t column) {
        poisson = !dispersion;
        entries.clear();
        double highest = 0;
        for (std::size_t d = 0; d < draws; ++d) {
            const double noise =
                poisson ? 0
                        : dispersion->at[d * dispersion->by_draw + column * dispersion->by_column];
            rate[d] = rates[d * stride + column];
            size[d] = poisson ? 0 : 1 / noise;
            factor[d] = poisson ? rate[d] : rate[d] / (size[d] + rate[d]);
            share[d] = 0;
            const double sd = std::sqrt(rate[d] + noise * rate[d] * rate[d]);
            if (!(rate[d] + farthest_sds * sd < 1e15)) return false;
            highest = std::max(highest, rate[d] + 2 * sd);
            entries.push_back({entry(d, sd), d});
        }
        std::sort(entries.begin(), entries.end());
        next_entry = 0;
        count = entries[0].first;
        below = enter() / static_cast<double>(draws);
        return highest - count < most_counts;
    }

    void next() {
        const double inverse = 1 / (count + 1);
        Vec sum{};
        for (std::size_t d = 0; d < padded; d += lanes) {
            const Vec more =
                poisson ? load(factor + d) : (load(size + d) + count) * load(factor + d);
            const Vec own = load(share + d) * (more * inverse);
            store(share + d, own);
            sum += own;
        }
        ++count;
        below += (total(sum) + enter()) / static_cast<double>(draws);
    }

   private:
    const std::size_t draws, padded;
    Scratch scratch;
    double *rate, *size, *factor, *share;
    bool poisson = true;
    std::vector<std::pair<double, std::size_t>> entries;  // counts and draws
    std::size_t next_entry = 0;

    double log_share(std::size_t d, double at) const {
        double found = poisson ? -rate[d] : -size[d] * std::log1p(rate[d] / size[d]);
        if (at > 0) {
            found += at * std::log(factor[d]) - std::lgamma(at + 1);
            if (!poisson) found += std::lgamma(at + size[d]) - std::lgamma(size[d]);
        }
        return found;
    }

    // A count below which the draw has no share that matters.
    double entry(std::size_t d, double sd) const {
        if (log_share(d, 0) > least_log_share) return 0;
        double low = 0, high = std::floor(rate[d]);
        double at = std::max(0.0, std::floor(rate[d] - farthest_sds * sd));
        while (high - low > 1) {
            const double found = log_share(d, at);
            if (found > least_log_share && found < no_log_share) break;
            (found < no_log_share ? low : high) = at;
            at = std::floor((low + high) / 2);
        }
        return at;
    }

    // Shares of the draws that enter at this count.
    double enter() {
        double sum = 0;
        for (; next_entry < draws && entries[next_entry].first <= count; ++next_entry) {
            const std::size_t d = entries[next_entry].second;
            share[d] = std::exp(log_share(d, count));
            sum += share[d];
        }
        return sum;
    }
};

void count_quantiles(const double* rates, const Spread* dispersion, std::size_t draws,
                     std::size_t columns, const double* levels, std::size_t n_levels, double* out) {
    CountWalk walk(draws);
    for (std::size_t column = 0; column < columns; ++column) {
        std::size_t next = 0;
        if (walk.start(rates, columns, dispersion, column)) {
            const double last = walk.count + most_counts;
            for (;;) {
                for (; next < n_levels && walk.below >= levels[next]; ++next)
                    out[next * columns + column] = walk.count;
                if (next == n_levels || walk.count >= last) break;
                walk.next();
            }
        }
        for (; next < n_levels; ++next)
            out[next * columns + column] = std::numeric_limits<double>::quiet_NaN();
    }
}

// -- responses --------------------------------------------------------------------------------

void exponentials(const double* from, std::size_t n, double* out) {
    std::size_t at = 0;
    for (; at + lanes <= n; at += lanes) store(out + at, exponential(load(from + at)));
    double rest[lanes] = {};
    std::memcpy(rest, from + at, (n - at) * sizeof(double));
    store(rest, exponential(load(rest)));
    std::memcpy(out + at, rest, (n - at) * sizeof(double));
}

}  // namespace
