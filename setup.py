"""Builds the compiled modules; everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension, build_ext
from setuptools import setup

LEARN = Path("src/islab/learn")

# No -march=native: the modules choose their instructions at run time.
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


def extension(name: str, folder: Path) -> Pybind11Extension:
    """The module made of all C++ files of a folder."""
    return Pybind11Extension(
        name,
        sources=sorted(str(path) for path in folder.glob("*.cpp")),
        depends=sorted(str(path) for path in folder.glob("*.h")),
        cxx_std=17,
        extra_compile_args=["/O2"] if sys.platform == "win32" else GCC_FLAGS,
        # Without a compiler the package still works, on the torch engine; builds that must not
        # fall back to it in silence set ISLAB_REQUIRE_KERNEL=1.
        optional=os.environ.get("ISLAB_REQUIRE_KERNEL") != "1",
    )


setup(
    ext_modules=[
        extension("islab.learn.engines.native._kernel", LEARN / "engines" / "native"),
        extension("islab.learn.sample.native._chains", LEARN / "sample" / "native"),
    ],
    cmdclass={"build_ext": build_ext},
)
