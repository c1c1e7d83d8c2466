"""Max pooling against torch's, in arrays and in the engine."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from islab.core.convolution.network import Numbers, forward, pool, unpool, winners
from islab.core.priors import Prior
from islab.learn.engines.torch.convolution import ConvolutionEngine
from tests.images.nets import architecture, pixels, posterior

# Sizes that are a multiple of the window and sizes that are not.
LAYERS = [
    architecture(shape=(1, *size), channels=(3,), stride=1, pool=side).convolutions[0]
    for size in ((6, 4), (7, 5))
    for side in (1, 2, 3)
]


def maps_of(layer, rows=2):
    shape = (rows, layer.out_height, layer.out_width, layer.out_channels)
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize("layer", LAYERS)
def test_pool_is_that_of_torch(layer):
    maps = maps_of(layer)
    expected = F.max_pool2d(torch.tensor(maps).permute(0, 3, 1, 2), layer.pool, ceil_mode=True)
    found = pool(maps, layer)
    np.testing.assert_array_equal(found, expected.permute(0, 2, 3, 1).numpy())
    assert found.shape[1:3] == (layer.pooled_height, layer.pooled_width)


@pytest.mark.parametrize("layer", LAYERS)
def test_winners_hold_the_number_of_their_window(layer):
    maps = maps_of(layer)
    won = winners(maps, layer)
    np.testing.assert_array_equal(maps[won], unpool(pool(maps, layer), layer)[won])


@pytest.mark.parametrize("layer", LAYERS)
def test_each_window_has_one_winner_also_among_equals(layer):
    won = winners(np.zeros_like(maps_of(layer)), layer)
    windows = layer.pooled_height * layer.pooled_width
    assert (won.sum(axis=(1, 2)) == windows).all()
    assert pool(won.astype(float), layer).all()


def test_the_engine_without_noise_is_the_network_in_arrays():
    net = architecture(stride=1, pool=(3, 2))
    start = posterior(0, net=net, inclusion=(40.0, 40.0))
    for part in start.layers:
        part.rho[:] = -60.0
        part.bias_rho[:] = -60.0
    engine = ConvolutionEngine(start, None, seed=0, dtype=torch.float64)
    prior = Prior.same(net, tau=1.0, psi=0.2)
    engine.set_prior(prior, np.ones_like(prior.tau))
    images = pixels(net)
    with torch.no_grad():
        found = engine.forward(torch.tensor(images).permute(0, 3, 1, 2))[0].numpy()
    values = [part.mu for part in start.layers]
    biases = [part.bias_mu for part in start.kernels]
    numbers = Numbers(values[:-1], biases, values[-1], start.head.bias_mu)
    np.testing.assert_allclose(found, forward(net, numbers, images), atol=1e-9)


def test_one_window_for_each_layer_is_asked_for():
    with pytest.raises(ValueError, match="pool=\\(2,\\) for 2 convolutions"):
        architecture(pool=(2,))
