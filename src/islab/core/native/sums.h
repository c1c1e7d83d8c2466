// Sums over rows of the derivatives of many networks' predictors by their parameters: gradients
// J' r and curvatures J' R R' J, what a Gauss-Newton step needs.
//
// The parameters of a draw are its edges and then the biases of its units, in the order in which
// they stand in Networks. Where a likelihood's curvature in the predictors is a sum of outer
// products of roots, that in the parameters is the same sum of outer products of J' root.

#pragma once

#include <vector>

#include "evaluation.h"

namespace {

constexpr std::size_t blocks_at_once = 32;
constexpr std::size_t tile_rows = 4, tile_columns = lanes >= 8 ? 4 : 2;

inline std::size_t padded(std::size_t n) { return (n + tile_rows - 1) / tile_rows * tile_rows; }

// The lower triangle of columns' inner products, tile after tile, is added to `sums`.
class Products {
   public:
    explicit Products(std::size_t n_columns) : n(padded(n_columns)) {}

    std::size_t size() const {
        std::size_t tiles = 0;
        for (std::size_t i = 0; i < n; i += tile_rows) tiles += (i + tile_rows) / tile_columns;
        return tiles * tile_rows * tile_columns * lanes;
    }

    void add(const double* columns, double* sums) const {
        for (std::size_t i = 0; i < n; i += tile_rows)
            for (std::size_t j = 0; j < i + tile_rows; j += tile_columns) {
                tile(columns + i * block, columns + j * block, sums);
                sums += tile_rows * tile_columns * lanes;
            }
    }

    // Adds what was summed to a symmetric matrix (n_columns, n_columns).
    void write(const double* sums, std::size_t n_columns, double* matrix) const {
        for (std::size_t i = 0; i < n; i += tile_rows)
            for (std::size_t j = 0; j < i + tile_rows; j += tile_columns)
                for (std::size_t a = i; a < i + tile_rows; ++a)
                    for (std::size_t b = j; b < j + tile_columns; ++b, sums += lanes) {
                        if (a >= n_columns || b > a) continue;
                        const double sum = total(load(sums));
                        matrix[a * n_columns + b] += sum;
                        if (a != b) matrix[b * n_columns + a] += sum;
                    }
    }

   private:
    std::size_t n;

