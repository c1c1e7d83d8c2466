"""``likelihood="auto"``: the likelihood under which the data are most probable."""

import numpy as np
import pytest

from islab import ISLaBRegressor
from islab.evaluate import evaluate
from islab.io.store import load

QUICK = {"hidden_layer_sizes": (), "n_restarts": 1, "max_epochs": 60, "n_draws": 50}
QUICK |= {"posterior": "independent", "random_state": 0}
N = 400


def simulate(name, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N, 3))
    eta = 1.2 + 0.7 * x[:, 0]
    clumped = np.exp(eta) * rng.gamma(2, 0.5, N)
    counted = rng.random(N) > 0.3
    return x, {
        "gaussian": lambda: eta + 0.3 * rng.standard_normal(N),
        "student_t": lambda: eta + 0.3 * rng.standard_t(2.5, N),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "negative_binomial": lambda: rng.poisson(clumped),
        "zero_inflated_poisson": lambda: rng.poisson(np.exp(eta)) * counted,
        "zero_inflated_negative_binomial": lambda: rng.poisson(clumped) * counted,
    }[name]().astype(float)


@pytest.mark.parametrize(
    "name",
    [
        *("gaussian", "student_t", "poisson", "negative_binomial", "zero_inflated_poisson"),
        "zero_inflated_negative_binomial",
    ],
)
def test_the_likelihood_of_the_data_is_found(name, tmp_path):
    x, y = simulate(name)
    model = ISLaBRegressor(likelihood="auto", **QUICK).fit(x, y)
    assert model.network_.likelihood == name
    assert name in str(model.summary())
    model.save(tmp_path / "model.islab")
    found = load(tmp_path / "model.islab")
    assert found.likelihood == "auto"
    np.testing.assert_array_equal(found.predict(x), model.predict(x))
    assert np.isfinite(evaluate(model, x[:20], y[:20])["nll"])


def test_numbers_that_are_no_counts_are_real_numbers():
    x, y = simulate("poisson")
    for target in (y - 5, y + 0.5):
        model = ISLaBRegressor(likelihood="auto", **QUICK).fit(x, target)
        assert model.network_.likelihood in ("gaussian", "student_t")


def test_grades_that_vary_less_than_counts_are_real_numbers():
    x, y = simulate("gaussian")
    model = ISLaBRegressor(likelihood="auto", **QUICK).fit(x, np.round(y + 5))
    assert model.network_.likelihood == "gaussian"


def test_an_exposure_needs_counts():
    x, y = simulate("poisson")
    years = np.full(N, 2.0)
    model = ISLaBRegressor(likelihood="auto", **QUICK).fit(x, y, exposure=years)
    np.testing.assert_allclose(model.predict(x, exposure=years), 2 * model.predict(x))
    with pytest.raises(ValueError, match="Got exposure and targets that are no counts"):
        ISLaBRegressor(likelihood="auto", **QUICK).fit(x, y - 5, exposure=years)


def test_the_default_is_gaussian_whatever_the_target():
    x, y = simulate("poisson")
    assert ISLaBRegressor(**QUICK).fit(x, y).network_.likelihood == "gaussian"
