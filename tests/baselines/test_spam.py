"""Laplace-SpaM: what is learned, kept and pruned."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from islab.baselines.base import Plan
from islab.baselines.spam import SpaMRegressor, learn_spam
from islab.core.architecture import Architecture
from islab.learn.engines import Problem


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def simple_problem(rng, n_rows=200):
    """Two covariates of five matter."""
    x = rng.standard_normal((n_rows, 5))
    y = np.tanh(2 * x[:, :1]) + x[:, 1:2] + 0.3 * rng.standard_normal((n_rows, 1))
    return Problem(x, (y - y.mean()) / y.std())


def simple_plan(rng):
    net = Architecture(5, (8,), 1, input_skip=False, activation="tanh")
    return Plan(simple_problem(rng), "gaussian", net, 64, 400, 0.02)


@pytest.fixture(scope="module")
def learned():
    return learn_spam(simple_plan(np.random.default_rng(0)))


def test_what_matters_is_kept_and_predicts(learned):
    fresh = simple_problem(np.random.default_rng(1), 500)
    network = learned.weights.median()
    assert {0, 1} <= set(network.covariates.tolist())
    assert ((network.predictor(fresh.x) - fresh.y) ** 2).mean() < 0.2


def test_noise_is_learned(learned):
    truth = 0.3**2 / (0.3**2 + 1 + 0.64)  # 0.64 is the variance of tanh(2x)
    assert learned.weights.noise[0] == pytest.approx(truth, rel=0.5)


def test_marginal_likelihood_rises(learned):
    elbo = learned.history.column("elbo")
    assert elbo[-1] > elbo[0]


def test_draws_have_the_spread_of_laplace(rng):
    plan = simple_plan(rng)
    one, half = (learn_spam(plan, 0.5, posterior_scale=scale).weights for scale in (1.0, 0.5))
    np.testing.assert_allclose(half.sigma, one.sigma / 2, rtol=1e-6)
    weights, _ = one.draw(4000, rng)
    kept = one.alpha > 0.5
    np.testing.assert_allclose(weights.std(axis=0)[kept], one.sigma[kept], rtol=0.1)
    assert (weights[:, ~kept] == 0).all()


def test_the_chosen_share_of_weights_is_pruned(rng):
    net = Architecture(5, (8, 6), 1, input_skip=False)
    plan = Plan(simple_problem(rng), "gaussian", net, 64, 50, 0.02)
    found = learn_spam(plan, sparsity=0.75, posterior_scale=1.0).weights
    assert (found.alpha > 0.5).sum() <= 0.25 * (40 + 48) + 6


@pytest.mark.parametrize(
    ("name", "value"), [("sparsity", 1.0), ("prior", "unit"), ("posterior_scale", -1)]
)
def test_wrong_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"Got {name}={value!r}, expected"):
        SpaMRegressor(**{name: value}).fit(np.eye(4), np.arange(4))


@pytest.mark.slow
def test_diabetes_is_predicted_as_well_as_by_ridge_regression():
    # One split alone says little: between seeds its score varies by half of the tolerance.
    X, y = load_diabetes(return_X_y=True)
    folds = KFold(3, shuffle=True, random_state=0)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 20)))
    reference, score = (
        cross_val_score(model, X, y, cv=folds).mean()
        for model in (ridge, SpaMRegressor(random_state=0))
    )
    assert score > reference - 0.05
