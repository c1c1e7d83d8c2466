"""Chains against exact posteriors, and Geweke's test of the transition kernel."""

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
from islab.learn.sample import ChainPrior, Effort, Start, sample_chains
from islab.learn.sample.chains import make_chain
from tests.learn.sample.exact import (
    draw_prior,
    linear_posterior,
    logistic_inclusion,
    structures,
)


def empty_start(net, tau2=1.0, noise=1.0):
    return Start(
        slots=np.zeros(0, dtype=np.intp),
        weights=np.zeros(0),
        bias=np.zeros(net.n_units),
        tau2=np.full(len(net.blocks), tau2),
        noise=np.full(net.n_outputs, noise),
    )


def correlated(rng, n, v, correlation):
    shared = rng.standard_normal((n, 1))
    return np.sqrt(1 - correlation) * rng.standard_normal((n, v)) + np.sqrt(correlation) * shared


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.99])
def test_linear_models_have_the_inclusion_probabilities_of_enumeration(correlation):
    rng = np.random.default_rng(5)
    x = correlated(rng, 60, 6, correlation)
    y = 0.5 * x[:, 0] + 0.25 * x[:, 1] + rng.standard_normal(60)
    y = (y - y.mean()) / y.std()
    weight = rng.uniform(0.5, 2, 60)
    inclusion, pairs = linear_posterior(x, y, weight, ChainPrior())
    net = Architecture(6, (), 1)
    problem = Problem(x, y[:, None], weight)
    (draws,) = sample_chains(
        problem, "gaussian", net, [empty_start(net)], seed=1, n_draws=5000, n_warm_up=200
    )
    used = draws.uses_covariate(net).astype(float)
    assert np.abs(used.mean(axis=0) - inclusion).max() < 0.02
    assert np.abs(used.T @ used / len(used) - pairs).max() < 0.03


def test_an_offset_of_a_gaussian_model_is_taken_off_the_target():
    rng = np.random.default_rng(5)
    x, offset = rng.standard_normal((60, 6)), 3 * rng.standard_normal((60, 1))
    y = 0.5 * x[:, :1] + rng.standard_normal((60, 1))
    net = Architecture(6, (2,), 1)
    moved, plain = (
        sample_chains(problem, "gaussian", net, [empty_start(net)], seed=1, n_draws=50)[0]
        for problem in (Problem(x, y + offset, offset=offset), Problem(x, y))
    )
    np.testing.assert_array_equal(moved.slots, plain.slots)
    np.testing.assert_allclose(moved.weights, plain.weights, atol=1e-4)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_covariates_of_one_variable_have_the_inclusion_probabilities_of_enumeration(correlation):
    rng = np.random.default_rng(5)
    x = correlated(rng, 60, 6, correlation)
    y = 0.4 * x[:, 0] + 0.3 * x[:, 1] + 0.3 * x[:, 3] + rng.standard_normal(60)
    y = (y - y.mean()) / y.std()
    groups = np.array([0, 1, 1, 1, 2, 2])
    inclusion, pairs = linear_posterior(x, y, np.ones(60), ChainPrior(), groups)
    net = Architecture(6, (), 1)
    problem = Problem(x, y[:, None], groups=groups)
    (draws,) = sample_chains(
        problem, "gaussian", net, [empty_start(net)], seed=1, n_draws=5000, n_warm_up=200
    )
    used = draws.uses_covariate(net).astype(float)
    assert np.abs(used.mean(axis=0) - inclusion).max() < 0.02
    assert np.abs(used.T @ used / len(used) - pairs).max() < 0.03


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_logistic_models_have_the_inclusion_probabilities_of_quadrature(correlation, offset):
    rng = np.random.default_rng(2)
    x = correlated(rng, 25, 2, correlation)
    shift = 2 * rng.standard_normal(25) if offset else np.zeros(25)
    y = (rng.random(25) < 1 / (1 + np.exp(-1.2 * x[:, 0] - shift))).astype(float)
    known = ChainPrior(tau_shape=1e6, tau_scale=1e6, bias_sd=1.0)
    net = Architecture(2, (), 1)
    (draws,) = sample_chains(
        Problem(x, y[:, None], offset=shift[:, None] if offset else None),
        "bernoulli",
        net,
        [empty_start(net)],
        seed=1,
        n_draws=6000,
        prior=known,
    )
    expected = logistic_inclusion(x, y, 1.0, known, shift)
    assert np.abs(draws.uses_covariate(net).mean(axis=0) - expected).max() < 0.02


def test_draws_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3))
    net = Architecture(3, (2,), 1)
    problem = Problem(x, np.abs(x[:, :1]))
    options = {"seed": 3, "n_draws": 30, "n_warm_up": 10}
    starts = [empty_start(net)] * 3
    one, several = (
        sample_chains(problem, "gaussian", net, starts, n_jobs=n_jobs, **options)
        for n_jobs in (1, 3)
    )
    for a, b in zip(one, several, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)
        np.testing.assert_array_equal(a.slots, b.slots)
    assert (one[0].ends[-1], one[0].weights.sum()) != (one[1].ends[-1], one[1].weights.sum())


