"""The horseshoe network: what is learned, and what is pruned."""

import numpy as np
import pytest
import torch
from scipy import stats

from islab.baselines.base import Plan
from islab.baselines.horseshoe import HorseshoeNetwork, HorseshoeRegressor, learn_horseshoe
from islab.baselines.shrinkage import factors_kl
from islab.core.architecture import Architecture
from islab.core.network import forward
from islab.core.priors import BIAS_TAU
from islab.learn.engines import Problem

NET = Architecture(3, (4, 2), 1, input_skip=False, activation="relu")
LINEAR = Architecture(4, (), 1, input_skip=False)


def linear_problem(n_rows=200, seed=0):
    """Two covariates that matter and two that do not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 4))
    y = x @ np.array([[0.8], [0.0], [-0.6], [0.0]]) + 0.1 * rng.normal(size=(n_rows, 1))
    return Problem(x, y)


# -- training ------------------------------------------------------------------------------------


def random_parameters(network):
    rng, net = np.random.default_rng(0), network.architecture
    theta = network.start(rng.normal(size=net.n_weights + net.n_units))
    return theta + 0.3 * rng.normal(size=theta.shape)


def test_network_starts_with_the_weights_it_is_given():
    guess = np.random.default_rng(0).normal(size=NET.n_weights + NET.n_units)
    network = HorseshoeNetwork(NET, 1.0)
    found = network.distribution(network.start(guess), "gaussian", np.ones((1, 1)))
    scaled = np.exp(found.log_mean)[NET.input_index] * found.mu
    np.testing.assert_allclose(scaled, guess[: NET.n_weights])


def test_rows_of_the_training_pass_are_distributed_as_draws_of_a_linear_network():
    network = HorseshoeNetwork(LINEAR, 0.5)
    theta = random_parameters(network)
    found = network.distribution(theta, "gaussian", np.ones((1, 1)))
    x = np.array([[0.5, -1.0, 0.3, 0.8]])
    draws = forward(LINEAR, *found.draw(20_000, np.random.default_rng(1)), x)[:, 0, 0]
    rows, rng = np.tile(x, (20_000, 1)), np.random.default_rng(2)
    passes = network.gradient(theta, rows, np.ones_like, rng)[0][0, :, 0]
    assert stats.ks_2samp(draws, passes).pvalue > 1e-3


def test_penalty_is_the_sum_of_all_divergences():
    network = HorseshoeNetwork(NET, global_scale=0.5)
    theta = random_parameters(network)
    at = network.split(theta)
    normal, kl = torch.distributions.Normal, torch.distributions.kl_divergence
    mu, sigma, bias_mu, bias_sigma = (
        torch.as_tensor(array) for array in (at.mu, at.sigma, at.bias_mu, at.bias_sigma)
    )
    expected = float(kl(normal(mu, sigma), normal(0.0, 1.0)).sum())
    expected += float(kl(normal(bias_mu, bias_sigma), normal(0.0, BIAS_TAU)).sum())
    expected += factors_kl(at.layer_log, at.layer_log_variance, scale=0.5).sum()
    expected += factors_kl(at.input_log, at.input_log_variance, scale=1.0).sum()
    assert network.penalty(theta)[0] == pytest.approx(expected)


@pytest.fixture(scope="module")
def learned():
    plan = Plan(linear_problem(), "gaussian", LINEAR, batch_size=100, n_steps=500, rate=0.05)
    return learn_horseshoe(plan, global_scale=1.0, threshold="auto")


def test_linear_signal_is_found(learned):
    network = learned.weights.median()
    np.testing.assert_allclose(network.mu, [0.8, -0.6], atol=0.05)


def test_covariates_that_do_not_matter_are_pruned(learned):
    assert learned.weights.median().covariates.tolist() == [0, 2]


def test_noise_around_the_signal_is_found(learned):
    assert learned.weights.noise[0] == pytest.approx(0.01, abs=0.01)


def test_elbo_is_near_the_last_objective(learned):
    objective = learned.history.column("elbo")[-1]
    assert learned.elbo == pytest.approx(objective, abs=0.1 * abs(objective))


def test_threshold_that_is_given_is_used():
    problem = Problem(linear_problem().x[:, :3], linear_problem().y)
    plan = Plan(problem, "gaussian", NET, batch_size=100, n_steps=5, rate=0.01)
    everything, nothing = (
        learn_horseshoe(plan, global_scale=1.0, threshold=threshold).weights.median()
        for threshold in (100.0, -100.0)
    )
    assert everything.n_used_weights == NET.n_weights
    assert nothing.n_used_weights == 0


def test_same_seed_gives_the_same_weights():
    options = {"batch_size": 100, "n_steps": 10, "rate": 0.01, "seed": 3}
    plan = Plan(linear_problem(), "gaussian", LINEAR, **options)
    one, two = (learn_horseshoe(plan, 1.0, threshold="auto").weights for _ in range(2))
    assert (one.mu == two.mu).all()
    assert (one.threshold == two.threshold).all()


def test_constant_covariates_are_not_read():
    problem = linear_problem()
    problem.x[:, 1] = 0.0
    plan = Plan(problem, "gaussian", LINEAR, batch_size=100, n_steps=10, rate=0.01)
    varies = np.array([True, False, True, True])
    found = learn_horseshoe(plan, global_scale=1.0, threshold=100.0, varies=varies).weights
    assert found.median().covariates.tolist() == [0, 2, 3]
    assert (found.draw(5, np.random.default_rng(0))[0][:, 1] == 0).all()


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical", "poisson"])
def test_all_likelihoods_can_be_learned(likelihood):
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=60)
    y = np.eye(3)[codes] if likelihood == "categorical" else (codes[:, None] > 0).astype(float)
    net = Architecture(4, (3,), y.shape[1], input_skip=False)
    problem = Problem(rng.normal(size=(60, 4)), y)
    plan = Plan(problem, likelihood, net, batch_size=30, n_steps=20, rate=0.01)
    learned = learn_horseshoe(plan, global_scale=1.0, threshold="auto")
    assert np.isfinite(learned.elbo)
    assert np.isfinite(learned.weights.mu).all()


# -- the face ------------------------------------------------------------------------------------


def test_threshold_must_be_a_number():
    with pytest.raises(ValueError, match="Got threshold='high', expected 'auto' or a number"):
        HorseshoeRegressor(threshold="high").fit(np.eye(8), np.arange(8.0))
