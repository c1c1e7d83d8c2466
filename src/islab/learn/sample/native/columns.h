// The output's regression with hidden units as columns that come, change and go.

#pragma once

#include "sweep.h"

namespace islab::sample {

class ColumnRegression : public OutputRegression {
   public:
    using OutputRegression::OutputRegression;

   protected:
    static constexpr std::size_t spares = 4;  // columns kept for units that are yet to come

    // What the regression would be with another column, and without one of its own.
    struct Trial {
        double gain;          // of log evidence by the column
        Vector coefficients;  // of all columns of the regression
        double coefficient;   // of the new column
    };

    // What a change of a unit replaces.
    struct Kept {
        std::vector<Edge> in;
        double bias;
        Column z, value;
        Tally tally;
    };

    Kept keep(const State& s, int u) const {
        return {s.in[u], s.bias[u], s.z[u], s.value[u], tally};
    }

    void put_back(State& s, int u, Kept& kept) {
        s.in[u] = std::move(kept.in);
        s.bias[u] = kept.bias;
        s.z[u] = std::move(kept.z);
        s.value[u] = std::move(kept.value);
        tally = std::move(kept.tally);
    }

    void activate(State& s, int u) const {
        const std::size_t n = model.problem.n;
        auto z = std::make_shared<Vector>(n), value = std::make_shared<Vector>(n);
        model.receive(s, u, z->data());
        model.shape.activate(z->data(), value->data(), n);
        s.z[u] = std::move(z);
        s.value[u] = std::move(value);
    }

    int unit_of(std::size_t j) const { return sources[j] - model.shape.covariates; }

    // Columns of units that reach this output and no other.
    std::vector<std::size_t> movable() const {
        std::vector<std::size_t> found;
        for (std::size_t j = 1; j < size; ++j)
            if (fixed_in[j] && sources[j] >= model.shape.covariates) found.push_back(j);
        return found;
    }

    // `without` is a column of the regression, or 0 for none.
    Trial try_column(const State& s, const double* column, double own_precision,
                     std::size_t without) {
        const std::size_t n = model.problem.n;
        Vector weights(n), with(size, 0.0), solved(size, 0.0);
        multiply(weights.data(), row_precision.data(), column, 1 / s2, n);
        pointers.assign({column, target.data()});
        for (std::size_t k = 0; k < size; ++k)
            if (in[k]) pointers.push_back(column_of(s, k));
        Vector products(pointers.size());
        const double* own_weights = weights.data();
        cross_products(products.data(), &own_weights, 1, pointers.data(), pointers.size(), n);
        double pivot = products[0] + own_precision, right = products[1];
        for (std::size_t k = 0, at = 2; k < size; ++k)
            if (in[k]) with[k] = products[at++];
        for (std::size_t k = 0; k < size; ++k) {
            if (!in[k]) continue;
            solved[k] = -dot(&at(k, 0), with.data(), size);
            pivot -= with[k] * solved[k];
            right -= with[k] * at(k, size);
        }
        Trial trial;
        trial.coefficients.assign(size, 0.0);
        for (std::size_t k = 0; k < size; ++k)
            if (in[k]) trial.coefficients[k] = at(k, size);
        if (without) {
            const double own = at(without, without), shared = solved[without];
            pivot -= shared * shared / own;
            right -= shared * at(without, size) / own;
            leave_out(trial.coefficients, without);
            for (std::size_t k = 0; k < size; ++k)
                if (in[k]) solved[k] -= at(k, without) / own * shared;
            solved[without] = 0;
        }
        trial.gain = pivot > 0 ? gain(pivot, right, own_precision) : -INFINITY;
        trial.coefficient = right / pivot;
        for (std::size_t k = 0; k < size; ++k)
            if (in[k]) trial.coefficients[k] -= solved[k] * trial.coefficient;
        return trial;
    }

    void leave_out(Vector& coefficients, std::size_t j) {
        const double share = at(j, size) / at(j, j);
        for (std::size_t k = 0; k < size; ++k)
            if (in[k] && k != j) coefficients[k] -= at(k, j) * share;
        coefficients[j] = 0;
    }

