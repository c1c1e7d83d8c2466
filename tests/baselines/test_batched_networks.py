"""Passes through replicas: forward as by numpy, back as by torch."""

import numpy as np
import pytest
import torch
from scipy import stats

from islab.baselines.batched_networks import Pass, Spread, input_layers, standard_normals
from islab.core.architecture import Architecture
from islab.core.network import forward

N_REPLICAS, N_ROWS = 3, 7
SKIPS = pytest.mark.parametrize("input_skip", [True, False])
LAYERS = pytest.mark.parametrize("hidden", [(), (4,), (5, 3), (3, 0, 2)])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@SKIPS
@LAYERS
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_predictor_is_that_of_numpy(rng, input_skip, hidden, activation):
    net = Architecture(3, hidden, 2, input_skip, activation)
    weights, biases = rng.standard_normal((4, net.n_weights)), rng.standard_normal((4, net.n_units))
    x = rng.standard_normal((N_ROWS, 3))
    eta = Pass(net, weights, biases, x).eta
    np.testing.assert_allclose(eta, forward(net, weights, biases, x), atol=1e-12)


def some_numbers(net, rng):
    n_inputs = len(input_layers(net))
    return {
        "weights": rng.standard_normal((N_REPLICAS, net.n_weights)),
        "biases": rng.standard_normal((N_REPLICAS, net.n_units)),
        "scales": rng.standard_normal((N_REPLICAS, N_ROWS, n_inputs)),
        "variances": rng.uniform(0.1, 1, (N_REPLICAS, net.n_weights)),
        "bias_variances": rng.uniform(0.1, 1, (N_REPLICAS, net.n_units)),
    }


def predictor_of_torch(net, at, x, noise):
    """Layer by layer in the paper's order, hidden inputs before covariates."""
    scales = at["scales"].split([net.n_inputs(layer) for layer in range(net.n_layers)], dim=-1)
    covariates, z = x.expand(N_REPLICAS, *x.shape), None
    for layer, units in enumerate(net.units):
        parts = [] if layer == 0 else [torch.tanh(z)]
        parts += [covariates] if layer == 0 or net.input_skip else []
        sent = torch.cat(parts, dim=-1) * scales[layer]
        where = torch.as_tensor(net.weight_index(layer))
        mean = sent @ at["weights"][:, where].mT + at["biases"][:, None, units]
        variance = sent**2 @ at["variances"][:, where].mT + at["bias_variances"][:, None, units]
        z = mean + variance.sqrt() * noise[:, units]
    return z


@SKIPS
@LAYERS
def test_slopes_are_those_of_autograd(rng, input_skip, hidden):
    net = Architecture(3, hidden, 2, input_skip, "tanh")
    numbers, x = some_numbers(net, rng), rng.standard_normal((N_ROWS, 3))
    noise = rng.standard_normal((N_ROWS, net.n_units))
    flow = rng.standard_normal((N_REPLICAS, N_ROWS, 2))
    at = {name: torch.tensor(array, requires_grad=True) for name, array in numbers.items()}
    eta = predictor_of_torch(net, at, torch.as_tensor(x), torch.as_tensor(noise))
    (eta * torch.as_tensor(flow)).sum().backward()
    spread = Spread(numbers["variances"], numbers["bias_variances"], noise)
    weights, biases, scales = (numbers[name] for name in ("weights", "biases", "scales"))
    slopes = Pass(net, weights, biases, x, scales=scales, spread=spread).back(flow)
    for name, tensor in at.items():
        np.testing.assert_allclose(getattr(slopes, name), tensor.grad, atol=1e-10)


@SKIPS
@LAYERS
def test_slopes_without_scales_and_spread_are_those_of_a_pass_with_scales_of_one(
    rng, input_skip, hidden
):
    net = Architecture(3, hidden, 2, input_skip, "relu")
    numbers, x = some_numbers(net, rng), rng.standard_normal((N_ROWS, 3))
    flow = rng.standard_normal((N_REPLICAS, N_ROWS, 2))
    weights, biases = numbers["weights"], numbers["biases"]
    plain = Pass(net, weights, biases, x).back(flow)
    scaled = Pass(net, weights, biases, x, scales=np.ones_like(numbers["scales"])).back(flow)
    np.testing.assert_allclose(plain.weights, scaled.weights, atol=1e-12)
    np.testing.assert_allclose(plain.biases, scaled.biases, atol=1e-12)


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 0), (4, 4)])
def test_standard_normals_has_any_shape(rng, shape):
    noise = standard_normals(rng, shape)
    assert noise.shape == shape
    assert noise.dtype == np.float32


def test_standard_normals_is_standard_normal(rng):
    noise = standard_normals(rng, (1001, 1000)).astype(float)
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-3
    # Numbers that share a radius are a half of all numbers apart.
    first, second = noise.ravel()[:500_500], noise.ravel()[500_500:]
    assert abs(np.corrcoef(first, second)[0, 1]) < 5e-3
    assert abs(np.corrcoef(first**2, second**2)[0, 1]) < 5e-3
