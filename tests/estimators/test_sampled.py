"""Estimators whose posterior is a set of drawn networks."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, load
from islab.core.sampled import ReadingPrice

QUICK = {"posterior": "sampled", "max_epochs": 60, "n_restarts": 1, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    """Two covariates that matter, one of them bent, a near copy and two that do not."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 4)), columns=["size", "age", "colour", "copy"])
    frame["copy"] = frame["size"] + 0.3 * frame["copy"]
    y = 2 * frame["size"] + 2 * np.maximum(frame["age"], 0) + rng.normal(scale=0.3, size=300)
    return frame, y.to_numpy()


@pytest.fixture(scope="module")
def regressor(table):
    return ISLaBRegressor(**QUICK).fit(*table)


@pytest.fixture(scope="module")
def classifier(table):
    frame, y = table
    return ISLaBClassifier(**QUICK).fit(frame, np.where(y > 1, "yes", "no"))


def test_probabilities_of_use_tell_what_matters(regressor):
    found = regressor.posterior_.to_frame()
    assert (found.loc[["size", "age"], "p_used"] > 0.95).all()
    assert found.loc["colour", "p_used"] < 0.5
    assert found.loc["age", "p_nonlinear"] > 0.95


def test_predictions_are_the_mean_of_the_draws(regressor, table):
    frame = table[0]
    drawn = regressor.posterior_.sample_predictor(frame.to_numpy(), regressor.n_draws)
    np.testing.assert_allclose(regressor.predict(frame), drawn.mean(axis=0)[:, 0], rtol=1e-9)


def test_intervals_hold_about_their_share_of_new_rows(regressor):
    rng = np.random.default_rng(1)
    new = pd.DataFrame(rng.normal(size=(1000, 4)), columns=["size", "age", "colour", "copy"])
    new["copy"] = new["size"] + 0.3 * new["copy"]
    y = 2 * new["size"] + 2 * np.maximum(new["age"], 0) + rng.normal(scale=0.3, size=1000)
    ends = np.asarray(regressor.predict_interval(new, level=0.9))
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    assert 0.86 < inside.mean() < 0.94


@pytest.mark.parametrize("name", ["regressor", "classifier"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_file_gives_the_same_predictions(name, sparse, table, tmp_path, request):
    model = request.getfixturevalue(name)
    model.save(tmp_path / "m.islab", sparse=sparse)
    again = load(tmp_path / "m.islab")
    ask = "predict" if name == "regressor" else "predict_proba"
    options = {"model": "median"} if sparse else {}
    expected = getattr(model, ask)(table[0], **options)
    np.testing.assert_array_equal(getattr(again, ask)(table[0]), expected)


def test_a_file_keeps_probabilities_and_the_price_of_reading(regressor, tmp_path):
    regressor.save(tmp_path / "m.islab")
    again = load(tmp_path / "m.islab").posterior_
    pd.testing.assert_frame_equal(again.to_frame(), regressor.posterior_.to_frame())
    pd.testing.assert_frame_equal(again.pairs(), regressor.posterior_.pairs())
    assert again.price == regressor.posterior_.price


def test_the_number_of_threads_does_not_change_the_model(regressor, table):
    two = ISLaBRegressor(**QUICK, n_jobs=2).fit(*table)
    np.testing.assert_array_equal(two.predict(table[0]), regressor.predict(table[0]))


def test_reading_costs_what_the_price_says(regressor):
    price = regressor.posterior_.price
    assert price.n_rows == 300
    assert price.se >= 0
    assert price.words in str(regressor.summary())


@pytest.mark.parametrize(
    ("difference", "words"),
    [(9.0, "0.030 a row lower"), (-9.0, "0.030 a row higher"), (0.1, "a row within 0.001 of")],
)
def test_the_price_of_reading_is_told_by_row(difference, words):
    assert words in ReadingPrice(difference=difference, se=1.0, n_rows=300).words


def test_chains_that_cannot_serve_are_refused_with_a_remedy():
    wide = np.random.default_rng(0).normal(size=(20, 1500))
    with pytest.raises(ValueError, match=r"too long.*try posterior='auto'"):
        ISLaBRegressor(**QUICK).fit(wide, wide[:, :300])


def test_what_does_not_matter_is_seldom_used_where_the_target_bends():
    """Bends need many weights, and none of them shall come from anywhere."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((300, 8))
    y = 1.5 * np.sin(1.5 * x[:, 0]) + 0.7 * x[:, 1] ** 2 + rng.standard_normal(300)
    model = ISLaBRegressor(random_state=0).fit(x, y)
    used = model.posterior_.to_frame()["p_used"].to_numpy()
    assert (used[:2] > 0.95).all()
    assert used[2:].mean() < 0.25
