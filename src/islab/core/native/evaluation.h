// Predictors, slopes and contributions of all draws, block of rows by block of rows.

#pragma once

#include <algorithm>

#include "families.h"
#include "networks.h"

namespace {

using namespace islab::networks;

constexpr std::size_t block = 64;         // rows
constexpr std::size_t group = 4 * lanes;  // rows whose sums are held in registers
static_assert(block % group == 0, "a block is made of whole groups");

// -- one network, one block -------------------------------------------------------------------

// The used covariates of some rows, one run of `block` numbers for each; 0 beyond the last row.
inline void transpose(const Networks& net, const Rows& rows, std::size_t first, double* values) {
    const std::size_t count = std::min(block, rows.n - first);
    for (std::size_t c = 0; c < net.used.size(); ++c) {
        double* run = values + c * block;
        for (std::size_t r = 0; r < count; ++r) run[r] = rows(first + r, net.used[c]);
        for (std::size_t r = count; r < block; ++r) run[r] = 0;
    }
}

inline std::size_t whole_groups(std::size_t rows) { return (rows + group - 1) / group * group; }

// Fills in what the units are: values of hidden ones, sums of outputs; and slopes if asked for.
template <class Act>
void forward(const Networks& net, std::size_t draw, std::size_t rows, double* values,
             double* slopes) {
    const Act act(net.constant);
    const std::size_t begin = net.first_unit[draw], n_hidden = net.n_hidden(draw);
    double* units = values + net.used.size() * block;
    for (std::size_t u = 0; u < net.n_units(draw); ++u) {
        const std::size_t first = net.first_edge[begin + u], last = net.first_edge[begin + u + 1];
        for (std::size_t at = 0; at < rows; at += group) {
            Vec z0 = fill(net.bias[begin + u]), z1 = z0, z2 = z0, z3 = z0;
            for (std::size_t e = first; e < last; ++e) {
                const double* from = values + net.source[e] * block + at;
                const Vec w = fill(net.weight[e]);
                z0 += w * load(from);
                z1 += w * load(from + lanes);
                z2 += w * load(from + 2 * lanes);
                z3 += w * load(from + 3 * lanes);
            }
            const Vec sums[4] = {z0, z1, z2, z3};
            for (std::size_t k = 0; k < 4; ++k) {
                const std::size_t place = u * block + at + k * lanes;
                const Vec value = u < n_hidden ? act.value(sums[k]) : sums[k];
                store(units + place, value);
                if (slopes && u < n_hidden) store(slopes + place, act.slope(sums[k], value));
            }
        }
    }
}

inline void write_outputs(const Networks& net, std::size_t draw, const double* values,
                          std::size_t count, double* out) {
    const double* runs = values + (net.used.size() + net.n_hidden(draw)) * block;
    if (net.outputs == 1) {
        std::memcpy(out, runs, count * sizeof(double));
        return;
    }
    for (std::size_t o = 0; o < net.outputs; ++o)
        for (std::size_t r = 0; r < count; ++r) out[r * net.outputs + o] = runs[o * block + r];
}

template <class Act>
struct Predictor {
    static void run(const Networks& net, const Rows* rows, double* out) {
        Scratch scratch((net.used.size() + net.most_units) * block);
        double* values = scratch.data();
        for (std::size_t first = 0; first < rows->n; first += block) {
            const std::size_t count = std::min(block, rows->n - first);
            transpose(net, *rows, first, values);
            for (std::size_t d = 0; d < net.draws; ++d) {
                forward<Act>(net, d, whole_groups(count), values, nullptr);
                write_outputs(net, d, values, count, out + (d * rows->n + first) * net.outputs);
            }
        }
    }
};

// -- slopes -----------------------------------------------------------------------------------

// The gradient of one output by the used covariates, runs of `block` numbers.
inline void backward(const Networks& net, std::size_t draw, std::size_t output, std::size_t rows,
                     const double* slopes, double* flows, double* gradient) {
    const std::size_t begin = net.first_unit[draw], n_hidden = net.n_hidden(draw);
    const std::size_t n_used = net.used.size();
    std::fill(gradient, gradient + n_used * block, 0.0);
    std::fill(flows, flows + n_hidden * block, 0.0);
    const auto send = [&](std::size_t u, const double* flow) {
        for (std::size_t e = net.first_edge[begin + u]; e < net.first_edge[begin + u + 1]; ++e) {
            const std::size_t source = net.source[e];
            double* to =
                source < n_used ? gradient + source * block : flows + (source - n_used) * block;
            const Vec w = fill(net.weight[e]);
            for (std::size_t r = 0; r < rows; r += lanes)
                store(to + r, load(to + r) + (flow ? w * load(flow + r) : w));
        }
    };
    send(n_hidden + output, nullptr);
    for (std::size_t u = n_hidden; u-- > 0;) {
        double* flow = flows + u * block;
        for (std::size_t r = 0; r < rows; r += lanes)
            store(flow + r, load(flow + r) * load(slopes + u * block + r));
        send(u, flow);
    }
}

template <class Act>
struct Slopes {
    static void run(const Networks& net, const Rows* rows, double* predictor, double* out) {
        const std::size_t n_used = net.used.size();
        Scratch scratch((2 * n_used + 3 * net.most_units) * block);
        double* values = scratch.data();
        double* slopes = values + (n_used + net.most_units) * block;
        double* flows = slopes + net.most_units * block;
        double* gradient = flows + net.most_units * block;
        for (std::size_t first = 0; first < rows->n; first += block) {
            const std::size_t count = std::min(block, rows->n - first);
            transpose(net, *rows, first, values);
            for (std::size_t d = 0; d < net.draws; ++d) {
                const std::size_t at = d * rows->n + first;
                forward<Act>(net, d, whole_groups(count), values, slopes);
                write_outputs(net, d, values, count, predictor + at * net.outputs);
                for (std::size_t o = 0; o < net.outputs; ++o) {
                    backward(net, d, o, whole_groups(count), slopes, flows, gradient);
                    for (std::size_t r = 0; r < count; ++r) {
                        double* to = out + ((at + r) * net.outputs + o) * n_used;
                        for (std::size_t c = 0; c < n_used; ++c) to[c] = gradient[c * block + r];
                    }
                }
            }
        }
    }
};

// -- contributions ----------------------------------------------------------------------------

// The straight way of `lanes` rows through one piecewise-linear network. On each piece the state
// of a unit, on which side of its bend it is, is fixed, sums are linear in the way t, and the
// gradient is constant. A piece ends where the first unit reaches its bend; only that unit's
// state changes. A unit that moves away from its bend never ends a piece, so that rounding cannot
// hold the way up.
class Way {
   public:
    Way(const Networks& net, double slope_below, double* memory)
        : net(net), n_used(net.used.size()), bends(slope_below != 1), slope_below(slope_below) {
        const std::size_t units = net.most_units * lanes, covariates = n_used * lanes;
        start = memory;
        delta = start + covariates;
        z = delta + covariates;
        speed = z + units;
        slope = speed + units;
        flow = slope + units;
        reach = flow + units;
        gradient = reach + units;
    }

