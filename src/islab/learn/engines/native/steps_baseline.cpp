// The kernel for any processor: vectors of 16 bytes are SSE2 on x86-64 and NEON on arm64.

#define VECTOR_BYTES 16

#include "steps.h"
#include "variants.h"

namespace islab::baseline {
const Kernel<float> single_precision = kernel_of_this_file<float>();
const Kernel<double> double_precision = kernel_of_this_file<double>();
}  // namespace islab::baseline
