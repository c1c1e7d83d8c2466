// What the outputs of a batch cost: the likelihoods' NLL and its gradient.

#pragma once

#include "lanes.h"

namespace {

using islab::Likelihood;
using islab::Rules;

// A batch's outputs (outputs, rows).
template <class T>
struct Outputs {
    Index n_outputs, n_rows, stride;
    const T *eta, *y;
    const T* weight;  // (rows,), 0 in the padding
    const T* noise;   // (outputs,) variances
    T* gradient;      // null if only the NLL is wanted
};

template <class T>
struct Cost {
    Lanes<T> nll, gradient;
};

template <class T>
inline Cost<T> bernoulli(Lanes<T> eta, Lanes<T> y) {
    const Logistic<T> part = logistic<T>(eta);
    return {part.softplus - y * eta, part.sigmoid - y};
}

// Above the largest log rate the rate goes on as a straight line. Without log y!.
template <class T>
inline Cost<T> poisson(Lanes<T> eta, Lanes<T> y, T largest_log_rate) {
    const Lanes<T> capped = at_most<T>(eta, largest_log_rate);
    const Lanes<T> slope = exponential(capped);
    return {slope * (T(1) + eta - capped) - y * eta, slope - y};
}

// Sums cost(eta, y, output) over all outputs and rows.
template <class T, class Function>
double independent_outputs(const Outputs<T>& out, Function cost) {
    Lanes<T> sum{};
    for (Index row = 0; row < out.n_rows; row += width<T>) {
        const Lanes<T> weight = load(out.weight + row);
        for (Index output = 0; output < out.n_outputs; ++output) {
            const Index at = output * out.stride + row;
            const Cost<T> part = cost(load(out.eta + at), load(out.y + at), output);
            sum += weight * part.nll;
            if (out.gradient) store(out.gradient + at, Lanes<T>(weight * part.gradient));
        }
    }
    return double(total<T>(sum));
}

template <class T>
double categorical_outputs(const Outputs<T>& out) {
    Lanes<T> sum{};
    for (Index row = 0; row < out.n_rows; row += width<T>) {
        const T *eta = out.eta + row, *y = out.y + row;
        const Lanes<T> weight = load(out.weight + row);
        Lanes<T> largest = load(eta);
        for (Index output = 1; output < out.n_outputs; ++output) {
            const Lanes<T> other = load(eta + output * out.stride);
            largest = other > largest ? other : largest;
        }
        Lanes<T> grown{}, chosen{};
        for (Index output = 0; output < out.n_outputs; ++output) {
            const Lanes<T> shifted = load(eta + output * out.stride) - largest;
            grown += exponential(shifted);
            chosen += load(y + output * out.stride) * shifted;
        }
        sum += weight * (logarithm(grown) - chosen);
        if (!out.gradient) continue;
        const Lanes<T> inverse = T(1) / grown;
        for (Index output = 0; output < out.n_outputs; ++output) {
            const Index at = output * out.stride;
            const Lanes<T> share = exponential(load(eta + at) - largest) * inverse;
            store(out.gradient + row + at, Lanes<T>(weight * (share - load(y + at))));
        }
    }
    return double(total<T>(sum));
}

template <class T>
double gaussian_outputs(const Outputs<T>& out) {
    const double log_2pi = 1.8378770664093453;
    return independent_outputs(out, [&](Lanes<T> eta, Lanes<T> y, Index output) -> Cost<T> {
        const T precision = 1 / out.noise[output];
        const T constant = T(0.5 * (log_2pi + std::log(double(out.noise[output]))));
        const Lanes<T> error = eta - y;
        return {constant + T(0.5) * precision * error * error, precision * error};
    });
}

// Sum of the weighted NLL of the rows.
template <class T>
double nll(Likelihood likelihood, const Rules& rules, const Outputs<T>& out) {
    switch (likelihood) {
        case Likelihood::bernoulli:
            return independent_outputs(out, [](Lanes<T> eta, Lanes<T> y, Index) {
                return bernoulli<T>(eta, y);
            });
        case Likelihood::categorical: return categorical_outputs(out);
        case Likelihood::gaussian: return gaussian_outputs(out);
        case Likelihood::poisson: break;
    }
    const T largest = T(rules.largest_log_rate);
    return independent_outputs(out, [largest](Lanes<T> eta, Lanes<T> y, Index) {
        return poisson<T>(eta, y, largest);
    });
}

// Gaussian noise variances move to the batch's mean squared error by `rate`.
template <class T>
void follow_noise(const Outputs<T>& out, double rate, T* noise) {
    Lanes<T> rows{};
    for (Index row = 0; row < out.n_rows; row += width<T>) rows += load(out.weight + row);
    const T n_rows = total<T>(rows);
    for (Index output = 0; output < out.n_outputs; ++output) {
        Lanes<T> sum{};
        for (Index row = 0; row < out.n_rows; row += width<T>) {
            const Index at = output * out.stride + row;
            const Lanes<T> error = load(out.y + at) - load(out.eta + at);
            sum += load(out.weight + row) * error * error;
        }
        noise[output] += T(rate) * (total<T>(sum) / n_rows - noise[output]);
    }
}

}  // namespace
