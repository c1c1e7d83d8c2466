"""The L1 penalty: the lasso, cross-validation, exact zeros."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from islab.baselines.base import Plan
from islab.baselines.l1 import (
    L1SkipClassifier,
    L1SkipRegressor,
    Training,
    learn_l1,
    strength_path,
)
from islab.baselines.spam import learn_spam
from islab.core.architecture import Architecture
from islab.learn.engines import Problem


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def linear_problem(rng, n_rows=200):
    """Two covariates of six matter."""
    x = rng.standard_normal((n_rows, 6))
    y = 1.5 * x[:, :1] - x[:, 1:2] + 0.3 * rng.standard_normal((n_rows, 1))
    return Problem(x, (y - y.mean()) / y.std())


# -- the penalty ---------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.02, 0.1])
def test_a_linear_network_is_the_lasso(strength):
    X, y = load_diabetes(return_X_y=True)
    x, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    lasso = Lasso(alpha=strength, tol=1e-10).fit(x, y)
    problem = Problem(x, y[:, None])
    plan = Plan(problem, "gaussian", Architecture(10, (), 1), len(x), 600, 0.05)
    found = learn_l1(plan, strength).weights
    np.testing.assert_allclose(found.mu, lasso.coef_, atol=1e-4)
    np.testing.assert_array_equal(found.mu == 0, lasso.coef_ == 0)
    residual = y - lasso.predict(x)
    np.testing.assert_allclose(found.noise, (residual**2).mean(), rtol=1e-3)


def test_a_linear_network_for_classes_is_l1_logistic_regression(rng):
    x = rng.standard_normal((300, 5))
    y = (rng.random(300) < 1 / (1 + np.exp(-2 * x[:, 0] + x[:, 1]))).astype(float)
    strength = 0.03
    options = {"solver": "saga", "l1_ratio": 1, "tol": 1e-8, "max_iter": 2000}
    logistic = LogisticRegression(C=1 / (len(x) * strength), **options).fit(x, y)
    problem = Problem(x, y[:, None])
    plan = Plan(problem, "bernoulli", Architecture(5, (), 1), len(x), 600, 0.05)
    found = learn_l1(plan, strength).weights
    np.testing.assert_allclose(found.mu, logistic.coef_[0], atol=1e-3)


def test_biases_are_not_penalised(rng):
    problem = Problem(rng.standard_normal((60, 2)), np.full((60, 1), 0.8))
    plan = Plan(problem, "gaussian", Architecture(2, (), 1), 60, 300, 0.05)
    found = learn_l1(plan, strength=10.0).weights
    np.testing.assert_allclose(found.bias_mu, 0.8, atol=1e-4)
    assert (found.mu == 0).all()


def test_biases_can_be_penalised_too(rng):
    problem = Problem(rng.standard_normal((60, 2)), np.full((60, 1), 0.8))
    plan = Plan(problem, "gaussian", Architecture(2, (), 1), 60, 600, 0.05)
    found = learn_l1(plan, strength=0.3, training=Training(biases_too=True)).weights
    # Half the squared error plus 0.3 times the bias is least at 0.8 - 0.3.
    np.testing.assert_allclose(found.bias_mu, 0.5, atol=1e-3)


def test_the_threshold_leaves_no_small_weight(rng):
    problem = linear_problem(rng)
    plan = Plan(problem, "gaussian", Architecture(6, (5,), 1), 200, 200, 0.02)
    found = learn_l1(plan, strength=0.05, zeros="threshold").weights
    kept = np.abs(found.mu[found.mu != 0])
    assert 0 < len(kept) < plan.architecture.n_weights
    assert kept.min() > 0.005


def test_sample_weights_repeat_rows(rng):
    problem = linear_problem(rng, 50)
    counts = rng.integers(1, 4, size=50)
    net = Architecture(6, (), 1)
    weighted = Problem(problem.x, problem.y, counts.astype(float))
    repeated = Problem(np.repeat(problem.x, counts, axis=0), np.repeat(problem.y, counts, axis=0))
    found = [
        learn_l1(Plan(each, "gaussian", net, 1000, 600, 0.05), strength=0.05).weights.mu
        for each in (weighted, repeated)
    ]
    np.testing.assert_allclose(*found, atol=1e-4)


# -- choosing the strength -----------------------------------------------------------------------


def test_the_strongest_penalty_that_leaves_something_is_that_of_the_lasso(rng):
    problem = linear_problem(rng)
    largest = strength_path(problem, 2000)[-1] / 0.5
    just = [Lasso(alpha=f * largest).fit(problem.x, problem.y[:, 0]).coef_ for f in (0.9, 1.01)]
    assert (just[0] != 0).any()
    assert (just[1] == 0).all()


def test_the_chosen_network_keeps_what_matters_and_drops_the_rest(rng):
    plan = Plan(linear_problem(rng), "gaussian", Architecture(6, (8,), 1), 64, 600, 0.01)
    network = learn_l1(plan).weights.median()
    assert {0, 1} <= set(network.covariates.tolist())
    assert network.n_used_weights < plan.architecture.n_weights / 2


def test_noise_is_the_error_on_new_rows(rng):
    whole = linear_problem(rng, 4000)
    part = Problem(whole.x[:200], whole.y[:200])
    found = learn_l1(Plan(part, "gaussian", Architecture(6, (8,), 1), 64, 600, 0.01)).weights
    error = whole.y[200:] - found.median().predictor(whole.x[200:])
    np.testing.assert_allclose(found.noise, (error**2).mean(), rtol=0.3)


def test_the_same_seed_gives_the_same_network(rng):
    problem = linear_problem(rng)
    plan = Plan(problem, "gaussian", Architecture(6, (4,), 1), 64, 60, 0.01, seed=3)
    runs = [learn_l1(plan).weights.mu for _ in range(2)]
    np.testing.assert_array_equal(*runs)


# -- estimators ----------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0, -1.0, "strong", True])
def test_a_penalty_that_is_no_positive_number_is_refused(penalty):
    with pytest.raises(ValueError, match=r"Got penalty=.*expected 'auto' or a positive number"):
        L1SkipRegressor(penalty=penalty).fit(np.eye(4), np.arange(4))


def test_a_constant_covariate_is_not_used(rng):
    problem = linear_problem(rng)
    x = np.column_stack([problem.x, np.full(len(problem.x), 7.0)])
    model = L1SkipRegressor(penalty=0.05, max_epochs=30, hidden_layer_sizes=(4,), random_state=0)
    model.fit(x, problem.y[:, 0])
    assert not model.get_support()[-1]
    assert model.network_.n_weights_initial == Architecture(7, (4,), 1).n_weights


def test_full_and_median_predictions_are_the_same(rng):
    problem = linear_problem(rng)
    model = L1SkipRegressor(penalty=0.02, max_epochs=30, hidden_layer_sizes=(4,), random_state=0)
    model.fit(problem.x, problem.y[:, 0])
    full, median = (model.predict(problem.x, model=name) for name in ("full", "median"))
    np.testing.assert_allclose(full, median, atol=1e-10)


@pytest.mark.slow
def test_breast_cancer_is_told_as_well_as_by_logistic_regression():
    parts = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    X, X_test, y, y_test = parts
    model = L1SkipClassifier(random_state=0).fit(X, y)
    scaler = StandardScaler().fit(X)
    logistic = LogisticRegression(C=0.3).fit(scaler.transform(X), y)
    reference = logistic.score(scaler.transform(X_test), y_test)
    assert model.score(X_test, y_test) > reference - 0.03


@pytest.mark.parametrize("likelihood", ["negative_binomial", "student_t", "zero_inflated_poisson"])
def test_noise_that_is_no_squared_error_is_refused(likelihood):
    problem = Problem(np.ones((20, 2)), np.ones((20, 1)))
    plan = Plan(problem, likelihood, Architecture(2, (), 1), 20, 10, 0.05)
    for learn in (learn_l1, learn_spam):
        with pytest.raises(ValueError, match=f"Got likelihood='{likelihood}'.*mean squared error"):
            learn(plan)
