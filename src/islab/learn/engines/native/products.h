// The two matrix products of a step, for matrices (units, data rows) contiguous along the rows.
//
//     multiply    out (m, rows) = start (m,) + A1 (m, k1) B1 (k1, rows) + A2 (m, k2) B2 (k2, rows)
//     correlate   out (m, k)    = A (m, rows) B (k, rows)'
//
// A tile of `out` stays in registers while the sum runs; twelve sums are as many as sixteen
// registers can hold beside the operands, and enough to hide the latency of a multiplication.
// Matrices of everyday networks fit in the cache, where this is as fast as BLAS or faster, for
// nothing is copied; larger products are BLAS's.

#pragma once

#include <utility>

#include "lanes.h"

namespace {

using islab::Gemm;

constexpr double largest_product = 4e6;  // multiplications
constexpr int n_sums = 12;

template <class T>
struct Matrix {
    T* at;
    Index stride;
    T* row(Index number) const { return at + number * stride; }
};

// Calls body with `value`, at most `Largest`, as a compile-time constant.
template <int Largest, class Body>
inline void with_constant(Index value, Body body) {
    if constexpr (Largest == 1) {
        body(std::integral_constant<int, 1>());
    } else {
        if (value == Largest)
            body(std::integral_constant<int, Largest>());
        else
            with_constant<Largest - 1>(value, body);
    }
}

// Calls body(start, height) for tiles of nearly equal heights: a narrow last tile would wait for
// its own sums.
template <int Largest, class Body>
inline void tiles(Index rows, Body body) {
    const Index count = (rows + Largest - 1) / Largest;
    const Index height = rows / count, n_higher = rows % count;
    const Index middle = n_higher * (height + 1);
    const auto equal_tiles = [&](Index begin, Index end, Index each) {
        if (begin < end)
            with_constant<Largest>(each, [&](auto constant) {
                for (Index at = begin; at < end; at += constant.value) body(at, constant);
            });
    };
    equal_tiles(0, middle, height + 1);
    equal_tiles(middle, rows, height);
}

// -- multiply ---------------------------------------------------------------------------------

// One product A B. Element (i, p) of A is at[i * row + p * column]: a transpose costs nothing.
template <class T>
struct Term {
    Index k;
    const T* a;
    Index a_row, a_column;
    Matrix<const T> b;

    Term from(Index unit, Index row) const {
        return {k, a + unit * a_row, a_row, a_column, {b.at + row, b.stride}};
    }
};

template <int M, int N, class T>
inline void add_products(const Term<T>& term, Lanes<T> (&sum)[M][N]) {
    for (Index p = 0; p < term.k; ++p) {
        Lanes<T> vector[N];
#pragma GCC unroll 12
        for (int j = 0; j < N; ++j) vector[j] = load(term.b.row(p) + j * width<T>);
#pragma GCC unroll 12
        for (int i = 0; i < M; ++i) {
            const T factor = term.a[i * term.a_row + p * term.a_column];
#pragma GCC unroll 12
            for (int j = 0; j < N; ++j) sum[i][j] += factor * vector[j];
        }
    }
}

template <int M, int N, class T>
[[gnu::noinline]] void multiply_tile(const T* start, Term<T> first, Term<T> second, Matrix<T> out) {
    Lanes<T> sum[M][N];
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < N; ++j) sum[i][j] = fill<T>(start ? start[i] : T(0));
    add_products<M, N, T>(first, sum);
    add_products<M, N, T>(second, sum);
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < N; ++j) store(out.row(i) + j * width<T>, sum[i][j]);
}

// N vectors of data rows from `row` on, all units.
template <int N, class T>
void multiply_panel(Index m, Index row, const T* start, const Term<T>& first, const Term<T>& second,
                    Matrix<T> out) {
    tiles<n_sums / N>(m, [&](Index unit, auto height) {
        multiply_tile<height.value, N, T>(start ? start + unit : nullptr, first.from(unit, row),
                                          second.from(unit, row),
                                          {out.row(unit) + row, out.stride});
    });
}

template <class T>
void multiply_here(Index m, Index rows, const T* start, const Term<T>& first, const Term<T>& second,
                   Matrix<T> out) {
    const Index widest = m <= 3 ? 4 : 2;
    for (Index row = 0; row < rows;) {
        const Index left = (rows - row) / width<T>;
        const Index vectors = left <= 3 ? left : widest;
        with_constant<4>(vectors, [&](auto n) {
            multiply_panel<n.value, T>(m, row, start, first, second, out);
        });
        row += vectors * width<T>;
    }
}

