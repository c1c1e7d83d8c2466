"""Files of earlier versions are read, and predict what they predicted."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import islab

from .make_files import predictions

FILES = Path(__file__).parent / "files"
OLD = FILES / "v0.1"
VERSIONS = sorted(path.name for path in FILES.iterdir())
EXPECTED = {name: json.loads((FILES / name / "expected.json").read_text()) for name in VERSIONS}
TABLES = [(v, name) for v in VERSIONS for name in EXPECTED[v] if not name.startswith("images")]


def rows_of(version):
    rows = json.loads((FILES / version / "rows.json").read_text())
    return pd.DataFrame(rows["data"], columns=rows["columns"])


@pytest.mark.parametrize("version", VERSIONS)
def test_there_is_a_prediction_for_every_old_file(version):
    files = {path.stem for path in (FILES / version).glob("*.islab")}
    assert files - {"images", "images-sparse"} <= set(EXPECTED[version])


@pytest.mark.parametrize(("version", "name"), TABLES)
def test_an_old_file_predicts_as_it_did(version, name):
    found = predictions(islab.load(FILES / version / f"{name}.islab"), rows_of(version))
    np.testing.assert_allclose(found, EXPECTED[version][name], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "path",
    [path for version in VERSIONS for path in sorted((FILES / version).glob("*.islab"))],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_an_old_file_that_is_saved_again_says_the_same(path, tmp_path):
    model = islab.load(path)
    model.save(tmp_path / "again.islab", sparse=model.posterior_ is None)
    again = islab.load(tmp_path / "again.islab")
    assert again.summary().to_dict() == model.summary().to_dict()


@pytest.mark.parametrize("name", ["regressor", "BayesianLinearRegressor", "images-sparse"])
def test_independent_weights_of_an_old_file_have_their_present_name(name):
    assert islab.load(OLD / f"{name}.islab").posterior == "independent"


@pytest.mark.parametrize("name", ["regressor", "classifier", "ordinal", "exposure"])
def test_a_whole_file_of_a_sampled_posterior_holds_its_draws(name):
    model = islab.load(FILES / "v0.2" / f"sampled-{name}.islab")
    frame = model.posterior_.to_frame()
    assert frame.loc["size", "p_used"] > 0.9
    assert model.diagnostics().to_frame("chains")["draws"].min() > 0
