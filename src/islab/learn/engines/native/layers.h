// Forward and backward through a batch.

#pragma once

#include "normal.h"
#include "families.h"
#include "products.h"
#include "weights.h"

namespace {

using islab::Data;
using islab::Layer;
using islab::Memory;

template <class T>
T* take(Memory& memory, Index count) {
    return static_cast<T*>(memory.take(std::size_t(count) * sizeof(T)));
}

template <class T>
inline Index padded_rows(Index rows) {
    return (rows + width<T> - 1) / width<T> * width<T>;
}

// Distance between two units of a batch: an odd number of cache lines (see kernel.h).
template <class T>
inline Index unit_stride(Index rows) {
    const Index line = Index(islab::cache_line / sizeof(T));
    return ((rows + line - 1) / line | 1) * line;
}

// Room for one batch; units and covariates are the rows of these matrices.
template <class T>
struct Room {
    Room(const Network& net, Index largest, Memory& memory)
        : stride(unit_stride<T>(largest)),
          x(take<T>(memory, net.n_covariates * stride)),
          x2(take<T>(memory, net.n_covariates * stride)),
          y(take<T>(memory, net.n_outputs * stride)),
          offset(take<T>(memory, net.n_outputs * stride)),
          eta(take<T>(memory, net.n_outputs * stride)),
          weight(take<T>(memory, stride)),
          mean(take<T>(memory, net.n_units * stride)),
          variance(take<T>(memory, net.n_units * stride)),
          eps(take<T>(memory, net.n_units * stride)),
          hidden(take<T>(memory, (net.n_units - net.n_outputs) * stride)),
          hidden2(take<T>(memory, (net.n_units - net.n_outputs) * stride)),
          zeros(take<T>(memory, net.n_covariates + net.n_units)) {
        for (Index i = 0; i < net.n_covariates + net.n_units; ++i) zeros[i] = 0;
    }
    const Index stride;
    Index rows = 0;  // of the present batch, padded
    T *x, *x2, *y;   // covariates, their squares, targets
    T* offset;       // what is added to the linear predictor
    bool has_offset = false;
    T* eta;               // the linear predictor
    T* weight;            // (rows,) sample weights
    T *mean, *variance;   // of the pre-activations; then their gradients G and Gv
    T* eps;               // then eps / (2 sd)
    T *hidden, *hidden2;  // activations and their squares
    T* zeros;             // stands in for the padded rows
};

// -- gathering --------------------------------------------------------------------------------

// Row-major rows source(0), source(1), ... into a unit-major matrix, padded with zeros. Sixteen
// rows at a time: they stay in the cache while whole lines are written.
template <class T, class Source>
void transpose(Index n_rows, Index padded, Index columns, Source source, const T* zeros, T* to,
               Index stride) {
    constexpr Index at_once = 16;
    for (Index begin = 0; begin < padded; begin += at_once) {
        const Index n = padded - begin < at_once ? padded - begin : at_once;
        const T* from[at_once];
        for (Index i = 0; i < n; ++i) from[i] = begin + i < n_rows ? source(begin + i) : zeros;
        for (Index column = 0; column < columns; ++column)
            for (Index i = 0; i < n; ++i) to[column * stride + begin + i] = from[i][column];
    }
}

template <class T>
void gather(const Network& net, const Data<T>& data, const std::int64_t* rows, Index n_rows,
            Room<T>& room) {
    const Index v = net.n_covariates, m = net.n_outputs, padded = padded_rows<T>(n_rows);
    room.rows = padded;
    transpose<T>(
        n_rows, padded, v, [&](Index i) { return data.x + rows[i] * v; }, room.zeros, room.x,
        room.stride);
    transpose<T>(
        n_rows, padded, m, [&](Index i) { return data.y + rows[i] * m; }, room.zeros, room.y,
        room.stride);
    room.has_offset = data.offset != nullptr;
    if (data.offset)
        transpose<T>(
            n_rows, padded, m, [&](Index i) { return data.offset + rows[i] * m; }, room.zeros,
            room.offset, room.stride);
    for (Index column = 0; column < v; ++column) {
        const T* x = room.x + column * room.stride;
        T* x2 = room.x2 + column * room.stride;
        for (Index row = 0; row < padded; ++row) x2[row] = x[row] * x[row];
    }
    for (Index row = 0; row < padded; ++row) {
        const T weight = row >= n_rows        ? T(0)
                         : data.sample_weight ? data.sample_weight[rows[row]]
                                              : T(1);
        room.weight[row] = weight;
    }
}

// Standard normal numbers for all units, drawn or given (rows, units).
template <class T>
void draw_noise(const Network& net, std::uint32_t* generator, const T* given, Index n_rows,
                Room<T>& room) {
    if (given) {
        transpose<T>(
            n_rows, room.rows, net.n_units, [&](Index i) { return given + i * net.n_units; },
            room.zeros, room.eps, room.stride);
        return;
    }
    for (Index unit = 0; unit < net.n_units; ++unit)
        fill_normal<T>(generator, room.eps + unit * room.stride, room.rows);
}

// -- forward ----------------------------------------------------------------------------------

// Below this a variance is as good as zero, and its root could not be divided by.
template <class T>
constexpr T least_variance = T(1e-36);

// Adds random numbers to pre-activations; leaves eps / (2 sd) for the backward pass.
template <class T>
inline Lanes<T> add_noise(const T* mean, const T* variance, T* eps) {
    const Lanes<T> sd = square_root<T>(at_least<T>(load(variance), least_variance<T>));
    const Lanes<T> noise = load(eps);
    store(eps, Lanes<T>(T(0.5) * noise / sd));
    return load(mean) + sd * noise;
}

template <class T, class Activation>
void hidden_units(const Layer& layer, const Activation& activation, Room<T>& room) {
    for (Index unit = layer.first_unit; unit < layer.first_unit + layer.width; ++unit)
        for (Index at = unit * room.stride; at < unit * room.stride + room.rows; at += width<T>) {
            const Lanes<T> z = add_noise<T>(room.mean + at, room.variance + at, room.eps + at);
            const Lanes<T> h = activation.value(z);
            store(room.hidden + at, h);
            store(room.hidden2 + at, Lanes<T>(h * h));
        }
}

template <class T>
void output_units(const Layer& layer, Room<T>& room) {
    const Index first = layer.first_unit * room.stride;
    for (Index output = 0; output < layer.width; ++output)
        for (Index row = 0; row < room.rows; row += width<T>) {
            const Index to = output * room.stride + row, at = first + to;
            Lanes<T> eta = add_noise<T>(room.mean + at, room.variance + at, room.eps + at);
            if (room.has_offset) eta += load(room.offset + to);
            store(room.eta + to, eta);
        }
}

// From x and eps to the linear predictor.
template <class T, class Activation>
void forward(const Network& net, const Activation& activation, const T* bias, const Weights<T>& w,
             Gemm<T> gemm, Room<T>& room) {
    const Index v = net.n_covariates, stride = room.stride;
    for (Index number = 0; number < net.n_layers; ++number) {
        const Layer& layer = net.layers[number];
        const Index unit = layer.first_unit, here = unit * stride, k = layer.below;
        const Index below = (unit - k) * stride, k_x = unit < net.n_covariate_rows ? v : 0;
        const auto product = [&](const T* start, const T* weights, const T* x, const T* h, T* to) {
            const Term<T> covariates{k_x, weights + unit * k_x, v, 1, {x, stride}};
            const Term<T> hidden{k, weights + layer.hidden_start, k, 1, {h + below, stride}};
            multiply<T>(gemm, layer.width, room.rows, start + unit, covariates, hidden,
                        {to + here, stride});
        };
        product(bias, w.mean, room.x, room.hidden, room.mean);
        product(w.bias_variance, w.variance, room.x2, room.hidden2, room.variance);
        if (number + 1 < net.n_layers)
            hidden_units<T>(layer, activation, room);
        else
            output_units<T>(layer, room);
    }
}

// -- backward ---------------------------------------------------------------------------------

// From G of the output units: Gv, and the sums that the biases need.
template <class T>
void output_gradients(const Layer& layer, Weights<T>& w, Room<T>& room) {
    for (Index unit = layer.first_unit; unit < layer.first_unit + layer.width; ++unit) {
        Lanes<T> sum{}, sum_variance{};
        for (Index at = unit * room.stride; at < unit * room.stride + room.rows; at += width<T>) {
            const Lanes<T> g = load(room.mean + at), gv = g * load(room.eps + at);
            store(room.variance + at, gv);
            sum += g;
            sum_variance += gv;
        }
        w.by_bias[unit] = total<T>(sum);
        w.by_bias_variance[unit] = total<T>(sum_variance);
    }
}

// The same for hidden units, whose dNLL/dh is mean + 2 h variance.
template <class T, class Activation>
void hidden_gradients(Index first, Index last, const Activation& activation, Weights<T>& w,
                      Room<T>& room) {
    for (Index unit = first; unit < last; ++unit) {
        Lanes<T> sum{}, sum_variance{};
        for (Index at = unit * room.stride; at < unit * room.stride + room.rows; at += width<T>) {
            const Lanes<T> h = load(room.hidden + at);
            const Lanes<T> by_h = load(room.mean + at) + T(2) * h * load(room.variance + at);
            const Lanes<T> g = by_h * activation.slope(h);
            const Lanes<T> gv = g * load(room.eps + at);
            store(room.mean + at, g);
            store(room.variance + at, gv);
            sum += g;
            sum_variance += gv;
        }
        w.by_bias[unit] = total<T>(sum);
        w.by_bias_variance[unit] = total<T>(sum_variance);
    }
}

// From G of the output units, in their means, to the gradients of all weights.
template <class T, class Activation>
void backward(const Network& net, const Activation& activation, Weights<T>& w, Gemm<T> gemm,
              Room<T>& room) {
    const Index v = net.n_covariates, stride = room.stride, rows = room.rows;
    output_gradients<T>(net.layers[net.n_layers - 1], w, room);
    for (Index number = net.n_layers - 1; number > 0; --number) {
        const Layer& layer = net.layers[number];
        const Index k = layer.below, first = layer.first_unit - k;
        const Index here = layer.first_unit * stride, below = first * stride;
        const auto product = [&](T* gradients, const T* h, const T* weights, T* by_weights) {
            correlate<T>(gemm, layer.width, k, rows, {gradients + here, stride},
                         {h + below, stride}, by_weights + layer.hidden_start);
            const Term<T> back{
                layer.width, weights + layer.hidden_start, 1, k, {gradients + here, stride}};
            multiply<T>(gemm, k, rows, nullptr, back, {}, {gradients + below, stride});
        };
        product(room.mean, room.hidden, w.mean, w.by_mean);
        product(room.variance, room.hidden2, w.variance, w.by_variance);
        hidden_gradients<T>(first, layer.first_unit, activation, w, room);
    }
    correlate<T>(gemm, net.n_covariate_rows, v, rows, {room.mean, stride}, {room.x, stride},
                 w.by_mean);
    correlate<T>(gemm, net.n_covariate_rows, v, rows, {room.variance, stride}, {room.x2, stride},
                 w.by_variance);
}

}  // namespace
