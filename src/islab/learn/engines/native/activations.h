// Activations: each has its value, and its slope from its value.

#pragma once

#include "lanes.h"

namespace {

template <class T>
struct Relu {
    static constexpr const char* name = "relu";
    explicit Relu(double) {}
    Lanes<T> value(Lanes<T> z) const { return at_least<T>(z, T(0)); }
    Lanes<T> slope(Lanes<T> h) const { return h > T(0) ? fill<T>(1) : fill<T>(0); }
};

template <class T>
struct LeakyRelu {
    static constexpr const char* name = "leaky_relu";
    T below;
    explicit LeakyRelu(double constant) : below(T(constant)) {}
    Lanes<T> value(Lanes<T> z) const { return z > T(0) ? z : below * z; }
    Lanes<T> slope(Lanes<T> h) const { return h > T(0) ? fill<T>(1) : fill<T>(below); }
};

template <class T>
struct Sigmoid {
    static constexpr const char* name = "sigmoid";
    explicit Sigmoid(double) {}
    Lanes<T> value(Lanes<T> z) const { return sigmoids<T>(z).yes; }
    Lanes<T> slope(Lanes<T> h) const { return h * (T(1) - h); }
};

template <class T>
struct Tanh {
    static constexpr const char* name = "tanh";
    explicit Tanh(double) {}
    Lanes<T> value(Lanes<T> z) const { return hyperbolic_tangent<T>(z); }
    Lanes<T> slope(Lanes<T> h) const { return T(1) - h * h; }
};

template <class T>
struct Identity {
    static constexpr const char* name = "identity";
    explicit Identity(double) {}
    Lanes<T> value(Lanes<T> z) const { return z; }
    Lanes<T> slope(Lanes<T>) const { return fill<T>(1); }
};

}  // namespace
