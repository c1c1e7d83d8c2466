// The native engine's kernel: what it is given, and how memory is laid out.
//
// One training step of a dense network (h is the input of a layer, eps standard normal):
//
//     E = alpha mu                    V = alpha (sigma^2 + (1 - alpha) mu^2)
//     z = h E' + b + sqrt(h^2 V' + b_sigma^2) eps
//
// is hand-differentiated. With G = dNLL/dz and Gv = G eps / (2 sd):
//
//     dNLL/dE = G' h         dNLL/dV = Gv' h^2         dNLL/dh = G E + 2 h (Gv V)
//
// and everything about a weight (the chain to mu, rho and lambda, the divergence, Adam, and,
// without flows, the E and V of the next step) happens in one pass over the flat parameter vectors.
//
// Parameters. Flat vectors in the order of islab.core.architecture: covariate weights of all layers
// as one matrix C (units, covariates), then the hidden weights of each later layer (width, width
// below). theta is [mu, rho, lambda, bias_mu, bias_rho]; Adam's moments have the same order. They
// are numpy arrays owned by Python; a call borrows them and keeps nothing.
//
// Flows. The means may be multiplied by z of a normalizing flow, whose parameters and moments are
// flat vectors of their own; flows.h has the rest.
//
// Activations. Batches are *unit-major*: a matrix (units, rows) whose rows of the data are
// contiguous, so that the data rows are the SIMD direction everywhere: networks shrink to a few
// units, batches do not. The layers' units are consecutive, so the gradient of C is one product
// for all layers. Only two products are needed: `multiply` (out = A B) for the forward pass and
// dNLL/dh, and `correlate` (out = A B') for the weights' gradients.
//
// Padding. The number of data rows is rounded up to whole vectors. Padded rows have x = 0, y = 0
// and, which is what silences them, sample weight 0: their G is 0. The distance between two units
// is an odd number of cache lines, or batches of 128, 256, ... rows would fall into the same few
// cache sets.
//
// Instruction sets. The headers that steps.h includes live in unnamed namespaces and are compiled
// once for each instruction set (steps_*.cpp); dispatch.h chooses at run time. They use no
// standard containers: an inline library function compiled for AVX2 could otherwise be linked
// into code for any processor.
//
// Numbers. Nothing is compiled with -ffast-math: vectors are explicit, so it would gain nothing,
// and a non-finite loss must be seen. Clamps are written to let NaN through.
//
// Threads. A call uses one thread and no global state, so fits run in parallel and do not depend
// on their number. Only products too large for `products.h` go to BLAS, which may use threads of
// its own; its sums can then differ in the last bits with its number of threads.

#pragma once

#include <cstddef>
#include <cstdint>

namespace islab {

using Index = std::ptrdiff_t;

constexpr std::size_t cache_line = 64;

// A likelihood or an activation: its number in the list of `families.h`, and its constant.
struct Family {
    int number;
    double constant;
};

// Constants that Python defines once for all engines.
struct Rules {
    double beta1, beta2, epsilon;  // Adam
    double largest_rho, largest_lambda;
    double noise_rate;
};

// A run of weights with a prior of its own.
struct Block {
    Index start, size;
    double tau, logit_psi, log_not_psi;
    double mu_step;  // factor on Adam's step for mu
};

struct Layer {
    Index first_unit, width;
    Index below;         // width of the hidden layer below, 0 for the first layer
    Index hidden_start;  // where its hidden weights start
};

// The slab's shape: Gaussian without nodes, else Student-t with Gauss-Hermite nodes.
struct Slab {
    double bias_tau;
    double df, log_constant;
    const double *nodes, *node_weights;
    Index n_nodes;
};

struct Network {
    Index n_covariates, n_units, n_outputs, n_weights;
    Index n_covariate_rows;  // rows of C: the units that covariates reach
    const Layer* layers;
    Index n_layers;
    const Block* blocks;
    Index n_blocks;
    Family activation, likelihood;
};

template <class T>
struct Data {
    const T* x;              // (rows, covariates)
    const T* y;              // (rows, outputs)
    const T* sample_weight;  // (rows,) or null
    const T* constant;       // (rows,) part of the NLL without parameters, or null
    const T* offset;         // (rows, outputs) added to the linear predictor, or null
    Index n_rows;
};

// A flat vector of parameters, or of Adam's moments, by its parts.
template <class T>
struct Parts {
    T *mu, *rho, *lam;      // (weights,)
    T *bias_mu, *bias_rho;  // (units,)

