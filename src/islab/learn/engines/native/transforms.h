// Invertible transforms of a vector z, and how their parameters learn.
//
// A transform is z' = z exp(s) + t, where s and t come from a network with two hidden layers of
// tanh. There is one z in a step, so products are of a matrix and a vector, gradients of matrices
// have rank one, and the backward pass, the gradient and Adam are one pass over each matrix.
//
// A transform has the weights and biases of its three maps: (inputs, width), (width, width),
// (2 inputs, width). The hidden side lies together in all of them: the first two maps have their
// sources in rows, the last its targets. A row may only have numbers from `begin` to `end`, which
// is how an autoregressive network is told what not to look at.

#pragma once

#include "layers.h"

namespace {

using islab::Flow;
using islab::Reach;
using islab::Transform;

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

}  // namespace
