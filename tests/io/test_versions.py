"""Files of earlier versions are read, and predict what they predicted."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import islab

OLD = Path(__file__).parent / "files" / "v0.1"
EXPECTED = json.loads((OLD / "expected.json").read_text())
ROWS = json.loads((OLD / "rows.json").read_text())


@pytest.fixture(scope="module")
def rows():
    return pd.DataFrame(ROWS["data"], columns=ROWS["columns"])


def predictions(model, rows):
    table = rows[list(model.feature_names_in_)]
    return model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)


def test_there_is_a_prediction_for_every_old_file():
    tables = {path.stem for path in OLD.glob("*.islab")} - {"images", "images-sparse"}
    assert tables <= set(EXPECTED)


@pytest.mark.parametrize("name", [name for name in EXPECTED if not name.startswith("images")])
def test_a_file_of_version_0_1_predicts_as_it_did(name, rows):
    found = predictions(islab.load(OLD / f"{name}.islab"), rows)
    np.testing.assert_allclose(found, EXPECTED[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", sorted(path.stem for path in OLD.glob("*.islab")))
def test_an_old_file_that_is_saved_again_says_the_same(name, tmp_path):
    model = islab.load(OLD / f"{name}.islab")
    model.save(tmp_path / "again.islab", sparse=model.posterior_ is None)
    again = islab.load(tmp_path / "again.islab")
    assert again.summary().to_dict() == model.summary().to_dict()


@pytest.mark.parametrize("name", ["regressor", "BayesianLinearRegressor", "images-sparse"])
def test_independent_weights_of_an_old_file_have_their_present_name(name):
    assert islab.load(OLD / f"{name}.islab").posterior == "independent"
