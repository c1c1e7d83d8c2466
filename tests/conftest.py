"""Without torch, say at the lowest versions, the files of tests that need it are left out."""

from importlib.util import find_spec
from pathlib import Path

OPTIONAL = ("onnx", "onnxruntime", "polars", "pyarrow", "torch")
MISSING = tuple(name for name in OPTIONAL if find_spec(name) is None)


def needs_missing(path: Path) -> bool:
    """Whether a file imports a package that is not installed, at its top."""
    starts = tuple(f"{word} {name}" for name in MISSING for word in ("import", "from"))
    return any(line.startswith(starts) for line in path.read_text().splitlines())


collect_ignore = (
    [str(path) for path in Path(__file__).parent.rglob("test_*.py") if needs_missing(path)]
    if MISSING
    else []
)


def pytest_report_header() -> str | None:
    """What was left out, so that a short run is not taken for a whole one."""
    if not MISSING:
        return None
    return f"not installed: {', '.join(MISSING)}; {len(collect_ignore)} files of tests left out"
