// Flows as they come from Python: parameters, and what their matrices may reach.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks.h"

namespace islab {

// Parameters of flows with Adam's moments, numpy arrays owned by Python.
struct FlowArrays {
    py::array value, first, second;
    double step;
    std::optional<py::array> given;
};

// What a flow points to.
template <class T>
struct OwnFlow {
    std::vector<Reach> reach;
    std::vector<T> moved;
    std::vector<Transform<T>> transforms;
    std::vector<std::int64_t> used;
};

// `first` (transforms, inputs, 2), `middle` (transforms, width, 2), `last` (transforms,
// 2 inputs, 2), `moved` (transforms, inputs), `used` (inputs of the layer,).
template <class T>
Flow<T> take_flow(const py::array& first, const py::array& middle, const py::array& last,
                  const py::array& moved, const py::array& used, const Network& net,
                  const Layer& layer, OwnFlow<T>& own) {
    if (moved.ndim() != 2 || middle.ndim() != 3)
        reject("a flow without transforms", "moved (transforms, inputs)");
    Flow<T> flow{};
    flow.n_transforms = moved.shape(0);
    flow.n_inputs = moved.shape(1);
    flow.width = middle.shape(1);
    flow.n_used = used.size();
    require_dimension("inputs of a flow", flow.n_inputs);
    require_dimension("width of a flow", flow.width);
    const Index n = flow.n_transforms, v = flow.n_inputs, h = flow.width;
    own.reach.reserve(std::size_t(n * (v + h + 2 * v)));
    const Reach* at = own.reach.data();
    const T* entries = checked<T>(moved, "moved", {n, v});
    own.moved.assign(entries, entries + n * v);
    own.transforms.resize(std::size_t(n));
    const auto add = [&](const py::array& pairs, const char* name, Index rows, Index longest,
                         Index transform) {
        const auto* from = checked<std::int32_t>(pairs, name, {n, rows, 2}) + transform * rows * 2;
        for (Index i = 0; i < rows; ++i, from += 2) {
            if (from[0] < 0 || from[0] > from[1] || from[1] > longest)
                reject(std::string(name) + " with a row from " + std::to_string(from[0]) + " to " +
                           std::to_string(from[1]),
                       "a part of " + std::to_string(longest) + " numbers");
            own.reach.push_back({from[0], from[1]});
        }
        const Reach* start = at;
        at += rows;
        return start;
    };
    for (Index i = 0; i < n; ++i) {
        Transform<T>& transform = own.transforms[std::size_t(i)];
        transform.first = add(first, "first", v, h, i);
        transform.middle = add(middle, "middle", h, h, i);
        transform.last = add(last, "last", 2 * v, h, i);
        transform.moved = own.moved.data() + i * v;
    }
    const Index reached = layer.first_unit < net.n_covariate_rows ? net.n_covariates : 0;
    const Index inputs = layer.width ? layer.below + reached : flow.n_used;
    const auto* numbers = checked<std::int64_t>(used, "used", {inputs});
    if (inputs > v)
        reject(std::to_string(inputs) + " inputs in use", "at most " + std::to_string(v));
    for (Index i = 0; i < inputs; ++i)
        if (numbers[i] < 0 || numbers[i] >= v)
            reject("input " + std::to_string(numbers[i]) + " of a flow",
                   "numbers below " + std::to_string(v));
    own.used.assign(numbers, numbers + inputs);
    flow.used = own.used.data();
    flow.transforms = own.transforms.data();
    return flow;
}

}  // namespace islab