def test_a_chain_goes_on_from_its_state_as_if_it_had_not_stopped():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3))
    net = Architecture(3, (2, 2), 1)
    problem = Problem(x, np.abs(x[:, :1]))
    options = {"every": 1, "warming": False, "keep_rows": False}
    options |= {"toggles": 4, "edges": 4, "units": 2, "parts": 4, "largest_part": 40}
    whole, stopped, resumed = (
        make_chain(problem, "gaussian", net, empty_start(net), seed, ChainPrior(df=4.0))
        for seed in (1, 1, 99)
    )
    expected = whole.run(steps=40, **options)
    stopped.run(steps=15, **options)
    resumed.restore(stopped.state())
    rest = resumed.run(steps=25, **options)
    np.testing.assert_array_equal(rest["weights"], expected["weights"][-len(rest["weights"]) :])
    np.testing.assert_array_equal(rest["noise"], expected["noise"][-25:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slots": np.array([0]), "weights": np.array([1.0])}, "no active path"),
        ({"slots": np.array([99]), "weights": np.array([1.0])}, "outside the network"),
        ({"slots": np.array([4, 4]), "weights": np.ones(2)}, "stands twice"),
        ({"bias": np.zeros(7)}, "one bias for each unit"),
        ({"noise": np.zeros(1)}, "must be positive"),
    ],
)
def test_impossible_starts_are_refused(change, message):
    net = Architecture(2, (2,), 1)
    values = {**vars(empty_start(net)), **change}
    with pytest.raises(ValueError, match=message):
        make_chain(
            Problem(np.ones((3, 2)), np.ones((3, 1))),
            "gaussian",
            net,
            Start(**values),
            1,
            ChainPrior(),
        )


@pytest.mark.parametrize(
    "prior",
    [
        ChainPrior(),
        ChainPrior(inclusion_a=2.0, inclusion_b=3.0),
        ChainPrior(hidden_width=5.0),
        ChainPrior(price=0.7),
        ChainPrior(by_variable=False),
    ],
    ids=["flat", "Beta(2, 3)", "as wide as 5", "price", "no choice of variables"],
)
@pytest.mark.parametrize("hidden", [(2,), (1, 1)])
def test_without_data_structures_follow_the_prior(prior, hidden):
    net = Architecture(2, hidden, 1)
    rng = np.random.default_rng(3)
    problem = Problem(rng.standard_normal((5, 2)), np.zeros((5, 1)), np.full(5, 1e-12))
    (draws,) = sample_chains(
        problem, "gaussian", net, [empty_start(net)], seed=2, n_draws=12_000, prior=prior
    )
    masks, probabilities = structures(net, prior)
    found = (draws.dense(np.arange(draws.n_draws), net.n_weights) != 0).mean(axis=0)
    np.testing.assert_allclose(found, probabilities @ masks, atol=0.03)
    sizes = np.bincount(draws.sizes, minlength=net.n_weights + 1) / draws.n_draws
    expected = np.bincount(masks.sum(axis=1), probabilities, minlength=net.n_weights + 1)
    np.testing.assert_allclose(sizes, expected, atol=0.03)


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
@pytest.mark.parametrize(
    "prior",
    [ChainPrior(), ChainPrior(hidden_width=5.0, price=0.7), ChainPrior(by_variable=False)],
    ids=["flat", "as wide as 5, price", "no choice of variables"],
)
def test_without_data_variables_of_several_covariates_follow_the_prior(prior, likelihood):
    net, groups = Architecture(3, (1,), 1), np.array([0, 1, 1])
    rng = np.random.default_rng(3)
    problem = Problem(
        rng.standard_normal((5, 3)), np.zeros((5, 1)), np.full(5, 1e-12), groups=groups
    )
    (draws,) = sample_chains(
        problem, likelihood, net, [empty_start(net)], seed=2, n_draws=12_000, prior=prior
    )
    masks, probabilities = structures(net, prior, groups)
    found = (draws.dense(np.arange(draws.n_draws), net.n_weights) != 0).astype(float)
    expected = masks * probabilities[:, None]
    np.testing.assert_allclose(found.mean(axis=0), expected.sum(axis=0), atol=0.03)
    np.testing.assert_allclose(found.T @ found / len(found), expected.T @ masks, atol=0.03)


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


def test_a_chain_goes_on_where_a_proposal_has_no_curvature():
    # Twice the same columns, hardly any noise and wide slabs: sums of squares are singular in
    # double precision, so that a unit in the first of two layers cannot be proposed.
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20, 3))
    y = np.maximum(x[:, :1], 0)
    net = Architecture(6, (3, 3), 1)
    problem = Problem(np.hstack([x, x]), (y - y.mean()) / y.std())
    start = empty_start(net, tau2=1e8, noise=1e-18)
    (draws,) = sample_chains(problem, "gaussian", net, [start], seed=1, n_draws=300)
    assert draws.n_draws == 300
    assert np.isfinite(draws.log_likelihood).all()
