// Multiplicative normalizing flows: the means of a layer's weights are multiplied by z, one entry
// for each input of the layer, the same for all rows of a batch.
//
//     z ~ q: a Gaussian, pushed through transforms      mean of a weight: z mu
//     loss:  NLL + weight (KL(z) + log q(z) - log r(z | W))
//
// Parameters of a layer's flow: mean and log variance of q, mean and log variance of r, then c, b1
// and b2, by which r depends on the weights; then q's transforms and r's (see transforms.h).

#pragma once

#include "transforms.h"

namespace {

using islab::Flows;

constexpr double log_2pi = 1.8378770664093453;

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
