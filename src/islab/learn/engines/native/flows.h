// Multiplicative normalizing flows: the means of a layer's weights are multiplied by z, one entry
// for each input of the layer, the same for all rows of a batch.
//
//     z ~ q: a Gaussian, pushed through transforms      mean of a weight: z mu
//     loss:  NLL + weight (KL(z) + log q(z) - log r(z | W))
//
// A transform is z' = z exp(s) + t, where s and t come from a network with two hidden layers of
// tanh. There is one z in a step, so products are of a matrix and a vector, gradients of matrices
// have rank one, and the backward pass, the gradient and Adam are one pass over each matrix.
//
// Parameters of a layer's flow: mean and log variance of q, mean and log variance of r, then c, b1
// and b2, by which r depends on the weights; then q's transforms and r's. A transform has the
// weights and biases of its three maps: (inputs, width), (width, width), (2 inputs, width). The
// hidden side lies together in all of them: the first two maps have their sources in rows, the last
// its targets. A row may only have numbers from `begin` to `end`, which is how an autoregressive
// network is told what not to look at.

#pragma once

#include "layers.h"

namespace {

using islab::Flow;
using islab::Flows;
using islab::Reach;
using islab::Transform;

constexpr double log_2pi = 1.8378770664093453;

// Parameters with Adam's moments.
template <class T>
struct Numbers {
    T *value, *first, *second;
    Numbers from(Index at) const { return {value + at, first + at, second + at}; }
};

// How parameters of flows move.
template <class T>
struct Mover {
    const Adam<T>& adam;
    T rate;

