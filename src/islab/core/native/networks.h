// Many small networks of one architecture, and what is computed from them over rows.
//
// Each draw of a posterior is a network that uses a few of all weights. Only those are kept here,
// unit after unit in the order in which the units are computed; a unit that leads to no output is
// left out. Rows are the long direction: what a covariate or a unit is for a block of rows is one
// run of numbers, so that every sum is a sum of such runs and a block stays in the caches while
// all draws pass over it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace islab::networks {

struct Family {
    const char* name;
    bool piecewise_linear;
};

struct Networks {
    std::size_t draws = 0, covariates = 0, outputs = 0;
    std::size_t activation = 0;     // its number in the list of families.h
    double constant = 0;            // of the activation
    std::vector<std::size_t> used;  // columns of the data that some draw reads

    // Units of all draws, one draw after the other: hidden ones, then the outputs.
    std::vector<std::size_t> first_unit;  // (draws + 1)
    std::vector<std::size_t> first_edge;  // (units + 1)
    std::vector<double> bias;             // (units)
    // Edges of all units. Sources count the used covariates, then the draw's units.
    std::vector<std::int32_t> source;
    std::vector<double> weight;
    std::size_t most_units = 0;  // of a draw
    // Where each edge stood among those that were given, and each unit in the architecture.
    std::vector<std::size_t> given_edge, given_unit;

    std::size_t n_units(std::size_t draw) const { return first_unit[draw + 1] - first_unit[draw]; }
    std::size_t n_hidden(std::size_t draw) const { return n_units(draw) - outputs; }
};

// (rows, columns), row after row; a stride of 0 repeats one row.
struct Rows {
    const double* at;
    std::size_t n, stride;

    double operator()(std::size_t row, std::size_t column) const {
        return at[row * stride + column];
    }
};

// Numbers (draws, columns) of which one row may stand for all draws, or one column for all.
struct Spread {
    const double* at;
    std::size_t by_draw, by_column;
};

enum class Location { normal, student_4 };

// The functions that are compiled for each kind of processor.
struct Kernels {
    const Family* activations;
    std::size_t n_activations;
    // (draws, rows, outputs)
    void (*predictor)(const Networks&, const Rows&, double* out);
    // The predictor and its gradient, (draws, rows, outputs, used covariates).
    void (*slopes)(const Networks&, const Rows&, double* predictor, double* gradient);
    // Of piecewise-linear networks, (draws, rows, used covariates, outputs): the gradient's mean
    // on the straight way from start to end, times its length in each covariate.
    void (*contributions)(const Networks&, const Rows& start, const Rows& end, double* out);
    // Sums over rows, see sums.h. Residuals are (n_residuals, draws, rows, outputs), roots
    // (n_roots, draws, rows, outputs). The gradients, those of all draws for each residual, and the
    // curvatures, a square for each draw, are added to what is there.
    void (*newton_sums)(const Networks&, const Rows&, const double* residuals,
                        std::size_t n_residuals, const double* roots, std::size_t n_roots,
                        double* gradient, double* curvature);
    // Quantile of equal mixtures of one kind of distribution about each centre, (columns).
    // `reach` is the quantile of that distribution.
    void (*location_quantile)(Location, const double* centres, Spread inverse_scale,
                              std::size_t draws, std::size_t columns, double level, double reach,
                              double* out);
    // Quantiles (levels, columns) of equal mixtures of Poisson counts, or of negative binomial
    // ones if there is a dispersion; NaN where counts are too large to go through. Levels rise.
    void (*count_quantiles)(const double* rates, const Spread* dispersion, std::size_t draws,
                            std::size_t columns, const double* levels, std::size_t n_levels,
                            double* out);
    void (*exponentials)(const double* from, std::size_t n, double* out);
};

namespace baseline {
extern const Kernels kernels;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define ISLAB_HAS_X86_VARIANTS
namespace avx2 {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}
#endif

// Memory for a block of rows, at the start of a cache line.
class Scratch {
   public:
    explicit Scratch(std::size_t size) : memory(size + 8) {}
    double* data() {
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        return memory.data() + (64 - address % 64) % 64 / sizeof(double);
    }

   private:
    std::vector<double> memory;
};

}  // namespace islab::networks
