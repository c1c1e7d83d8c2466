"""Descent: gradients, batches, replicas, Adam with exact zeros, and numbers that are not finite."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from islab.baselines.base import Plan
from islab.baselines.concrete import DropoutNetwork
from islab.baselines.cross_validation import fold_weights
from islab.baselines.descent import Descent, PlainNetwork, ProximalAdam, first_guess
from islab.baselines.horseshoe import HorseshoeNetwork
from islab.core.architecture import Architecture
from islab.core.network import forward
from islab.learn.engines import Problem
from islab.learn.loop import TrainingError

NET = Architecture(6, (3,), 1)


def constant(share):
    return np.ones_like(share)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def some_problem(rng, n_rows=40):
    x = rng.standard_normal((n_rows, 6))
    return Problem(x, 1.5 * x[:, :1] - x[:, 1:2] + 0.3 * rng.standard_normal((n_rows, 1)))


def some_replicas(problem, seed=1, n_steps=30, batch_size=16):
    rng = np.random.default_rng(seed)
    row_weight = fold_weights(problem, 5, rng)
    plan = Plan(problem, "gaussian", NET, batch_size, n_steps, 0.05, seed)
    return Descent(PlainNetwork(NET), first_guess(plan, rng), plan, row_weight=row_weight)


# -- networks ------------------------------------------------------------------------------------


def make_network(kind, net):
    return {
        "plain": lambda: PlainNetwork(net, 0.7),
        "dropout": lambda: DropoutNetwork(net, np.array([1.5, 0.5])),
        "horseshoe": lambda: HorseshoeNetwork(net, 0.5),
    }[kind]()


def some_parameters(network, rng):
    net = network.architecture
    guess = rng.standard_normal(net.n_weights + net.n_units)
    start = guess if isinstance(network, PlainNetwork) else network.start(guess)
    return start + 0.3 * rng.standard_normal((2, np.shape(start)[-1]))


def differences(function, theta, step=1e-5):
    """Slopes of a function of one replica's parameters, for each replica."""
    slopes = np.empty_like(theta)
    for place in np.ndindex(theta.shape):
        values = []
        for sign in (1, -1):
            moved = theta.copy()
            moved[place] += sign * step
            values.append(function(moved)[place[0]])
        slopes[place] = (values[0] - values[1]) / (2 * step)
    return slopes


@pytest.mark.parametrize("input_skip", [True, False])
@pytest.mark.parametrize("kind", ["plain", "dropout", "horseshoe"])
def test_gradient_is_that_of_differences(rng, kind, input_skip):
    network = make_network(kind, Architecture(3, (4, 2), 2, input_skip, "tanh"))
    theta, x = some_parameters(network, rng), rng.standard_normal((5, 3))
    flow = rng.standard_normal((2, 5, 2))

    def loss(moved):
        eta, _ = network.gradient(moved, x, lambda eta: flow, np.random.default_rng(1))
        return (flow * eta).sum(axis=(1, 2))

    _, gradient = network.gradient(theta, x, lambda eta: flow, np.random.default_rng(1))
    np.testing.assert_allclose(gradient, differences(loss, theta), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["dropout", "horseshoe"])
def test_penalty_gradient_is_that_of_differences(rng, kind):
    network = make_network(kind, Architecture(3, (4, 2), 2, False, "tanh"))
    theta = some_parameters(network, rng)
    expected = differences(network.penalty, theta)
    np.testing.assert_allclose(network.penalty_gradient(theta), expected, atol=1e-5, rtol=1e-4)


def test_a_network_of_sigmoids_starts_as_one_of_tanh_units_that_pass_on_what_they_receive(rng):
    problem = some_problem(rng)
    net, other = (Architecture(6, (5, 4, 3), 1, activation=name) for name in ("sigmoid", "tanh"))
    plans = (Plan(problem, "gaussian", each, 40, 1, 0.1) for each in (net, other))
    start, same = (first_guess(plan, np.random.default_rng(1)) for plan in plans)
    weights, biases = np.split(same, [net.n_weights])
    for block in net.blocks:
        if block.source == "covariate" and block.layer < 3:
            weights[block.weights] /= 2
        elif block.source == "hidden" and block.layer == 3:
            weights[block.weights] *= 2
    biases[:-1] /= 2
    np.testing.assert_allclose(
        forward(net, *np.split(start, [net.n_weights]), problem.x),
        forward(other, weights, biases, problem.x),
        rtol=1e-12,
    )


