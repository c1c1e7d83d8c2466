"""Columns that a model knows as text are read from files as they are spelled."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBImageClassifier, ISLaBRegressor, load
from islab.cli.predict import text_columns
from islab.tables.columns import ColumnEncoder

from .conftest import run

QUICK = {"max_epochs": 30, "n_restarts": 1, "n_draws": 20, "hidden_layer_sizes": ()}
CODES = ["007", "10", "x1"]


@pytest.fixture(scope="module")
def model():
    table = pd.DataFrame({"code": CODES * 20, "n": np.arange(60.0)})
    classes = np.array(["1", "2", "x"] * 20)
    classes[:6] = "2"
    return ISLaBClassifier(**QUICK, random_state=0).fit(table, classes)


@pytest.fixture(scope="module")
def rows():
    """Rows whose codes and classes could all be numbers."""
    return pd.DataFrame({"code": ["007", "10"], "n": [5.0, 6.0], "class": ["1", "2"]})


@pytest.fixture
def files(model, rows, tmp_path):
    model.save(tmp_path / "m.islab")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "m.islab", tmp_path / "rows.csv"


def test_predictions_know_codes_that_could_be_numbers(model, rows, files, capsys):
    _, out, err = run(capsys, "predict", *files)
    assert err == ""
    written = pd.read_csv(io.StringIO(out)).filter(like="probability")
    np.testing.assert_allclose(written, model.predict_proba(rows[["code", "n"]]), rtol=1e-12)


def test_explanations_know_codes_that_could_be_numbers(files, capsys):
    _, out, err = run(capsys, "explain", *files, "--json")
    assert err == ""
    values = {line["covariate"]: line["value"] for line in json.loads(out)["covariates"]}
    assert values["code=007"] == 1


def test_reports_know_codes_and_classes_that_could_be_numbers(files, tmp_path, capsys):
    arguments = [*files, "--target", "class", "-o", tmp_path / "r.html"]
    code, _, err = run(capsys, "report", *arguments)
    assert code == 0
    assert "warning" not in err


def text_of(**columns):
    """The columns that a model of this table would read as text."""
    table = pd.DataFrame(columns)
    encoder, _ = ColumnEncoder.learn(table, list(columns))
    return text_columns(SimpleNamespace(columns_=encoder))


def test_only_text_is_read_as_text():
    assert text_of(a=[1.0, 2.0, 3.0], b=["u", "v", "u"], c=[True, False, True]) == {"b": ("u", "v")}


def test_codes_that_are_all_numbers_but_not_spelled_so_are_text():
    assert text_of(a=["007", "008", "007"]) == {"a": ("007", "008")}


@pytest.mark.parametrize("values", [[1, 2, 3], [1, 2, None], [0.5, 2.0, 3.0]])
def test_levels_that_are_spelled_as_numbers_are_read_as_numbers(values):
    assert text_of(a=pd.Categorical(values)) == {}


def test_a_model_of_images_is_refused():
    with pytest.raises(ValueError, match="Got a model of type ISLaBImageClassifier, expected one"):
        text_columns(ISLaBImageClassifier())


@pytest.fixture
def severity(tmp_path):
    """Text whose levels read like missing values, some of which are missing."""
    words = np.array(["None", "Mild", "Severe", None] * 30, dtype=object)
    cost = np.select([words == "None", words == "Mild"], [3.0, 2.0], 1.0)
    cost += np.resize([0.0, 0.6, 1.1, 0.3, 0.8], 120)
    table = pd.DataFrame({"severity": words, "n": np.arange(120.0), "cost": cost})
    table.to_csv(tmp_path / "all.csv", index=False)
    return table


def test_words_that_a_model_knows_as_levels_are_not_missing(severity, tmp_path, capsys):
    model = ISLaBRegressor(**{**QUICK, "max_epochs": 200}, random_state=0)
    model.fit(severity[["severity", "n"]], severity["cost"])
    model.save(tmp_path / "m.islab")
    _, out, err = run(capsys, "predict", tmp_path / "m.islab", tmp_path / "all.csv")
    assert err == ""
    written = pd.read_csv(io.StringIO(out))["prediction"]
    np.testing.assert_allclose(written, model.predict(severity[["severity", "n"]]), rtol=1e-9)


@pytest.mark.parametrize(("options", "level"), [([], "(missing)"), (["--text"], "None")])
def test_columns_are_read_as_spelled_on_request(severity, tmp_path, capsys, options, level):
    model = tmp_path / "m.islab"
    arguments = [tmp_path / "all.csv", "--target", "cost", "--task", "regression", "-o", model]
    chosen = [part for flag in options for part in (flag, "severity")]
    quick = ["--set", "max_epochs=5", "--set", "n_restarts=1"]
    assert run(capsys, "fit", *arguments, *chosen, *quick)[0] == 0
    levels = load(model).columns_.variables[0].levels
    assert level in levels
    assert ("None" in levels) == bool(options)


def test_codes_are_categories_on_request(tmp_path, capsys):
    zips = [f"{n:03}" for n in range(15) for _ in range(4)]
    codes = pd.DataFrame({"zip": zips, "y": np.arange(60) % 2})
    codes.to_csv(tmp_path / "zip.csv", index=False)
    arguments = [tmp_path / "zip.csv", "--target", "y", "-o", tmp_path / "m.islab"]
    quick = ["--set", "max_epochs=2", "--set", "n_restarts=1", "--set", "hidden_layer_sizes=()"]
    assert run(capsys, "fit", *arguments, "--text", "zip", *quick)[0] == 0
    assert load(tmp_path / "m.islab").columns_.variables[0].levels[:2] == ("000", "001")
