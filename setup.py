"""Builds the compiled modules, and the README of the package's page.

Everything else about the package is in pyproject.toml.
"""

import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import setup

CORE, LEARN = Path("src/islab/core"), Path("src/islab/learn")

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


class BuildAtOnce(build_ext):
    """Builds the modules at once, each by as many compilers as there are files and processors.

    ISLAB_BUILD_JOBS=1 builds one file after another.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or int(os.environ.get("ISLAB_BUILD_JOBS", 0)) or True


def absolute_readme(text: str, project: dict[str, Any]) -> str:
    """The README with its links and pictures at the repository's address, under this version's tag.

    Links in the repository are relative, so that every copy of it is whole. A package index shows
    the text alone: there they must lead to the files of the version that is shown.
    """
    repository = project.get("urls", {}).get("Repository")
    if repository is None:
        return text
    files = f"{repository.rstrip('/')}/{{kind}}/v{project['version']}/"
    fenced = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(
        part
        if part.startswith("```")
        else re.sub(
            r"(!?)(\[[^\]]*\]\()(?![a-z]+:|#)",
            lambda m: m[1] + m[2] + files.format(kind="raw" if m[1] else "blob"),
            part,
        )
        for part in fenced
    )


ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

ParallelCompile("ISLAB_BUILD_JOBS").install()
setup(
    long_description=absolute_readme((ROOT / "README.md").read_text(encoding="utf-8"), PROJECT),
    long_description_content_type="text/markdown",
    ext_modules=[
        extension("islab.core.native._networks", CORE / "native"),
        extension("islab.learn.engines.native._kernel", LEARN / "engines" / "native"),
        extension("islab.learn.sample.native._chains", LEARN / "sample" / "native"),
    ],
    cmdclass={"build_ext": BuildAtOnce},
)
