"""Summaries: effects that people can check, and what rows and targets add."""

import json

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.diagnostics import diagnose


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)) * [1.0, 10.0, 1.0], columns=["a", "b", "noise"])
    X["kind"] = rng.choice(["x", "y", "z"], 400, p=[0.5, 0.3, 0.2])
    y = 2 * X["a"] - 0.3 * X["b"] + np.where(X["kind"] == "z", 4.0, 0.0)
    return X, (y + rng.normal(size=400)).rename("target")


@pytest.fixture(scope="module")
def model(data):
    return ISLaBRegressor(posterior="sampled", random_state=0, n_draws=200).fit(*data)


def test_effects_cover_the_coefficients_of_a_linear_truth(model):
    frame = model.summary().to_frame().set_index("term")
    for term, truth in {"a": 2.0, "b": -0.3, "kind: z vs x": 4.0, "kind: y vs x": 0.0}.items():
        line = frame.loc[term]
        slack = 0.15 * (line["effect_upper"] - line["effect_lower"])
        assert line["effect_lower"] - slack <= truth <= line["effect_upper"] + slack
        assert line["effect"] == pytest.approx(truth, abs=0.4)


def test_a_linear_result_reads_as_a_regression(model):
    text = str(model.summary())
    assert "reads as" in text
    assert "a linear regression" in text
    assert "P(used)" in text


def test_with_rows_and_targets_it_says_what_is_explained(model, data):
    X, y = data
    summary = model.summary(X, y)
    explained = 1 - ((y - model.predict(X)) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert summary.facts["R\N{SUPERSCRIPT TWO}"].startswith(f"{explained:.3f}")
    share = summary.to_frame().drop_duplicates("variable")["share"]
    assert share.sum() == pytest.approx(1, abs=0.02)
    assert summary.to_frame()["share"].is_monotonic_decreasing


def test_classes_have_odds_ratios_and_base_rates(data):
    X, y = data
    labels = np.where(y > 0, "high", "low")
    model = ISLaBClassifier(posterior="independent", random_state=0, n_draws=100).fit(X, labels)
    summary = model.summary(X, labels)
    assert "odds ratio" in str(summary)
    assert f"high {np.mean(labels == 'high'):.1%}" in summary.facts["base rate"]
    rate = np.mean(labels == "high")
    null = -np.log(np.where(labels == "high", rate, 1 - rate)).mean()
    own = -np.log(model.predict_proba(X)[np.arange(400), (labels == "low").astype(int)]).mean()
    assert summary.facts["deviance explained"].startswith(f"{1 - own / null:.1%}")


def test_chains_and_the_price_of_reading_are_told(model):
    facts = model.summary().facts
    assert facts["chains"] == diagnose(model.posterior_).words
    assert facts["readable network"] == model.posterior_.price.words


def test_json_holds_both_tables(model):
    said = json.loads(json.dumps(model.summary().to_dict()))
    assert {line["variable"] for line in said["effects"]} >= {"a", "b", "kind"}
    assert {line["covariate"] for line in said["covariates"]} >= {"a", "b"}


def test_an_unknown_table_is_named(model):
    with pytest.raises(ValueError, match="table='weights'"):
        model.summary().to_frame("weights")
