// The kernel for x86-64 processors with AVX-512.

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
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,fma"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512vl,fma")
#endif
#define VECTOR_BYTES 64

#include "steps.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

namespace islab::avx512 {
const Kernel<float> single_precision = kernel_of_this_file<float>();
const Kernel<double> double_precision = kernel_of_this_file<double>();
}  // namespace islab::avx512

#endif