    static void tile(const double* left, const double* right, double* sums) {
        Vec held[tile_rows][tile_columns];
        for (std::size_t a = 0; a < tile_rows; ++a)
            for (std::size_t b = 0; b < tile_columns; ++b)
                held[a][b] = load(sums + (a * tile_columns + b) * lanes);
        for (std::size_t r = 0; r < block; r += lanes) {
            Vec others[tile_columns];
            for (std::size_t b = 0; b < tile_columns; ++b) others[b] = load(right + b * block + r);
            for (std::size_t a = 0; a < tile_rows; ++a) {
                const Vec own = load(left + a * block + r);
                for (std::size_t b = 0; b < tile_columns; ++b) held[a][b] += own * others[b];
            }
        }
        for (std::size_t a = 0; a < tile_rows; ++a)
            for (std::size_t b = 0; b < tile_columns; ++b)
                store(sums + (a * tile_columns + b) * lanes, held[a][b]);
    }
};

// Weights on the outputs of each row, one run of `block` numbers for each output; 0 beyond the
// last row. `from` is (rows, outputs).
inline void seed(const double* from, std::size_t outputs, std::size_t count, double* runs) {
    for (std::size_t o = 0; o < outputs; ++o) {
        double* run = runs + o * block;
        for (std::size_t r = 0; r < count; ++r) run[r] = from[r * outputs + o];
        for (std::size_t r = count; r < block; ++r) run[r] = 0;
    }
}

// Derivatives of the weighted outputs by the sum of each unit. Those of the outputs, the weights,
// stand behind those of the hidden units already.
inline void send_back(const Networks& net, std::size_t draw, const double* slopes, double* flows) {
    const std::size_t begin = net.first_unit[draw], n_hidden = net.n_hidden(draw);
    std::fill(flows, flows + n_hidden * block, 0.0);
    for (std::size_t u = net.n_units(draw); u-- > 0;) {
        double* flow = flows + u * block;
        if (u < n_hidden)
            for (std::size_t r = 0; r < block; r += lanes)
                store(flow + r, load(flow + r) * load(slopes + u * block + r));
        for (std::size_t e = net.first_edge[begin + u]; e < net.first_edge[begin + u + 1]; ++e) {
            if (static_cast<std::size_t>(net.source[e]) < net.used.size()) continue;
            double* to = flows + (net.source[e] - net.used.size()) * block;
            const Vec w = fill(net.weight[e]);
            for (std::size_t r = 0; r < block; r += lanes)
                store(to + r, load(to + r) + w * load(flow + r));
        }
    }
}

// Calls use(parameter, value or null, flow): its derivative is flow times value, or flow alone.
template <class Use>
void each_parameter(const Networks& net, std::size_t draw, const double* values,
                    const double* flows, Use use) {
    const std::size_t begin = net.first_unit[draw], n_units = net.n_units(draw);
    const std::size_t first = net.first_edge[begin],
                      n_edges = net.first_edge[begin + n_units] - first;
    for (std::size_t u = 0; u < n_units; ++u) {
        const double* flow = flows + u * block;
        for (std::size_t e = net.first_edge[begin + u]; e < net.first_edge[begin + u + 1]; ++e)
            use(e - first, values + net.source[e] * block, flow);
        use(n_edges + u, nullptr, flow);
    }
}

inline std::size_t n_parameters(const Networks& net, std::size_t draw) {
    const std::size_t begin = net.first_unit[draw], end = net.first_unit[draw + 1];
    return net.first_edge[end] - net.first_edge[begin] + end - begin;
}

template <class Act>
struct NewtonSums {
    static void run(const Networks& net, const Rows* rows, const double* residuals,
                    std::size_t n_residuals, const double* roots, std::size_t n_roots,
                    double* gradient, double* curvature) {
        const std::size_t n_used = net.used.size();
        std::size_t most = 0, total_parameters = 0;
        for (std::size_t d = 0; d < net.draws; ++d) {
            most = std::max(most, n_parameters(net, d));
            total_parameters += n_parameters(net, d);
        }
        Scratch covariates(n_used * block * blocks_at_once);
        Scratch units((n_used + 3 * net.most_units) * block), matrix(padded(most) * block);
        Scratch sums(Products(most).size()), slanted(most * lanes * n_residuals);
        double *values = units.data(), *slopes = values + (n_used + net.most_units) * block;
        double* flows = slopes + net.most_units * block;
        for (std::size_t begin = 0; begin < rows->n; begin += block * blocks_at_once) {
            const std::size_t end = std::min(rows->n, begin + block * blocks_at_once);
            for (std::size_t first = begin; first < end; first += block)
                transpose(net, *rows, first, covariates.data() + (first - begin) * n_used);
            double *own_gradient = gradient, *own_curvature = curvature;
            for (std::size_t d = 0; d < net.draws; ++d) {
                const std::size_t n = n_parameters(net, d);
                const Products products(n);
                std::fill(sums.data(), sums.data() + products.size(), 0.0);
                std::fill(slanted.data(), slanted.data() + n * lanes * n_residuals, 0.0);
                std::fill(matrix.data(), matrix.data() + padded(n) * block, 0.0);
                double* outputs = flows + net.n_hidden(d) * block;
                for (std::size_t first = begin; first < end; first += block) {
                    const std::size_t count = std::min(block, end - first);
                    std::copy_n(covariates.data() + (first - begin) * n_used, n_used * block,
                                values);
                    forward<Act>(net, d, block, values, slopes);
                    for (std::size_t k = 0; k < n_residuals; ++k) {
                        seed(residuals + ((k * net.draws + d) * rows->n + first) * net.outputs,
                             net.outputs, count, outputs);
                        send_back(net, d, slopes, flows);
                        add_gradient(net, d, values, flows, slanted.data() + k * n * lanes);
                    }
                    for (std::size_t k = 0; k < n_roots; ++k) {
                        seed(roots + ((k * net.draws + d) * rows->n + first) * net.outputs,
                             net.outputs, count, outputs);
                        send_back(net, d, slopes, flows);
                        fill_columns(net, d, values, flows, matrix.data());
                        products.add(matrix.data(), sums.data());
                    }
                }
                products.write(sums.data(), n, own_curvature);
                for (std::size_t k = 0; k < n_residuals; ++k)
                    for (std::size_t p = 0; p < n; ++p)
                        own_gradient[k * total_parameters + p] +=
                            total(load(slanted.data() + (k * n + p) * lanes));
                own_gradient += n;
                own_curvature += n * n;
            }
        }
    }

   private:
    static void add_gradient(const Networks& net, std::size_t draw, const double* values,
                             const double* flows, double* sums) {
        each_parameter(net, draw, values, flows,
                       [&](std::size_t p, const double* value, const double* flow) {
                           Vec sum = load(sums + p * lanes);
                           for (std::size_t r = 0; r < block; r += lanes)
                               sum += value ? load(value + r) * load(flow + r) : load(flow + r);
                           store(sums + p * lanes, sum);
                       });
    }

    static void fill_columns(const Networks& net, std::size_t draw, const double* values,
                             const double* flows, double* columns) {
        each_parameter(
            net, draw, values, flows, [&](std::size_t p, const double* value, const double* flow) {
                double* to = columns + p * block;
                for (std::size_t r = 0; r < block; r += lanes)
                    store(to + r, value ? load(value + r) * load(flow + r) : load(flow + r));
            });
    }
};

void newton_sums(const Networks& net, const Rows& rows, const double* residuals,
                 std::size_t n_residuals, const double* roots, std::size_t n_roots,
                 double* gradient, double* curvature) {
    with_activation<NewtonSums>(net.activation, net, &rows, residuals, n_residuals, roots, n_roots,
                                gradient, curvature);
}

}  // namespace
