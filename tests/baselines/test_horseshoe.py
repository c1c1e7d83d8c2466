"""The horseshoe network: divergences, scales, pruning, and what is learned."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from islab.architecture import Architecture
from islab.baselines.base import Plan
from islab.baselines.concrete import first_guess
from islab.baselines.horseshoe import (
    Horseshoe,
    HorseshoeNetwork,
    HorseshoeRegressor,
    best_thresholds,
    gamma_kl,
    inverse_gamma_kl,
    learn_horseshoe,
    product_moments,
)
from islab.engines import Problem
from islab.network import forward
from islab.priors import BIAS_TAU

NET = Architecture(3, (4, 2), 1, input_skip=False, activation="relu")
LINEAR = Architecture(4, (), 1, input_skip=False)
N_INPUTS = 3 + 4 + 2


def some_horseshoe(net=NET, **changes):
    rng = np.random.default_rng(0)
    n_inputs = sum(net.n_inputs(layer) for layer in range(net.n_layers))
    found = Horseshoe(
        architecture=net,
        mu=rng.normal(size=net.n_weights),
        sigma=rng.uniform(0.1, 0.5, net.n_weights),
        bias_mu=rng.normal(size=net.n_units),
        bias_sigma=rng.uniform(0.1, 0.5, net.n_units),
        layer_mean=rng.normal(scale=0.3, size=net.n_layers),
        layer_sd=rng.uniform(0.1, 0.3, net.n_layers),
        input_mean=rng.normal(scale=0.3, size=n_inputs),
        input_sd=rng.uniform(0.1, 0.4, n_inputs),
        threshold=np.full(net.n_layers, np.inf),
        likelihood="gaussian",
        noise=np.ones(1),
        n_weights_initial=net.n_weights,
    )
    return replace(found, **changes)


def linear_problem(n_rows=200, seed=0):
    """Two covariates that matter and two that do not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 4))
    y = x @ np.array([[0.8], [0.0], [-0.6], [0.0]]) + 0.1 * rng.normal(size=(n_rows, 1))
    return Problem(x, y)


# -- divergences --------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "variance", "scale"), [(0.0, 1.0, 1.0), (-1.5, 0.2, 0.3)])
@pytest.mark.parametrize(
    ("divergence", "prior"),
    [
        (gamma_kl, lambda t: stats.gamma(0.5, scale=t)),
        (inverse_gamma_kl, lambda t: stats.invgamma(0.5, scale=t)),
    ],
)
def test_divergence_is_that_of_monte_carlo(divergence, prior, mean, variance, scale):
    log_normal = stats.lognorm(np.sqrt(variance), scale=np.exp(mean))
    x = log_normal.rvs(400_000, random_state=0)
    terms = log_normal.logpdf(x) - prior(scale).logpdf(x)
    exact = divergence(np.float64(mean), np.float64(variance), scale=scale)
    assert exact == pytest.approx(terms.mean(), abs=4.5 * terms.std() / np.sqrt(len(x)))


@pytest.mark.parametrize(("divergence", "sign"), [(gamma_kl, 1), (inverse_gamma_kl, -1)])
def test_divergence_is_least_where_its_gradient_vanishes(divergence, sign):
    best = torch.tensor([sign * (np.log(0.5) - 1), 2.0], requires_grad=True)
    divergence(best[0], best[1], scale=1.0).backward()
    np.testing.assert_allclose(best.grad, 0, atol=1e-6)


def test_product_of_the_factors_is_half_cauchy_with_the_global_scale():
    rng, global_scale = np.random.default_rng(0), 0.3
    gamma = stats.gamma(0.5, scale=global_scale**2).rvs(20_000, random_state=rng)
    inverse = stats.invgamma(0.5, scale=1.0).rvs(20_000, random_state=rng)
    half_cauchy = stats.halfcauchy(scale=global_scale)
    assert stats.kstest(np.sqrt(gamma * inverse), half_cauchy.cdf).pvalue > 1e-3


def test_product_moments_are_those_of_draws():
    rng, n = np.random.default_rng(1), 2_000_000
    draws = np.exp(-0.4 + 0.5 * rng.standard_normal(n)) * (0.7 + 0.3 * rng.standard_normal(n))
    mean, sd = product_moments(np.float64(0.7), np.float64(0.3), np.float64(-0.4), np.float64(0.5))
    assert mean == pytest.approx(draws.mean(), rel=0.005)
    assert sd == pytest.approx(draws.std(), rel=0.01)


# -- the distribution ---------------------------------------------------------------------


