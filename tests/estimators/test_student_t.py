"""Student-t noise: outliers do not carry the fit away."""

import warnings

import numpy as np
import pytest

from islab import ISLaBRegressor
from islab.io.store import load

PARAMS = {"hidden_layer_sizes": (), "n_restarts": 1, "max_epochs": 150, "random_state": 0}


def simulate(rng, n):
    x = rng.standard_normal((n, 2))
    return x, 3 + 2 * x[:, 0] + 0.5 * rng.standard_t(4, n)


@pytest.fixture(scope="module", params=["independent", "sampled"])
def model(request):
    params = {"likelihood": "student_t", "posterior": request.param}
    return ISLaBRegressor(**PARAMS, **params).fit(*simulate(np.random.default_rng(0), 600))


def test_slope_and_scale_are_recovered(model):
    low, high = model.predict([[0.0, 0.0], [1.0, 0.0]])
    assert (low, high) == (pytest.approx(3, abs=0.1), pytest.approx(5, abs=0.15))
    assert np.sqrt(model.network_.noise_in_units()[0]) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.98])
def test_intervals_cover(model, level):
    x, y = simulate(np.random.default_rng(1), 1000)
    low, high = model.predict_interval(x, level).T
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(level, abs=0.05)


def test_outliers_pull_less_than_with_normal_noise():
    x, y = simulate(np.random.default_rng(2), 200)
    y[x[:, 0] > 1.5] -= 60  # a few wrong decimals, all on one side
    rows = [[-1.0, 0.0], [1.0, 0.0]]
    student, normal = (
        np.diff(ISLaBRegressor(**PARAMS, likelihood=name).fit(x, y).predict(rows))[0]
        for name in ("student_t", "gaussian")
    )
    assert abs(student - 4) < 0.5 < abs(normal - 4)


def test_outliers_are_said_and_what_to_try():
    rng = np.random.default_rng(4)
    x, y = simulate(rng, 200)
    y[rng.random(200) < 0.03] += 60
    with pytest.warns(UserWarning, match=r"have outliers: .* nats a row .* try .*'student_t'\."):
        ISLaBRegressor(**PARAMS).fit(x, y)


@pytest.mark.parametrize("df", [10, np.inf])
def test_nothing_is_said_of_noise_without_outliers(df):
    rng = np.random.default_rng(3)
    x, _ = simulate(rng, 300)
    noise = rng.standard_normal(300) if np.isinf(df) else rng.standard_t(df, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ISLaBRegressor(**PARAMS).fit(x, 2 * x[:, 0] + noise)


def test_it_is_saved(model, tmp_path):
    model.save(tmp_path / "model.islab")
    rows = np.zeros((2, 2))
    found = load(tmp_path / "model.islab").predict_interval(rows)
    np.testing.assert_array_equal(found, model.predict_interval(rows))
