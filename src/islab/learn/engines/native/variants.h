// The compiled variants of the kernel.

#pragma once

#include "kernel.h"

// Other processors have the baseline only, which is NEON on arm64. Clang defines __GNUC__, too.
#if defined(__x86_64__) && defined(__GNUC__)
#define ISLAB_HAS_X86_VARIANTS
#endif

namespace islab {

namespace baseline {
extern const Kernel<float> single_precision;
extern const Kernel<double> double_precision;
}  // namespace baseline

#ifdef ISLAB_HAS_X86_VARIANTS
namespace avx2 {
extern const Kernel<float> single_precision;
extern const Kernel<double> double_precision;
}  // namespace avx2
namespace avx512 {
extern const Kernel<float> single_precision;
extern const Kernel<double> double_precision;
}  // namespace avx512
#endif

}  // namespace islab
