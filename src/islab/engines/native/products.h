// The two matrix products of a step, for matrices (units, data rows) contiguous along the rows.
//
//     multiply    out (m, rows) += A (m, k) B (k, rows)
//     correlate   out (m, k)     = A (m, rows) B (k, rows)'
//
// A tile of `out` stays in registers while the sum runs. Matrices of everyday networks fit in the
// cache, where this beats BLAS, which first copies its operands; larger ones go to BLAS.

#pragma once

#include "lanes.h"

namespace {

using islab::Gemm;

// Products with more multiplications than this are BLAS's.
constexpr double largest_product = 4e6;

template <class T>
struct Matrix {
    T* at;
    Index stride;
    T* row(Index number) const { return at + number * stride; }
};

// -- multiply ---------------------------------------------------------------------------------

// A as it is used: element (i, p) is at[i * row + p * column], so a transpose costs nothing.
template <class T>
struct Factor {
    const T* at;
    Index row, column;
};

template <int M, int N, class T>
inline void multiply_tile(Index k, Factor<T> a, Matrix<const T> b, Matrix<T> out) {
    Lanes<T> sum[M][N];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) sum[i][j] = load(out.row(i) + j * width<T>);
    for (Index p = 0; p < k; ++p) {
        Lanes<T> vector[N];
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) vector[j] = load(b.row(p) + j * width<T>);
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) {
            const T factor = a.at[i * a.row + p * a.column];
#pragma GCC unroll 8
            for (int j = 0; j < N; ++j) sum[i][j] += factor * vector[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) store(out.row(i) + j * width<T>, sum[i][j]);
}

// N vectors of data rows, all m rows of A.
template <int N, class T>
inline void multiply_panel(Index m, Index k, Factor<T> a, Matrix<const T> b, Matrix<T> out) {
    for (; m >= 6; m -= 6) {
        multiply_tile<6, N>(k, a, b, out);
        a.at += 6 * a.row;
        out.at += 6 * out.stride;
    }
    switch (m) {
        case 5: return multiply_tile<5, N>(k, a, b, out);
        case 4: return multiply_tile<4, N>(k, a, b, out);
        case 3: return multiply_tile<3, N>(k, a, b, out);
        case 2: return multiply_tile<2, N>(k, a, b, out);
        case 1: return multiply_tile<1, N>(k, a, b, out);
    }
}

template <class T>
void multiply(Gemm<T> gemm, Index m, Index rows, Index k, Factor<T> a, Matrix<const T> b,
              Matrix<T> out) {
    if (m == 0 || k == 0) return;
    if (double(m) * double(rows) * double(k) > largest_product) {
        // Row-major out = A B is column-major out' = B' A'.
        const bool transposed = a.column != 1;
        char none = 'N', second = transposed ? 'T' : 'N';
        int im = int(m), in = int(rows), ik = int(k);
        int lda = int(transposed ? a.column : a.row), ldb = int(b.stride), ldo = int(out.stride);
        T one = 1;
        gemm(&none, &second, &in, &im, &ik, &one, const_cast<T*>(b.at), &ldb,
             const_cast<T*>(a.at), &lda, &one, out.at, &ldo);
        return;
    }
    Index row = 0;
    for (; row + 2 * width<T> <= rows; row += 2 * width<T>)
        multiply_panel<2, T>(m, k, a, {b.at + row, b.stride}, {out.at + row, out.stride});
    if (row < rows)
        multiply_panel<1, T>(m, k, a, {b.at + row, b.stride}, {out.at + row, out.stride});
}

// -- correlate --------------------------------------------------------------------------------

template <int M, int N, class T>
inline void correlate_tile(Index rows, Matrix<const T> a, Matrix<const T> b, Matrix<T> out) {
    Lanes<T> sum[M][N];
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) sum[i][j] = Lanes<T>{};
    for (Index row = 0; row < rows; row += width<T>) {
        Lanes<T> vector[N];
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) vector[j] = load(b.row(j) + row);
#pragma GCC unroll 8
        for (int i = 0; i < M; ++i) {
            const Lanes<T> factor = load(a.row(i) + row);
#pragma GCC unroll 8
            for (int j = 0; j < N; ++j) sum[i][j] += factor * vector[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) out.row(i)[j] = total<T>(sum[i][j]);
}

// M rows of A, all k rows of B.
template <int M, class T>
inline void correlate_panel(Index k, Index rows, Matrix<const T> a, Matrix<const T> b,
                            Matrix<T> out) {
    for (; k >= 3; k -= 3) {
        correlate_tile<M, 3>(rows, a, b, out);
        b.at += 3 * b.stride;
        out.at += 3;
    }
    if (k == 2) correlate_tile<M, 2>(rows, a, b, out);
    if (k == 1) correlate_tile<M, 1>(rows, a, b, out);
}

template <class T>
void correlate(Gemm<T> gemm, Index m, Index k, Index rows, Matrix<const T> a, Matrix<const T> b,
               T* to) {
    if (m == 0 || k == 0) return;
    Matrix<T> out{to, k};
    if (double(m) * double(rows) * double(k) > largest_product) {
        char transpose = 'T', none = 'N';
        int im = int(m), ik = int(k), in = int(rows);
        int lda = int(a.stride), ldb = int(b.stride);
        T one = 1, zero = 0;
        gemm(&transpose, &none, &ik, &im, &in, &one, const_cast<T*>(b.at), &ldb,
             const_cast<T*>(a.at), &lda, &zero, out.at, &ik);
        return;
    }
    for (; m >= 4; m -= 4) {
        correlate_panel<4>(k, rows, a, b, out);
        a.at += 4 * a.stride;
        out.at += 4 * k;
    }
    switch (m) {
        case 3: return correlate_panel<3>(k, rows, a, b, out);
        case 2: return correlate_panel<2>(k, rows, a, b, out);
        case 1: return correlate_panel<1>(k, rows, a, b, out);
    }
}

}  // namespace
