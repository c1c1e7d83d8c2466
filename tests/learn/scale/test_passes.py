"""Sums over rows against differences, and where rows come from."""

import numpy as np
import pytest

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.drawn import DrawnNetworks
from islab.learn.engines import Problem
from islab.learn.scale.passes import (
    ArrayRows,
    LogLikelihoods,
    NewtonPass,
    SeenRows,
    rows_of,
)
from islab.learn.scale.weights import Structures

NOISE = {"gaussian": 1, "ordinal": 2, "negative_binomial": 1, "student_t": 1}
NOISE |= {"zero_inflated_negative_binomial": 2, "categorical": 3, "bernoulli": 1, "poisson": 1}
NOISE |= {"heteroscedastic": 2}
OUTPUTS = {"categorical": 3, "heteroscedastic": 2}


def targets(likelihood, n_rows, rng):
    if likelihood == "categorical":
        return np.eye(3)[rng.integers(0, 3, n_rows)]
    if likelihood == "ordinal":
        return 1.0 + rng.integers(0, 4, (n_rows, 1))
    if likelihood == "bernoulli":
        return rng.integers(0, 2, (n_rows, 1)).astype(float)
    if likelihood in ("gaussian", "student_t"):
        return rng.normal(size=(n_rows, 1))
    if likelihood == "heteroscedastic":
        return np.tile(rng.normal(size=(n_rows, 1)), 2)
    return rng.poisson(2, (n_rows, 1)).astype(float)


def make(likelihood, *, activation="tanh", n_rows=200, seed=0):
    """A few networks, as structures, and a problem with weights and an offset."""
    rng = np.random.default_rng(seed)
    net = Architecture(4, (3, 2), OUTPUTS.get(likelihood, 1), True, activation)
    weights = rng.normal(size=(2, net.n_weights)) * (rng.random((2, net.n_weights)) < 0.5)
    networks = DrawnNetworks.from_dense(net, weights, 0.5 * rng.normal(size=(2, net.n_units)))
    noise = np.exp(0.3 * rng.normal(size=(2, NOISE[likelihood])))
    if not families.likelihood(likelihood).learns_noise:
        noise = np.ones_like(noise)
    y = targets(likelihood, n_rows, rng)
    problem = Problem(
        rng.normal(size=(n_rows, 4)),
        y,
        sample_weight=rng.random(n_rows),
        offset=0.3 * rng.normal(size=y.shape),
    )
    return Structures(networks, noise, np.ones((2, len(net.blocks))), likelihood), problem


def of_each(sums, networks):
    """Sums of each network."""
    return sums.by_network([len(edges) + len(units) for edges, units in networks.parameters])


def sums_at(structures, problem, theta, draw):
    one = structures.take(np.array([draw])).at([theta])
    (found,) = of_each(NewtonPass(one.networks, one.noise, one.likelihood)(problem), one.networks)
    return found


@pytest.mark.parametrize("likelihood", NOISE)
def test_gradients_are_derivatives_of_the_log_likelihood(likelihood):
    structures, problem = make(likelihood)
    for draw, climb in enumerate(structures.climbs()):
        found = sums_at(structures, problem, climb.theta, draw)
        steps = 1e-5 * np.eye(len(climb.theta))
        differences = [
            sums_at(structures, problem, climb.theta + step, draw).log_likelihood
            - sums_at(structures, problem, climb.theta - step, draw).log_likelihood
            for step in steps
        ]
        np.testing.assert_allclose(
            found.gradient, np.array(differences) / 2e-5, rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal", "zero_inflated_negative_binomial"])
def test_what_ties_noise_to_weights_are_second_derivatives(likelihood):
    structures, problem = make(likelihood)
    climb, n_noise = structures.climbs()[0], NOISE[likelihood]
    found = sums_at(structures, problem, climb.theta, 0)
    steps = 1e-5 * np.eye(len(climb.theta))[-n_noise:]
    differences = [
        sums_at(structures, problem, climb.theta + step, 0).gradient
        - sums_at(structures, problem, climb.theta - step, 0).gradient
        for step in steps
    ]
    second = -np.array(differences) / 2e-5
    np.testing.assert_allclose(found.information[-n_noise:], second, rtol=1e-3, atol=1e-2)


def test_the_information_of_a_linear_model_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    net = Architecture(3, (), 1)
    x, y = rng.normal(size=(500, 3)), rng.normal(size=(500, 1))
    networks = DrawnNetworks.from_dense(net, np.ones((1, 3)), np.zeros((1, 1)))
    sums = NewtonPass(networks, np.array([[0.5]]), "gaussian")(Problem(x, y))
    (found,) = of_each(sums, networks)
    design = np.hstack([x, np.ones((500, 1))])
    np.testing.assert_allclose(found.information[:4, :4], design.T @ design / 0.5, rtol=1e-10)


def test_threads_and_blocks_do_not_change_sums(monkeypatch):
    structures, problem = make("gaussian", n_rows=1000)
    task = NewtonPass(structures.networks, structures.noise, "gaussian")
    whole = task(problem)
    monkeypatch.setattr("islab.learn.scale.passes.ROWS_AT_ONCE", 100)
    one, two = ArrayRows(problem).total(task), ArrayRows(problem, n_jobs=2).total(task)
    np.testing.assert_array_equal(one.slopes, two.slopes)
    np.testing.assert_array_equal(one.squares, two.squares)
    first, second = (of_each(sums, structures.networks)[1] for sums in (one, whole))
    np.testing.assert_allclose(first.information, second.information, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(one.log_likelihood, whole.log_likelihood, rtol=1e-12)
    monkeypatch.setattr("islab.learn.scale.passes.NUMBERS_AT_ONCE", 500)
    np.testing.assert_allclose(task(problem).slopes, whole.slopes, rtol=1e-9, atol=1e-9)


def test_sums_of_weighted_rows_are_those_of_repeated_ones():
    structures, problem = make("poisson")
    task = LogLikelihoods(structures.networks, structures.noise, "poisson")
    counts = np.arange(problem.n_rows) % 3
    weighted = rows_of(problem, np.arange(problem.n_rows))
    object.__setattr__(weighted, "sample_weight", counts.astype(float))
    repeated = rows_of(problem, np.repeat(np.arange(problem.n_rows), counts))
    object.__setattr__(repeated, "sample_weight", None)
    np.testing.assert_allclose(task(weighted), task(repeated), rtol=1e-12)


def test_rows_are_seen_with_the_covariates_and_predictors_of_the_network():
    structures, problem = make("heteroscedastic")
    wide = Problem(np.insert(problem.x, 1, 7.0, axis=1), problem.y[:, :1])
    seen = SeenRows(ArrayRows(wide), np.array([True, False, True, True, True]), "heteroscedastic")
    task = LogLikelihoods(structures.networks, structures.noise, "heteroscedastic")
    plain = Problem(problem.x, problem.y)
    np.testing.assert_allclose(seen.total(task), task(plain), rtol=1e-12)
    assert seen.n_rows == problem.n_rows
