"""The documentation's pages: searched from the disk, and complete."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from islab import ISLaBClassifier, ISLaBRegressor

ROOT = Path(__file__).parents[1]
PUBLIC = (
    "islab",
    "islab.baselines",
    "islab.evaluate",
    "islab.explain",
    "islab.export",
    "islab.features",
    "islab.images",
    "islab.plots",
    "islab.report",
    "islab.torch",
)

# Types of Python, numpy and pandas, and the base class of the two tables of predictions.
NOT_OURS = {"Any", "DataFrame", "Float", "NDArray", "None", "Predictions", "Self"}

SETTINGS = """\
INHERIT: {root}/mkdocs.yml
docs_dir: docs
site_dir: out
nav: []
hooks: []
plugins: [search, offline]
extra_css: []
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two pages, built with the theme and the search of the documentation."""
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "iframe-worker.js", folder / "docs")
    (folder / "docs" / "index.md").write_text("# Home\n\nNothing.\n")
    (folder / "docs" / "other.md").write_text("# Chains\n\nA rhinoceros.\n")
    (folder / "mkdocs.yml").write_text(SETTINGS.format(root=ROOT))
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", str(folder / "mkdocs.yml")]
    subprocess.run(build, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder / "out"


def test_a_page_is_found_by_its_text_without_a_server(site, chromium):
    page, asked = chromium.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.evaluate("document.querySelector('label[for=__search]').click()")
    page.locator("input[data-md-component=search-query]").focus()
    page.keyboard.type("rhinoceros")
    page.wait_for_selector(".md-search-result__item", state="attached")
    assert "Chains" in page.evaluate("document.querySelector('.md-search-result').innerText")
    assert all(url.startswith("file:") for url in asked)
    page.close()


@pytest.fixture(scope="module")
def named():
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    return set(re.findall(r"^::: (\S+)", text, flags=re.M))


def test_every_public_name_has_a_place_in_the_reference(named):
    last = {name.rpartition(".")[2] for name in named}
    missing = []
    for room in PUBLIC:
        if room not in named:
            names = importlib.import_module(room).__all__
            missing += [f"{room}.{name}" for name in names if name not in {*last, "__version__"}]
    assert not missing


@pytest.mark.parametrize("estimator", [ISLaBClassifier, ISLaBRegressor])
def test_what_methods_of_estimators_return_is_in_the_reference(named, estimator):
    last = {name.rpartition(".")[2] for name in named}
    missing = set()
    for name in dir(estimator):
        returned = getattr(getattr(estimator, name), "__annotations__", {}).get("return", "")
        if not name.startswith("_"):
            missing |= {(name, word) for word in re.findall(r"[A-Z]\w+", returned)}
    assert {(name, word) for name, word in missing if word not in last | NOT_OURS} == set()