    Parts(T* flat, const Network& net)
        : mu(flat),
          rho(mu + net.n_weights),
          lam(rho + net.n_weights),
          bias_mu(lam + net.n_weights),
          bias_rho(bias_mu + net.n_units) {}
};

template <class T>
struct State {
    T *theta, *first, *second;  // (3 weights + 2 units,)
    T* noise;                   // what the likelihood learns besides
    std::uint32_t* generator;   // (4, 8)
    Index n_steps;
};

template <class T>
struct Steps {
    const std::int64_t *rows, *sizes;
    const double *rate, *lambda_rate, *kl_weight;
    Index count;
    Index largest;   // of the sizes
    const T* noise;  // (sum of sizes, units) or null
};

// Numbers that a row of a matrix may have: from `begin` up to `end`.
struct Reach {
    std::int32_t begin, end;
};

// An invertible map of z; see transforms.h.
template <class T>
struct Transform {
    const Reach *first, *middle, *last;  // (inputs,), (width,), (2 inputs,)
    const T* moved;                      // (inputs,) 1 where it changes z, else 0
};

// The flow of one layer; without inputs the layer has none.
template <class T>
struct Flow {
    Index n_inputs, width, n_transforms;
    Index start;  // of its parameters
    const Transform<T>* transforms;
    const std::int64_t* used;  // entries of z that the network still has, hidden units first
    Index n_used;
    double largest_log_scale;
};

// The flows of all layers; parameters and Adam's moments are flat vectors. Null pointers: none.
template <class T>
struct Flows {
    const Flow<T>* flows;
    T *value, *first, *second;
    double step;     // factor on the rate
    const T* noise;  // (steps, inputs of all layers + units) or null
};

// Working memory, kept from call to call: fresh pages cost large networks a tenth of their time.
class Memory {
   public:
    // So many bytes, aligned to a cache line, good until the call ends.
    virtual void* take(std::size_t bytes) = 0;

   protected:
    ~Memory() = default;
};

// BLAS gemm, column-major, as scipy gives it.
template <class T>
using Gemm = void (*)(char*, char*, int*, int*, int*, T*, T*, int*, T*, int*, T*, T*, int*);

// One compiled variant of the kernel.
template <class T>
struct Kernel {
    // Takes the steps; the sum of the rows' NLL, non-finite as soon as one step failed.
    double (*run)(const Network&, const Slab&, const Rules&, const Data<T>&, State<T>&,
                  const Flows<T>&, const Steps<T>&, Gemm<T>, Memory&);
    // Sum of the NLL of all rows over passes with fresh noise.
    double (*expected_nll)(const Network&, const Data<T>&, const T* theta, const Flows<T>&,
                           const T* noise, std::uint32_t* generator, Index passes, Gemm<T>,
                           Memory&);
    // Divergence of the parameters from the prior; with flows, for one z.
    double (*divergence)(const Network&, const Slab&, const T* theta, const Flows<T>&,
                         std::uint32_t* generator, Memory&);
    // Number of a flow's parameters.
    Index (*flow_size)(const Flow<T>&);
    // Draws of z of all layers, (draws, inputs of all layers).
    void (*multipliers)(const Network&, const Flows<T>&, std::uint32_t* generator, Index draws,
                        T* out, Memory&);
    // The generator's next numbers.
    void (*normals)(std::uint32_t* generator, T* out, Index count);
    // Length of the noise of the network's likelihood.
    Index (*n_noise)(const Network&);
    // Names of the families that are compiled, each list ends with null.
    const char* const* likelihoods;
    const char* const* activations;
};

}  // namespace islab