    // Derivatives of the log likelihood by the predictor at these coefficients.
    Vector residual(const State& s, const Vector& coefficients, std::size_t extra_column,
                    double extra) const {
        const std::size_t n = model.problem.n;
        Vector found(target.begin(), target.begin() + n), factors;
        std::vector<const double*> columns;
        auto take = [&](double coefficient, std::size_t k) {
            if (coefficient == 0) return;
            factors.push_back(-coefficient);
            columns.push_back(column_of(s, k));
        };
        for (std::size_t k = 0; k < size; ++k) take(coefficients[k], k);
        take(extra, extra_column);
        add_columns(found.data(), factors.data(), columns.data(), columns.size(), n);
        multiply(found.data(), found.data(), row_precision.data(), 1 / s2, n);
        return found;
    }

    // A column that is out of the regression is another one now; it comes in.
    void enter(const State& s, std::size_t j) {
        const std::size_t n = model.problem.n, d = size + 1;
        const double* column = column_of(s, j);
        Vector weights(n);
        multiply(weights.data(), row_precision.data(), column, 1.0, n);
        pointers.clear();
        for (std::size_t i = 0; i <= size; ++i)
            pointers.push_back(i == size         ? target.data()
                               : sources[i] < -1 ? ones.data()
                                                 : column_of(s, i));
        Vector products(size + 1);
        const double* own_weights = weights.data();
        cross_products(products.data(), &own_weights, 1, pointers.data(), size + 1, n);
        for (std::size_t i = 0; i <= size; ++i)
            cross[i * d + j] = cross[j * d + i] = i < size && sources[i] < -1 ? 0.0 : products[i];
        Vector swept_column(d);
        for (std::size_t i = 0; i <= size; ++i)
            swept_column[i] = i < size && in[i] ? 0.0 : cross[i * d + j] / s2;
        for (std::size_t k = 0; k < size; ++k)
            if (in[k]) add_scaled(swept_column.data(), -cross[k * d + j] / s2, &at(k, 0), d);
        // Row j of the matrix is that of the column which left.
        swept_column[j] = cross[j * d + j] / s2 + precision[j];
        for (std::size_t k = 0; k < size; ++k)
            if (in[k]) swept_column[j] -= swept_column[k] * cross[k * d + j] / s2;
        for (std::size_t i = 0; i <= size; ++i) at(i, j) = at(j, i) = swept_column[i];
        sweep(j, false);
        in[j] = 1;
    }

    void replace(const State& s, std::size_t j) {
        sweep(j, true);
        in[j] = 0;
        enter(s, j);
        if (sweeps > 100) build();
    }

    std::size_t spare_column() {
        for (std::size_t j = 1; j < size; ++j)
            if (sources[j] < -1) return j;
        const std::size_t wider = size + spares, d = size + 1, e = wider + 1;
        for (Vector* matrix : {&cross, &swept}) {
            Vector grown(e * e, 0.0);
            for (std::size_t i = 0; i <= size; ++i)
                for (std::size_t j = 0; j <= size; ++j)
                    grown[(i < size ? i : wider) * e + (j < size ? j : wider)] =
                        (*matrix)[i * d + j];
            *matrix = std::move(grown);
        }
        const std::size_t first = size;
        size = wider;
        sources.resize(size, -2);
        in.resize(size, 0);
        fixed_in.resize(size, 0);
        mixing.resize(size, 1.0);
        precision.resize(size, 1.0);
        return first;
    }

    // A unit dies: its column becomes a spare one.
    void retire(State& s, int u, std::size_t j) {
        s.alive[u] = 0;
        sources[j] = -2;
        in[j] = fixed_in[j] = 0;
        precision[j] = mixing[j] = 1;
        const std::size_t d = size + 1;
        for (std::size_t i = 0; i < d; ++i)
            at(i, j) = at(j, i) = cross[i * d + j] = cross[j * d + i] = 0;
        at(j, j) = 1;
    }
};

}  // namespace islab::sample
