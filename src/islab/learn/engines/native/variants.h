// The compiled variants of the kernel.

#pragma once

#include "kernel.h"

// Other compilers and processors have the baseline only.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ISLAB_HAS_AVX2
#endif

namespace islab {

namespace baseline {
extern const Kernel<float> single_precision;
extern const Kernel<double> double_precision;
}  // namespace baseline

#ifdef ISLAB_HAS_AVX2
namespace avx2 {
extern const Kernel<float> single_precision;
extern const Kernel<double> double_precision;
}  // namespace avx2
#endif

}  // namespace islab
