"""Concrete dropout: what is learned, and how strong the prior shall be."""

import numpy as np
import pytest

from islab.baselines.base import Plan
from islab.baselines.concrete import (
    LENGTH_SCALES,
    ConcreteDropoutRegressor,
    DropoutNetwork,
    best_length_scale,
    dropout_penalty,
    learn_concrete,
)
from islab.core.architecture import Architecture
from islab.core.network import forward
from islab.learn.engines import Problem

NET = Architecture(3, (4, 2), 1, input_skip=False, activation="relu")
LINEAR = Architecture(3, (), 1, input_skip=False)


def linear_problem(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    return Problem(x, x @ np.array([[0.8], [-0.6], [0.0]]) + 0.1 * rng.normal(size=(n_rows, 1)))


# -- training ------------------------------------------------------------------------------------


def some_guess(seed=0):
    return np.random.default_rng(seed).normal(size=NET.n_weights + NET.n_units)


def test_predictor_without_dropout_is_the_plain_network():
    network, guess = DropoutNetwork(NET, 1.0), some_guess()
    theta = network.start(guess)[None]
    theta[:, -NET.n_layers :] = -30.0
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8, 3))
    eta, _ = network.gradient(theta, x, np.ones_like, rng)
    expected = forward(NET, guess[: NET.n_weights], guess[NET.n_weights :], x)
    np.testing.assert_allclose(eta[0], expected, atol=1e-10)


def test_penalty_of_a_network_is_the_sum_over_its_layers():
    network, guess = DropoutNetwork(NET, 1.5), some_guess()
    expected = 0.0
    for layer, block in enumerate(NET.blocks):
        bias = guess[NET.n_weights :][NET.units[layer]]
        square = (guess[block.weights] ** 2).sum() + (bias**2).sum()
        expected += dropout_penalty(square, np.float64(0.1), block.n_sources, length_scale=1.5)
    assert network.penalty(network.start(guess)[None])[0] == pytest.approx(expected)


def test_replicas_have_length_scales_of_their_own():
    theta = np.tile(DropoutNetwork(NET, 1.0).start(some_guess()), (2, 1))
    alone = [DropoutNetwork(NET, scale).penalty(theta[:1])[0] for scale in (1.0, 4.0)]
    together = DropoutNetwork(NET, np.array([1.0, 4.0])).penalty(theta)
    np.testing.assert_allclose(together, alone)


@pytest.fixture(scope="module")
def of_signal():
    plan = Plan(linear_problem(), "gaussian", LINEAR, batch_size=100, n_steps=400, rate=0.03)
    return learn_concrete(plan, length_scale=0.1).weights


def test_linear_signal_is_found(of_signal):
    np.testing.assert_allclose(of_signal.mu, [0.8, -0.6, 0.0], atol=0.05)


def test_noise_around_the_signal_is_found(of_signal):
    assert of_signal.noise[0] == pytest.approx(0.01, abs=0.01)


def test_clear_signal_is_hardly_dropped(of_signal):
    assert of_signal.dropout[0] < 0.05


def test_inputs_that_say_nothing_are_dropped_like_a_fair_coin():
    x, y = linear_problem().x, np.random.default_rng(3).normal(size=(200, 1))
    y -= x @ np.linalg.lstsq(x, y)[0]
    plan = Plan(Problem(x, y), "gaussian", LINEAR, batch_size=200, n_steps=400, rate=0.05)
    nothing = learn_concrete(plan, length_scale=3.0)
    assert nothing.weights.dropout[0] == pytest.approx(0.5, abs=0.05)


def test_same_seed_gives_the_same_weights():
    plan = Plan(linear_problem(), "gaussian", NET, batch_size=50, n_steps=20, rate=0.01, seed=3)
    one, two = (learn_concrete(plan, length_scale=1.0).weights for _ in range(2))
    assert (one.mu == two.mu).all()


def test_weights_of_constant_covariates_are_zero_and_not_counted():
    problem = linear_problem()
    problem.x[:, 2] = 0.0
    plan = Plan(problem, "gaussian", NET, batch_size=50, n_steps=20, rate=0.01)
    found = learn_concrete(plan, length_scale=1.0, varies=np.array([True, True, False])).weights
    assert (NET.covariate_matrix(found.mu)[:, 2] == 0).all()
    assert found.median().covariates.tolist() == [0, 1]


def test_history_has_the_objective_and_expected_weights():
    plan = Plan(linear_problem(), "gaussian", NET, batch_size=50, n_steps=120, rate=0.01)
    learned = learn_concrete(plan, length_scale=1.0)
    assert learned.history.column("step").tolist() == [50, 100, 120]
    assert learned.history.column("nll")[-1] < learned.history.column("nll")[0]
    last = learned.history.column("used_weights")[-1]
    assert last == pytest.approx(learned.weights.keep_probability().sum(), rel=1e-5)


def test_where_there_is_nothing_to_learn_the_longest_scale_is_chosen():
    rng = np.random.default_rng(0)
    nothing = Problem(rng.normal(size=(40, 10)), rng.normal(size=(40, 1)))
    net = Architecture(10, (), 1, False)
    plan = Plan(nothing, "gaussian", net, batch_size=40, n_steps=200, rate=0.05)
    assert best_length_scale(plan) == max(LENGTH_SCALES)


def test_where_there_is_much_to_learn_the_longest_scale_is_not_chosen():
    plan = Plan(linear_problem(60), "gaussian", LINEAR, batch_size=60, n_steps=200, rate=0.05)
    assert best_length_scale(plan) < max(LENGTH_SCALES)


# -- the face ------------------------------------------------------------------------------------


def test_used_weights_are_the_expected_number_rounded():
    problem = linear_problem()
    model = ConcreteDropoutRegressor(
        hidden_layer_sizes=(4,), length_scale=1.0, max_epochs=10, n_draws=10, random_state=0
    ).fit(problem.x, problem.y[:, 0])
    expected = model.posterior_.keep_probability().sum()
    assert model.n_expected_weights_ == pytest.approx(expected)
    assert model.n_used_weights_ == round(expected)


def test_length_scale_must_be_positive():
    with pytest.raises(ValueError, match="Got length_scale=0, expected 'auto' or a positive"):
        ConcreteDropoutRegressor(length_scale=0).fit(np.eye(8), np.arange(8.0))


def test_the_chosen_length_scale_gives_the_same_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    options = {"hidden_layer_sizes": 4, "max_epochs": 20, "random_state": 0}
    chose = ConcreteDropoutRegressor(**options).fit(X, y)
    given = ConcreteDropoutRegressor(length_scale=chose.chosen_["length_scale"], **options)
    np.testing.assert_array_equal(given.fit(X, y).predict(X), chose.predict(X))
    assert given.chosen_ == {}
