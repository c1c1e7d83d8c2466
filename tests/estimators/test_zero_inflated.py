"""Counts with more zeros than their rate explains: found, predicted and told apart."""

import numpy as np
import pytest

from islab import ISLaBRegressor
from islab.io.store import load

SHARE, DISPERSION = 0.35, 0.5
# Chains are short here.
pytestmark = pytest.mark.filterwarnings("ignore:Got chains that disagree")
PARAMS = {"hidden_layer_sizes": (), "n_restarts": 1, "n_draws": 100, "random_state": 0}
PARAMS |= {"posterior": "independent"}
NAMES = {False: "zero_inflated_poisson", True: "zero_inflated_negative_binomial"}


def simulate(rng, n, dispersed):
    x = rng.standard_normal((n, 3))
    rate = np.exp(1 + 0.7 * x[:, 0])
    if dispersed:
        rate = rate * rng.gamma(1 / DISPERSION, DISPERSION, n)
    return x, rng.poisson(rate) * (rng.random(n) > SHARE).astype(float)


CASES = [("independent", False), ("independent", True), ("sampled", False)]
CASES.append(pytest.param(("sampled", True), marks=pytest.mark.slow))


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def dispersed(case):
    return case[1]


@pytest.fixture(scope="module")
def data(dispersed):
    return simulate(np.random.default_rng(0), 800, dispersed)


@pytest.fixture(scope="module")
def model(case, data):
    params = {**PARAMS, "posterior": case[0], "likelihood": NAMES[case[1]], "max_epochs": 200}
    return ISLaBRegressor(**params).fit(*data)


def test_the_share_of_zeros_and_the_slope_are_recovered(model, dispersed):
    noise = model.network_.noise
    assert noise[-1] / (1 + noise[-1]) == pytest.approx(SHARE, abs=0.08 if dispersed else 0.05)
    low, high = np.log(model.predict([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    assert high - low == pytest.approx(0.7, abs=0.12)
    assert low == pytest.approx(1.0 + np.log(1 - SHARE), abs=0.12)
    if dispersed:
        assert noise[0] == pytest.approx(DISPERSION, abs=0.2)


def test_predictions_are_the_expected_counts(model, data):
    assert model.predict(data[0]).mean() == pytest.approx(data[1].mean(), rel=0.06)


def test_intervals_of_new_counts_cover(model, dispersed):
    x, y = simulate(np.random.default_rng(1), 600, dispersed)
    low, high = model.predictions(x, n_draws=100).interval(0.9)[:, 0].T
    # The lower ends are 0 and cut nothing off, so that about 95 % are covered.
    assert 0.93 < np.mean((low <= y) & (y <= high)) < 0.985


@pytest.mark.filterwarnings("ignore:The targets vary")
def test_it_predicts_better_than_without_the_zeros(model, dispersed, data):
    plain = "negative_binomial" if dispersed else "poisson"
    other = ISLaBRegressor(likelihood=plain, max_epochs=50, **PARAMS).fit(*data)
    x, y = simulate(np.random.default_rng(2), 1000, dispersed)
    gain = other.predictions(x).log_score(y) - model.predictions(x).log_score(y)
    assert gain.mean() > (0.01 if dispersed else 0.2)


@pytest.mark.parametrize("dispersed", [False, True])
def test_an_exposure_multiplies_the_expected_count(dispersed):
    x, y = simulate(np.random.default_rng(0), 500, dispersed)
    years = np.full(len(y), 10.0)
    model = ISLaBRegressor(likelihood=NAMES[dispersed], **PARAMS)
    model.fit(x, y, exposure=years)
    np.testing.assert_allclose(model.predict(x, exposure=years), 10 * model.predict(x))
    assert model.predict(x, exposure=years).mean() == pytest.approx(y.mean(), rel=0.1)


def test_it_is_saved_and_reported(model, data, tmp_path):
    model.save(tmp_path / "model.islab")
    found = load(tmp_path / "model.islab")
    np.testing.assert_array_equal(
        found.predict_interval(data[0][:50]), model.predict_interval(data[0][:50])
    )
    model.report(tmp_path / "report.html", data[0][:50], data[1][:50])
    assert "odds of a zero that is no count" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("dispersed", [False, True])
def test_two_outputs_have_their_own_zeros(dispersed):
    rng = np.random.default_rng(3)
    x, y = simulate(rng, 500, dispersed)
    other = rng.poisson(3, 500).astype(float)
    model = ISLaBRegressor(likelihood=NAMES[dispersed], max_epochs=200, **PARAMS)
    model.fit(x, np.column_stack([y, other]))
    odds = model.network_.noise[-2:]
    share = odds / (1 + odds)
    assert share[0] == pytest.approx(SHARE, abs=0.1)
    assert share[1] < 0.05
