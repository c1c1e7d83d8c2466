"""Noise whose size depends on covariates: found, predicted and explained."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from islab import ISLaBRegressor
from islab.evaluate import evaluate
from islab.export import to_python
from islab.io.store import load

# Chains are short here.
pytestmark = pytest.mark.filterwarnings("ignore:Got chains that disagree")
PARAMS = {"hidden_layer_sizes": (), "n_restarts": 1, "n_draws": 200, "random_state": 0}
PARAMS |= {"posterior": "independent"}
UNIT = 10.0


def simulate(rng, n, effect=0.8):
    """The mean rises with a, the noise with b."""
    x = rng.standard_normal((n, 3))
    log_sd = np.log(0.3 * UNIT) + effect * x[:, 1]
    y = 100 + UNIT * x[:, 0] + np.exp(log_sd) * rng.standard_normal(n)
    return pd.DataFrame(x, columns=["a", "b", "c"]), y, log_sd


@pytest.fixture(scope="module")
def data():
    return simulate(np.random.default_rng(0), 500)


@pytest.fixture(scope="module", params=["independent", "sampled"])
def model(request, data):
    params = {**PARAMS, "likelihood": "heteroscedastic", "posterior": request.param}
    return ISLaBRegressor(**params).fit(data[0], pd.Series(data[1], name="price"))


def test_mean_and_noise_are_recovered_in_the_units_of_the_data(model):
    mean, log_sd = model.network_.predictor(np.array([[0.0, 0, 0], [1.0, 1, 1]])).T
    assert mean[0] == pytest.approx(100, abs=0.6)
    assert mean[1] - mean[0] == pytest.approx(UNIT, abs=0.6)
    assert log_sd[0] == pytest.approx(np.log(0.3 * UNIT), abs=0.1)
    assert log_sd[1] - log_sd[0] == pytest.approx(0.8, abs=0.12)


def test_each_predictor_has_its_own_covariates(model):
    frame = model.network_.to_frame()
    largest = frame[frame["mean"].abs() > 0.1]
    assert sorted(zip(largest["from"], largest["to"], strict=True)) == [
        ("a", "price"),
        ("b", "log noise SD of price"),
    ]


def test_predictions_are_of_the_target_alone(model, data):
    x, y, log_sd = data
    mean, sd = model.predict(x, return_std=True)
    assert mean.shape == sd.shape == (len(x),)
    assert model.score(x, y) == pytest.approx(r2_score(y, mean))
    np.testing.assert_allclose(np.log(sd), log_sd, atol=0.35)
    assert model.residuals(x, y)["output"].unique().tolist() == ["price"]


def test_intervals_cover_where_noise_is_small_and_where_it_is_large(model):
    x, y, log_sd = simulate(np.random.default_rng(1), 2000)
    low, high = model.predict_interval(x, 0.9).T
    inside = (low <= y) & (y <= high)
    for part in (log_sd < np.quantile(log_sd, 0.3), log_sd > np.quantile(log_sd, 0.7)):
        assert 0.85 < inside[part].mean() < 0.95


def test_what_makes_a_row_uncertain_is_explained(model, data):
    local = model.explain_local(data[0][:1], output="log noise SD of price").to_frame("covariates")
    assert local.set_index("covariate")["slope"]["b"] == pytest.approx(0.8, abs=0.12)


def test_it_predicts_better_than_constant_noise(model, data):
    plain = ISLaBRegressor(**PARAMS).fit(*data[:2])
    x, y, _ = simulate(np.random.default_rng(2), 1000)
    gain = plain.predictions(x).log_score(y) - model.predictions(x).log_score(y)
    assert gain.mean() > 0.15


def test_it_is_kept_only_if_it_pays(data):
    auto = ISLaBRegressor(likelihood="auto", **PARAMS)
    assert auto.fit(*data[:2]).network_.likelihood == "heteroscedastic"
    x, y, _ = simulate(np.random.default_rng(3), 400, effect=0.0)
    assert auto.fit(x, y).network_.likelihood == "gaussian"


def test_it_is_saved_reported_scored_and_exported(model, data, tmp_path):
    x, y, _ = data
    model.save(tmp_path / "model.islab")
    found = load(tmp_path / "model.islab")
    np.testing.assert_array_equal(found.predict_interval(x[:50]), model.predict_interval(x[:50]))
    model.report(tmp_path / "report.html", x[:80], y[:80])
    assert "log noise SD of price" in (tmp_path / "report.html").read_text()
    scores = evaluate(model, x, y)
    assert scores["nll"] == pytest.approx(model.predictions(x).log_score(y).mean(), abs=0.02)
    module = {}
    exec(to_python(model.network_), module)
    row = x.to_numpy()[0].tolist()
    eta = model.network_.predictor(np.array([row]))[0]
    np.testing.assert_allclose(module["predictor"](row), eta)
    np.testing.assert_allclose(module["predict"](row), eta[:1])


def test_an_offset_shifts_the_mean_alone(data):
    x, y, _ = data
    shift = 50 * np.random.default_rng(4).standard_normal(len(y))
    model = ISLaBRegressor(likelihood="heteroscedastic", **PARAMS).fit(x, y + shift, offset=shift)
    mean, sd = model.predict(x, return_std=True, offset=shift)
    at_zero, same = model.predict(x, return_std=True)
    np.testing.assert_allclose(mean - shift, at_zero)
    np.testing.assert_allclose(sd, same)
    assert model.score(x, y) > 0.5


def test_several_targets_have_noise_of_their_own(data):
    x, y, _ = data
    both = np.column_stack([y, x["c"] + 0.1 * np.random.default_rng(5).standard_normal(len(y))])
    model = ISLaBRegressor(likelihood="heteroscedastic", **PARAMS).fit(x, both)
    assert model.predict(x).shape == both.shape
    assert model.predict_interval(x).shape == (*both.shape, 2)
    assert model.score(x, both) > 0.7