def test_draws_have_the_product_moments():
    found = some_horseshoe()
    weights, _ = found.draw(60_000, np.random.default_rng(2))
    mean, sd = product_moments(
        found.mu,
        found.sigma,
        found.log_mean[NET.input_index],
        found.log_sd[NET.input_index],
    )
    assert (np.abs(weights.mean(axis=0) - mean) < 4.5 * sd / np.sqrt(len(weights))).all()
    np.testing.assert_allclose(weights.std(axis=0), sd, rtol=0.05)


def test_weights_of_one_input_share_its_scale():
    found = some_horseshoe(sigma=np.zeros(NET.n_weights))
    scale = NET.blocks[0].view(found.draw(50, np.random.default_rng(3))[0] / found.mu)
    np.testing.assert_allclose(scale, np.broadcast_to(scale[:, :1], scale.shape))
    assert np.ptp(scale[:, 0], axis=1).min() > 0.01


def test_inputs_of_one_layer_share_its_scale():
    found = some_horseshoe(
        sigma=np.zeros(NET.n_weights), input_mean=np.zeros(N_INPUTS), input_sd=np.zeros(N_INPUTS)
    )
    scale = found.draw(50, np.random.default_rng(4))[0] / found.mu
    of_layers = [scale[:, block.weights] for block in NET.blocks]
    for of_layer in of_layers:
        np.testing.assert_allclose(of_layer, np.broadcast_to(of_layer[:, :1], of_layer.shape))
    assert np.abs(of_layers[0][:, 0] - of_layers[1][:, 0]).min() > 1e-4


def test_shrinkage_is_minus_the_logarithm_of_the_modes():
    found = some_horseshoe()
    modes = [
        optimize.minimize_scalar(
            lambda z, m=m, s=s: -stats.lognorm(s, scale=np.exp(m)).logpdf(z),
            bounds=(1e-3, 10),
            method="bounded",
            options={"xatol": 1e-8},
        ).x
        for m, s in zip(found.log_mean, found.log_sd, strict=True)
    ]
    np.testing.assert_allclose(found.shrinkage(), -np.log(modes), atol=1e-5)


def test_inputs_at_the_threshold_or_above_are_pruned():
    found = some_horseshoe()
    threshold = np.sort(found.shrinkage())[4]
    kept = replace(found, threshold=np.full(3, threshold)).kept()
    assert kept.sum() == 4
    assert found.shrinkage()[kept].max() < threshold


def test_pruned_covariate_is_not_read():
    found = some_horseshoe()
    shrinkage = found.shrinkage()[:3]
    threshold = np.array([np.sort(shrinkage)[1:].mean(), np.inf, np.inf])
    network = replace(found, threshold=threshold).median()
    assert network.covariates.tolist() == sorted(np.argsort(shrinkage)[:2].tolist())


def test_pruned_hidden_unit_takes_its_incoming_weights_along():
    found = some_horseshoe()
    second = np.sort(found.shrinkage()[3:7])
    network = replace(found, threshold=np.array([np.inf, second[1:3].mean(), np.inf])).median()
    assert network.n_used_weights == 3 * 2 + 2 * 2 + 2


def test_network_to_read_has_the_product_moments():
    found = some_horseshoe()
    mean, sd = product_moments(
        found.mu,
        found.sigma,
        found.log_mean[NET.input_index],
        found.log_sd[NET.input_index],
    )
    network = found.median()
    np.testing.assert_allclose(network.mu, mean)
    np.testing.assert_allclose(network.sigma, sd)
    np.testing.assert_allclose(network.bias_sigma, found.bias_sigma)


# -- training -----------------------------------------------------------------------------


def random_network(net, global_scale=0.5):
    guess = first_guess(net, linear_problem(), "gaussian", seed=0)
    network = HorseshoeNetwork(guess, global_scale)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters:
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return network


def test_network_starts_with_weights_of_the_first_guess():
    guess = first_guess(NET, linear_problem(), "gaussian", seed=0)
    found = HorseshoeNetwork(guess, 1.0).distribution("gaussian", np.ones(1), np.inf)
    np.testing.assert_allclose(
        np.exp(found.log_mean)[NET.input_index] * found.mu, guess.mu, rtol=1e-5
    )


def test_rows_of_the_training_pass_are_distributed_as_draws_of_a_linear_network():
    network = random_network(LINEAR)
    found = network.distribution("gaussian", np.ones(1), np.inf)
    x = np.array([[0.5, -1.0, 0.3, 0.8]])
    draws = forward(LINEAR, *found.draw(20_000, np.random.default_rng(1)), x)[:, 0, 0]
    rows = torch.as_tensor(np.tile(x, (20_000, 1)), dtype=torch.float32)
    with torch.no_grad():
        passes = network.predictor(rows, torch.Generator().manual_seed(1))[:, 0].numpy()
    assert stats.ks_2samp(draws, passes).pvalue > 1e-3