// Row-major out += A B is column-major out' += B' A'.
template <class T>
void add_by_blas(Gemm<T> gemm, Index m, Index rows, const Term<T>& term, Matrix<T> out) {
    if (term.k == 0) return;
    const bool transposed = term.a_column != 1;
    char none = 'N', second = transposed ? 'T' : 'N';
    int im = int(m), in = int(rows), ik = int(term.k), ldb = int(term.b.stride);
    // With one row of A its stride means nothing, but BLAS insists on at least k.
    int lda = transposed ? int(term.a_column) : int(term.a_row < term.k ? term.k : term.a_row);
    int ldo = int(out.stride);
    T one = 1;
    gemm(&none, &second, &in, &im, &ik, &one, const_cast<T*>(term.b.at), &ldb,
         const_cast<T*>(term.a), &lda, &one, out.at, &ldo);
}

// `start` may be null, which is zero.
template <class T>
void multiply(Gemm<T> gemm, Index m, Index rows, const T* start, const Term<T>& first,
              const Term<T>& second, Matrix<T> out) {
    if (m == 0) return;
    if (double(m) * double(rows) * double(first.k + second.k) <= largest_product)
        return multiply_here(m, rows, start, first, second, out);
    for (Index unit = 0; unit < m; ++unit)
        for (Index row = 0; row < rows; row += width<T>)
            store(out.row(unit) + row, fill<T>(start ? start[unit] : T(0)));
    add_by_blas(gemm, m, rows, first, out);
    add_by_blas(gemm, m, rows, second, out);
}

// -- correlate --------------------------------------------------------------------------------

template <int M, int N, class T>
[[gnu::noinline]] void correlate_tile(Index rows, Matrix<const T> a, Matrix<const T> b,
                                      Matrix<T> out) {
    Lanes<T> sum[M][N];
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < N; ++j) sum[i][j] = Lanes<T>{};
    for (Index row = 0; row < rows; row += width<T>) {
        Lanes<T> vector[N];
#pragma GCC unroll 12
        for (int j = 0; j < N; ++j) vector[j] = load(b.row(j) + row);
#pragma GCC unroll 12
        for (int i = 0; i < M; ++i) {
            const Lanes<T> factor = load(a.row(i) + row);
#pragma GCC unroll 12
            for (int j = 0; j < N; ++j) sum[i][j] += factor * vector[j];
        }
    }
    T totals_of[M * N];
    totals<M * N, T>(sum[0], totals_of);
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < N; ++j) out.row(i)[j] = totals_of[i * N + j];
}

// Tiles of at most M rows of A and N rows of B.
template <int M, int N, class T>
void correlate_here(Index m, Index k, Index rows, Matrix<const T> a, Matrix<const T> b,
                    Matrix<T> out) {
    tiles<M>(m, [&](Index i, auto height) {
        tiles<N>(k, [&](Index j, auto breadth) {
            correlate_tile<height.value, breadth.value, T>(
                rows, {a.row(i), a.stride}, {b.row(j), b.stride}, {out.row(i) + j, out.stride});
        });
    });
}

template <class T>
void correlate_by_blas(Gemm<T> gemm, Index m, Index k, Index rows, Matrix<const T> a,
                       Matrix<const T> b, Matrix<T> out) {
    char transpose = 'T', none = 'N';
    int im = int(m), ik = int(k), in = int(rows);
    int lda = int(a.stride), ldb = int(b.stride), ldo = int(out.stride);
    T one = 1, zero = 0;
    gemm(&transpose, &none, &ik, &im, &in, &one, const_cast<T*>(b.at), &ldb, const_cast<T*>(a.at),
         &lda, &zero, out.at, &ldo);
}

template <class T>
void correlate(Gemm<T> gemm, Index m, Index k, Index rows, Matrix<const T> a, Matrix<const T> b,
               T* to) {
    const Matrix<T> out{to, k};
    if (m == 0 || k == 0) return;
    if (double(m) * double(rows) * double(k) > largest_product)
        correlate_by_blas(gemm, m, k, rows, a, b, out);
    else if (m == 1)
        correlate_here<1, 8, T>(m, k, rows, a, b, out);
    else
        correlate_here<3, 4, T>(m, k, rows, a, b, out);
}

}  // namespace
