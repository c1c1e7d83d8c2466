"""Contributions along the way to a row: against brute force, and what they must add up to."""

from itertools import pairwise

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.integration import DRAWS_AT_ONCE, integrated_contributions
from islab.core.network import forward, slopes

SHAPES = [(), (5,), (4, 3), (3, 4, 2), (3, 0, 2)]


def drawn(net, n_draws, seed, keep=0.6):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n_draws, net.n_weights))
    weights *= rng.random(weights.shape) < keep
    return weights, rng.standard_normal((n_draws, net.n_units)), rng


def brute_force(net, weights, biases, start, end):
    """The integral for one draw and row: halve until the gradient is the same at all of a piece."""

    def gradient(share):
        return slopes(net, weights, biases, (start + share * (end - start))[None])[1][0]

    def integral(low, high):
        probes = [gradient(low + part * (high - low)) for part in (1e-9, 0.37, 0.63, 1 - 1e-9)]
        if high - low < 1e-12 or all(np.array_equal(probes[0], probe) for probe in probes):
            return (high - low) * probes[1]
        middle = (low + high) / 2
        return integral(low, middle) + integral(middle, high)

    edges = np.linspace(0, 1, 30)
    total = sum(integral(low, high) for low, high in pairwise(edges))
    return total * (end - start)


@pytest.mark.parametrize("hidden", SHAPES)
@pytest.mark.parametrize(("activation", "skip"), [("relu", True), ("leaky_relu", False)])
def test_contributions_are_the_integral_found_by_brute_force(hidden, activation, skip):
    net = Architecture(3, hidden, 2, input_skip=skip, activation=activation)
    weights, biases, rng = drawn(net, 3, seed=1)
    start, end = rng.standard_normal(3), 2 * rng.standard_normal((4, 3))
    found = integrated_contributions(net, weights, biases, start, end)
    for draw in range(3):
        for row in range(4):
            expected = brute_force(net, weights[draw], biases[draw], start, end[row])
            np.testing.assert_allclose(found[draw, row], expected, atol=1e-9)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity"])
@pytest.mark.parametrize("hidden", SHAPES)
def test_contributions_add_up_to_the_change_of_the_predictor(hidden, activation):
    net = Architecture(4, hidden, 2, activation=activation)
    weights, biases, rng = drawn(net, DRAWS_AT_ONCE + 7, seed=2)
    start, end = 2 * rng.standard_normal((2, 50, 4))
    found = integrated_contributions(net, weights, biases, start, end).sum(axis=-1)
    expected = forward(net, weights, biases, end) - forward(net, weights, biases, start)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_curved_networks_add_up_to_the_error_of_quadrature():
    net = Architecture(4, (5, 3), 1, activation="tanh")
    weights, biases, rng = drawn(net, 20, seed=3)
    weights *= 0.5
    start, end = rng.standard_normal(4), rng.standard_normal((30, 4))
    found = integrated_contributions(net, weights, biases, start, end).sum(axis=-1)
    expected = forward(net, weights, biases, end) - forward(net, weights, biases, start[None])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_contributions_are_captums():
    torch = pytest.importorskip("torch")
    attr = pytest.importorskip("captum.attr")
    net = Architecture(3, (4, 3), 1, activation="tanh")
    weights, biases, rng = drawn(net, 1, seed=4)
    start, end = rng.standard_normal(3), rng.standard_normal((5, 3))

    def predictor(x):
        own, hidden = torch.tensor(weights[0]), torch.zeros(len(x), 0)
        for layer in range(net.n_layers):
            bias = torch.tensor(biases[0, net.units[layer]])
            inputs = torch.cat([hidden, x], dim=1)
            sums = inputs @ own[net.weight_index(layer)].T + bias
            hidden = torch.tanh(sums)
        return sums[:, 0]

    captum = attr.IntegratedGradients(predictor).attribute(
        torch.tensor(end), torch.tensor(start)[None], n_steps=64, method="gausslegendre"
    )
    found = integrated_contributions(net, weights, biases, start, end)[0, :, 0]
    np.testing.assert_allclose(found, captum.numpy(), atol=1e-7)


def test_units_that_no_covariate_feeds_move_the_bends_of_later_ones():
    net = Architecture(1, (1, 1), 1, input_skip=True, activation="relu")
    weights = np.zeros((1, net.n_weights))
    covariate = net.covariate_matrix(weights)
    covariate[0, 1, 0] = 1.0
    net.hidden_block(1).view(weights)[...] = 1.0
    net.hidden_block(2).view(weights)[...] = 1.0
    biases = np.array([[0.5, 0.0, 0.0]])  # relu(x + relu(0.5))
    found = integrated_contributions(net, weights, biases, np.array([-1.0]), np.array([[1.0]]))
    assert found.item() == pytest.approx(1.5)
