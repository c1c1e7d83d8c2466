"""A browser for all tests, and what is left out where optional packages are missing."""

import os
import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

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


QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium():
    """A headless browser, or a skip that says what to install."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="browser tests need playwright: pip install playwright"
    )
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if program is None:
        pytest.skip("browser tests need Chromium: apt-get install chromium")
    flags = [*QUIET, "--no-sandbox"] if os.geteuid() == 0 else list(QUIET)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with playwright.sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=program, args=flags)
            yield browser
            browser.close()
