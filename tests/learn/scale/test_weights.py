"""Weights given all rows: modes, evidence and draws against closed forms and against chains."""

import numpy as np
import pytest
from scipy import stats

from islab.core.architecture import Architecture
from islab.core.drawn import DrawnNetworks
from islab.core.priors import BIAS_TAU
from islab.learn.engines import Problem
from islab.learn.scale.passes import ArrayRows
from islab.learn.scale.weights import Structures, climb


@pytest.fixture(autouse=True)
def to_the_top(monkeypatch):
    monkeypatch.setattr("islab.learn.scale.weights.TOLERANCE", 1e-4)


def linear(n_rows=400, seed=0, likelihood="gaussian"):
    """A linear model of three covariates, all in use, from a poor start."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    eta = x @ [1.0, -0.5, 0.2] + 0.3
    y = eta + 0.7 * rng.normal(size=n_rows)
    if likelihood == "poisson":
        y = rng.poisson(np.exp(eta)).astype(float)
    net = Architecture(3, (), 1)
    networks = DrawnNetworks.from_dense(net, 0.01 * np.ones((1, 3)), np.zeros((1, 1)))
    structures = Structures(networks, np.ones((1, 1)), np.full((1, 1), 2.0), likelihood)
    return structures, Problem(x, y[:, None])


def test_the_mode_of_a_linear_model_is_ridge_regression():
    structures, problem = linear()
    found = climb(structures, ArrayRows(problem), 30)[0]
    noise = np.exp(found.mode[-1])
    design = np.hstack([problem.x, np.ones((problem.n_rows, 1))])
    penalty = np.diag([0.5, 0.5, 0.5, BIAS_TAU**-2])
    exact = np.linalg.solve(design.T @ design / noise + penalty, design.T @ problem.y / noise)
    np.testing.assert_allclose(found.mode[:4], exact[:, 0], atol=2e-3)
    error = problem.y - design @ exact
    np.testing.assert_allclose(noise, (error**2).mean(), rtol=2e-2)


def test_evidences_differ_as_those_of_closed_forms():
    structures, problem = linear(n_rows=500)
    rows = ArrayRows(problem)

    def evidence(slots):
        flat = np.zeros((1, 3))
        flat[0, slots] = 0.01
        net = structures.networks.architecture
        own = Structures(
            DrawnNetworks.from_dense(net, flat, np.zeros((1, 1))),
            np.full((1, 1), 0.49),
            structures.tau2,
            "gaussian",
        )
        # The constant of the weights' prior is not in it: it is the same for the same structure.
        return climb(own, rows, 30)[0].evidence

    def exact(slots):
        design = np.hstack([problem.x[:, slots], np.ones((problem.n_rows, 1))])
        noise = ((problem.y - design @ np.linalg.lstsq(design, problem.y)[0]) ** 2).mean()
        scales = np.array([2.0] * len(slots) + [BIAS_TAU**2])
        covariance = noise * np.eye(problem.n_rows) + (design * scales) @ design.T
        return stats.multivariate_normal(cov=covariance).logpdf(problem.y[:, 0])

    # Noise is integrated in one and known in the other, nearly the same for both structures.
    difference = evidence([0, 1, 2]) - evidence([0, 1])
    np.testing.assert_allclose(difference, exact([0, 1, 2]) - exact([0, 1]), atol=0.3)


def test_draws_have_the_covariance_of_the_posterior():
    structures, problem = linear(n_rows=1000, likelihood="poisson")
    found = climb(structures, ArrayRows(problem), 30)[0]
    theta, _ = found.draws(20_000, np.random.default_rng(0))
    design = np.hstack([problem.x, np.ones((problem.n_rows, 1))])
    rate = np.exp(design @ found.mode[:4])
    exact = np.linalg.inv(
        (design * rate[:, None]).T @ design + np.diag([0.5, 0.5, 0.5, BIAS_TAU**-2])
    )
    np.testing.assert_allclose(np.cov(theta.T), exact, atol=0.04 * exact.max())


def test_log_likelihoods_of_draws_are_those_of_all_rows():
    structures, problem = linear(n_rows=5000)
    found = climb(structures, ArrayRows(problem), 30)[0]
    theta, told = found.draws(50, np.random.default_rng(0))
    noise = np.exp(theta[:, 4:])
    eta = problem.x @ theta[:, :3].T + theta[:, 3]
    exact = stats.norm.logpdf(problem.y, eta, np.sqrt(noise[:, 0])).sum(axis=0)
    np.testing.assert_allclose(told, exact, atol=0.5)


def bent(n_rows=3000, seed=0):
    """A network with one hidden unit, and structures that start near it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 2))
    y = np.maximum(x[:, 0] - 0.3, 0.01 * (x[:, 0] - 0.3)) * 1.5 + 0.4 * x[:, 1]
    y = y + 0.5 * rng.normal(size=n_rows)
    net = Architecture(2, (2,), 1)
    weights = np.zeros((1, net.n_weights))
    weights[0, [0, 5, 6]] = 1.3, 0.2, 0.8  # the unit reads x0; the output x1 and the unit
    networks = DrawnNetworks.from_dense(net, weights, np.array([[-0.1, 0.0, 0.1]]))
    structures = Structures(networks, np.ones((1, 1)), np.ones((1, 3)), "gaussian")
    return structures, Problem(x, y[:, None])


def test_a_bent_network_is_found():
    structures, problem = bent()
    found = climb(structures, ArrayRows(problem), 30)[0]
    at = structures.at([found.mode]).networks.dense()
    grid = np.column_stack([np.linspace(-2, 2, 50), np.zeros(50)])
    fitted = structures.at([found.mode]).networks.predictor(grid)[0, :, 0]
    truth = np.maximum(grid[:, 0] - 0.3, 0.01 * (grid[:, 0] - 0.3)) * 1.5
    assert np.abs(fitted - truth).max() < 0.1
    assert found.done
    assert np.count_nonzero(at[0]) == 3


def test_what_data_do_not_tell_stays_fixed():
    structures, problem = bent()
    found = climb(structures, ArrayRows(problem), 30)[0]
    theta, _ = found.draws(200, np.random.default_rng(0))
    # The unit's weights in and out may be scaled against each other: one direction less.
    assert len(found.found.sizes) == len(found.theta) - 1
    drawn = structures.take(np.zeros(200, dtype=np.intp)).at(list(theta)).networks
    spread = drawn.predictor(problem.x[:100])[..., 0].std(axis=0)
    assert spread.max() < 0.2


def test_edges_that_all_rows_show_to_be_unneeded_are_left_out():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(20_000, 4))
    x[:, 3] += 2 * x[:, 0]
    y = x @ [1.0, 0.0, 0.05, 0.0] + rng.normal(size=20_000)
    net = Architecture(4, (), 1)
    networks = DrawnNetworks.from_dense(net, np.full((1, 4), 0.1), np.zeros((1, 1)))
    structures = Structures(networks, np.ones((1, 1)), np.ones((1, 1)), "gaussian")
    found = climb(structures, ArrayRows(Problem(x, y[:, None])), 30)[0]
    out, theta = found.unneeded(structures.log_odds_of_fewer(0, np.zeros(0, np.intp)))
    assert out.tolist() == [False, True, False, True]
    kept = structures.at([theta]).without([out])
    exact = np.linalg.lstsq(np.c_[x[:, [0, 2]], np.ones(20_000)], y)[0]
    np.testing.assert_allclose(kept.networks.weights, exact[:2], atol=1e-3)
