// The object that Python holds: a problem, a network and its priors, and the working memory.
//
// Its methods check what they are given, then run the kernel without the GIL.

#pragma once

#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dispatch.h"
#include "flow_arrays.h"
#include "tiny.h"

namespace islab {

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
        std::vector<OwnFlow<T>> own(n);
        std::vector<Flow<T>> flows(n);
        Index start = 0;
        for (std::size_t i = 0; i < n; ++i) {
            flows[i] = take_flow(first[i], middle[i], last[i], moved[i], used[i], net_, layers_[i],
                                 own[i]);
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
    std::vector<OwnFlow<T>> own_flows_;
    std::vector<Flow<T>> flows_;
    Index n_flow_parameters_ = 0;
    bool has_prior_ = false;
};

}  // namespace islab
