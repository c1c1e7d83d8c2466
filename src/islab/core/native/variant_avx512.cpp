// The functions for x86-64 processors with AVX-512.

#include "networks.h"

#ifdef ISLAB_HAS_X86_VARIANTS

// The library's own inline functions stay with the instructions of any processor.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,fma"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512vl,fma")
#endif
#define VECTOR_BYTES 64

#include "evaluation.h"
#include "mixtures.h"
#include "sums.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

namespace islab::networks::avx512 {
const Kernels kernels{AllActivations::families,
                      std::size(AllActivations::families),
                      predictor,
                      slopes,
                      contributions,
                      newton_sums,
                      location_quantile,
                      count_quantiles,
                      exponentials};
}  // namespace islab::networks::avx512

#endif
