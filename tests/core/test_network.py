"""Forward and slopes against unit-by-unit arithmetic and finite differences."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.network import (
    forward,
    preactivations,
    slopes,
)
from tests.core.test_architecture import architectures

BY_HAND = {
    "relu": lambda z: max(z, 0.0),
    "leaky_relu": lambda z: z if z > 0 else 0.01 * z,
    "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
    "tanh": math.tanh,
    "identity": lambda z: z,
}
SEEDS = st.integers(0, 2**32 - 1)


def random_values(net, seed, n_draws=None, n_rows=3):
    rng = np.random.default_rng(seed)
    lead = () if n_draws is None else (n_draws,)
    weights, biases = rng.normal(size=(*lead, net.n_weights)), rng.normal(size=(*lead, net.n_units))
    return weights, biases, rng.normal(size=(n_rows, net.n_covariates))


def predict_by_hand(net, weights, biases, row):
    hidden = []
    for layer, units in enumerate(net.units):
        inputs = [*hidden, *(row if net.input_skip or layer == 0 else ())]
        index = net.weight_index(layer)
        sums = [
            bias + sum(weights[w] * value for w, value in zip(wires, inputs, strict=True))
            for bias, wires in zip(biases[units], index, strict=True)
        ]
        if layer < len(net.hidden):
            hidden = [BY_HAND[net.activation_names[layer]](z) for z in sums]
    return sums


@given(architectures(), SEEDS)
@settings(max_examples=150, deadline=None)
def test_forward_is_the_arithmetic_of_every_unit(net, seed):
    weights, biases, x = random_values(net, seed)
    expected = [predict_by_hand(net, weights, biases, row) for row in x]
    np.testing.assert_allclose(forward(net, weights, biases, x), expected, atol=1e-12)


@given(architectures(), SEEDS)
@settings(max_examples=50, deadline=None)
def test_draws_at_once_equal_draws_one_by_one(net, seed):
    weights, biases, x = random_values(net, seed, n_draws=4)
    together = slopes(net, weights, biases, x)
    alone = [slopes(net, w, b, x) for w, b in zip(weights, biases, strict=True)]
    for part, parts in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(part, np.stack(parts), atol=1e-12)


@pytest.mark.parametrize("numbers_in_cache", [1, 24, 1000])
def test_draws_are_the_same_however_few_pass_at_once(numbers_in_cache, monkeypatch):
    net = Architecture(2, (3,), 1)
    weights, biases, x = random_values(net, 0, n_draws=5)
    expected = preactivations(net, weights, biases, x)[..., -1:]
    monkeypatch.setattr("islab.core.network.NUMBERS_IN_CACHE", numbers_in_cache)
    np.testing.assert_array_equal(forward(net, weights, biases, x), expected)
    of_one_bias = preactivations(net, weights, biases[0], x)[..., -1:]
    np.testing.assert_array_equal(forward(net, weights, biases[0], x), of_one_bias)


def test_one_bias_vector_serves_all_draws_of_the_weights():
    net = Architecture(2, (3,), 1)
    weights, biases, x = random_values(net, 0, n_draws=4)
    expected = forward(net, weights, np.broadcast_to(biases[0], biases.shape), x)
    np.testing.assert_array_equal(forward(net, weights, biases[0], x), expected)


def test_last_preactivations_are_the_predictor():
    net = Architecture(2, (3,), 2)
    values = random_values(net, 0)
    np.testing.assert_array_equal(preactivations(net, *values)[..., -2:], forward(net, *values))


def test_no_rows_give_no_predictions():
    net = Architecture(2, (3,), 1)
    eta, beta = slopes(net, *random_values(net, 0, n_rows=0))
    assert eta.shape == (0, 1)
    assert beta.shape == (0, 1, 2)


def test_single_precision_weights_give_nearly_the_same_predictor():
    net = Architecture(4, (5, 5), 2)
    values = random_values(net, 0)
    single = forward(net, *(array.astype(np.float32) for array in values))
    np.testing.assert_allclose(single, forward(net, *values), rtol=1e-4, atol=1e-5)


@given(architectures(), SEEDS)
@settings(max_examples=150, deadline=None)
def test_slopes_come_with_the_predictor_of_forward(net, seed):
    values = random_values(net, seed, n_draws=2)
    np.testing.assert_allclose(slopes(net, *values)[0], forward(net, *values), atol=1e-13)


@pytest.mark.parametrize("input_skip", [True, False])
@pytest.mark.parametrize("activation", families.activations())
def test_slopes_match_finite_differences(activation, input_skip):
    net = Architecture(3, (4, 3), 2, input_skip=input_skip, activation=activation)
    weights, biases, x = random_values(net, 1, n_draws=2, n_rows=5)
    _, beta = slopes(net, weights, biases, x)
    step = 1e-6
    for column in range(3):
        shift = step * np.eye(3)[column]
        up, down = (
            forward(net, weights, biases, x + shift),
            forward(net, weights, biases, x - shift),
        )
        np.testing.assert_allclose(beta[..., column], (up - down) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("activation", families.activations())
def test_activation_slope_matches_finite_differences(activation):
    function = families.activation(activation)
    z = np.array([-3.0, -0.7, -1e-3, 1e-3, 0.4, 5.0])
    step = 1e-6
    numeric = (function.value(z + step) - function.value(z - step)) / (2 * step)
    np.testing.assert_allclose(function.slope(z), numeric, atol=1e-8)
    known = function.slope(z, function.value(z))
    np.testing.assert_array_equal(known, function.slope(z))


@pytest.mark.parametrize("activation", families.activations())
def test_activations_are_finite_at_huge_values(activation):
    function, z = families.activation(activation), np.array([-1e300, -800.0, 800.0, 1e300])
    assert np.isfinite(function.value(z)).all()
    assert np.isfinite(function.slope(z)).all()


@given(architectures(families.activations(piecewise_linear=True)), SEEDS)
@settings(max_examples=100, deadline=None)
def test_linear_piece_of_a_row_holds_in_its_neighbourhood(net, seed):
    weights, biases, x = random_values(net, seed)
    near = x + 1e-9 * np.random.default_rng(seed + 1).normal(size=x.shape)
    eta, beta = slopes(net, weights, biases, x)
    intercept = eta - np.einsum("rmv,rv->rm", beta, x)
    piece = intercept + np.einsum("rmv,rv->rm", beta, near)
    np.testing.assert_allclose(piece, forward(net, weights, biases, near), atol=1e-12)


def test_linear_piece_is_exact_far_from_the_row_while_no_unit_switches():
    net = Architecture(2, (3, 2), 1, activation="relu")
    weights, biases, x = random_values(net, 3, n_rows=1)
    eta, beta = slopes(net, weights, biases, x)
    signs = preactivations(net, weights, biases, x)[:, :5] > 0
    directions = np.random.default_rng(4).normal(size=(400, 2))
    far = x + directions
    same_piece = ((preactivations(net, weights, biases, far)[:, :5] > 0) == signs).all(axis=1)
    assert same_piece.sum() > 20
    expected = eta + directions @ beta[0].T
    found = forward(net, weights, biases, far)
    np.testing.assert_allclose(found[same_piece], expected[same_piece], atol=1e-12)