def test_penalty_is_the_sum_of_all_divergences():
    network = random_network(NET, global_scale=0.5)
    normal, kl = torch.distributions.Normal, torch.distributions.kl_divergence
    with torch.no_grad():
        sigma, bias_sigma = network.sigmas()
        expected = kl(normal(network.mu, sigma), normal(0.0, 1.0)).sum()
        expected += kl(normal(network.bias_mu, bias_sigma), normal(0.0, BIAS_TAU)).sum()
        for log, log_variance, scale in (
            (network.layer_log, network.layer_log_variance, 0.25),
            (network.input_log, network.input_log_variance, 1.0),
        ):
            expected += gamma_kl(log[0], log_variance[0].exp(), scale=scale).sum()
            expected += inverse_gamma_kl(log[1], log_variance[1].exp(), scale=1.0).sum()
        assert float(network.penalty()) == pytest.approx(float(expected), rel=1e-5)


@pytest.fixture(scope="module")
def learned():
    plan = Plan(LINEAR, batch_size=100, n_steps=500, rate=0.05)
    return learn_horseshoe(
        linear_problem(), "gaussian", plan, global_scale=1.0, threshold="auto", seed=0
    )


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
    plan = Plan(NET, batch_size=100, n_steps=5, rate=0.01)
    problem = Problem(linear_problem().x[:, :3], linear_problem().y)
    everything, nothing = (
        learn_horseshoe(
            problem, "gaussian", plan, global_scale=1.0, threshold=threshold, seed=0
        ).weights.median()
        for threshold in (100.0, -100.0)
    )
    assert everything.n_used_weights == NET.n_weights
    assert nothing.n_used_weights == 0


def test_automatic_threshold_keeps_one_input_where_nothing_can_be_learned():
    rng = np.random.default_rng(0)
    nothing = Problem(rng.normal(size=(50, 4)), rng.normal(size=(50, 1)))
    found = some_horseshoe(LINEAR)
    threshold = best_thresholds(found, nothing, np.ones(4), rng)
    assert replace(found, threshold=threshold).kept().sum() == 1


def test_automatic_threshold_keeps_what_predicts():
    found = some_horseshoe(
        LINEAR, sigma=np.full(4, 0.01), layer_sd=np.full(1, 0.01), input_sd=np.full(4, 0.01)
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    mean = forward(LINEAR, *(part.mean(axis=0) for part in found.draw(100, rng)), x)
    problem = Problem(x, mean + 0.1 * rng.normal(size=mean.shape))
    threshold = best_thresholds(replace(found, noise=np.array([0.02])), problem, np.ones(4), rng)
    assert replace(found, threshold=threshold).kept().all()


def test_same_seed_gives_the_same_weights_whatever_was_drawn_before():
    plan = Plan(LINEAR, batch_size=100, n_steps=10, rate=0.01)
    options = {"global_scale": 1.0, "threshold": "auto", "seed": 3}
    torch.manual_seed(1)
    one = learn_horseshoe(linear_problem(), "gaussian", plan, **options).weights
    torch.manual_seed(2)
    two = learn_horseshoe(linear_problem(), "gaussian", plan, **options).weights
    assert (one.mu == two.mu).all()
    assert (one.threshold == two.threshold).all()


def test_constant_covariates_are_not_read():
    problem = linear_problem()
    problem.x[:, 1] = 0.0
    plan = Plan(LINEAR, batch_size=100, n_steps=10, rate=0.01)
    varies = np.array([True, False, True, True])
    found = learn_horseshoe(
        problem, "gaussian", plan, global_scale=1.0, threshold=100.0, varies=varies, seed=0
    ).weights
    assert found.median().covariates.tolist() == [0, 2, 3]
    assert (found.draw(5, np.random.default_rng(0))[0][:, 1] == 0).all()


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical", "poisson"])
def test_all_likelihoods_can_be_learned(likelihood):
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=60)
    y = np.eye(3)[codes] if likelihood == "categorical" else (codes[:, None] > 0).astype(float)
    net = Architecture(4, (3,), y.shape[1], input_skip=False)
    plan = Plan(net, batch_size=30, n_steps=20, rate=0.01)
    learned = learn_horseshoe(
        Problem(rng.normal(size=(60, 4)), y),
        likelihood,
        plan,
        global_scale=1.0,
        threshold="auto",
        seed=0,
    )
    assert np.isfinite(learned.elbo)
    assert np.isfinite(learned.weights.mu).all()


# -- the face -----------------------------------------------------------------------------


def test_threshold_must_be_a_number():
    with pytest.raises(ValueError, match="Got threshold='high', expected 'auto' or a number"):
        HorseshoeRegressor(threshold="high").fit(np.eye(8), np.arange(8.0))
