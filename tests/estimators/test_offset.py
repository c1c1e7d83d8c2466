"""Offsets and exposures: added to the predictor everywhere, with no weight of their own."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import cross_val_score

from islab import ISLaBClassifier, ISLaBRegressor
from islab.baselines import ESTIMATORS
from islab.cli import main
from islab.io.store import load
from islab.plots.style import number

QUICK = {"hidden_layer_sizes": (), "max_epochs": 60, "n_restarts": 1, "random_state": 0}


@pytest.fixture(scope="module")
def claims():
    """Counts over very different times; x1 is correlated with the time alone."""
    rng = np.random.default_rng(3)
    years = np.exp(rng.normal(0, 1.5, 500))
    x = rng.standard_normal((500, 2))
    x[:, 1] = 0.5 * x[:, 1] + np.log(years)
    y = rng.poisson(years * np.exp(-0.5 + 0.6 * x[:, 0]))
    return pd.DataFrame(x, columns=["risk", "other"]).assign(years=years), y


def regressor(**params):
    return ISLaBRegressor(**{"likelihood": "poisson", **QUICK, **params})


@pytest.fixture(scope="module", params=["independent", "sampled"])
def model(request, claims):
    table, y = claims
    return regressor(posterior=request.param).fit(table, y, exposure="years")


def test_rates_are_those_of_a_weighted_poisson_regression_of_rates(model, claims):
    table, y = claims
    x, years = table[["risk", "other"]], table["years"]
    glm = PoissonRegressor(alpha=0, tol=1e-8).fit(x, y / years, sample_weight=years)
    found = model.predict(table, exposure=np.ones(len(table)))
    np.testing.assert_allclose(np.log(found), np.log(glm.predict(x)), atol=0.15)


def test_the_exposure_is_no_covariate(model):
    assert model.feature_names_in_.tolist() == ["risk", "other"]


def test_nothing_else_stands_in_for_the_exposure(model, claims):
    table, y = claims
    rows = table.assign(risk=0.0, years=1.0).iloc[[0, 0]].assign(other=[0.0, 1.0])
    low, high = np.log(model.predict(rows))
    assert abs(high - low) < 0.05
    low, high = np.log(
        regressor().fit(table[["risk", "other"]], y).predict(rows.drop(columns="years"))
    )
    assert high - low > 0.5


def test_expected_counts_are_proportional_to_the_exposure(model, claims):
    table, _ = claims
    once, twice = model.predict(table), model.predict(table.assign(years=2 * table["years"]))
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-10)


def test_an_array_says_the_same_as_a_column(model, claims):
    table, y = claims
    x, years = table[["risk", "other"]], table["years"].to_numpy()
    other = regressor(posterior=model.posterior).fit(x, y, exposure=years)
    np.testing.assert_array_equal(other.predict(x, exposure=years), model.predict(table))
    np.testing.assert_array_equal(other.predict(x, offset=np.log(years)), model.predict(table))


def test_without_an_array_predictions_are_for_exposure_1(claims):
    table, y = claims
    x, years = table[["risk", "other"]].to_numpy(), table["years"].to_numpy()
    model = regressor().fit(x, y, exposure=years)
    np.testing.assert_array_equal(model.predict(x), model.predict(x, exposure=np.ones(len(x))))


def test_intervals_cover(model, claims):
    table, y = claims
    low, high = model.predict_interval(table, 0.9).T
    assert np.mean((low <= y) & (y <= high)) > 0.87
    assert np.mean((low < y) & (y < high)) < 0.95


def test_every_method_that_predicts_heeds_it(model, claims):
    table, y = claims
    found = model.predictions(table)
    np.testing.assert_array_equal(model.residuals(table, y)["predicted"], model.predict(table))
    np.testing.assert_allclose(model.sample_posterior(table).mean(axis=0)[:, 0], found.mean()[:, 0])
    assert model.score(table, y) > 0.8
    with_array = model.predictions(table[["risk", "other"]], exposure=table["years"])
    np.testing.assert_array_equal(with_array.log_score(y), found.log_score(y))


def test_explanations_are_of_the_rate(model, claims):
    table, _ = claims
    local = model.explain_local(table[:5])
    found = model.predictions(table[:5])
    rate = (found.predictor() - found.offset).mean(axis=0)
    np.testing.assert_allclose(local.predictor, rate, atol=1e-12)
    np.testing.assert_allclose(local.intercept + local.contribution.sum(axis=1), rate, atol=1e-9)


def test_it_is_in_the_file(model, claims, tmp_path):
    table, _ = claims
    model.save(tmp_path / "model.islab")
    found = load(tmp_path / "model.islab")
    np.testing.assert_array_equal(found.predict(table), model.predict(table))
    with pytest.raises(ValueError, match="'years', which holds the exposure"):
        found.predict(table[["risk", "other"]])


def test_the_report_is_written_with_it(model, claims, tmp_path):
    table, y = claims
    model.report(tmp_path / "report.html", table, y)
    assert "risk" in (tmp_path / "report.html").read_text()


def test_a_gaussian_offset_is_a_shift_of_the_target():
    rng = np.random.default_rng(0)
    x, shift = rng.standard_normal((200, 1)), 50 * rng.standard_normal(200)
    y = x[:, 0] + 0.1 * rng.standard_normal(200)
    plain = ISLaBRegressor(**QUICK).fit(x, y)
    moved = ISLaBRegressor(**QUICK).fit(x, y + shift, offset=shift)
    np.testing.assert_allclose(moved.predict(x, offset=shift) - shift, plain.predict(x), atol=1e-3)


def test_metadata_routing_brings_it_to_fit_predict_and_score(claims):
    table, y = claims
    x, years = table[["risk", "other"]], table["years"].to_numpy()
    with sklearn.config_context(enable_metadata_routing=True):
        model = regressor().set_fit_request(exposure=True).set_score_request(exposure=True)
        routed = cross_val_score(model, x, y, params={"exposure": years}, cv=2)
    named = cross_val_score(regressor(), table, y, params={"exposure": "years"}, cv=2)
    np.testing.assert_allclose(routed, named)
    assert routed.min() > 0.7


def test_the_command_line_reads_it_from_a_column(claims, tmp_path, monkeypatch):
    table, y = claims
    monkeypatch.chdir(tmp_path)
    table.assign(n=y).to_csv("claims.csv", index=False)
    options = ["--task", "counts", "--exposure", "years", "--set", "hidden_layer_sizes=()"]
    main(
        ["fit", "claims.csv", "--target", "n", *options, "--set", "max_epochs=30", "-o", "m.islab"]
    )
    main(["predict", "m.islab", "claims.csv", "-o", "out.csv"])
    found = pd.read_csv("out.csv")["prediction"]
    np.testing.assert_allclose(found, load("m.islab").predict(table), rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exposure": [0.0] + [1.0] * 9}, r"exposure 0 \(row 0\), expected positive.*drop rows"),
        ({"exposure": [1.0] * 9}, r"exposure of shape \(9,\), expected one number for each of"),
        ({"offset": [np.nan] * 10}, r"nan in offset \(row 0\), expected finite"),
        ({"offset": "time"}, "without column names, expected a data frame"),
    ],
)
def test_impossible_offsets_are_refused(given, message):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        regressor().fit(rng.standard_normal((10, 2)), np.arange(10), **given)


def test_an_exposure_needs_a_log_link(claims):
    table, y = claims
    with pytest.raises(ValueError, match=r"likelihood='gaussian'.*try likelihood='poisson'"):
        ISLaBRegressor().fit(table, y, exposure="years")


def test_methods_that_do_not_heed_offsets_refuse_them(claims):
    table, y = claims
    cls = next(each for each in ESTIMATORS if issubclass(each, sklearn.base.RegressorMixin))
    with pytest.raises(ValueError, match="try ISLaBRegressor"):
        cls().fit(table, y, offset=np.zeros(len(y)))


def test_classifiers_have_none(claims):
    table, _ = claims
    with pytest.raises(TypeError, match="offset"):
        ISLaBClassifier().fit(table, table["risk"] > 0, offset=np.zeros(len(table)))


def test_the_report_says_at_which_exposure_rows_are_predicted_and_observed(model, claims, tmp_path):
    table, y = claims
    model.report(tmp_path / "report.html", table, y, rows=[3])
    page = (tmp_path / "report.html").read_text()
    assert page.count("Predictions here are for exposure 1.") == 2
    assert f"{number(float(y[3]))} at exposure {number(float(table['years'][3]))}" in page