def test_predictor_of_many_rows_is_that_of_the_network(rng, monkeypatch):
    monkeypatch.setattr("islab.baselines.descent.ROWS_AT_ONCE", 7)
    theta, x = rng.standard_normal((2, NET.n_weights + NET.n_units)), rng.standard_normal((40, 6))
    expected = forward(NET, theta[:, : NET.n_weights], theta[:, NET.n_weights :], x)
    np.testing.assert_allclose(PlainNetwork(NET).predictor(theta, x), expected)


# -- replicas ------------------------------------------------------------------------------------


def test_a_replica_does_not_see_its_fold(rng):
    problem = some_problem(rng)
    first, second = some_replicas(problem), some_replicas(problem)
    second.y[first.row_weight[2] == 0] += 1
    for replicas in (first, second):
        replicas.train(30, constant)
    np.testing.assert_array_equal(first.theta[2], second.theta[2])
    assert (first.theta[1] != second.theta[1]).any()


def test_a_replica_is_the_network_fitted_to_its_rows_alone(rng):
    problem = some_problem(rng)
    replicas = some_replicas(problem, n_steps=20, batch_size=40)
    seen = replicas.row_weight[3] > 0
    rows = Problem(problem.x[seen], problem.y[seen])
    start = replicas.theta[0].copy()
    alone = Descent(PlainNetwork(NET), start, replace(replicas.plan, problem=rows))
    for each in (replicas, alone):
        each.train(20, constant, strength=0.01)
    np.testing.assert_allclose(replicas.theta[3], alone.theta[0], rtol=1e-4, atol=1e-5)


def test_a_row_of_weight_two_counts_as_two_rows(rng):
    problem = some_problem(rng)
    twice = Problem(np.tile(problem.x, (2, 1)), np.tile(problem.y, (2, 1)))
    weighted = Problem(problem.x, problem.y, np.full(40, 2.0))
    found = []
    for data in (twice, weighted):
        plan = Plan(data, "gaussian", NET, 1000, 10, 0.05)
        guess = first_guess(plan, np.random.default_rng(0))
        descent = Descent(PlainNetwork(NET, 3.0), guess, plan)
        descent.train(10, constant)
        found.append(descent.theta)
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-5)


def test_a_short_batch_counts_by_its_rows(rng):
    problem = some_problem(rng, 41)
    plan, steps = Plan(problem, "gaussian", NET, 20, 3, 0.05), []
    guess = first_guess(plan, np.random.default_rng(0))
    descent = Descent(PlainNetwork(NET, 3.0), guess, plan)
    descent.adam.step = lambda theta, gradient, rate, strength: steps.append((gradient, strength))
    descent.train(3, constant, strength=0.1)
    whole = PlainNetwork(NET, 3.0).penalty_gradient(descent.theta)
    _, of_rows = descent.network.gradient(
        descent.theta, descent.x, lambda eta: eta - descent.y, np.random.default_rng(0)
    )
    total, strength = (sum(part) for part in zip(*steps, strict=True))
    np.testing.assert_allclose(total * 20 / 41, (of_rows + whole) / 41, rtol=1e-4, atol=1e-6)
    assert strength == pytest.approx(0.1 * 41 / 20)


def test_ridge_regression_is_the_optimum_under_a_prior(rng):
    problem, net = some_problem(rng), Architecture(6, (), 1)
    precision = np.append(np.full(6, 5.0), 0.0)
    plan = Plan(problem, "gaussian", net, 40, 500, 0.1)
    descent = Descent(PlainNetwork(net, precision), np.zeros(7), plan)
    descent.train(500, lambda share: 1 - share)
    design = np.column_stack([problem.x, np.ones(40)])
    exact = np.linalg.solve(design.T @ design + np.diag(precision), design.T @ problem.y)
    np.testing.assert_allclose(descent.theta, exact.T, atol=1e-4)


def test_noise_follows_the_squared_error(rng):
    problem, net = some_problem(rng), Architecture(6, (), 1)
    plan = Plan(problem, "gaussian", net, 40, 400, 0.0)
    descent = Descent(PlainNetwork(net), np.zeros(7), plan, noise_rate=0.05)
    descent.train(400, constant)
    assert descent.noise[0, 0] == pytest.approx((problem.y**2).mean(), rel=1e-3)


