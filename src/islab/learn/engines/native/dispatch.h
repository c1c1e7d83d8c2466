// Which variant of the kernel this processor runs, and the BLAS for large products.

#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "checks.h"
#include "variants.h"

namespace islab {

// The fastest first.
inline std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
#ifdef ISLAB_HAS_X86_VARIANTS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"))
            names.emplace_back("avx512");
        names.emplace_back("avx2");
    }
#endif
    names.emplace_back("baseline");
    return names;
}

template <class T>
const Kernel<T>& one_of(const Kernel<float>& single, const Kernel<double>& twice) {
    if constexpr (std::is_same_v<T, float>)
        return single;
    else
        return twice;
}

template <class T>
const Kernel<T>& kernel_for(const std::string& instructions) {
    std::map<std::string, const Kernel<T>*> kernels;
    for (const std::string& name : instruction_sets()) {
        kernels[name] = &one_of<T>(baseline::single_precision, baseline::double_precision);
#ifdef ISLAB_HAS_X86_VARIANTS
        if (name == "avx2")
            kernels[name] = &one_of<T>(avx2::single_precision, avx2::double_precision);
        if (name == "avx512")
            kernels[name] = &one_of<T>(avx512::single_precision, avx512::double_precision);
#endif
    }
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