    template <class Place>
    void operator()(Place at, const Numbers<T>& to, Lanes<T> gradient) const {
        at.store(to.value, adam.step(at, at.load(to.value), to.first, to.second, gradient, rate));
    }
};

// -- maps -------------------------------------------------------------------------------------

// to (targets,) = biases + x (sources,) W (sources, targets).
template <class T>
void spread(const T* w, Index sources, Index targets, const Reach* reach, const T* x, T* to) {
    const T* bias = w + sources * targets;
    sweep<T>(0, targets, [&](auto at) { at.store(to, at.load(bias)); });
    for (Index i = 0; i < sources; ++i) {
        const T* row = w + i * targets;
        const T factor = x[i];
        sweep<T>(reach[i].begin, reach[i].end,
                 [&](auto at) { at.store(to, Lanes<T>(at.load(to) + factor * at.load(row))); });
    }
}

// From the gradient of `to` to that of x; W and the biases learn.
template <class T>
void spread_back(const Numbers<T>& w, Index sources, Index targets, const Reach* reach, const T* x,
                 const T* by_to, const Mover<T>& move, T* by_x) {
    for (Index i = 0; i < sources; ++i) {
        const Numbers<T> row = w.from(i * targets);
        const T factor = x[i];
        Lanes<T> sum{};
        sweep<T>(reach[i].begin, reach[i].end, [&](auto at) {
            const Lanes<T> by = at.load(by_to);
            sum += by * at.load(row.value);
            move(at, row, Lanes<T>(factor * by));
        });
        by_x[i] = total<T>(sum);
    }
    const Numbers<T> bias = w.from(sources * targets);
    sweep<T>(0, targets, [&](auto at) { move(at, bias, at.load(by_to)); });
}

// to (targets,) = biases + W (targets, sources) x.
template <class T>
void collect(const T* w, Index sources, Index targets, const Reach* reach, const T* x, T* to) {
    const T* bias = w + sources * targets;
    for (Index j = 0; j < targets; ++j) {
        const T* row = w + j * sources;
        Lanes<T> sum{};
        sweep<T>(reach[j].begin, reach[j].end, [&](auto at) { sum += at.load(row) * at.load(x); });
        to[j] = bias[j] + total<T>(sum);
    }
}

template <class T>
void collect_back(const Numbers<T>& w, Index sources, Index targets, const Reach* reach, const T* x,
                  const T* by_to, const Mover<T>& move, T* by_x) {
    sweep<T>(0, sources, [&](auto at) { at.store(by_x, Lanes<T>{}); });
    for (Index j = 0; j < targets; ++j) {
        const Numbers<T> row = w.from(j * sources);
        const T factor = by_to[j];
        sweep<T>(reach[j].begin, reach[j].end, [&](auto at) {
            at.store(by_x, Lanes<T>(at.load(by_x) + factor * at.load(row.value)));
            move(at, row, Lanes<T>(factor * at.load(x)));
        });
    }
    const Numbers<T> bias = w.from(sources * targets);
    sweep<T>(0, targets, [&](auto at) { move(at, bias, at.load(by_to)); });
}

// -- transforms -------------------------------------------------------------------------------

// The way of z through a transform.
template <class T>
struct Trace {
    T* z;           // (inputs,) what came in
    T *low, *high;  // (width,) the hidden layers
    T* s;           // (inputs,) log scales
};

// Where the three maps of a transform start.
struct Maps {
    Index first = 0, middle, last, size;
    template <class T>
    explicit Maps(const Flow<T>& flow)
        : middle((flow.n_inputs + 1) * flow.width),
          last(middle + (flow.width + 1) * flow.width),
          size(last + 2 * flow.n_inputs * (flow.width + 1)) {}
};

template <class T>
void take_tanh(T* x, Index count) {
    sweep<T>(0, count, [&](auto at) { at.store(x, hyperbolic_tangent<T>(at.load(x))); });
}

// By x from by tanh(x).
template <class T>
void tanh_back(const T* value, Index count, T* by) {
    sweep<T>(0, count, [&](auto at) {
        const Lanes<T> h = at.load(value);
        at.store(by, Lanes<T>(at.load(by) * (T(1) - h * h)));
    });
}

// Room for the gradients inside a transform, and for s and t.
template <class T>
struct Scratch {
    T *pair, *wide, *wider, *by_z;
};

// Takes z, in place, through a transform; the log determinant.
template <class T>
double push(const Flow<T>& flow, const Transform<T>& transform, const T* w, const Trace<T>& trace,
            const Scratch<T>& scratch, T* z) {
    const Maps maps(flow);
    const Index n = flow.n_inputs, width_of = flow.width;
    const T largest = T(flow.largest_log_scale);
    sweep<T>(0, n, [&](auto at) { at.store(trace.z, at.load(z)); });
    spread<T>(w + maps.first, n, width_of, transform.first, z, trace.low);
    take_tanh<T>(trace.low, width_of);
    spread<T>(w + maps.middle, width_of, width_of, transform.middle, trace.low, trace.high);
    take_tanh<T>(trace.high, width_of);
    collect<T>(w + maps.last, width_of, 2 * n, transform.last, trace.high, scratch.pair);
    const T* shift = scratch.pair + n;
    Lanes<T> log_det{};
    sweep<T>(0, n, [&](auto at) {
        const Lanes<T> moved = at.load(transform.moved);
        const Lanes<T> s =
            moved * (largest * hyperbolic_tangent<T>(at.load(scratch.pair) / largest));
        at.store(trace.s, s);
        at.store(z, Lanes<T>(at.load(z) * exponential(s) + moved * at.load(shift)));
        log_det += s;
    });
    return double(total<T>(log_det));
}

// From the gradient by what came out, in place, to that by what came in; the transform learns.
// `by_log_det` is the derivative by the log determinant.
template <class T>
void pull(const Flow<T>& flow, const Transform<T>& transform, const Numbers<T>& w,
          const Trace<T>& trace, T by_log_det, const Mover<T>& move, const Scratch<T>& scratch,
          T* by_z) {
    const Maps maps(flow);
    const Index n = flow.n_inputs, width_of = flow.width;
    const T inverse = T(1 / flow.largest_log_scale);
    T* by_shift = scratch.pair + n;
    sweep<T>(0, n, [&](auto at) {
        const Lanes<T> s = at.load(trace.s), moved = at.load(transform.moved), by = at.load(by_z);
        const Lanes<T> scale = exponential(s), share = s * inverse;
        const Lanes<T> by_s = by * at.load(trace.z) * scale + by_log_det;
        at.store(scratch.pair, Lanes<T>(moved * by_s * (T(1) - share * share)));
        at.store(by_shift, Lanes<T>(moved * by));
        at.store(by_z, Lanes<T>(by * scale));
    });
    collect_back<T>(w.from(maps.last), width_of, 2 * n, transform.last, trace.high, scratch.pair,
                    move, scratch.wide);
    tanh_back<T>(trace.high, width_of, scratch.wide);
    spread_back<T>(w.from(maps.middle), width_of, width_of, transform.middle, trace.low,
                   scratch.wide, move, scratch.wider);
    tanh_back<T>(trace.low, width_of, scratch.wider);
    spread_back<T>(w.from(maps.first), n, width_of, transform.first, trace.z, scratch.wider, move,
                   scratch.by_z);
    sweep<T>(0, n,
             [&](auto at) { at.store(by_z, Lanes<T>(at.load(by_z) + at.load(scratch.by_z))); });
}

// -- a layer's flow ---------------------------------------------------------------------------

// The vectors at the start of a flow's parameters.
template <class T>
struct Vectors {
    T *mean, *log_variance, *r_mean, *r_log_variance, *c, *b1, *b2, *transforms;

