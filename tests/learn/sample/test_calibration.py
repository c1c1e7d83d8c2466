"""Geweke's test of the transition kernel, and ranks of true values among draws."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest
from scipy.stats import t as student_t

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.constraints import Limits
from islab.core.network import forward
from islab.learn.engines import Problem
from islab.learn.sample import ChainPrior, Effort, sample_chains
from islab.learn.sample.chains import make_chain
from tests.learn.sample.exact import draw_prior, empty_start

CASES = {
    "logistic": (Architecture(3, (), 1), "bernoulli", 0.0),
    "Gaussian network": (Architecture(2, (2,), 1), "gaussian", 0.0),
    "two outputs": (Architecture(2, (1,), 2), "gaussian", 0.0),
    "logistic network, Student-t slab": (Architecture(2, (2,), 1), "bernoulli", 4.0),
    "Poisson network": (Architecture(2, (2,), 1), "poisson", 0.0),
    "negative binomial network": (Architecture(2, (1,), 1), "negative_binomial", 0.0),
    "ordered classes": (Architecture(2, (1,), 1), "ordinal", 0.0),
    "zero-inflated counts": (Architecture(2, (1,), 1), "zero_inflated_poisson", 0.0),
    "zero-inflated counts with a dispersion": (
        Architecture(2, (1,), 1),
        "zero_inflated_negative_binomial",
        0.0,
    ),
    "noise with a predictor": (Architecture(2, (1,), 2), "heteroscedastic", 0.0),
    "Student-t noise": (Architecture(2, (1,), 1), "student_t", 0.0),
    "three classes": (Architecture(1, (1,), 3), "categorical", 0.0),
    "six outputs": (Architecture(1, (1,), 6), "gaussian", 0.0),
    "two layers of tanh": (Architecture(1, (1, 1), 1, activation="tanh"), "gaussian", 0.0),
}


# Priors of what likelihoods learn besides, where it is no variance.
NOISE_PRIORS = {
    "ordinal": lambda rng, n: rng.exponential(5.0, size=(n, 1)),
    "zero_inflated_poisson": lambda rng, n: 1 / rng.uniform(size=(n, 1)) - 1,
    "zero_inflated_negative_binomial": lambda rng, n: np.column_stack(
        [3.0 / rng.gamma(6.0, size=n), 1 / rng.uniform(size=n) - 1]
    ),
}


def simulate(likelihood, eta, noise, rng):
    """Targets (rows, outputs) of predictors."""
    return families.likelihood(likelihood).sample(eta, noise, rng)


def geweke_scores(net, likelihood, df, n_steps, seed, limits=None, groups=None):
    """Standardised differences between the prior and data-and-parameters simulated in turn."""
    rng = np.random.default_rng(seed)
    prior = ChainPrior(
        tau_shape=6.0, tau_scale=2.0, noise_shape=6.0, noise_scale=3.0, bias_sd=0.7, df=df
    )
    x = rng.standard_normal((5, net.n_covariates))
    start = empty_start(net, tau2=0.3, noise=0.5)
    n_noise = families.likelihood(likelihood).n_noise(net.n_outputs)
    if n_noise is not None:
        start = replace(start, noise=np.full(n_noise, 0.5))
    if limits is not None:
        slots, values = limits.nearest(net, start.slots, start.weights)
        start = replace(start, slots=slots, weights=values)
    y = simulate(likelihood, np.zeros((5, net.n_outputs)), start.noise, rng)
    chain = make_chain(
        Problem(x, y, limits=limits, groups=groups), likelihood, net, start, seed, prior
    )
    options = {
        "every": 1,
        "keep_rows": False,
        "toggles": 4,
        "edges": 4,
        "units": 3,
        "parts": 6,
        "largest_part": 80,
    }
    chain.run(steps=300, warming=True, **options)
    found = []
    for _ in range(n_steps):
        eta = chain.predictor().reshape(net.n_outputs, 5).T
        y = simulate(likelihood, eta, chain.state()["noise"], rng)
        chain.replace_target(np.ascontiguousarray(y.T, dtype=float))
        chain.run(steps=1, warming=False, **options)
        found.append(statistics(net, **chain.state()))
    chained = np.array(found)
    weights, biases, tau2, noise = draw_prior(net, prior, 10_000, rng, groups)
    if likelihood in NOISE_PRIORS:
        noise = NOISE_PRIORS[likelihood](rng, 10_000)
    drawn = np.array(
        [
            statistics(net, slots=np.flatnonzero(w), weights=w[w != 0], bias=b, tau2=t, noise=s)
            for w, b, t, s in zip(weights, biases, tau2, noise, strict=True)
        ]
    )
    if limits is not None:
        used = [np.flatnonzero(w) for w in weights]
        drawn = drawn[[limits.allow(net, s, w[s]) for s, w in zip(used, weights, strict=True)]]
    if not families.likelihood(likelihood).learns_noise:
        drawn, chained = drawn[:, :-1], chained[:, :-1]
    batches = chained[: n_steps // 40 * 40].reshape(40, -1, chained.shape[1]).mean(axis=1)
    error = np.sqrt(batches.var(axis=0) / 40 + drawn.var(axis=0) / len(drawn))
    difference = chained.mean(axis=0) - drawn.mean(axis=0)
    return difference / np.where(error > 0, error, 1.0)


def by_chance(scores, probability=1e-3):
    """What the largest of these scores, from 40 batches, exceeds with this probability."""
    return student_t.isf(probability / 2 / len(scores), 39)


def statistics(net, slots, weights, bias, tau2, noise, **_):
    flat = np.zeros(net.n_weights)
    flat[slots] = weights
    moments = [flat[0], flat[0] ** 2, flat[-1], flat[-1] ** 2, (flat**2).sum()]
    return [*(flat != 0), len(slots), *moments, bias[-1] ** 2, *np.log(tau2), np.log(noise).mean()]


@pytest.mark.parametrize("name", CASES)
def test_prior_and_chain_agree_in_gewekes_test(name):
    scores = geweke_scores(*CASES[name], n_steps=4_000, seed=11)
    assert np.abs(scores).max() < 4.5


# One number and a variable of two levels.
GROUPED = {
    "linear": (Architecture(3, (), 1), "gaussian"),
    "network": (Architecture(3, (1,), 1), "gaussian"),
    "logistic network": (Architecture(3, (1,), 1), "bernoulli"),
}


@pytest.mark.parametrize("name", GROUPED)
def test_the_prior_of_levels_and_the_chain_agree_in_gewekes_test(name):
    net, likelihood = GROUPED[name]
    scores = geweke_scores(net, likelihood, 0.0, 2_000, 15, groups=np.array([0, 1, 1]))
    assert np.abs(scores).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPED)
def test_the_prior_of_levels_and_the_chain_agree_in_a_long_run(name):
    net, likelihood = GROUPED[name]
    scores = geweke_scores(net, likelihood, 0.0, 60_000, 16, groups=np.array([0, 1, 1]))
    assert np.abs(scores).max() < by_chance(scores)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_prior_and_chain_agree_in_a_long_run_of_gewekes_test(name):
    scores = geweke_scores(*CASES[name], n_steps=60_000, seed=12)
    assert np.abs(scores).max() < by_chance(scores)


LIMITS = {
    "a direction": ([0, 0], [0, 0], [1, 0]),
    "two directions": ([0, 0], [0, 0], [1, -1]),
    "a line": ([1, 0], [0, 0], [0, 0]),
    "an included covariate": ([0, 0], [1, 0], [0, 0]),
    "everything": ([0, 1], [1, 0], [-1, 1]),
    "no interaction": ([0, 0], [0, 0], [0, 0]),
}


def limits_of(name):
    linear, include, sign = (np.array(each) for each in LIMITS[name])
    apart = ~np.eye(2, dtype=bool) if name == "no interaction" else None
    return Limits(
        linear.astype(bool), include.astype(bool), sign.astype(np.int8), n_outputs=1, apart=apart
    )


@pytest.mark.parametrize("name", LIMITS)
def test_the_prior_within_limits_and_the_chain_agree_in_gewekes_test(name):
    net = Architecture(2, (2,), 1)
    scores = geweke_scores(net, "gaussian", 0.0, 1_000, 13, limits_of(name))
    assert np.abs(scores).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_the_prior_within_limits_and_the_chain_agree_in_a_long_run(name):
    net = Architecture(2, (1, 1), 1)
    scores = geweke_scores(net, "bernoulli", 0.0, 60_000, 14, limits_of(name))
    assert np.abs(scores).max() < by_chance(scores)


SIZES = {"short": (16, 25, 40), "long": (400, 99, 400)}


@pytest.mark.parametrize("size", ["short", pytest.param("long", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["logistic", "Gaussian network", "Poisson network"])
def test_ranks_of_true_values_are_uniform(name, size):
    """Simulation-based calibration: the truth is one more draw of its posterior."""
    net, likelihood, df = CASES[name]
    n_tables, n_draws, every = SIZES[size][0], SIZES[size][1], 5
    rng = np.random.default_rng(4)
    prior = ChainPrior(
        tau_shape=6.0, tau_scale=4.0, noise_shape=6.0, noise_scale=2.0, bias_sd=0.7, df=df
    )
    truths = draw_prior(net, prior, n_tables, rng)
    ranks = []
    for weights, biases, _, noise in zip(*truths, strict=True):
        x = rng.standard_normal((30, net.n_covariates))
        eta = forward(net, weights, biases, x)
        y = simulate(likelihood, eta, noise, rng)
        (draws,) = sample_chains(
            Problem(x, y),
            likelihood,
            net,
            [empty_start(net, tau2=0.5, noise=0.4)],
            seed=int(rng.integers(2**31)),
            n_draws=n_draws,
            n_warm_up=SIZES[size][2],
            every=every,
            prior=prior,
            effort=Effort(toggles=6, edges=6, units=4),
        )
        drawn = draws.predictor(net, x[:1])[:, 0, 0]
        ranks.append((drawn < eta[0, 0]).mean())
    assert kstest(ranks, "uniform").pvalue > 0.001
