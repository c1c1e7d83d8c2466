// Whole runs of training steps, and the expected NLL.

#pragma once

#include <initializer_list>

#include "layers.h"

namespace {

using islab::Kernel;
using islab::State;
using islab::Steps;

constexpr Index rows_at_once = 1024;  // of passes over all rows

template <class T>
Weights<T> weight_room(const Network& net, Memory& memory) {
    const Index n = net.n_weights, u = net.n_units;
    Weights<T> w;
    for (T** part : {&w.alpha, &w.not_alpha, &w.sigma, &w.slope, &w.mean, &w.variance, &w.by_mean,
                     &w.by_variance})
        *part = take<T>(memory, n);
    for (T** part : {&w.bias_sigma, &w.bias_slope, &w.bias_variance, &w.by_bias,
                     &w.by_bias_variance})
        *part = take<T>(memory, u);
    return w;
}

template <class T>
Outputs<T> outputs_of(const Network& net, const T* noise, Room<T>& room, T* gradient) {
    return {net.n_outputs, room.rows,   room.stride, room.eta,
            room.y,        room.weight, noise,       gradient};
}

// The rows' part of the NLL that no parameter moves.
template <class T>
double offset_of(const Data<T>& data, const std::int64_t* rows, Index n_rows) {
    double sum = 0;
    if (data.offset)
        for (Index i = 0; i < n_rows; ++i)
            sum += double(data.offset[rows[i]]) *
                   (data.sample_weight ? double(data.sample_weight[rows[i]]) : 1.0);
    return sum;
}

// Calls body with the activation as a compile-time constant.
template <class Body>
double with_activation(Activation activation, Body body) {
    switch (activation) {
        case Activation::relu: return body(std::integral_constant<Activation, Activation::relu>());
        case Activation::leaky_relu:
            return body(std::integral_constant<Activation, Activation::leaky_relu>());
        case Activation::sigmoid:
            return body(std::integral_constant<Activation, Activation::sigmoid>());
        case Activation::tanh: return body(std::integral_constant<Activation, Activation::tanh>());
        case Activation::identity: break;
    }
    return body(std::integral_constant<Activation, Activation::identity>());
}

template <class T>
void learn(const Network& net, const Learning<T>& learning) {
    for (Index number = 0; number < net.n_blocks; ++number) {
        const Block& block = net.blocks[number];
        with_slab<T>(learning.slab, block.tau,
                     [&](const auto& slab) { learn_block<T>(block, slab, learning); });
    }
    learn_biases<T>(net.n_units, learning);
}

template <Activation activation, class T>
double take_steps(const Network& net, const Slab& slab, const Rules& rules, const Data<T>& data,
                  State<T>& state, const Steps<T>& steps, Gemm<T> gemm, Memory& memory) {
    Room<T> room(net, steps.largest, memory);
    Weights<T> w = weight_room<T>(net, memory);
    const Parts<T> theta(state.theta, net);
    weight_moments(0, net.n_weights, theta, w);
    bias_moments(net.n_units, theta, w);

    const std::int64_t* rows = steps.rows;
    const T* given = steps.noise;
    double total_nll = 0;
    for (Index number = 0; number < steps.count && std::isfinite(total_nll); ++number) {
        const Index n_rows = steps.sizes[number];
        gather(net, data, rows, n_rows, room);
        draw_noise(net, state.generator, given, n_rows, room);
        forward<activation, T>(net, rules, theta.bias_mu, w, gemm, room);

        T* gradient = room.mean + net.layers[net.n_layers - 1].first_unit * room.stride;
        const Outputs<T> out = outputs_of(net, state.noise, room, gradient);
        total_nll += nll(net.likelihood, rules, out) + offset_of(data, rows, n_rows);
        if (rules.noise_rate > 0) follow_noise(out, rules.noise_rate, state.noise);
        backward<activation, T>(net, rules, w, gemm, room);

        const Adam<T> adam(rules, ++state.n_steps);
        learn<T>(net, {rules, slab, theta, Parts<T>(state.first, net), Parts<T>(state.second, net),
                       w, adam, T(steps.rate[number] * adam.rate_scale),
                       T(steps.lambda_rate[number] * adam.rate_scale),
                       T(steps.kl_weight[number] * double(n_rows) / double(data.n_rows))});
        rows += n_rows;
        if (given) given += n_rows * net.n_units;
    }
    return total_nll;
}

template <class T>
double run(const Network& net, const Slab& slab, const Rules& rules, const Data<T>& data,
           State<T>& state, const Steps<T>& steps, Gemm<T> gemm, Memory& memory) {
    return with_activation(net.activation, [&](auto activation) {
        return take_steps<activation.value, T>(net, slab, rules, data, state, steps, gemm, memory);
    });
}

template <class T>
double expected_nll(const Network& net, const Rules& rules, const Data<T>& data, const T* flat,
                    const T* noise, std::uint32_t* generator, Index passes, Gemm<T> gemm,
                    Memory& memory) {
    const Index largest = data.n_rows < rows_at_once ? data.n_rows : rows_at_once;
    Room<T> room(net, largest, memory);
    Weights<T> w = weight_room<T>(net, memory);
    const Parts<const T> theta(flat, net);
    weight_moments(0, net.n_weights, theta, w);
    bias_moments(net.n_units, theta, w);
    std::int64_t rows[rows_at_once];
    double sum = 0;
    for (Index begin = 0; begin < data.n_rows; begin += largest) {
        const Index n_rows = data.n_rows - begin < largest ? data.n_rows - begin : largest;
        for (Index i = 0; i < n_rows; ++i) rows[i] = begin + i;
        gather(net, data, rows, n_rows, room);
        for (Index pass = 0; pass < passes; ++pass) {
            draw_noise<T>(net, generator, nullptr, n_rows, room);
            with_activation(net.activation, [&](auto activation) {
                forward<activation.value, T>(net, rules, theta.bias_mu, w, gemm, room);
                return 0.0;
            });
            sum += nll(net.likelihood, rules, outputs_of<T>(net, noise, room, nullptr));
            sum += offset_of(data, rows, n_rows);
        }
    }
    return sum;
}

template <class T>
Kernel<T> kernel_of_this_file() {
    return {run<T>, expected_nll<T>, divergence<T>, fill_normal<T>};
}

}  // namespace