    static std::size_t memory_of(const Networks& net) {
        return (net.used.size() * (2 + net.outputs) + net.most_units * 5) * lanes;
    }

    // Rows that `begin` and `end` give from `first` on; beyond the last the way has no length.
    void set(const Rows& begin, const Rows& end, std::size_t first) {
        for (std::size_t c = 0; c < n_used; ++c)
            for (std::size_t k = 0; k < lanes; ++k) {
                const bool there = first + k < end.n;
                const double from = there ? begin(first + k, net.used[c]) : 0;
                start[c * lanes + k] = from;
                delta[c * lanes + k] = there ? end(first + k, net.used[c]) - from : 0;
            }
    }

    // Goes the whole way; the mean gradients are in `gradient` afterwards.
    void go(std::size_t draw) {
        begin = net.first_unit[draw];
        n_hidden = net.n_hidden(draw);
        set_out();
        std::fill(gradient, gradient + net.outputs * n_used * lanes, 0.0);
        Vec way{};
        do {
            const Vec length = piece(1.0 - way);
            add_gradient(length);
            turn(length);
            way += length;
        } while (any(way < 1.0));
    }

    // (rows, used covariates, outputs)
    void write(std::size_t rows, double* out) const {
        for (std::size_t k = 0; k < rows; ++k)
            for (std::size_t c = 0; c < n_used; ++c)
                for (std::size_t o = 0; o < net.outputs; ++o)
                    *out++ = delta[c * lanes + k] * gradient[(o * n_used + c) * lanes + k];
    }

   private:
    const Networks& net;
    const std::size_t n_used;
    const bool bends;
    const double slope_below;  // of the activation below its bend; 1 above
    std::size_t begin = 0, n_hidden = 0;
    double *start, *delta, *z, *speed, *slope, *flow, *reach, *gradient;

