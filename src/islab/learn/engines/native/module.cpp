// The boundary to Python: checks everything once, then runs the kernel without the GIL.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel.h"
#include "tiny.h"
#include "variants.h"

namespace py = pybind11;

namespace islab {
namespace {

// -- checking ---------------------------------------------------------------------------------

[[noreturn]] void reject(const std::string& got, const std::string& expected) {
    throw py::value_error("Got " + got + ", expected " + expected + ".");
}

std::string shape_text(const std::vector<Index>& shape) {
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
Family chosen(const char* const* names, const char* what, const NamedFamily& family) {
    std::map<std::string, int> numbers;
    for (int number = 0; names[number]; ++number) numbers[names[number]] = number;
    return {choose(numbers, what, family.first), family.second};
}

void require_dimension(const char* name, Index value) {
    if (value < 0 || value > std::numeric_limits<int>::max() / 2)
        reject(std::string(name) + "=" + std::to_string(value),
               "a size between 0 and the largest of BLAS");
}

// -- variants and BLAS ------------------------------------------------------------------------

bool has_avx2() {
#ifdef ISLAB_HAS_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

std::vector<std::string> instruction_sets() {
    return has_avx2() ? std::vector<std::string>{"avx2", "baseline"}
                      : std::vector<std::string>{"baseline"};
}

template <class T>
const Kernel<T>& kernel_for(const std::string& instructions) {
    std::map<std::string, const Kernel<T>*> kernels;
    if constexpr (std::is_same_v<T, float>)
        kernels["baseline"] = &baseline::single_precision;
    else
        kernels["baseline"] = &baseline::double_precision;
#ifdef ISLAB_HAS_AVX2
    if (has_avx2()) {
        if constexpr (std::is_same_v<T, float>)
            kernels["avx2"] = &avx2::single_precision;
        else
            kernels["avx2"] = &avx2::double_precision;
    }
#endif
    return *choose(kernels, "instructions", instructions);
}

// scipy publishes its BLAS as C function pointers.
template <class T>
Gemm<T> scipy_gemm() {
    const char* name = std::is_same_v<T, float> ? "sgemm" : "dgemm";
    const py::object functions =
        py::module_::import("scipy.linalg.cython_blas").attr("__pyx_capi__");
    const py::capsule capsule = functions[name];
    return reinterpret_cast<Gemm<T>>(PyCapsule_GetPointer(capsule.ptr(), capsule.name()));
}

// -- memory -----------------------------------------------------------------------------------

// The n-th request of a call gets the n-th block, which grows when it is too small.
class Blocks final : public Memory {
   public:
    void start_call() { next_ = 0; }

    void* take(std::size_t bytes) override {
        if (next_ == blocks_.size()) blocks_.emplace_back();
        OneBlock& block = blocks_[next_++];
        if (block.bytes < bytes || !block.at) {
            block.at.reset();
            block.at.reset(::operator new(bytes, std::align_val_t(cache_line)));
            block.bytes = bytes;
        }
        return block.at.get();
    }

   private:
    struct Delete {
        void operator()(void* at) const { ::operator delete(at, std::align_val_t(cache_line)); }
    };
    struct OneBlock {
        std::unique_ptr<void, Delete> at;
        std::size_t bytes = 0;
    };
    std::vector<OneBlock> blocks_;
    std::size_t next_ = 0;
};

// Parameters of flows with Adam's moments, numpy arrays owned by Python.
struct FlowArrays {
    py::array value, first, second;
    double step;
    std::optional<py::array> given;
};

// -- the learner ------------------------------------------------------------------------------

// A problem, a network and its priors; the parameters themselves belong to Python.
template <class T>
class Learner {
   public:
    Learner(py::array x, py::array y, std::optional<py::array> sample_weight,
            std::optional<py::array> constant, std::optional<py::array> offset,
            const NamedFamily& likelihood, const std::vector<Index>& widths, bool input_skip,
            const NamedFamily& activation, const Rules& rules, const std::string& instructions)
        : kernel_(kernel_for<T>(instructions)),
          gemm_(scipy_gemm<T>()),
          rules_(rules),
          x_(x),
          y_(y),
          sample_weight_(sample_weight),
          constant_(constant),
          offset_(offset) {
        net_.likelihood = chosen(kernel_.likelihoods, "likelihood", likelihood);
        if (x.ndim() != 2 || y.ndim() != 2 || x.shape(0) < 1)
            reject("x and y that are no tables", "two dimensions and at least one row");
        data_.n_rows = x.shape(0);
        net_.n_covariates = x.shape(1);
        net_.n_outputs = y.shape(1);
        data_.x = checked<T>(x_, "x", {data_.n_rows, net_.n_covariates});
        data_.y = checked<T>(y_, "y", {data_.n_rows, net_.n_outputs});
        data_.sample_weight = optional_rows(sample_weight_, "sample_weight");
        data_.constant = optional_rows(constant_, "constant");
        if (offset_) data_.offset = checked<T>(*offset_, "offset", {data_.n_rows, net_.n_outputs});
        require_dimension("n_covariates", net_.n_covariates);
        set_network(widths, input_skip, activation);
    }

    // Widths of all layers, outputs last.
    void set_network(const std::vector<Index>& widths, bool input_skip,
                     const NamedFamily& activation) {
        const auto lock = lock_or_reject();
        const Family family = chosen(kernel_.activations, "activation", activation);
        if (widths.empty() || widths.back() != net_.n_outputs || net_.n_outputs < 1)
            reject("widths=" + shape_text(widths),
                   "the outputs, " + std::to_string(net_.n_outputs) + ", last");
        double n_weights = 0;
        for (std::size_t i = 0; i < widths.size(); ++i) {
            require_dimension("width", widths[i]);
            const Index inputs = net_.n_covariates + (i ? widths[i - 1] : 0);
            n_weights += double(widths[i]) * double(inputs);
        }
        if (n_weights > 1e15)
            reject("widths=" + shape_text(widths), "a network that fits in memory");
        net_.activation = family;
        flows_.clear();
        lay_out(widths, input_skip);
    }

    void set_prior(py::array tau, py::array psi, py::array mu_step, double bias_tau, double df,
                   double log_constant, py::array nodes, py::array node_weights) {
        const auto lock = lock_or_reject();
        const Index n = Index(blocks_.size()), n_nodes = nodes.size();
        const double* taus = checked<double>(tau, "tau", {n});
        const double* psis = checked<double>(psi, "psi", {n});
        const double* mu_steps = checked<double>(mu_step, "mu_step", {n});
        const double* at = checked<double>(nodes, "nodes", {n_nodes});
        const double* shares = checked<double>(node_weights, "node_weights", {n_nodes});
        for (Index i = 0; i < n; ++i) {
            if (!(taus[i] > 0)) reject("tau=" + std::to_string(taus[i]), "positive scales");
            if (!(psis[i] > 0 && psis[i] < 1))
                reject("psi=" + std::to_string(psis[i]), "probabilities between 0 and 1");
        }
        if (!(bias_tau > 0)) reject("bias_tau=" + std::to_string(bias_tau), "a positive scale");
        for (Index i = 0; i < n; ++i) {
            blocks_[i].tau = taus[i];
            blocks_[i].log_not_psi = std::log1p(-psis[i]);
            blocks_[i].logit_psi = std::log(psis[i]) - blocks_[i].log_not_psi;
            blocks_[i].mu_step = mu_steps[i];
        }
        nodes_.assign(at, at + n_nodes);
        node_weights_.assign(shares, shares + n_nodes);
        slab_ = {bias_tau, df, log_constant, nodes_.data(), node_weights_.data(), n_nodes};
        has_prior_ = true;
    }

    // The flows of all layers: what each row of their matrices may reach, which entries of z the
    // transforms move, and which of them the layer's inputs are. A new network has none.
    void set_flows(const std::vector<py::array>& first, const std::vector<py::array>& middle,
                   const std::vector<py::array>& last, const std::vector<py::array>& moved,
                   const std::vector<py::array>& used, double largest_log_scale) {
        const auto lock = lock_or_reject();
        const std::size_t n = layers_.size();
        if (first.size() != n || middle.size() != n || last.size() != n || moved.size() != n ||
            used.size() != n)
            reject(std::to_string(first.size()) + " flows",
                   "one for each of " + std::to_string(n) + " layers");
        if (!(largest_log_scale > 0))
            reject("largest_log_scale=" + std::to_string(largest_log_scale), "a positive number");
        std::vector<OwnFlow> own(n);
        std::vector<Flow<T>> flows(n);
        Index start = 0;
        for (std::size_t i = 0; i < n; ++i) {
            flows[i] =
                take_flow(first[i], middle[i], last[i], moved[i], used[i], layers_[i], own[i]);
            flows[i].largest_log_scale = largest_log_scale;
            flows[i].start = start;
            start += kernel_.flow_size(flows[i]);
        }
        own_flows_ = std::move(own);
        flows_ = std::move(flows);
        n_flow_parameters_ = start;
    }

    // Sum of the NLL of the steps' rows; changes theta, first, second, noise and generator, and
    // with flows their parameters and moments.
    double run(py::array theta, py::array first, py::array second, py::array noise,
               py::array generator, Index n_steps, py::array rows, py::array sizes, py::array rate,
               py::array lambda_rate, py::array kl_weight, std::optional<py::array> given,
               std::optional<FlowArrays> flow) {
        const auto lock = lock_or_reject();
        require_prior();
        State<T> state = {checked_writeable<T>(theta, "theta", {n_parameters()}),
                          checked_writeable<T>(first, "first", {n_parameters()}),
                          checked_writeable<T>(second, "second", {n_parameters()}),
                          checked_writeable<T>(noise, "noise", {kernel_.n_noise(net_)}),
                          checked_writeable<std::uint32_t>(generator, "generator", {4, 8}),
                          n_steps};
        if (n_steps < 0) reject("n_steps=" + std::to_string(n_steps), "no negative number");
        const Index count = sizes.size();
        Steps<T> steps = {checked<std::int64_t>(rows, "rows", {rows.size()}),
                          checked<std::int64_t>(sizes, "sizes", {count}),
                          checked<double>(rate, "rate", {count}),
                          checked<double>(lambda_rate, "lambda_rate", {count}),
                          checked<double>(kl_weight, "kl_weight", {count}),
                          count,
                          0,
                          nullptr};
        steps.largest = check_rows(steps, rows.size());
        if (given) steps.noise = checked<T>(*given, "noise", {rows.size(), net_.n_units});
        const Flows<T> flows = flows_of(flow, count);
        memory_.start_call();
        py::gil_scoped_release released;
        const TinyAsZero tiny_as_zero;
        return kernel_.run(net_, slab_, rules_, data_, state, flows, steps, gemm_, memory_);
    }

    double expected_nll(py::array theta, py::array noise, py::array generator, Index passes,
                        std::optional<FlowArrays> flow) {
        const auto lock = lock_or_reject();
        const T* flat = checked<T>(theta, "theta", {n_parameters()});
        const T* variances = checked<T>(noise, "noise", {kernel_.n_noise(net_)});
        auto* state = checked_writeable<std::uint32_t>(generator, "generator", {4, 8});
        if (passes < 1) reject("passes=" + std::to_string(passes), "at least 1");
        const Flows<T> flows = flows_of(flow, 1);
        memory_.start_call();
        py::gil_scoped_release released;
        const TinyAsZero tiny_as_zero;
        return kernel_.expected_nll(net_, data_, flat, flows, variances, state, passes, gemm_,
                                    memory_) /
               double(passes);
    }

    double divergence(py::array theta, py::array generator, std::optional<FlowArrays> flow) {
        const auto lock = lock_or_reject();
        require_prior();
        const T* flat = checked<T>(theta, "theta", {n_parameters()});
        auto* state = checked_writeable<std::uint32_t>(generator, "generator", {4, 8});
        const Flows<T> flows = flows_of(flow, 1);
        memory_.start_call();
        py::gil_scoped_release released;
        const TinyAsZero tiny_as_zero;
        return kernel_.divergence(net_, slab_, flat, flows, state, memory_);
    }

    // Draws of z of all layers, (draws, inputs of all layers).
    py::array_t<T> multipliers(py::array generator, Index draws, FlowArrays flow) {
        const auto lock = lock_or_reject();
        auto* state = checked_writeable<std::uint32_t>(generator, "generator", {4, 8});
        if (draws < 0) reject("draws=" + std::to_string(draws), "no negative number");
        const Flows<T> flows = flows_of(flow, 1);
        py::array_t<T> out({draws, n_flow_inputs()});
        T* to = out.mutable_data();
        memory_.start_call();
        py::gil_scoped_release released;
        const TinyAsZero tiny_as_zero;
        kernel_.multipliers(net_, flows, state, draws, to, memory_);
        return out;
    }

    py::array_t<T> normals(py::array generator, Index count) const {
        auto* state = checked_writeable<std::uint32_t>(generator, "generator", {4, 8});
        if (count < 0) reject("count=" + std::to_string(count), "no negative number");
        py::array_t<T> out(count);
        kernel_.normals(state, out.mutable_data(), count);
        return out;
    }

   private:
    // What a flow points to.
    struct OwnFlow {
        std::vector<Reach> reach;
        std::vector<T> moved;
        std::vector<Transform<T>> transforms;
        std::vector<std::int64_t> used;
    };

    // `first` (transforms, inputs, 2), `middle` (transforms, width, 2), `last` (transforms,
    // 2 inputs, 2), `moved` (transforms, inputs), `used` (inputs of the layer,).
    Flow<T> take_flow(const py::array& first, const py::array& middle, const py::array& last,
                      const py::array& moved, const py::array& used, const Layer& layer,
                      OwnFlow& own) {
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
            const auto* from =
                checked<std::int32_t>(pairs, name, {n, rows, 2}) + transform * rows * 2;
            for (Index i = 0; i < rows; ++i, from += 2) {
                if (from[0] < 0 || from[0] > from[1] || from[1] > longest)
                    reject(std::string(name) + " with a row from " + std::to_string(from[0]) +
                               " to " + std::to_string(from[1]),
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
        const Index reached = layer.first_unit < net_.n_covariate_rows ? net_.n_covariates : 0;
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

    Flows<T> flows_of(std::optional<FlowArrays>& flow, Index n_steps) {
        if (!flow) return {};
        return flows_of(*flow, n_steps);
    }

    Flows<T> flows_of(FlowArrays& flow, Index n_steps) {
        if (flows_.empty())
            throw py::value_error(
                "Got parameters of flows, but no flows yet; call set_flows first.");
        Flows<T> flows = {flows_.data(),
                          checked_writeable<T>(flow.value, "flows", {n_flow_parameters_}),
                          checked_writeable<T>(flow.first, "flows' first", {n_flow_parameters_}),
                          checked_writeable<T>(flow.second, "flows' second", {n_flow_parameters_}),
                          flow.step,
                          nullptr};
        if (flow.given)
            flows.noise =
                checked<T>(*flow.given, "flows' noise", {n_steps, n_flow_inputs() + net_.n_units});
        return flows;
    }

    Index n_flow_inputs() const {
        Index sum = 0;
        for (const Flow<T>& flow : flows_) sum += flow.n_inputs;
        return sum;
    }

    // Without the GIL another thread could change the network under a running kernel.
    std::unique_lock<std::mutex> lock_or_reject() {
        std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock())
            throw std::runtime_error(
                "Got a call to an engine that another thread is using; make one engine for each "
                "thread.");
        return lock;
    }

    const T* optional_rows(const std::optional<py::array>& array, const char* name) {
        return array ? checked<T>(*array, name, {data_.n_rows}) : nullptr;
    }

    Index n_parameters() const { return 3 * net_.n_weights + 2 * net_.n_units; }

    void require_prior() const {
        if (!has_prior_) throw py::value_error("Got no prior yet; call set_prior first.");
    }

    // The order of islab.core.architecture: covariate blocks by layer, then hidden blocks.
    void lay_out(const std::vector<Index>& widths, bool input_skip) {
        std::vector<Block> blocks;
        layers_.clear();
        Index start = 0, unit = 0;
        const Index v = net_.n_covariates;
        const auto add_block = [&](Index size) {
            Block block = blocks.size() < blocks_.size() ? blocks_[blocks.size()] : Block{};
            block.start = start;
            block.size = size;
            blocks.push_back(block);
            start += size;
        };
        for (std::size_t i = 0; i < widths.size(); ++i) {
            layers_.push_back({unit, widths[i], i ? widths[i - 1] : 0, 0});
            unit += widths[i];
            if (input_skip || i == 0) add_block(widths[i] * v);
        }
        for (std::size_t i = 1; i < widths.size(); ++i) {
            layers_[i].hidden_start = start;
            add_block(widths[i] * widths[i - 1]);
        }
        if (blocks.size() != blocks_.size()) has_prior_ = false;
        blocks_ = blocks;
        net_.n_units = unit;
        net_.n_weights = start;
        net_.n_covariate_rows = input_skip ? unit : widths[0];
        net_.layers = layers_.data();
        net_.n_layers = Index(layers_.size());
        net_.blocks = blocks_.data();
        net_.n_blocks = Index(blocks_.size());
    }

    // The largest batch.
    Index check_rows(const Steps<T>& steps, Index n_given) const {
        Index sum = 0, largest = 0;
        for (Index i = 0; i < steps.count; ++i) {
            if (steps.sizes[i] < 1 || steps.sizes[i] > n_given)
                reject("a batch of " + std::to_string(steps.sizes[i]) + " rows",
                       "between 1 and the " + std::to_string(n_given) + " rows given");
            sum += steps.sizes[i];
            largest = steps.sizes[i] > largest ? steps.sizes[i] : largest;
        }
        if (sum != n_given || sum == 0)
            reject("sizes that add up to " + std::to_string(sum),
                   "the number of rows, " + std::to_string(n_given) + ", and at least one");
        for (Index i = 0; i < n_given; ++i)
            if (steps.rows[i] < 0 || steps.rows[i] >= data_.n_rows)
                reject("row " + std::to_string(steps.rows[i]),
                       "rows from 0 to " + std::to_string(data_.n_rows - 1));
        require_dimension("batch", largest);
        return largest;
    }

    std::mutex mutex_;
    Blocks memory_;
    const Kernel<T>& kernel_;
    Gemm<T> gemm_;
    Rules rules_;
    py::array x_, y_;
    std::optional<py::array> sample_weight_, constant_, offset_;
    Data<T> data_{};
    Network net_{};
    Slab slab_{};
    std::vector<Layer> layers_;
    std::vector<Block> blocks_;
    std::vector<double> nodes_, node_weights_;
    std::vector<OwnFlow> own_flows_;
    std::vector<Flow<T>> flows_;
    Index n_flow_parameters_ = 0;
    bool has_prior_ = false;
};

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
