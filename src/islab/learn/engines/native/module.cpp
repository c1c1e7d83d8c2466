// The boundary to Python: names and arguments. learner.h has what is behind them.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "learner.h"

namespace py = pybind11;

namespace islab {
namespace {

template <class T>
void bind_learner(py::module_& module, const char* name) {
    using L = Learner<T>;
    py::class_<L>(module, name)
        .def(py::init<py::array, py::array, std::optional<py::array>, std::optional<py::array>,
                      std::optional<py::array>, const NamedFamily&, const std::vector<Index>&, bool,
                      const NamedFamily&, const Rules&, const std::string&>(),
             py::arg("x"), py::arg("y"), py::arg("sample_weight"), py::arg("constant"),
             py::arg("offset"), py::kw_only(), py::arg("likelihood"), py::arg("widths"),
             py::arg("input_skip"), py::arg("activation"), py::arg("rules"),
             py::arg("instructions"))
        .def("set_network", &L::set_network, py::kw_only(), py::arg("widths"),
             py::arg("input_skip"), py::arg("activation"))
        .def("set_prior", &L::set_prior, py::kw_only(), py::arg("tau"), py::arg("psi"),
             py::arg("mu_step"), py::arg("bias_tau"), py::arg("df"), py::arg("log_constant"),
             py::arg("nodes"), py::arg("node_weights"))
        .def("set_flows", &L::set_flows, py::kw_only(), py::arg("first"), py::arg("middle"),
             py::arg("last"), py::arg("moved"), py::arg("used"), py::arg("largest_log_scale"))
        .def("run", &L::run, py::kw_only(), py::arg("theta"), py::arg("first"), py::arg("second"),
             py::arg("noise"), py::arg("generator"), py::arg("n_steps"), py::arg("rows"),
             py::arg("sizes"), py::arg("rate"), py::arg("lambda_rate"), py::arg("kl_weight"),
             py::arg("given"), py::arg("flow"))
        .def("expected_nll", &L::expected_nll, py::kw_only(), py::arg("theta"), py::arg("noise"),
             py::arg("generator"), py::arg("passes"), py::arg("flow"))
        .def("divergence", &L::divergence, py::kw_only(), py::arg("theta"), py::arg("generator"),
             py::arg("flow"))
        .def("multipliers", &L::multipliers, py::kw_only(), py::arg("generator"), py::arg("draws"),
             py::arg("flow"))
        .def("normals", &L::normals, py::kw_only(), py::arg("generator"), py::arg("count"));
}

}  // namespace
}  // namespace islab

PYBIND11_MODULE(_kernel, module) {
    using islab::Rules;
    module.doc() = "Training steps of dense networks; see islab.learn.engines.native.";
    module.def("instruction_sets", &islab::instruction_sets,
               "Variants of the kernel that this processor runs, the fastest first.");
    py::class_<Rules>(module, "Rules")
        .def(py::init([](double beta1, double beta2, double epsilon, double largest_rho,
                         double largest_lambda, double noise_rate) {
                 return Rules{beta1, beta2, epsilon, largest_rho, largest_lambda, noise_rate};
             }),
             py::kw_only(), py::arg("beta1"), py::arg("beta2"), py::arg("epsilon"),
             py::arg("largest_rho"), py::arg("largest_lambda"), py::arg("noise_rate"));
    py::class_<islab::FlowArrays>(module, "FlowArrays")
        .def(py::init([](py::array value, py::array first, py::array second, double step,
                         std::optional<py::array> given) {
                 return islab::FlowArrays{value, first, second, step, given};
             }),
             py::kw_only(), py::arg("value"), py::arg("first"), py::arg("second"), py::arg("step"),
             py::arg("given"));
    islab::bind_learner<float>(module, "Learner32");
    islab::bind_learner<double>(module, "Learner64");
}
