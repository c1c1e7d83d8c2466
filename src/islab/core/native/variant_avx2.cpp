// The functions for x86-64 processors with AVX2 and FMA (since about 2013).

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
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define VECTOR_BYTES 32

#include "evaluation.h"
#include "mixtures.h"
#include "sums.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

namespace islab::networks::avx2 {
const Kernels kernels{AllActivations::families,
                      std::size(AllActivations::families),
                      predictor,
                      slopes,
                      contributions,
                      newton_sums,
                      location_quantile,
                      count_quantiles,
                      exponentials};
}  // namespace islab::networks::avx2

#endif
