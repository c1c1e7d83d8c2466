"""Summaries: effects that people can check, and what rows and targets add."""

import json
from html import unescape

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, load
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


def test_without_rows_it_tells_of_the_training_rows(model, data):
    X, y = data
    summary, whole = model.summary(), model.summary(X, y)
    explained = 1 - ((y - model.predict(X)) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    told = summary.facts["R\N{SUPERSCRIPT TWO}"]
    assert told.endswith("of the training rows")
    assert float(told.split()[0]) == pytest.approx(explained, abs=0.002)
    shares, expected = (each.to_frame().set_index("term")["share"] for each in (summary, whole))
    np.testing.assert_allclose(shares, expected[shares.index], atol=0.02)


def test_a_loaded_model_tells_of_its_training_rows(model, tmp_path):
    model.save(tmp_path / "m.islab")
    loaded = load(tmp_path / "m.islab")
    assert loaded.training_fit_ == model.training_fit_
    assert str(loaded.summary()) == str(model.summary())


def test_a_file_without_the_training_rows_is_summarised_without(model, tmp_path):
    model.save(tmp_path / "m.islab", sparse=True)
    summary = load(tmp_path / "m.islab").summary()
    assert "R\N{SUPERSCRIPT TWO}" not in summary.facts
    assert "share" not in summary.to_frame()


def test_a_classifier_tells_base_rates_of_its_training_rows(data, tmp_path):
    X, y = data
    labels = np.where(y > 0, "high", "low")
    model = ISLaBClassifier(posterior="independent", max_epochs=60, random_state=0).fit(X, labels)
    model.save(tmp_path / "m.islab")
    facts = load(tmp_path / "m.islab").summary().facts
    assert f"high {np.mean(labels == 'high'):.1%}" in facts["base rate"]
    assert facts["deviance explained"].endswith("of the training rows")


def test_dates_are_told_by_year_month_and_weekday():
    rng = np.random.default_rng(0)
    when = pd.Series(pd.date_range("2019-01-01", periods=1200))
    X = pd.DataFrame({"when": when, "noise": rng.normal(size=1200)})
    y = 3 * np.cos(2 * np.pi * when.dt.day_of_year / 365.25) + 2.0 * (when - when[0]).dt.days / 365
    y = y + 4.0 * (when.dt.day_of_week == 6) + 0.5 * rng.normal(size=1200)
    model = ISLaBRegressor(random_state=0, n_draws=100, n_restarts=1).fit(X, y)
    frame = model.summary(X).to_frame().set_index("term")
    assert frame.loc["when (per year)", "effect"] == pytest.approx(2.0, abs=0.2)
    month = next(term for term in frame.index if term.startswith("when: month"))
    assert frame.loc[month, "effect"] == pytest.approx(6.0, abs=0.8)
    weekday = next(term for term in frame.index if term.startswith("when: weekday: Sunday vs"))
    assert frame.loc[weekday, "effect"] == pytest.approx(4.0, abs=0.4)
    effect = model.explain_global(X).effect("when").to_frame()
    assert effect["value"].iloc[0] == "2019-01-01"


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


def test_a_linear_result_prints_as_a_regression():
    """Coefficients, their standard deviations and the intercept of least squares."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(5, 2, 400), "b": rng.normal(size=400)})
    X["kind"] = rng.choice(["u", "v"], 400, p=[0.7, 0.3])
    y = 3 + 2 * X["a"] - X["b"] + 4 * (X["kind"] == "v") + 0.5 * rng.normal(size=400)
    model = ISLaBRegressor(random_state=0, n_draws=300, n_restarts=1).fit(X, y)
    summary = model.summary()
    assert summary.linear
    assert summary.facts["reads as"] == "a linear regression"
    design = np.column_stack([np.ones(400), X["a"], X["b"], X["kind"] == "v"])
    exact, *_ = np.linalg.lstsq(design, y, rcond=None)
    spread = np.sqrt(0.25 * np.diag(np.linalg.inv(design.T @ design)))
    assert float(summary.facts["intercept"].split()[0]) == pytest.approx(exact[0], abs=0.1)
    frame = summary.to_frame().set_index("term").loc[["a", "b", "kind: v vs u"]]
    np.testing.assert_allclose(frame["effect"], exact[1:], atol=0.05)
    np.testing.assert_allclose(frame["effect_sd"], spread[1:], rtol=0.3)
    head = next(line for line in str(summary).splitlines() if line.startswith("  variable"))
    assert head.split()[:4] == ["variable", "coefficient", "sd", "interval"]


def test_a_bent_result_has_effects_and_no_intercept(data):
    X, _ = data
    y = 4 * np.abs(X["a"]) + np.random.default_rng(0).normal(size=len(X))
    summary = ISLaBRegressor(random_state=0, n_draws=100, n_restarts=1).fit(X, y).summary()
    assert not summary.linear
    assert "intercept" not in summary.facts
    assert "coefficient" not in str(summary)


def test_a_variable_of_many_levels_does_not_hide_the_others():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.normal(size=900), "place": rng.choice(list("abcdefghijklmnop"), 900)}
    )
    level = X["place"].map(dict(zip("abcdefghijklmnop", np.linspace(-4, 4, 16), strict=True)))
    y = level + X["a"] + 0.2 * rng.normal(size=900)
    summary = ISLaBRegressor(random_state=0, n_draws=100, n_restarts=1).fit(X, y).summary(X, y)
    lines = str(summary).splitlines()
    assert sum(line.startswith("  place: ") for line in lines) == 5
    left = len(summary.to_frame()) - 5 - 1
    assert f"    ... {left} smaller" in [line.rstrip() for line in lines]
    assert any(line.startswith("  a ") for line in lines)
    shares = [line.split()[-1] for line in lines if line.startswith(("  place: ", "  a "))]
    assert sum("%" in share for share in shares) == 2


def test_notes_tell_over_what_effects_are(model, data):
    assert "of the typical row" in str(model.summary())
    assert "averaged over rows" in str(model.summary(data[0]))


def test_the_row_that_effects_start_from_is_told(data):
    X, _ = data
    y = 4 * np.abs(X["a"]) + np.random.default_rng(0).normal(size=len(X))
    model = ISLaBRegressor(random_state=0, n_draws=100, n_restarts=1).fit(X, y)
    first = model.summary().facts["typical row"].split(", ")[0]
    assert first.split()[0] == "a"
    assert float(first.split()[1]) == pytest.approx(X["a"].median(), abs=0.01)
    assert "typical row" not in model.summary(X).facts
    assert "averaged over them" in str(model.summary())
    assert "averaged over them" not in str(model.summary(X))


def test_each_class_has_an_intercept():
    """Differences of intercepts and slopes give the log odds between two classes at 0."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.normal(size=600)})
    scores = np.column_stack([np.zeros(600), 1 + 2 * X["a"], -1 - 2 * X["a"]])
    scores += rng.gumbel(size=scores.shape)
    y = np.array(["p", "q", "r"])[scores.argmax(axis=1)]
    model = ISLaBClassifier(hidden_layer_sizes=(), random_state=0, n_draws=200).fit(X, y)
    facts = model.summary().facts
    found = [float(facts[f"intercept, {name}"].split()[0]) for name in "pqr"]
    assert sum(found) == pytest.approx(0, abs=0.01)
    assert found[1] - found[0] == pytest.approx(1, abs=0.4)
    assert found[2] - found[0] == pytest.approx(-1, abs=0.4)


def test_notebooks_show_what_is_printed(model):
    summary = model.summary()
    html = unescape(summary._repr_html_())
    for words in [*summary.facts.values(), *summary.effects["term"], *summary.notes]:
        assert words in html


def test_lines_left_out_are_counted_in_notebooks_too():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 35)), columns=[f"c{k}" for k in range(35)])
    y = X.sum(axis=1) + 0.1 * rng.normal(size=200)
    model = ISLaBRegressor(
        hidden_layer_sizes=(), posterior="independent", random_state=0, n_draws=20
    ).fit(X, y)
    summary = model.summary()
    words = f"... and {len(summary.effects) - 30} more; see to_frame()"
    assert len(summary.effects) > 30
    assert words in str(summary)
    assert words in summary._repr_html_()
