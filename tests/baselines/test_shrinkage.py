"""The group horseshoe: divergences, scales, draws, and what pruning leaves."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from islab.baselines.shrinkage import (
    Horseshoe,
    factors_kl,
    factors_kl_slopes,
    gamma_kl,
    inverse_gamma_kl,
    log_moments,
    product_moments,
)
from islab.core.architecture import Architecture

NET = Architecture(3, (4, 2), 1, input_skip=False, activation="relu")
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


# -- divergences ---------------------------------------------------------------------------------


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


def test_divergence_of_pairs_is_the_sum_of_both():
    rng = np.random.default_rng(0)
    log, log_variance = rng.normal(size=(2, 3, 2, 5))
    first, second = (gamma_kl, 0.49), (inverse_gamma_kl, 1.0)
    expected = sum(
        kl(log[:, k], np.exp(log_variance[:, k]), scale=scale)
        for k, (kl, scale) in enumerate((first, second))
    )
    np.testing.assert_allclose(factors_kl(log, log_variance, scale=0.7), expected)


@pytest.mark.parametrize("which", [0, 1])
def test_slopes_of_the_divergence_are_those_of_differences(which):
    arrays = np.random.default_rng(1).normal(size=(2, 2, 5))
    step = np.zeros_like(arrays)
    step[which] = 1e-6
    high, low = (factors_kl(*(arrays + sign * step), scale=0.7) for sign in (1, -1))
    slopes = factors_kl_slopes(*arrays, scale=0.7)[which]
    np.testing.assert_allclose(slopes.sum(axis=0), (high - low) / 2e-6, rtol=1e-5)


def test_log_moments_are_those_of_draws():
    rng = np.random.default_rng(2)
    log, log_variance = np.array([[0.3], [-1.0]]), np.log([[0.5], [0.2]])
    draws = log + np.exp(log_variance / 2) * rng.standard_normal((2, 400_000))
    mean, sd = log_moments(log, log_variance)
    roots = np.log(np.sqrt(np.exp(draws).prod(axis=0)))
    assert mean[0] == pytest.approx(roots.mean(), abs=0.005)
    assert sd[0] == pytest.approx(roots.std(), rel=0.01)


# -- the distribution ----------------------------------------------------------------------------


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
