// What comes from Python is checked here once, before the kernel runs on it.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernel.h"

namespace islab {

namespace py = pybind11;

[[noreturn]] inline void reject(const std::string& got, const std::string& expected) {
    throw py::value_error("Got " + got + ", expected " + expected + ".");
}

inline std::string shape_text(const std::vector<Index>& shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

// The array's memory, if it is exactly what the kernel assumes.
template <class T>
const T* checked(const py::array& array, const char* name, const std::vector<Index>& shape) {
    const std::vector<Index> got(array.shape(), array.shape() + array.ndim());
    if (!py::isinstance<py::array_t<T>>(array))
        reject(std::string(name) + " of dtype " + py::str(array.dtype()).cast<std::string>(),
               "dtype " + py::str(py::dtype::of<T>()).cast<std::string>());
    if (got != shape)
        reject(std::string(name) + " of shape " + shape_text(got), "shape " + shape_text(shape));
    if (!(array.flags() & py::array::c_style))
        reject(std::string(name) + " with gaps between its elements", "a C-contiguous array");
    return static_cast<const T*>(array.data());
}

template <class T>
T* checked_writeable(py::array& array, const char* name, const std::vector<Index>& shape) {
    checked<T>(array, name, shape);
    if (!array.writeable()) reject(std::string(name) + " read-only", "a writeable array");
    return static_cast<T*>(array.mutable_data());
}

template <class Choice>
Choice choose(const std::map<std::string, Choice>& choices, const char* name,
              const std::string& value) {
    const auto found = choices.find(value);
    if (found != choices.end()) return found->second;
    std::string names;
    for (const auto& choice : choices) names += (names.empty() ? "" : ", ") + choice.first;
    reject(std::string(name) + "='" + value + "'", "one of " + names);
}

using NamedFamily = std::pair<std::string, double>;

// A family by its name in a list of the kernel, with the constant that Python gives.
inline Family chosen(const char* const* names, const char* what, const NamedFamily& family) {
    std::map<std::string, int> numbers;
    for (int number = 0; names[number]; ++number) numbers[names[number]] = number;
    return {choose(numbers, what, family.first), family.second};
}

inline void require_dimension(const char* name, Index value) {
    if (value < 0 || value > std::numeric_limits<int>::max() / 2)
        reject(std::string(name) + "=" + std::to_string(value),
               "a size between 0 and the largest of BLAS");
}

}  // namespace islab
