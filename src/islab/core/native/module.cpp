// Python's view of the networks. Arrays are read in place; computations release the interpreter
// lock.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <string>

#include "building.h"
#include "ranks.h"

namespace py = pybind11;
using namespace islab::networks;

namespace {

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Longs = py::array_t<long long, py::array::c_style | py::array::forcecast>;

template <class T>
const T& choose(const std::map<std::string, T>& choices, const std::string& name,
                const char* what) {
    const auto found = choices.find(name);
    if (found == choices.end()) throw std::invalid_argument(std::string(what) + ": " + name);
    return found->second;
}

std::map<std::string, const Kernels*> variants() {
    std::map<std::string, const Kernels*> found{{"baseline", &baseline::kernels}};
#ifdef ISLAB_HAS_X86_VARIANTS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        found["avx2"] = &avx2::kernels;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"))
            found["avx512"] = &avx512::kernels;
    }
#endif
    return found;
}

// The fastest first.
std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    const auto found = variants();
    for (const char* name : {"avx512", "avx2", "baseline"})
        if (found.count(name)) names.emplace_back(name);
    return names;
}

const Kernels& kernels_for(const std::string& instructions) {
    return *choose(variants(), instructions, "unknown instructions");
}

std::size_t activation_number(const Kernels& kernels, const std::string& name) {
    std::map<std::string, std::size_t> numbers;
    for (std::size_t k = 0; k < kernels.n_activations; ++k)
        numbers[kernels.activations[k].name] = k;
    return choose(numbers, name, "unknown activation");
}

FlatDraws draws_of(const Longs& slots, const Doubles& weights, const Longs& ends,
                   const Doubles& biases, std::size_t units) {
    const auto n_draws = static_cast<std::size_t>(ends.size());
    require(slots.size() == weights.size(), "one weight for each edge");
    require(biases.ndim() == 2 && static_cast<std::size_t>(biases.shape(0)) == n_draws &&
                static_cast<std::size_t>(biases.shape(1)) == units,
            "biases must be (draws, units)");
    long long before = 0;
    for (std::size_t d = 0; d < n_draws; ++d) {
        require(ends.data()[d] >= before, "the ends of draws must rise");
        before = ends.data()[d];
    }
    require(before == slots.size(), "the last draw must end with the edges");
    return {n_draws, slots.data(), weights.data(), ends.data(), biases.data()};
}

Rows rows_of(const Doubles& x, std::size_t covariates) {
    require(x.ndim() == 2 && static_cast<std::size_t>(x.shape(1)) == covariates,
            "rows must be (rows, covariates)");
    return {x.data(), static_cast<std::size_t>(x.shape(0)), covariates};
}

py::array_t<double> empty(std::initializer_list<std::size_t> shape) {
    return py::array_t<double>(std::vector<py::ssize_t>(shape.begin(), shape.end()));
}

class PyNetworks {
   public:
    PyNetworks(std::size_t covariates, const std::vector<long long>& hidden, std::size_t outputs,
               bool input_skip, const std::string& activation, double constant, const Longs& slots,
               const Doubles& weights, const Longs& ends, const Doubles& biases,
               const std::string& instructions)
        : kernels(kernels_for(instructions)) {
        require(outputs >= 1 && outputs < (std::size_t{1} << 31), "at least one output");
        require(covariates < (std::size_t{1} << 31), "too many covariates");
        const std::size_t number = activation_number(kernels, activation);
        const Wiring wiring(covariates, hidden, outputs, input_skip);
        const FlatDraws draws = draws_of(slots, weights, ends, biases, wiring.units);
        py::gil_scoped_release release;
        net = make_networks(wiring, outputs, draws);
        net.activation = number;
        net.constant = constant;
    }

    py::array_t<long long> used() const { return whole_numbers(net.used); }

    // For each parameter of each draw, edges first, the edge or the unit as given.
    py::array_t<long long> parameters() const {
        std::vector<std::size_t> found;
        for (std::size_t d = 0; d < net.draws; ++d) {
            const std::size_t first = net.first_unit[d], last = net.first_unit[d + 1];
            found.insert(found.end(), net.given_edge.begin() + net.first_edge[first],
                         net.given_edge.begin() + net.first_edge[last]);
            found.insert(found.end(), net.given_unit.begin() + first,
                         net.given_unit.begin() + last);
        }
        return whole_numbers(found);
    }

    // How many of them each draw has, (draws, 2).
    py::array_t<long long> sizes() const {
        std::vector<std::size_t> found;
        for (std::size_t d = 0; d < net.draws; ++d) {
            const std::size_t first = net.first_unit[d], last = net.first_unit[d + 1];
            found.push_back(net.first_edge[last] - net.first_edge[first]);
            found.push_back(last - first);
        }
        return whole_numbers(found).reshape({static_cast<py::ssize_t>(net.draws), py::ssize_t{2}});
    }

