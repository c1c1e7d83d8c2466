// The activations. A missing or infinite sum stays what it is.
//
// To add one, write a struct and name it in the list at the end. A piecewise-linear one has a
// single bend, at 0, and slope 1 above it.

#pragma once

#include "lanes.h"
#include "networks.h"

namespace {

using namespace islab::networks;

struct Curved {
    static constexpr bool piecewise_linear = false;
};

struct Straight {
    static constexpr bool piecewise_linear = true;
};

struct Identity : Straight {
    static constexpr const char* name = "identity";
    explicit Identity(double) {}
    double slope_below() const { return 1; }
    Vec value(Vec z) const { return z; }
    Vec slope(Vec, Vec) const { return fill(1); }
};

struct Relu : Straight {
    static constexpr const char* name = "relu";
    explicit Relu(double) {}
    double slope_below() const { return 0; }
    Vec value(Vec z) const { return select(z <= 0.0, Vec{}, z); }
    Vec slope(Vec z, Vec) const { return select(z > 0.0, fill(1), Vec{}); }
};

struct LeakyRelu : Straight {
    static constexpr const char* name = "leaky_relu";
    double leak;
    explicit LeakyRelu(double constant) : leak(constant) {}
    double slope_below() const { return leak; }
    Vec value(Vec z) const { return select(z <= 0.0, z * leak, z); }
    Vec slope(Vec z, Vec) const { return select(z > 0.0, fill(1), fill(leak)); }
};

struct Sigmoid : Curved {
    static constexpr const char* name = "sigmoid";
    explicit Sigmoid(double) {}
    Vec value(Vec z) const { return 1.0 / (1.0 + exponential(-z)); }
    Vec slope(Vec, Vec value) const { return value * (1.0 - value); }
};

struct Tanh : Curved {
    static constexpr const char* name = "tanh";
    explicit Tanh(double) {}
    Vec value(Vec z) const {
        const Vec shrunk = exponential(-2.0 * magnitude(z));
        const Vec size = (1.0 - shrunk) / (1.0 + shrunk);
        return select(z < 0.0, -size, size);
    }
    Vec slope(Vec, Vec value) const { return 1.0 - value * value; }
};

template <class... Activations>
struct List {
    static constexpr Family families[] = {{Activations::name, Activations::piecewise_linear}...};

    template <template <class> class Task, class... Arguments>
    static void run(std::size_t number, Arguments&&... arguments) {
        std::size_t at = 0;
        ((at++ == number ? Task<Activations>::run(arguments...) : void()), ...);
    }
};

using AllActivations = List<Identity, Relu, LeakyRelu, Sigmoid, Tanh>;

// Runs a task for the activation of that number.
template <template <class> class Task, class... Arguments>
void with_activation(std::size_t number, Arguments&&... arguments) {
    AllActivations::run<Task>(number, arguments...);
}

}  // namespace
