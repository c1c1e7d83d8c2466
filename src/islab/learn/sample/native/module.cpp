// Python's view of a chain. Arrays are copied in; runs release the interpreter lock.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "chain.h"

namespace py = pybind11;
using namespace islab::sample;

namespace {

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Longs = py::array_t<long long, py::array::c_style | py::array::forcecast>;

Vector to_vector(const Doubles& array) { return Vector(array.data(), array.data() + array.size()); }

template <class T, class Memory>
py::array_t<T> to_array(const std::vector<T, Memory>& values) {
    return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

Activation activation_of(const std::string& name) {
    if (name == "relu") return Activation::relu;
    if (name == "leaky_relu") return Activation::leaky_relu;
    if (name == "sigmoid") return Activation::sigmoid;
    if (name == "tanh") return Activation::tanh;
    if (name == "identity") return Activation::identity;
    throw std::invalid_argument("unknown activation: " + name);
}

// x (covariates, rows) and y (outputs, rows): one run of memory for each column.
Problem make_problem(const Doubles& x, const Doubles& y, const Doubles& weight,
                     const Doubles& offset) {
    require(x.ndim() == 2 && y.ndim() == 2 && x.shape(1) == y.shape(1),
            "x and y must be (columns, rows)");
    require(weight.size() == 0 || weight.size() == y.shape(1), "one weight for each row");
    require(offset.size() == 0 || offset.size() == y.size(), "one offset for each target");
    Problem p;
    p.n = static_cast<std::size_t>(y.shape(1));
    p.covariates = static_cast<int>(x.shape(0));
    p.outputs = static_cast<int>(y.shape(0));
    p.x = to_vector(x);
    p.single_x.assign(p.x.begin(), p.x.end());
    p.y = to_vector(y);
    p.weight = to_vector(weight);
    p.offset = to_vector(offset);
    for (std::size_t i = 0; i < p.n; ++i) p.total_weight += p.row_weight(i);
    return p;
}

class PyChain {
   public:
    PyChain(const Doubles& x, const Doubles& y, const Doubles& weight, const Doubles& offset,
            const std::vector<int>& hidden, bool input_skip, const std::string& activation,
            double leak, const std::string& likelihood, const py::dict& prior_values,
            std::uint64_t seed, const Longs& slots, const Doubles& weights, const Doubles& bias,
            const Doubles& tau2, const Doubles& noise, const std::vector<int>& linear,
            const std::vector<int>& include, const std::vector<int>& sign, int limited_outputs,
            const std::vector<int>& apart, const std::vector<int>& group) {
        Shape shape;
        Problem problem = make_problem(x, y, weight, offset);
        shape.covariates = problem.covariates;
        shape.width = hidden;
        shape.width.push_back(problem.outputs);
        shape.input_skip = input_skip;
        shape.activation = activation_of(activation);
        shape.leak = leak;
        require(group.empty() || group.size() == static_cast<std::size_t>(shape.covariates),
                "a group for each covariate, or for none");
        for (int g : group) require(g >= 0 && g < shape.covariates, "groups counted from 0");
        shape.group = group;
        Prior prior;
        prior.structure.inclusion_a = prior_values["inclusion_a"].cast<double>();
        prior.structure.inclusion_b = prior_values["inclusion_b"].cast<double>();
        prior.structure.hidden_width = prior_values["hidden_width"].cast<double>();
        prior.structure.by_variable = prior_values["by_variable"].cast<bool>();
        prior.structure.price = prior_values["price"].cast<double>();
        prior.tau_shape = prior_values["tau_shape"].cast<double>();
        prior.tau_scale = prior_values["tau_scale"].cast<double>();
        prior.noise_shape = prior_values["noise_shape"].cast<double>();
        prior.noise_scale = prior_values["noise_scale"].cast<double>();
        prior.bias_sd = prior_values["bias_sd"].cast<double>();
        prior.df = prior_values["df"].cast<double>();
        model = std::make_unique<Model>(std::move(problem), std::move(shape), prior, likelihood);
        for (const auto* given : {&linear, &include, &sign})
            require(given->size() == linear.size() &&
                        (given->empty() ||
                         given->size() == static_cast<std::size_t>(model->shape.covariates)),
                    "limits of each covariate, or of none");
        require(limited_outputs >= 0 && limited_outputs <= model->shape.outputs(),
                "limits of outputs that there are");
        model->limits.linear.assign(linear.begin(), linear.end());
        model->limits.include.assign(include.begin(), include.end());
        model->limits.sign.assign(sign.begin(), sign.end());
        model->limits.outputs = limited_outputs;
        require(apart.empty() || (apart.size() == linear.size() * linear.size()),
                "limits of each pair of covariates, or of none");
        model->limits.apart.assign(apart.begin(), apart.end());
        chain = std::make_unique<Chain>(*model, start(slots, weights, bias, tau2, noise), seed);
    }

    py::dict run(int steps, int every, bool warming, int toggles, int edges, int units, int parts,
                 int largest_part, bool keep_rows) {
        require(steps >= 0 && every >= 1, "steps and every must be positive");
        Effort effort{toggles, edges, units, parts, largest_part};
        std::vector<long long> slots, ends;
        Vector weights, biases, noise, tau2, heights, rows;
        std::vector<char> alive;
        {
            py::gil_scoped_release release;
            chain->warming = warming;
            // Predictors that moves have kept up to date are those of the weights but for
            // rounding; here a chain that goes on and one that is restored begin alike.
            model->forward(chain->s);
            for (int t = 0; t < steps; ++t) {
                chain->step(effort);
                if ((t + 1) % every) continue;
                const State& s = chain->s;
                for (int u = 0; u < model->shape.units(); ++u)
                    for (const Edge& e : s.in[u]) {
                        slots.push_back(model->shape.slot(u, e.source));
                        weights.push_back(e.weight);
                    }
                ends.push_back(static_cast<long long>(slots.size()));
                biases.insert(biases.end(), s.bias.begin(), s.bias.end());
                noise.insert(noise.end(), s.s2.begin(), s.s2.end());
                tau2.insert(tau2.end(), s.tau2.begin(), s.tau2.end());
                heights.push_back(model->log_likelihood(s));
                if (!keep_rows) continue;
                rows.resize(rows.size() + model->problem.n);
                model->likelihood->rows(model->problem, s.f->data(), s.s2,
                                        rows.data() + rows.size() - model->problem.n);
            }
        }
        py::dict result;
        result["slots"] = to_array(slots);
        result["ends"] = to_array(ends);
        result["weights"] = to_array(weights);
        result["biases"] = to_array(biases);
        result["noise"] = to_array(noise);
        result["tau2"] = to_array(tau2);
        result["log_likelihood"] = to_array(heights);
        result["row_log_likelihood"] = to_array(rows);
        return result;
    }

    // Of the swept matrix of an output, after moves of which the chain knows nothing.
    double drift(int output, int toggles, int edges, int units, int parts, int largest_part) const {
        require(OutputRegression::serves(*model) && output >= 0 && output < model->shape.outputs(),
                "an output whose weights are integrated out");
        const Effort effort{toggles, edges, units, parts, largest_part};
        State s = chain->s;
        Random random = chain->random;
        Counts counts;
        return UnitRegression(*model).drift(s, output, effort, random, counts);
    }

    void replace_target(const Doubles& y) {
        require(y.size() == static_cast<py::ssize_t>(model->problem.y.size()),
                "y of another shape");
        model->problem.y = to_vector(y);
        model->forward(chain->s);
    }

    py::dict counts() const {
        py::dict result;
        for (int m = 0; m < n_moves; ++m)
            result[move_name(m)] =
                py::make_tuple(chain->counts.accepted[m], chain->counts.proposed[m]);
        return result;
    }

    // What the next step depends on.
    py::dict state() const {
        const State& s = chain->s;
        py::dict result;
        std::vector<long long> slots;
        Vector weights, mixing;
        for (int u = 0; u < model->shape.units(); ++u)
            for (const Edge& e : s.in[u]) {
                slots.push_back(model->shape.slot(u, e.source));
                weights.push_back(e.weight);
                mixing.push_back(e.mixing);
            }
        result["slots"] = to_array(slots);
        result["weights"] = to_array(weights);
        result["mixing"] = to_array(mixing);
        result["bias"] = to_array(s.bias);
        result["tau2"] = to_array(s.tau2);
        result["noise"] = to_array(s.s2);
        std::vector<long long> words;
        for (std::uint64_t word : chain->random.state)
            words.push_back(static_cast<long long>(word));
        result["random"] = to_array(words);
        result["keep"] = to_array(Vector(chain->keep.begin(), chain->keep.end()));
        std::vector<long long> moves(chain->counts.accepted.begin(), chain->counts.accepted.end());
        moves.insert(moves.end(), chain->counts.proposed.begin(), chain->counts.proposed.end());
        result["moves"] = to_array(moves);
        return result;
    }

    void restore(const py::dict& saved) {
        State s = start(saved["slots"].cast<Longs>(), saved["weights"].cast<Doubles>(),
                        saved["bias"].cast<Doubles>(), saved["tau2"].cast<Doubles>(),
                        saved["noise"].cast<Doubles>());
        const Vector mixing = to_vector(saved["mixing"].cast<Doubles>());
        const Longs words = saved["random"].cast<Longs>(), moves = saved["moves"].cast<Longs>();
        const Doubles keep = saved["keep"].cast<Doubles>();
        require(mixing.size() == static_cast<std::size_t>(saved["weights"].cast<Doubles>().size()),
                "mixing of another size");
        require(words.size() == 4 && moves.size() == 2 * n_moves && keep.size() == 3,
                "a state of another shape");
        std::size_t at = 0;
        for (auto& edges : s.in)
            for (Edge& e : edges) e.mixing = mixing[at++];
        require(model->valid(s), "a state with edges on no active path");
        model->forward(s);
        chain->s = std::move(s);
        for (int k = 0; k < 4; ++k)
            chain->random.state[k] = static_cast<std::uint64_t>(words.data()[k]);
        for (int k = 0; k < 3; ++k)
            chain->keep[k] = std::min(std::max(keep.data()[k], 0.0), 0.9999);
        for (int m = 0; m < n_moves; ++m) {
            chain->counts.accepted[m] = static_cast<long>(moves.data()[m]);
            chain->counts.proposed[m] = static_cast<long>(moves.data()[n_moves + m]);
        }
    }

    // Draws of the target given the predictors are made in Python; this is what they need.
    py::array_t<double> predictor() const { return to_array(*chain->s.f); }

   private:
    std::unique_ptr<Model> model;
    std::unique_ptr<Chain> chain;

    State start(const Longs& slots, const Doubles& weights, const Doubles& bias,
                const Doubles& tau2, const Doubles& noise) const {
        const Shape& shape = model->shape;
        require(slots.size() == weights.size(), "one weight for each edge");
        require(bias.size() == shape.units(), "one bias for each unit");
        require(tau2.size() == shape.blocks(), "one slab variance for each block");
        require(model->likelihood->takes_noise(model->problem, noise.size()),
                "as many noise variances as the likelihood learns");
        State s;
        s.in.resize(shape.units());
        s.bias = to_vector(bias);
        s.alive.assign(shape.units(), 0);
        s.tau2 = to_vector(tau2);
        s.s2 = to_vector(noise);
        s.z.resize(shape.units());
        s.value.resize(shape.units());
        for (double value : s.tau2)
            require(value > 0 && std::isfinite(value), "slab variances must be positive");
        for (double value : s.s2)
            require(value > 0 && std::isfinite(value), "noise variances must be positive");
        for (int o = shape.hidden(); o < shape.units(); ++o) s.alive[o] = 1;
        for (py::ssize_t k = 0; k < slots.size(); ++k) {
            const auto [unit, source] = ends_of(slots.data()[k]);
            require(s.edge_to(unit, source) < 0, "an edge stands twice");
            require(std::isfinite(weights.data()[k]), "weights must be finite");
            s.in[unit].push_back({source, weights.data()[k], 1.0});
            s.alive[unit] = 1;
        }
        for (int u = 0; u < shape.units(); ++u) {
            require(std::isfinite(s.bias[u]), "biases must be finite");
            if (!s.alive[u]) s.bias[u] = 0;
        }
        return s;
    }

    std::pair<int, int> ends_of(long long slot) const {
        const Shape& shape = model->shape;
        const long long rows = shape.input_skip ? shape.units() : shape.width[0];
        require(slot >= 0, "an edge outside the network");
        if (slot < rows * shape.covariates)
            return {static_cast<int>(slot / shape.covariates),
                    static_cast<int>(slot % shape.covariates)};
        slot -= rows * shape.covariates;
        for (int l = 1; l < shape.layers(); ++l) {
            const long long size = static_cast<long long>(shape.width[l]) * shape.width[l - 1];
            if (slot < size)
                return {shape.first[l] + static_cast<int>(slot / shape.width[l - 1]),
                        shape.covariates + shape.first[l - 1] +
                            static_cast<int>(slot % shape.width[l - 1])};
            slot -= size;
        }
        throw std::invalid_argument("an edge outside the network");
    }
};

}  // namespace

PYBIND11_MODULE(_chains, m) {
    m.doc() = "Chains over sparse networks.";
    py::class_<PyChain>(m, "Chain")
        .def(py::init<const Doubles&, const Doubles&, const Doubles&, const Doubles&,
                      const std::vector<int>&, bool, const std::string&, double, const std::string&,
                      const py::dict&, std::uint64_t, const Longs&, const Doubles&, const Doubles&,
                      const Doubles&, const Doubles&, const std::vector<int>&,
                      const std::vector<int>&, const std::vector<int>&, int,
                      const std::vector<int>&, const std::vector<int>&>(),
             py::kw_only(), py::arg("x"), py::arg("y"), py::arg("weight"), py::arg("offset"),
             py::arg("hidden"), py::arg("input_skip"), py::arg("activation"), py::arg("leak"),
             py::arg("likelihood"), py::arg("prior"), py::arg("seed"), py::arg("slots"),
             py::arg("weights"), py::arg("bias"), py::arg("tau2"), py::arg("noise"),
             py::arg("linear"), py::arg("include"), py::arg("sign"), py::arg("limited_outputs"),
             py::arg("apart"), py::arg("group"))
        .def("run", &PyChain::run, py::kw_only(), py::arg("steps"), py::arg("every"),
             py::arg("warming"), py::arg("toggles"), py::arg("edges"), py::arg("units"),
             py::arg("parts"), py::arg("largest_part"), py::arg("keep_rows"))
        .def("drift", &PyChain::drift, py::kw_only(), py::arg("output"), py::arg("toggles"),
             py::arg("edges"), py::arg("units"), py::arg("parts"), py::arg("largest_part"))
        .def("replace_target", &PyChain::replace_target)
        .def("predictor", &PyChain::predictor)
        .def("counts", &PyChain::counts)
        .def("state", &PyChain::state)
        .def("restore", &PyChain::restore);
}