    Vec sum_over_edges(std::size_t u, const double* covariates, const double* units) const {
        Vec sum{};
        for (std::size_t e = net.first_edge[begin + u]; e < net.first_edge[begin + u + 1]; ++e) {
            const std::size_t source = net.source[e];
            const double* from =
                source < n_used ? covariates + source * lanes : units + (source - n_used) * lanes;
            sum += net.weight[e] * load(from);
        }
        return sum;
    }

    // Sums and states at the start; `flow` holds the units' values.
    void set_out() {
        for (std::size_t u = 0; u < n_hidden; ++u) {
            const Vec sum = net.bias[begin + u] + sum_over_edges(u, start, flow);
            const Vec own = select(sum > 0.0, fill(1), fill(slope_below));
            store(z + u * lanes, sum);
            store(slope + u * lanes, own);
            store(flow + u * lanes, sum * own);
        }
    }

    // How far the states hold, at most `most`.
    Vec piece(Vec most) {
        for (std::size_t u = 0; u < n_hidden; ++u) {
            const Vec own = sum_over_edges(u, delta, flow), at = load(z + u * lanes);
            const Vec side = load(slope + u * lanes);
            store(speed + u * lanes, own);
            store(flow + u * lanes, own * side);
            if (!bends) continue;
            const Mask positive = side == 1.0, negative = side != 1.0;
            const Vec distance = select(positive, larger(at, Vec{}), smaller(at, Vec{})) /
                                 select(own == 0.0, fill(1), -own);
            const Mask toward = (positive & (own < 0.0)) | (negative & (own > 0.0));
            const Vec until =
                select(toward, distance, fill(std::numeric_limits<double>::infinity()));
            store(reach + u * lanes, until);
            most = smaller(until, most);
        }
        return most;
    }

    // Adds the gradient of each output, times the length of the piece.
    void add_gradient(Vec length) {
        for (std::size_t o = 0; o < net.outputs; ++o) {
            double* sums = gradient + o * n_used * lanes;
            std::fill(flow, flow + n_hidden * lanes, 0.0);
            send(n_hidden + o, length, sums);
            for (std::size_t u = n_hidden; u-- > 0;)
                send(u, load(flow + u * lanes) * load(slope + u * lanes), sums);
        }
    }

    void send(std::size_t u, Vec own, double* sums) {
        for (std::size_t e = net.first_edge[begin + u]; e < net.first_edge[begin + u + 1]; ++e) {
            const std::size_t source = net.source[e];
            double* to = source < n_used ? sums + source * lanes : flow + (source - n_used) * lanes;
            store(to, load(to) + net.weight[e] * own);
        }
    }

    // Goes to the end of the piece, where units that reach their bend change sides.
    void turn(Vec length) {
        if (!bends) return;
        for (std::size_t u = 0; u < n_hidden; ++u) {
            const std::size_t at = u * lanes;
            store(z + at, load(z + at) + length * load(speed + at));
            const Vec own = load(slope + at);
            const Vec other = select(own == 1.0, fill(slope_below), fill(1));
            store(slope + at, select(load(reach + at) <= length, other, own));
        }
    }
};

template <class Act>
struct Contributions {
    static void run(const Networks& net, const Rows* start, const Rows* end, double* out) {
        if constexpr (Act::piecewise_linear) {
            const std::size_t n_used = net.used.size();
            Scratch scratch(Way::memory_of(net));
            Way way(net, Act(net.constant).slope_below(), scratch.data());
            for (std::size_t first = 0; first < end->n; first += lanes) {
                way.set(*start, *end, first);
                const std::size_t count = std::min(lanes, end->n - first);
                for (std::size_t d = 0; d < net.draws; ++d) {
                    way.go(d);
                    way.write(count, out + (d * end->n + first) * n_used * net.outputs);
                }
            }
        }
    }
};

// -- all activations --------------------------------------------------------------------------

void predictor(const Networks& net, const Rows& rows, double* out) {
    with_activation<Predictor>(net.activation, net, &rows, out);
}

void slopes(const Networks& net, const Rows& rows, double* predictor, double* gradient) {
    with_activation<Slopes>(net.activation, net, &rows, predictor, gradient);
}

void contributions(const Networks& net, const Rows& start, const Rows& end, double* out) {
    with_activation<Contributions>(net.activation, net, &start, &end, out);
}

}  // namespace