    Vectors(T* at, Index n)
        : mean(at),
          log_variance(mean + n),
          r_mean(log_variance + n),
          r_log_variance(r_mean + n),
          c(r_log_variance + n),
          b1(c + n),
          b2(b1 + n),
          transforms(b2 + n) {}
    static constexpr Index count = 7;
};

template <class T>
Index flow_size(const Flow<T>& flow) {
    return Vectors<T>::count * flow.n_inputs + 2 * flow.n_transforms * Maps(flow).size;
}

// What a step remembers of a layer's flow.
template <class T>
struct FlowRoom {
    T *eps, *z, *by_z;   // (inputs,)
    T* pulled;           // z at the end of r's transforms
    T *used_z, *used_c;  // (inputs in use,) entries of z and of c, hidden units first
    T *by_used_z, *by_used_c;
    Trace<T>*q, *r;  // one for each transform
    T statistic, by_statistic;
};

template <class T>
void make_room(const Flow<T>& flow, Memory& memory, FlowRoom<T>& room) {
    const Index n = flow.n_inputs;
    for (T** part : {&room.eps, &room.z, &room.by_z, &room.pulled, &room.used_z, &room.used_c,
                     &room.by_used_z, &room.by_used_c})
        *part = take<T>(memory, n);
    for (Trace<T>** traces : {&room.q, &room.r}) {
        *traces = take<Trace<T>>(memory, flow.n_transforms);
        for (Index number = 0; number < flow.n_transforms; ++number)
            (*traces)[number] = {take<T>(memory, n), take<T>(memory, flow.width),
                                 take<T>(memory, flow.width), take<T>(memory, n)};
    }
}

// z from eps, and log q(z).
template <class T>
double sample(const Flow<T>& flow, const T* parameters, const Scratch<T>& scratch,
              FlowRoom<T>& room) {
    const Index n = flow.n_inputs;
    const Vectors<const T> at_q(parameters, n);
    double log_q = -0.5 * log_2pi * double(n);
    for (Index i = 0; i < n; ++i) {
        room.z[i] = at_q.mean[i] + std::exp(T(0.5) * at_q.log_variance[i]) * room.eps[i];
        log_q -= 0.5 * double(at_q.log_variance[i] + room.eps[i] * room.eps[i]);
    }
    const T* w = at_q.transforms;
    for (Index number = 0; number < flow.n_transforms; ++number, w += Maps(flow).size)
        log_q -= push<T>(flow, flow.transforms[number], w, room.q[number], scratch, room.z);
    return log_q;
}

// log r(z | W), given the statistic of the weights.
template <class T>
double auxiliary(const Flow<T>& flow, const T* parameters, const Scratch<T>& scratch,
                 FlowRoom<T>& room) {
    const Index n = flow.n_inputs;
    const Vectors<const T> at(parameters, n);
    const T* w = at.transforms + flow.n_transforms * Maps(flow).size;
    double log_r = -0.5 * log_2pi * double(n);
    for (Index i = 0; i < n; ++i) room.pulled[i] = room.z[i];
    for (Index number = 0; number < flow.n_transforms; ++number, w += Maps(flow).size)
        log_r += push<T>(flow, flow.transforms[number], w, room.r[number], scratch, room.pulled);
    for (Index i = 0; i < n; ++i) {
        const T log_variance = at.r_log_variance[i] + at.b2[i] * room.statistic;
        const T error = room.pulled[i] - at.r_mean[i] - at.b1[i] * room.statistic;
        log_r -= 0.5 * double(log_variance + error * error * std::exp(-log_variance));
    }
    return log_r;
}

// Moves one number of a vector.
template <class T>
void move_one(const Mover<T>& move, const Numbers<T>& all, const T* element, T gradient) {
    const Index at = element - all.value;
    move(Rest<T>{0, 1}, all.from(at), fill<T>(gradient));
}

// From -weight * log r: the gradients by z and by the statistic; r learns.
template <class T>
void auxiliary_back(const Flow<T>& flow, const Numbers<T>& all, T weight, const Mover<T>& move,
                    const Scratch<T>& scratch, FlowRoom<T>& room) {
    const Index n = flow.n_inputs;
    const Vectors<T> at(all.value, n);
    T by_statistic = 0;
    for (Index i = 0; i < n; ++i) {
        const T log_variance = at.r_log_variance[i] + at.b2[i] * room.statistic;
        const T error = room.pulled[i] - at.r_mean[i] - at.b1[i] * room.statistic;
        const T scaled = error * std::exp(-log_variance);
        const T by_error = weight * scaled;
        const T by_log_variance = T(0.5) * weight * (T(1) - error * scaled);
        by_statistic += by_log_variance * at.b2[i] - by_error * at.b1[i];
        room.by_z[i] = by_error;
        move_one(move, all, at.r_mean + i, -by_error);
        move_one(move, all, at.b1 + i, T(-by_error * room.statistic));
        move_one(move, all, at.r_log_variance + i, by_log_variance);
        move_one(move, all, at.b2 + i, T(by_log_variance * room.statistic));
    }
    room.by_statistic = by_statistic;
    const Numbers<T> w = all.from(at.transforms - all.value);
    for (Index number = flow.n_transforms - 1; number >= 0; --number)
        pull<T>(flow, flow.transforms[number],
                w.from((flow.n_transforms + number) * Maps(flow).size), room.r[number], -weight,
                move, scratch, room.by_z);
}

// From the gradient by z and weight * log q; q learns.
template <class T>
void sample_back(const Flow<T>& flow, const Numbers<T>& all, T weight, const Mover<T>& move,
                 const Scratch<T>& scratch, FlowRoom<T>& room) {
    const Index n = flow.n_inputs;
    const Vectors<T> at(all.value, n);
    const Numbers<T> w = all.from(at.transforms - all.value);
    for (Index number = flow.n_transforms - 1; number >= 0; --number)
        pull<T>(flow, flow.transforms[number], w.from(number * Maps(flow).size), room.q[number],
                -weight, move, scratch, room.by_z);
    for (Index i = 0; i < n; ++i) {
        const T deviation = std::exp(T(0.5) * at.log_variance[i]) * room.eps[i];
        const T by_mean = room.by_z[i];
        move_one(move, all, at.mean + i, by_mean);
        move_one(move, all, at.log_variance + i, T(0.5) * (by_mean * deviation - weight));
    }
}

// -- all layers -------------------------------------------------------------------------------

template <class T>
struct FlowsRoom {
    void lay_out(const Network& net, const Flows<T>& flows, Memory& memory) {
        for (T** part : {&unit_eps, &unit_mean, &unit_variance})
            *part = take<T>(memory, net.n_units);
        layers = take<FlowRoom<T>>(memory, net.n_layers);
        Index widest = 0, most_inputs = 0;
        for (Index layer = 0; layer < net.n_layers; ++layer) {
            const Flow<T>& flow = flows.flows[layer];
            make_room<T>(flow, memory, layers[layer]);
            if (flow.width > widest) widest = flow.width;
            if (flow.n_inputs > most_inputs) most_inputs = flow.n_inputs;
        }
        scratch = {take<T>(memory, 2 * most_inputs), take<T>(memory, widest),
                   take<T>(memory, widest), take<T>(memory, most_inputs)};
    }
    FlowRoom<T>* layers;
    Scratch<T> scratch{};
    T* unit_eps;                   // (units,) noise of the statistics
    T *unit_mean, *unit_variance;  // of c W of each unit; then the statistic's derivatives
};

// Calls body(unit, first weight, how many, first of the layer's inputs) for the rows of a layer's
// weight matrices.
template <class Body>
void weight_rows(const Network& net, const Layer& layer, Body body) {
    for (Index i = 0; i < layer.width; ++i) {
        const Index unit = layer.first_unit + i;
        if (layer.below) body(unit, layer.hidden_start + i * layer.below, layer.below, Index(0));
        if (unit < net.n_covariate_rows)
            body(unit, unit * net.n_covariates, net.n_covariates, layer.below);
    }
}

// Noise of a step, drawn or given: for z of all layers, then for the units.
template <class T>
const T* draw_flow_noise(const Network& net, const Flows<T>& flows, std::uint32_t* generator,
                         const T* given, FlowsRoom<T>& room) {
    const auto draw = [&](T* to, Index count) {
        if (given)
            for (Index i = 0; i < count; ++i) to[i] = *given++;
        else
            fill_normal<T>(generator, to, count);
    };
    for (Index layer = 0; layer < net.n_layers; ++layer)
        draw(room.layers[layer].eps, flows.flows[layer].n_inputs);
    draw(room.unit_eps, net.n_units);
    return given;
}

// z of all layers and what it makes of the means; the sum of log q.
template <class T, class U>
double sample_all(const Network& net, const Flows<T>& flows, const Parts<U>& theta, Weights<T>& w,
                  FlowsRoom<T>& room) {
    double log_q = 0;
    for (Index number = 0; number < net.n_layers; ++number) {
        const Flow<T>& flow = flows.flows[number];
        FlowRoom<T>& own = room.layers[number];
        if (flow.n_inputs) log_q += sample<T>(flow, flows.value + flow.start, room.scratch, own);
        const Vectors<const T> at(flows.value + flow.start, flow.n_inputs);
        for (Index i = 0; i < flow.n_used; ++i) {
            own.used_z[i] = own.z[flow.used[i]];
            own.used_c[i] = at.c[flow.used[i]];
        }
        weight_rows(net, net.layers[number], [&](Index, Index first, Index count, Index input) {
            T *factor = w.factor + first, *mu = w.multiplied + first;
            const T *z = own.used_z + input, *mean = theta.mu + first;
            sweep<T>(0, count, [&](auto place) {
                const Lanes<T> each_z = place.load(z);
                place.store(factor, each_z);
                place.store(mu, Lanes<T>(each_z * place.load(mean)));
            });
        });
    }
    return log_q;
}

// The statistics of the layers' weights, means over units of hardtanh(c W); the sum of log r.
// Leaves the statistic's derivatives by the mean and the variance of c W of each unit.
template <class T>
double auxiliary_all(const Network& net, const Flows<T>& flows, const Weights<T>& w,
                     FlowsRoom<T>& room) {
    double log_r = 0;
    for (Index number = 0; number < net.n_layers; ++number) {
        const Flow<T>& flow = flows.flows[number];
        const Layer& layer = net.layers[number];
        FlowRoom<T>& own = room.layers[number];
        if (!flow.n_inputs) continue;
        const Index end = layer.first_unit + layer.width;
        for (Index unit = layer.first_unit; unit < end; ++unit) {
            room.unit_mean[unit] = 0;
            room.unit_variance[unit] = T(1e-12);
        }
        weight_rows(net, layer, [&](Index unit, Index first, Index count, Index input) {
            Lanes<T> mean{}, variance{};
            const T *means = w.mean + first, *variances = w.variance + first;
            const T* c = own.used_c + input;
            sweep<T>(0, count, [&](auto place) {
                const Lanes<T> each_c = place.load(c);
                mean += place.load(means) * each_c;
                variance += place.load(variances) * each_c * each_c;
            });
            room.unit_mean[unit] += total<T>(mean);
            room.unit_variance[unit] += total<T>(variance);
        });
        own.statistic = 0;
        const T share = T(1) / T(layer.width);
        for (Index unit = layer.first_unit; unit < end; ++unit) {
            const T sd = std::sqrt(room.unit_variance[unit]), eps = room.unit_eps[unit];
            const T drawn = room.unit_mean[unit] + sd * eps;
            const T held = drawn <= T(-1) ? T(-1) : drawn >= T(1) ? T(1) : drawn;
            const bool inside = drawn > T(-1) && drawn < T(1);
            own.statistic += share * held;
            room.unit_mean[unit] = inside ? share : T(0);
            room.unit_variance[unit] = inside ? share * eps / (T(2) * sd) : T(0);
        }
        log_r += auxiliary<T>(flow, flows.value + flow.start, room.scratch, own);
    }
    return log_r;
}

// Entries in use to all entries, the others 0.
template <class T>
void scatter(const Flow<T>& flow, const T* used, T* all) {
    for (Index i = 0; i < flow.n_inputs; ++i) all[i] = 0;
    for (Index i = 0; i < flow.n_used; ++i) all[flow.used[i]] = used[i];
}

// r learns; its gradient by the weights joins that of the NLL.
template <class T>
void auxiliary_all_back(const Network& net, const Flows<T>& flows, T weight, const Mover<T>& move,
                        Weights<T>& w, FlowsRoom<T>& room) {
    for (Index number = 0; number < net.n_layers; ++number) {
        const Flow<T>& flow = flows.flows[number];
        FlowRoom<T>& own = room.layers[number];
        if (!flow.n_inputs) continue;
        const Numbers<T> all = Numbers<T>{flows.value, flows.first, flows.second}.from(flow.start);
        auxiliary_back<T>(flow, all, weight, move, room.scratch, own);
        for (Index i = 0; i < flow.n_used; ++i) own.by_used_c[i] = 0;
        weight_rows(
            net, net.layers[number], [&](Index unit, Index first, Index count, Index input) {
                const T by_mean = own.by_statistic * room.unit_mean[unit];
                const T by_variance = own.by_statistic * room.unit_variance[unit];
                T *by_means = w.by_mean + first, *by_variances = w.by_variance + first;
                const T *means = w.mean + first, *variances = w.variance + first;
                const T* c = own.used_c + input;
                T* by_c = own.by_used_c + input;
                sweep<T>(0, count, [&](auto at) {
                    const Lanes<T> each_c = at.load(c);
                    at.store(by_means, Lanes<T>(at.load(by_means) + by_mean * each_c));
                    at.store(by_variances,
                             Lanes<T>(at.load(by_variances) + by_variance * each_c * each_c));
                    at.store(by_c, Lanes<T>(at.load(by_c) + by_mean * at.load(means) +
                                            T(2) * by_variance * each_c * at.load(variances)));
                });
            });
        const Vectors<T> at(all.value, flow.n_inputs);
        scatter(flow, own.by_used_c, room.scratch.by_z);
        const Numbers<T> c = all.from(at.c - all.value);
        sweep<T>(0, flow.n_inputs,
                 [&](auto place) { move(place, c, place.load(room.scratch.by_z)); });
    }
}

// q learns, once the weights have left in by_factor what they make of z.
template <class T>
void sample_all_back(const Network& net, const Flows<T>& flows, T weight, const Mover<T>& move,
                     const Weights<T>& w, FlowsRoom<T>& room) {
    for (Index number = 0; number < net.n_layers; ++number) {
        const Flow<T>& flow = flows.flows[number];
        FlowRoom<T>& own = room.layers[number];
        if (!flow.n_inputs) continue;
        for (Index i = 0; i < flow.n_used; ++i) own.by_used_z[i] = 0;
        weight_rows(net, net.layers[number], [&](Index, Index first, Index count, Index input) {
            const T* by_factor = w.by_factor + first;
            T* by_z = own.by_used_z + input;
            sweep<T>(0, count, [&](auto at) {
                at.store(by_z, Lanes<T>(at.load(by_z) + at.load(by_factor)));
            });
        });
        for (Index i = 0; i < flow.n_used; ++i) own.by_z[flow.used[i]] += own.by_used_z[i];
        const Numbers<T> all = Numbers<T>{flows.value, flows.first, flows.second}.from(flow.start);
        sample_back<T>(flow, all, weight, move, room.scratch, own);
    }
}

}  // namespace
