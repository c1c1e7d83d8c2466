// The kernel for x86-64 processors with AVX2 and FMA (since about 2013).

#include "variants.h"

#ifdef ISLAB_HAS_X86_VARIANTS

// The library's own inline functions stay with the instructions of any processor.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define VECTOR_BYTES 32

#include "steps.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

namespace islab::avx2 {
const Kernel<float> single_precision = kernel_of_this_file<float>();
const Kernel<double> double_precision = kernel_of_this_file<double>();
}  // namespace islab::avx2

#endif
