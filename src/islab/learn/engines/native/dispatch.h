// Which variant of the kernel this processor runs, and the BLAS for large products.

#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "checks.h"
#include "variants.h"

namespace islab {

inline bool has_avx2() {
#ifdef ISLAB_HAS_AVX2
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

inline std::vector<std::string> instruction_sets() {
    return has_avx2() ? std::vector<std::string>{"avx2", "baseline"}
                      : std::vector<std::string>{"baseline"};
}

template <class T>
const Kernel<T>& kernel_for(const std::string& instructions) {
    std::map<std::string, const Kernel<T>*> kernels;
    if constexpr (std::is_same_v<T, float>)
        kernels["baseline"] = &baseline::single_precision;
    else
        kernels["baseline"] = &baseline::double_precision;
#ifdef ISLAB_HAS_AVX2
    if (has_avx2()) {
        if constexpr (std::is_same_v<T, float>)
            kernels["avx2"] = &avx2::single_precision;
        else
            kernels["avx2"] = &avx2::double_precision;
    }
#endif
    return *choose(kernels, "instructions", instructions);
}

// scipy publishes its BLAS as C function pointers.
template <class T>
Gemm<T> scipy_gemm() {
    const char* name = std::is_same_v<T, float> ? "sgemm" : "dgemm";
    const py::object functions =
        py::module_::import("scipy.linalg.cython_blas").attr("__pyx_capi__");
    const py::capsule capsule = functions[name];
    return reinterpret_cast<Gemm<T>>(PyCapsule_GetPointer(capsule.ptr(), capsule.name()));
}

}  // namespace islab