    py::tuple newton_sums(const Doubles& x, const Doubles& residuals, const Doubles& roots) const {
        const Rows rows = rows_of(x, net.covariates);
        for (const Doubles* each : {&residuals, &roots})
            require(each->ndim() == 4 && static_cast<std::size_t>(each->shape(1)) == net.draws &&
                        static_cast<std::size_t>(each->shape(2)) == rows.n &&
                        static_cast<std::size_t>(each->shape(3)) == net.outputs,
                    "residuals and roots must be (any, draws, rows, outputs)");
        const auto n_residuals = static_cast<std::size_t>(residuals.shape(0));
        std::size_t all = 0, squares = 0;
        for (std::size_t d = 0; d < net.draws; ++d) {
            const std::size_t first = net.first_unit[d], last = net.first_unit[d + 1];
            const std::size_t n = net.first_edge[last] - net.first_edge[first] + last - first;
            all += n;
            squares += n * n;
        }
        py::array_t<double> gradient = empty({n_residuals, all}), curvature = empty({squares});
        double *slope = gradient.mutable_data(), *bend = curvature.mutable_data();
        std::fill(slope, slope + n_residuals * all, 0.0);
        std::fill(bend, bend + squares, 0.0);
        {
            py::gil_scoped_release release;
            kernels.newton_sums(net, rows, residuals.data(), n_residuals, roots.data(),
                                static_cast<std::size_t>(roots.shape(0)), slope, bend);
        }
        return py::make_tuple(gradient, curvature);
    }

    py::array_t<double> predictor(const Doubles& x) const {
        const Rows rows = rows_of(x, net.covariates);
        py::array_t<double> out = empty({net.draws, rows.n, net.outputs});
        double* to = out.mutable_data();
        py::gil_scoped_release release;
        kernels.predictor(net, rows, to);
        return out;
    }

    py::tuple slopes(const Doubles& x) const {
        const Rows rows = rows_of(x, net.covariates);
        py::array_t<double> predictor = empty({net.draws, rows.n, net.outputs});
        py::array_t<double> gradient = empty({net.draws, rows.n, net.outputs, net.used.size()});
        double *values = predictor.mutable_data(), *to = gradient.mutable_data();
        {
            py::gil_scoped_release release;
            kernels.slopes(net, rows, values, to);
        }
        return py::make_tuple(predictor, gradient);
    }

    py::array_t<double> contributions(const Doubles& start, const Doubles& end) const {
        require(kernels.activations[net.activation].piecewise_linear,
                "the activation must be piecewise linear");
        Rows from = rows_of(start, net.covariates);
        const Rows to = rows_of(end, net.covariates);
        require(from.n == 1 || from.n == to.n, "one start, or one for each row");
        if (from.n == 1) from.stride = 0;
        py::array_t<double> out = empty({net.draws, to.n, net.used.size(), net.outputs});
        double* found = out.mutable_data();
        py::gil_scoped_release release;
        kernels.contributions(net, from, to, found);
        return out;
    }

   private:
    const Kernels& kernels;
    Networks net;

    static py::array_t<long long> whole_numbers(const std::vector<std::size_t>& numbers) {
        const std::vector<long long> found(numbers.begin(), numbers.end());
        return py::array_t<long long>(static_cast<py::ssize_t>(found.size()), found.data());
    }
};

struct Matrix {
    std::size_t draws, columns;
};

Matrix matrix_of(const Doubles& numbers) {
    require(numbers.ndim() == 2 && numbers.shape(0) > 0, "numbers must be (draws, columns)");
    return {static_cast<std::size_t>(numbers.shape(0)), static_cast<std::size_t>(numbers.shape(1))};
}

// (draws, columns), (draws, 1), (1, columns) or (1, 1).
Spread spread_of(const Doubles& numbers, const Matrix& matrix) {
    const Matrix own = matrix_of(numbers);
    require((own.draws == 1 || own.draws == matrix.draws) &&
                (own.columns == 1 || own.columns == matrix.columns),
            "one scale for all, or one for each draw or column");
    const std::size_t by_draw = own.draws == 1 ? 0 : own.columns;
    return {numbers.data(), by_draw, std::size_t{own.columns != 1}};
}

void check_levels(const Doubles& levels) {
    require(levels.ndim() == 1, "levels must be a vector");
    double before = 0;
    for (py::ssize_t k = 0; k < levels.size(); ++k) {
        require(levels.data()[k] >= before && levels.data()[k] <= 1,
                "levels must rise from 0 to 1");
        before = levels.data()[k];
    }
}

