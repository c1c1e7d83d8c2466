// Likelihoods and activations: each is a struct of the headers below and an entry of the lists at
// the end.
//
// A family is built from the one constant that Python gives with its name. Nothing else in the
// kernel asks which family it has; a family that is not here is learned by torch.

#pragma once

#include "activations.h"
#include "counts.h"
#include "likelihoods.h"

namespace {

using islab::Family;

// What the noise follows the mean of: the squared error, or what a likelihood says.
template <class T, class Likelihood>
auto noise_term(const Likelihood& likelihood, Lanes<T> eta, Lanes<T> y, T noise, int)
    -> decltype(likelihood.noise_term(eta, y, noise)) {
    return likelihood.noise_term(eta, y, noise);
}

template <class T, class Likelihood>
Lanes<T> noise_term(const Likelihood&, Lanes<T> eta, Lanes<T> y, T, long) {
    const Lanes<T> error = y - eta;
    return error * error;
}

// Noise moves to the batch's mean by `rate`, unless a likelihood has its own way.
template <class T, class Likelihood>
auto follow_noise(const Likelihood& likelihood, const Outputs<T>& out, double rate, T* noise, int)
    -> decltype(likelihood.follow(out, rate, noise)) {
    likelihood.follow(out, rate, noise);
}

template <class T, class Likelihood>
void follow_noise(const Likelihood& likelihood, const Outputs<T>& out, double rate, T* noise,
                  long) {
    Lanes<T> rows{};
    for (Index row = 0; row < out.n_rows; row += width<T>) rows += load(out.weight + row);
    const T n_rows = total<T>(rows);
    for (Index output = 0; output < out.n_outputs; ++output) {
        Lanes<T> sum{};
        for (Index row = 0; row < out.n_rows; row += width<T>) {
            const Index at = output * out.stride + row;
            sum += load(out.weight + row) * noise_term<T>(likelihood, load(out.eta + at),
                                                          load(out.y + at), noise[output], 0);
        }
        noise[output] += T(rate) * (total<T>(sum) / n_rows - noise[output]);
    }
}

// How many numbers a likelihood learns besides the weights: one for each output, or its own.
template <class Likelihood>
auto noise_size(const Likelihood& likelihood, Index n_outputs, int)
    -> decltype(likelihood.n_noise(n_outputs)) {
    return likelihood.n_noise(n_outputs);
}

template <class Likelihood>
Index noise_size(const Likelihood&, Index n_outputs, long) {
    return n_outputs;
}

// -- the lists --------------------------------------------------------------------------------

template <class... Families>
struct List {
    // Names in order, then null.
    static constexpr const char* names[] = {Families::name..., nullptr};

    // Calls body with the family itself, so that it is known when body is compiled.
    template <class Body>
    static double call(const Family& family, Body body) {
        double result = 0;
        int number = 0;
        static_cast<void>(
            ((number++ == family.number && (result = body(Families(family.constant)), true)) ||
             ...));
        return result;
    }
};

template <class T>
using Activations = List<Relu<T>, LeakyRelu<T>, Sigmoid<T>, Tanh<T>, Identity<T>>;

template <class T>
using Likelihoods =
    List<Bernoulli<T>, Categorical<T>, Ordinal<T>, Gaussian<T>, Poisson<T>, NegativeBinomial<T>,
         StudentT<T>, Heteroscedastic<T>, ZeroInflatedPoisson<T>, ZeroInflatedNegativeBinomial<T>>;

}  // namespace