class Recorded(PlainNetwork):
    """A network with a penalty of 3 and two weights in use."""

    def penalty(self, theta):
        return np.full(len(theta), 3.0)

    def n_used(self, theta):
        return 2.0


def recorded_descent(problem, rate=0.0):
    net = Architecture(6, (), 1)
    network, plan = Recorded(net), Plan(problem, "gaussian", net, 10, 120, rate)
    return Descent(network, np.zeros(7), plan, recorded=network)


def test_reports_tell_steps_and_the_likelihood_of_all_rows(rng):
    problem, reports = some_problem(rng), []
    descent = recorded_descent(problem)
    descent.train(120, constant, report=lambda *values: reports.append(values))
    assert [size for size, _ in reports] == [50, 50, 20]
    expected = 0.5 * (np.log(2 * np.pi) + problem.y**2).sum()
    assert reports[-1][1]["nll"] == pytest.approx(expected, rel=1e-4)
    assert reports[-1][1]["elbo"] == pytest.approx(-expected - 3, rel=1e-4)


def test_a_restored_descent_goes_on_with_the_same_numbers(rng):
    problem = some_problem(rng)
    network = DropoutNetwork(NET, 1.5)
    start = network.start(np.zeros(NET.n_weights + NET.n_units))
    descent = Descent(network, start, Plan(problem, "gaussian", NET, 16, 60, 0.05, seed=3))
    descent.train(30, constant)
    state, ends = descent.state(), []
    for _ in range(2):
        descent.restore(state)
        descent.train(30, constant)
        ends.append(descent.theta.copy())
    np.testing.assert_array_equal(*ends)


def test_an_interrupted_descent_is_no_result(rng):
    def stop(steps, record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recorded_descent(some_problem(rng)).train(120, constant, report=stop)


# -- numbers that are not finite -----------------------------------------------------------------


class Exploding:
    """A network whose first gradients are not finite."""

    architecture = Architecture(6, (), 1)

    def __init__(self, n_bad):
        self.n_bad = n_bad

    def gradient(self, theta, x, slope, rng):
        self.n_bad -= 1
        return np.zeros((1, len(x), 1)), np.full_like(theta, np.nan if self.n_bad >= 0 else 0.0)

    def penalty_gradient(self, theta):
        return 0 * theta


def exploding(n_bad):
    network, problem = Exploding(n_bad), some_problem(np.random.default_rng(0))
    plan = Plan(problem, "gaussian", network.architecture, 40, 50, 0.1)
    return Descent(network, np.zeros(1), plan)


def test_a_loss_that_is_never_finite_is_an_error_with_a_remedy():
    with pytest.raises(TrainingError, match="smaller learning rate"):
        exploding(10_000).train(50, constant)


def test_after_a_loss_that_is_not_finite_training_goes_on_at_half_the_rate():
    descent = exploding(1)
    descent.train(50, constant)
    assert descent.slow_down == 0.5
    assert np.isfinite(descent.theta).all()


# -- the proximal step ---------------------------------------------------------------------------


def test_without_a_penalty_the_step_is_adam():
    theta = np.linspace(-1, 1, 5)
    reference = torch.tensor(theta, requires_grad=True)
    adam = torch.optim.Adam([reference], lr=0.1, betas=(0.9, 0.99))
    ours = ProximalAdam(theta)
    for _ in range(10):
        reference.grad = reference.detach() ** 3 + 0.1
        adam.step()
        ours.step(theta, theta**3 + 0.1, 0.1, 0.0)
    np.testing.assert_allclose(theta, reference.detach())


def test_the_optimum_of_the_penalised_loss_is_a_fixed_point():
    gradient = np.array([-0.3, 0.3, 0.1, -0.2])  # 0.3 at non-zeros, less at zeros
    optimum = np.array([2.0, -0.5, 0.0, 0.0])
    theta = optimum.copy()
    adam = ProximalAdam(theta)
    for _ in range(20):
        adam.step(theta, gradient, 0.05, 0.3)
    np.testing.assert_allclose(theta, optimum, rtol=0, atol=1e-5)
