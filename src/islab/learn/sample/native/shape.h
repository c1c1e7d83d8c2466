// The shape of a network: its layers, units and the numbers of its weights.
//
// Units are numbered layer after layer, outputs last; a source below `covariates` is a covariate,
// above it a unit. Weights have the flat numbers of islab.core.architecture.

#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace islab::sample {

enum class Activation { relu, leaky_relu, sigmoid, tanh, identity };

struct Shape {
    int covariates = 0;
    std::vector<int> width;  // of each layer, outputs last
    bool input_skip = true;
    Activation activation = Activation::leaky_relu;
    double leak = 0.01;

    std::vector<int> first;  // first unit of each layer, and the number of units
    std::vector<int> layer;  // of each unit
    int covariate_blocks = 0;
    std::vector<int> group;       // of each covariate: its variable
    std::vector<int> group_size;  // covariates of each variable

    const Shape& prepare() {
        first = {0};
        layer.clear();
        for (std::size_t l = 0; l < width.size(); ++l) {
            first.push_back(first.back() + width[l]);
            layer.insert(layer.end(), width[l], static_cast<int>(l));
        }
        if (group.empty())
            for (int j = 0; j < covariates; ++j) group.push_back(j);
        group_size.assign(covariates ? *std::max_element(group.begin(), group.end()) + 1 : 0, 0);
        for (int g : group) ++group_size[g];
        covariate_blocks = input_skip ? layers() : 1;
        return *this;
    }

    int layers() const { return static_cast<int>(width.size()); }
    int units() const { return first.back(); }
    int hidden() const { return first[layers() - 1]; }
    int outputs() const { return width.back(); }
    int blocks() const { return covariate_blocks + layers() - 1; }
    int groups() const { return static_cast<int>(group_size.size()); }
    bool is_output(int unit) const { return unit >= hidden(); }
    bool reads_covariates(int unit) const { return input_skip || layer[unit] == 0; }

    int block(int unit, int source) const {
        return source < covariates ? layer[unit] : covariate_blocks + layer[unit] - 1;
    }

    long slot(int unit, int source) const {
        if (source < covariates) return long(unit) * covariates + source;
        const int l = layer[unit];
        long start = long(input_skip ? units() : width[0]) * covariates;
        for (int k = 1; k < l; ++k) start += long(width[k]) * width[k - 1];
        return start + long(unit - first[l]) * width[l - 1] + (source - covariates - first[l - 1]);
    }

    // Units whose weights can be scaled up where those behind them are scaled down.
    bool homogeneous() const {
        return activation != Activation::sigmoid && activation != Activation::tanh;
    }

    // value = activation of z, for a run of numbers.
    void activate(const double* z, double* value, std::size_t n) const {
        each([&](auto f, auto) {
            for (std::size_t i = 0; i < n; ++i) value[i] = f(z[i]);
        });
    }

    // d *= slope of the activation at z, where it has these values.
    void times_slope(double* d, const double* z, const double* value, std::size_t n) const {
        each([&](auto, auto slope) {
            for (std::size_t i = 0; i < n; ++i) d[i] *= slope(z[i], value[i]);
        });
    }

   private:
    // Calls `use` with the activation and its slope, so that loops over rows do not ask which it
    // is.
    template <class Use>
    void each(Use use) const {
        const double below = leak;
        switch (activation) {
            case Activation::relu:
                return use([](double z) { return z > 0 ? z : 0.0; },
                           [](double z, double) { return z > 0 ? 1.0 : 0.0; });
            case Activation::leaky_relu:
                return use([below](double z) { return z > 0 ? z : below * z; },
                           [below](double z, double) { return z > 0 ? 1.0 : below; });
            case Activation::sigmoid:
                return use([](double z) { return 1 / (1 + std::exp(-z)); },
                           [](double, double value) { return value * (1 - value); });
            case Activation::tanh:
                return use([](double z) { return std::tanh(z); },
                           [](double, double value) { return 1 - value * value; });
            default: return use([](double z) { return z; }, [](double, double) { return 1.0; });
        }
    }
};

}  // namespace islab::sample
