// Whole runs of training steps, and the expected NLL.

#pragma once

#include <initializer_list>

#include "flows.h"

namespace {

using islab::Kernel;
using islab::State;
using islab::Steps;

constexpr Index rows_at_once = 1024;  // of passes over all rows

// Room for weights with these means; with flows, also for what z makes of the means.
template <class T>
Weights<T> weight_room(const Network& net, const T* mu, bool flows, Memory& memory) {
    const Index n = net.n_weights, u = net.n_units;
    Weights<T> w{};
    if (flows)
        for (T** part : {&w.factor, &w.by_factor, &w.multiplied}) *part = take<T>(memory, n);
    w.mu = flows ? w.multiplied : mu;
    for (T** part : {&w.alpha, &w.not_alpha, &w.sigma, &w.slope, &w.mean, &w.variance, &w.by_mean,
                     &w.by_variance})
        *part = take<T>(memory, n);
    for (T** part :
         {&w.bias_sigma, &w.bias_slope, &w.bias_variance, &w.by_bias, &w.by_bias_variance})
        *part = take<T>(memory, u);
    return w;
}

template <class T>
Outputs<T> outputs_of(const Network& net, const T* noise, Room<T>& room, T* gradient) {
    return {net.n_outputs, room.rows, room.stride, room.eta, room.y, room.weight, noise, gradient};
}

// The rows' part of the NLL that no parameter moves.
template <class T>
double constant_of(const Data<T>& data, const std::int64_t* rows, Index n_rows) {
    double sum = 0;
    if (data.constant)
        for (Index i = 0; i < n_rows; ++i)
            sum += double(data.constant[rows[i]]) *
                   (data.sample_weight ? double(data.sample_weight[rows[i]]) : 1.0);
    return sum;
}

// Sum of the weighted NLL of a batch's rows.
template <class T>
double nll(const Network& net, const Outputs<T>& out) {
    return Likelihoods<T>::call(net.likelihood,
                                [&](const auto& likelihood) { return likelihood.nll(out); });
}

template <bool flows, class T>
void learn(const Network& net, const Learning<T>& learning) {
    for (Index number = 0; number < net.n_blocks; ++number) {
        const Block& block = net.blocks[number];
        with_slab<T>(learning.slab, block.tau,
                     [&](const auto& slab) { learn_block<flows, T>(block, slab, learning); });
    }
    learn_biases<T>(net.n_units, learning);
}

template <bool flows, class T, class Activation>
double take_steps(const Activation& activation, const Network& net, const Slab& slab,
                  const Rules& rules, const Data<T>& data, State<T>& state, const Flows<T>& flow,
                  const Steps<T>& steps, Gemm<T> gemm, Memory& memory) {
    Room<T> room(net, steps.largest, memory);
    const Parts<T> theta(state.theta, net);
    Weights<T> w = weight_room<T>(net, theta.mu, flows, memory);
    FlowsRoom<T> flow_room{};
    if constexpr (flows)
        flow_room.lay_out(net, flow, memory);
    else
        weight_moments(0, net.n_weights, theta, w);
    bias_moments(net.n_units, theta, w);

    const std::int64_t* rows = steps.rows;
    const T *given = steps.noise, *given_to_flows = flow.noise;
    double total_nll = 0;
    for (Index number = 0; number < steps.count && std::isfinite(total_nll); ++number) {
        const Index n_rows = steps.sizes[number];
        gather(net, data, rows, n_rows, room);
        if constexpr (flows) {
            given_to_flows = draw_flow_noise(net, flow, state.generator, given_to_flows, flow_room);
            sample_all(net, flow, theta, w, flow_room);
            weight_moments(0, net.n_weights, theta, w);
        }
        draw_noise(net, state.generator, given, n_rows, room);
        forward<T>(net, activation, theta.bias_mu, w, gemm, room);

        T* gradient = room.mean + net.layers[net.n_layers - 1].first_unit * room.stride;
        const Outputs<T> out = outputs_of(net, state.noise, room, gradient);
        total_nll += nll(net, out) + constant_of(data, rows, n_rows);
        if (rules.noise_rate > 0)
            Likelihoods<T>::call(net.likelihood, [&](const auto& likelihood) {
                follow_noise<T>(likelihood, out, rules.noise_rate, state.noise, 0);
                return 0.0;
            });
        backward<T>(net, activation, w, gemm, room);

        const Adam<T> adam(rules, ++state.n_steps);
        const T rate = T(steps.rate[number] * adam.rate_scale);
        const T kl_weight = T(steps.kl_weight[number] * double(n_rows) / double(data.n_rows));
        const Mover<T> mover{adam, T(flow.step * steps.rate[number] * adam.rate_scale)};
        if constexpr (flows) {
            auxiliary_all(net, flow, w, flow_room);
            auxiliary_all_back(net, flow, kl_weight, mover, w, flow_room);
        }
        learn<flows, T>(
            net, {rules, slab, theta, Parts<T>(state.first, net), Parts<T>(state.second, net), w,
                  adam, rate, T(steps.lambda_rate[number] * adam.rate_scale), kl_weight});
        if constexpr (flows) sample_all_back(net, flow, kl_weight, mover, w, flow_room);
        rows += n_rows;
        if (given) given += n_rows * net.n_units;
    }
    return total_nll;
}

template <class T>
double run(const Network& net, const Slab& slab, const Rules& rules, const Data<T>& data,
           State<T>& state, const Flows<T>& flows, const Steps<T>& steps, Gemm<T> gemm,
           Memory& memory) {
    return Activations<T>::call(net.activation, [&](const auto& activation) {
        using Activation = std::decay_t<decltype(activation)>;
        const auto take =
            flows.flows ? take_steps<true, T, Activation> : take_steps<false, T, Activation>;
        return take(activation, net, slab, rules, data, state, flows, steps, gemm, memory);
    });
}

// Sum of the NLL of all rows over passes with the same moments of the weights.
template <class T>
double nll_of_all_rows(const Network& net, const Data<T>& data, const T* bias_mu, const T* noise,
                       std::uint32_t* generator, Index passes, Gemm<T> gemm, const Weights<T>& w,
                       Index largest, Room<T>& room) {
    std::int64_t rows[rows_at_once];
    double sum = 0;
    for (Index begin = 0; begin < data.n_rows; begin += largest) {
        const Index n_rows = data.n_rows - begin < largest ? data.n_rows - begin : largest;
        for (Index i = 0; i < n_rows; ++i) rows[i] = begin + i;
        gather(net, data, rows, n_rows, room);
        for (Index pass = 0; pass < passes; ++pass) {
            draw_noise<T>(net, generator, nullptr, n_rows, room);
            Activations<T>::call(net.activation, [&](const auto& activation) {
                forward<T>(net, activation, bias_mu, w, gemm, room);
                return 0.0;
            });
            sum += nll<T>(net, outputs_of<T>(net, noise, room, nullptr));
            sum += constant_of(data, rows, n_rows);
        }
    }
    return sum;
}

template <class T>
double expected_nll(const Network& net, const Data<T>& data, const T* flat, const Flows<T>& flows,
                    const T* noise, std::uint32_t* generator, Index passes, Gemm<T> gemm,
                    Memory& memory) {
    const Index largest = data.n_rows < rows_at_once ? data.n_rows : rows_at_once;
    Room<T> room(net, largest, memory);
    const Parts<const T> theta(flat, net);
    Weights<T> w = weight_room<T>(net, theta.mu, flows.flows, memory);
    bias_moments(net.n_units, theta, w);
    const auto sum_over_passes = [&](Index count) {
        weight_moments(0, net.n_weights, theta, w);
        return nll_of_all_rows<T>(net, data, theta.bias_mu, noise, generator, count, gemm, w,
                                  largest, room);
    };
    if (!flows.flows) return sum_over_passes(passes);
    FlowsRoom<T> flow_room;
    flow_room.lay_out(net, flows, memory);
    double sum = 0;
    for (Index pass = 0; pass < passes; ++pass) {
        draw_flow_noise<T>(net, flows, generator, nullptr, flow_room);
        sample_all(net, flows, theta, w, flow_room);
        sum += sum_over_passes(1);
    }
    return sum;
}

template <class T>
double divergence(const Network& net, const Slab& slab, const T* flat, const Flows<T>& flows,
                  std::uint32_t* generator, Memory& memory) {
    const Parts<const T> theta(flat, net);
    if (!flows.flows) return weight_divergence(net, slab, theta, theta.mu);
    Weights<T> w = weight_room<T>(net, theta.mu, true, memory);
    FlowsRoom<T> room;
    room.lay_out(net, flows, memory);
    draw_flow_noise<T>(net, flows, generator, flows.noise, room);
    const double log_q = sample_all(net, flows, theta, w, room);
    weight_moments(0, net.n_weights, theta, w);
    const double log_r = auxiliary_all(net, flows, w, room);
    return weight_divergence<T>(net, slab, theta, w.mu) + log_q - log_r;
}

template <class T>
void multipliers(const Network& net, const Flows<T>& flows, std::uint32_t* generator, Index draws,
                 T* out, Memory& memory) {
    FlowsRoom<T> room;
    room.lay_out(net, flows, memory);
    for (Index draw = 0; draw < draws; ++draw) {
        draw_flow_noise<T>(net, flows, generator, nullptr, room);
        for (Index layer = 0; layer < net.n_layers; ++layer) {
            const Flow<T>& flow = flows.flows[layer];
            if (!flow.n_inputs) continue;
            sample<T>(flow, flows.value + flow.start, room.scratch, room.layers[layer]);
            for (Index i = 0; i < flow.n_inputs; ++i) *out++ = room.layers[layer].z[i];
        }
    }
}

// How many numbers the network's likelihood learns besides the weights.
template <class T>
Index n_noise(const Network& net) {
    return Index(Likelihoods<T>::call(net.likelihood, [&](const auto& likelihood) {
        return double(noise_size(likelihood, net.n_outputs, 0));
    }));
}

template <class T>
Kernel<T> kernel_of_this_file() {
    return {run<T>,       expected_nll<T>,       divergence<T>,
            flow_size<T>, multipliers<T>,        fill_normal<T>,
            n_noise<T>,   Likelihoods<T>::names, Activations<T>::names};
}

}  // namespace
