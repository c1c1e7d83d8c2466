"""Builds the native engine; everything else about the package is in pyproject.toml."""

import sys
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension, build_ext
from setuptools import setup

NATIVE = Path("src/islab/learn/engines/native")

# No -march=native: steps_avx2.cpp chooses its instructions itself and module.cpp at run time.
# No -ffast-math: a non-finite loss must be seen.
GCC_FLAGS = [
    "-O3",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-Wall",
    "-Wextra",
]

kernel = Pybind11Extension(
    "islab.learn.engines.native._kernel",
    sources=sorted(str(path) for path in NATIVE.glob("*.cpp")),
    depends=sorted(str(path) for path in NATIVE.glob("*.h")),
    cxx_std=17,
    extra_compile_args=["/O2"] if sys.platform == "win32" else GCC_FLAGS,
    # Without a compiler the package still works, on the torch engine.
    optional=True,
)

setup(ext_modules=[kernel], cmdclass={"build_ext": build_ext})
