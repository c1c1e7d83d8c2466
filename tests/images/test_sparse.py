"""The median convolutional network predicts as the kept weights do, and can be read."""

import numpy as np
import pytest

from islab.core.convolution.network import Numbers, forward, slopes
from islab.core.convolution.paths import active_image_weights
from tests.images.nets import pixels, posterior
from tests.images.test_paths import SPARSE, masks

STEPS = [{}, {"stride": 1, "pool": (2, 3)}, {"pool": (1, 2)}, {"pixel_skip": True}]


def kept_predictor(found, images):
    """The full network with all weights of alpha <= 0.5 set to 0, at the posterior mean."""
    kept = masks(found)
    values = [
        np.where(mask, part.mu * part.mean_multiplier(), 0.0)
        for mask, part in zip(kept, found.layers, strict=True)
    ]
    biases = [part.bias_mu for part in found.kernels]
    numbers = Numbers(values[:-1], biases, values[-1], found.head.bias_mu)
    return forward(found.architecture, numbers, images)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("steps", STEPS)
def test_median_network_predicts_as_the_kept_weights_do(seed, steps):
    found = posterior(seed, inclusion=SPARSE, **steps)
    images = pixels(found.architecture)
    expected = kept_predictor(found, images)
    np.testing.assert_allclose(found.median().predictor(images), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", STEPS)
def test_median_network_counts_the_weights_on_active_paths(seed, steps):
    found = posterior(seed, inclusion=SPARSE, **steps)
    used = active_image_weights(found.architecture, masks(found))
    counts = [part.n_used_weights for part in found.median().layers]
    assert counts == [int(part.sum()) for part in used]


def test_a_network_without_paths_predicts_a_constant():
    found = posterior(0, inclusion=(-9.0, -9.0))
    network = found.median()
    images = pixels(found.architecture)
    np.testing.assert_allclose(network.predictor(images), kept_predictor(found, images), atol=1e-12)
    assert network.n_used_weights == 0
    assert [len(own) for own in network.channels] == [0, 0]


@pytest.mark.parametrize("pixel_skip", [False, True])
@pytest.mark.parametrize("output", [0, 1, 2])
def test_receptive_field_of_an_output_is_where_its_slopes_can_be(output, pixel_skip):
    found = posterior(5, inclusion=SPARSE, activation="identity", pixel_skip=pixel_skip)
    network = found.median()
    net = network.architecture
    gradient = slopes(net, network.means(), pixels(net), network.head.covariates)[1][0, output]
    reached = np.moveaxis(gradient.reshape(net.pixel_shape) != 0, -1, 0)
    np.testing.assert_array_equal(network.receptive_field(output), reached)


def test_receptive_field_of_all_outputs_is_their_union():
    network = posterior(5, inclusion=SPARSE).median()
    union = np.any([network.receptive_field(output) for output in range(3)], axis=0)
    np.testing.assert_array_equal(network.receptive_field(), union)


def test_path_counts_by_output_follow_from_multiplied_masks():
    network = posterior(2, inclusion=(-1.0, 2.0), hidden=()).median()
    net = network.architecture
    ones = [np.bincount(k.edges, minlength=k.architecture.n_weights) for k in network.layers]
    zeros = [np.zeros(layer.out_channels) for layer in net.convolutions]
    numbers = Numbers([o * 1.0 for o in ones[:-1]], zeros, ones[-1] * 1.0, np.zeros(3))
    counted = slopes(net, numbers, np.ones((1, *net.pixel_shape)), network.head.covariates)[1]
    expected = np.moveaxis(counted[0, 1].reshape(net.pixel_shape), -1, 0)
    np.testing.assert_allclose(network.path_counts(1).sum(axis=0), expected)


def test_draws_have_the_mean_and_spread_of_the_used_weights():
    network = posterior(1).median()
    rng = np.random.default_rng(0)
    kernel = network.kernels[0]
    drawn = np.stack([network.draw(rng).kernels[0][kernel.edges] for _ in range(4000)])
    np.testing.assert_allclose(drawn.mean(axis=0), kernel.mu, atol=0.005)
    np.testing.assert_allclose(drawn.std(axis=0), kernel.sigma, rtol=0.1)


def test_frame_has_a_line_for_each_used_weight():
    network = posterior(1, inclusion=SPARSE).median(outputs=["a", "b", "c"])
    frame = network.to_frame()
    assert len(frame) == network.n_used_weights
    assert set(frame.loc[frame["part"] == "kernels", "layer"]) <= {0, 1}


def test_channels_that_are_pruned_keep_the_numbers_of_the_others():
    found = posterior(0)
    found.kernels[0].lam.reshape(3, -1)[1] = -9.0
    network = found.median()
    assert network.channels[0].tolist() == [0, 2]
    assert network.architecture.convolutions[1].in_channels == 2