py::array_t<double> location_quantiles(const std::string& kind, const Doubles& centres,
                                       const Doubles& inverse_scale, const Doubles& levels,
                                       const Doubles& reaches, const std::string& instructions) {
    const std::map<std::string, Location> kinds{{"normal", Location::normal},
                                                {"student_4", Location::student_4}};
    const Location location = choose(kinds, kind, "unknown distribution");
    const Kernels& kernels = kernels_for(instructions);
    const Matrix matrix = matrix_of(centres);
    const Spread spread = spread_of(inverse_scale, matrix);
    check_levels(levels);
    require(reaches.ndim() == 1 && reaches.size() == levels.size(), "one reach for each level");
    const auto n_levels = static_cast<std::size_t>(levels.size());
    py::array_t<double> out = empty({n_levels, matrix.columns});
    double* to = out.mutable_data();
    py::gil_scoped_release release;
    for (std::size_t l = 0; l < n_levels; ++l)
        kernels.location_quantile(location, centres.data(), spread, matrix.draws, matrix.columns,
                                  levels.data()[l], reaches.data()[l], to + l * matrix.columns);
    return out;
}

py::array_t<double> count_quantiles(const Doubles& rates, const py::object& dispersion,
                                    const Doubles& levels, const std::string& instructions) {
    const Kernels& kernels = kernels_for(instructions);
    const Matrix matrix = matrix_of(rates);
    check_levels(levels);
    Doubles numbers;
    Spread spread{};
    if (!dispersion.is_none()) {
        numbers = dispersion.cast<Doubles>();
        spread = spread_of(numbers, matrix);
    }
    const Spread* own = dispersion.is_none() ? nullptr : &spread;
    const auto n_levels = static_cast<std::size_t>(levels.size());
    py::array_t<double> out = empty({n_levels, matrix.columns});
    double* to = out.mutable_data();
    py::gil_scoped_release release;
    kernels.count_quantiles(rates.data(), own, matrix.draws, matrix.columns, levels.data(),
                            n_levels, to);
    return out;
}

py::array_t<double> quantiles(const Doubles& numbers, const Doubles& levels) {
    const Matrix matrix = matrix_of(numbers);
    check_levels(levels);
    const auto n_levels = static_cast<std::size_t>(levels.size());
    py::array_t<double> out = empty({n_levels, matrix.columns});
    double* to = out.mutable_data();
    py::gil_scoped_release release;
    rank_quantiles(numbers.data(), matrix.draws, matrix.columns, levels.data(), n_levels, to);
    return out;
}

py::array_t<double> exponentials(const Doubles& values, const std::string& instructions) {
    const Kernels& kernels = kernels_for(instructions);
    py::array_t<double> out(
        std::vector<py::ssize_t>(values.shape(), values.shape() + values.ndim()));
    const auto n = static_cast<std::size_t>(values.size());
    double* to = out.mutable_data();
    py::gil_scoped_release release;
    kernels.exponentials(values.data(), n, to);
    return out;
}

std::vector<std::string> activation_names() {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < baseline::kernels.n_activations; ++k)
        names.emplace_back(baseline::kernels.activations[k].name);
    return names;
}

}  // namespace

PYBIND11_MODULE(_networks, m) {
    m.doc() = "Many sparse networks over rows, and quantiles over their draws.";
    py::class_<PyNetworks>(m, "Networks")
        .def(py::init<std::size_t, const std::vector<long long>&, std::size_t, bool,
                      const std::string&, double, const Longs&, const Doubles&, const Longs&,
                      const Doubles&, const std::string&>(),
             py::kw_only(), py::arg("covariates"), py::arg("hidden"), py::arg("outputs"),
             py::arg("input_skip"), py::arg("activation"), py::arg("constant"), py::arg("slots"),
             py::arg("weights"), py::arg("ends"), py::arg("biases"), py::arg("instructions"))
        .def_property_readonly("used", &PyNetworks::used)
        .def_property_readonly("parameters", &PyNetworks::parameters)
        .def_property_readonly("sizes", &PyNetworks::sizes)
        .def("newton_sums", &PyNetworks::newton_sums, py::arg("x"), py::arg("residuals"),
             py::arg("roots"))
        .def("predictor", &PyNetworks::predictor, py::arg("x"))
        .def("slopes", &PyNetworks::slopes, py::arg("x"))
        .def("contributions", &PyNetworks::contributions, py::arg("start"), py::arg("end"));
    m.def("location_quantiles", &location_quantiles, py::kw_only(), py::arg("kind"),
          py::arg("centres"), py::arg("inverse_scale"), py::arg("levels"), py::arg("reaches"),
          py::arg("instructions"));
    m.def("count_quantiles", &count_quantiles, py::kw_only(), py::arg("rates"),
          py::arg("dispersion"), py::arg("levels"), py::arg("instructions"));
    m.def("quantiles", &quantiles, py::kw_only(), py::arg("numbers"), py::arg("levels"));
    m.def("exponentials", &exponentials, py::kw_only(), py::arg("values"), py::arg("instructions"));
    m.def("instruction_sets", &instruction_sets);
    m.def("activations", &activation_names);
}
