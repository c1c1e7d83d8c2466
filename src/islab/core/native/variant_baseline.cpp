// The functions for any processor: vectors of 16 bytes are SSE2 on x86-64 and NEON on arm64.

#define VECTOR_BYTES 16

#include "evaluation.h"
#include "mixtures.h"
#include "sums.h"

namespace islab::networks::baseline {
const Kernels kernels{AllActivations::families,
                      std::size(AllActivations::families),
                      predictor,
                      slopes,
                      contributions,
                      newton_sums,
                      location_quantile,
                      count_quantiles,
                      exponentials};
}  // namespace islab::networks::baseline
