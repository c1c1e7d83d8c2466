"""Overdispersed counts: found, said, and learned with their dispersion."""

import numpy as np
import pytest

from islab import ISLaBRegressor
from islab.io.store import load

DISPERSION = 0.8
PARAMS = {"hidden_layer_sizes": (), "n_restarts": 1, "random_state": 0}


def simulate(rng, n):
    x = rng.standard_normal((n, 3))
    rate = np.exp(1 + 0.8 * x[:, 0])
    return x, rng.poisson(rate * rng.gamma(1 / DISPERSION, DISPERSION, n)).astype(float)


@pytest.fixture(scope="module")
def data():
    return simulate(np.random.default_rng(0), 800)


@pytest.fixture(scope="module", params=["independent", "sampled"])
def model(request, data):
    params = {"likelihood": "negative_binomial", "posterior": request.param, "max_epochs": 150}
    return ISLaBRegressor(**PARAMS, **params).fit(*data)


def test_dispersion_and_slope_are_recovered(model):
    assert model.network_.noise[0] == pytest.approx(DISPERSION, abs=0.15)
    low, high = np.log(model.predict([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    assert high - low == pytest.approx(0.8, abs=0.12)
    assert low == pytest.approx(1.0, abs=0.12)


def test_intervals_of_new_counts_cover(model):
    x, y = simulate(np.random.default_rng(1), 400)
    low, high = model.predict_interval(x, 0.9).T
    # Both ends are counts, the lower one mostly 0: with the true parameters 95.7 % are covered.
    assert 0.92 < np.mean((low <= y) & (y <= high)) < 0.985


def test_chains_draw_the_dispersion(data):
    params = {"likelihood": "negative_binomial", "posterior": "sampled", "max_epochs": 50}
    model = ISLaBRegressor(**PARAMS, **params).fit(*data)
    draws = model.predictions(data[0][:2]).noise("full").ravel()
    assert draws.mean() == pytest.approx(DISPERSION, abs=0.15)
    assert 0.02 < draws.std() < 0.12


def test_it_predicts_overdispersed_counts_better_than_poisson(model, data):
    with pytest.warns(UserWarning, match=r"vary \d\.\d times as much.*'negative_binomial'"):
        poisson = ISLaBRegressor(likelihood="poisson", max_epochs=50, **PARAMS).fit(*data)
    x, y = simulate(np.random.default_rng(2), 1000)
    gain = poisson.predictions(x).log_score(y) - model.predictions(x).log_score(y)
    assert gain.mean() > 0.2


def test_summary_names_the_dispersion(model):
    assert "dispersion" in str(model.summary())
    assert "noise sd" not in str(model.summary())


def test_it_is_saved_and_reported(model, data, tmp_path):
    model.save(tmp_path / "model.islab")
    found = load(tmp_path / "model.islab")
    np.testing.assert_array_equal(
        found.predict_interval(data[0][:50]), model.predict_interval(data[0][:50])
    )
    model.report(tmp_path / "report.html", data[0][:50], data[1][:50])
    assert "negative_binomial" in (tmp_path / "report.html").read_text()


def test_an_exposure_multiplies_the_expected_count(data):
    x, y = data
    model = ISLaBRegressor(likelihood="negative_binomial", max_epochs=50, **PARAMS)
    model.fit(x, y, exposure=np.full(len(y), 10.0))
    np.testing.assert_allclose(
        model.predict(x, exposure=np.full(len(y), 10.0)), 10 * model.predict(x)
    )


def test_numbers_below_zero_are_refused(data):
    with pytest.raises(ValueError, match="likelihood='negative_binomial', expected counts"):
        ISLaBRegressor(likelihood="negative_binomial").fit(data[0], data[1] - 5)
