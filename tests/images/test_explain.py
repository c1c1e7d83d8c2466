"""Explanations by pixels are exact."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from islab.core import families
from islab.core.convolution.network import forward, slopes
from islab.images import explain_images
from tests.images.nets import architecture, pixels, posterior
from tests.images.test_paths import SPARSE

ACTIVATIONS = ["relu", "leaky_relu", "identity"]


POOLS = [1, (2, 3)]


def explained(activation="relu", seed=1, rows=3, pool=1, pixel_skip=False, **options):
    stride = 1 if pool != 1 else 2
    found = posterior(seed, activation=activation, stride=stride, pool=pool, pixel_skip=pixel_skip)
    network = found.median(outputs=["a", "b", "c"])
    images = pixels(network.architecture, rows)
    return network, images, explain_images(network, images, n_draws=7, random_state=0, **options)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("pixel_skip", [False, True])
def test_intercept_and_contributions_sum_to_the_logit(activation, pool, pixel_skip):
    network, images, found = explained(activation, pool=pool, pixel_skip=pixel_skip)
    net, numbers = network.architecture, network.means()
    eta, gradient = slopes(net, numbers, images, network.head.covariates)
    inside = eta - (gradient * images.reshape(len(images), 1, -1)).sum(axis=-1)
    np.testing.assert_allclose(found.intercept, inside, atol=1e-12)
    total = found.intercept + found.contribution.sum(axis=1)
    np.testing.assert_allclose(total, network.predictor(images), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("pixel_skip", [False, True])
def test_the_linear_piece_predicts_the_logit_of_a_nearby_image(activation, pool, pixel_skip):
    network, images, found = explained(activation, pool=pool, pixel_skip=pixel_skip)
    near = images + 1e-7 * np.random.default_rng(0).standard_normal(images.shape)
    flat = near.reshape(len(near), -1)
    predicted = found.intercept + np.einsum("rpo,rp->ro", found.slope, flat)
    np.testing.assert_allclose(predicted, network.predictor(near), atol=1e-12)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("pixel_skip", [False, True])
def test_intercept_and_contributions_sum_to_the_logit_in_every_draw(pool, pixel_skip):
    network, _, found = explained(pool=pool, pixel_skip=pixel_skip)
    rng = np.random.default_rng(0)
    images = found.x.reshape(-1, *network.architecture.pixel_shape)
    total = found.draws_intercept + found.draws_contribution.sum(axis=2)
    for draw in total:
        numbers = network.draw(rng)
        expected = forward(network.architecture, numbers, images, network.head.covariates)
        np.testing.assert_allclose(draw, expected, atol=1e-10)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("pixel_skip", [False, True])
def test_slopes_are_those_of_autograd(activation, pool, pixel_skip):
    net = architecture(activation=activation, stride=1, pool=pool, pixel_skip=pixel_skip)
    numbers = posterior(2, net=net).draw(np.random.default_rng(0))
    images = pixels(net, rows=2)
    x = torch.tensor(images, requires_grad=True)
    maps = x.permute(0, 3, 1, 2)
    act = {"relu": F.relu, "leaky_relu": F.leaky_relu, "identity": lambda z: z}[activation]
    for layer, weights, biases in zip(
        net.convolutions, numbers.kernels, numbers.biases, strict=True
    ):
        kernel = torch.tensor(weights).reshape(layer.out_channels, layer.in_channels, 3, 3)
        maps = act(F.conv2d(maps, kernel, torch.tensor(biases), layer.stride, layer.padding))
        maps = F.max_pool2d(maps, layer.pool, ceil_mode=True)
    features = maps.permute(0, 2, 3, 1).flatten(1)
    if pixel_skip:
        features = torch.cat([features, x.flatten(1)], dim=1)
    matrix = torch.tensor(net.head.covariate_matrix(numbers.head_weights))
    hidden = act(features @ matrix[:3].T + torch.tensor(numbers.head_biases[:3]))
    wires = torch.tensor(net.head.hidden_block(1).view(numbers.head_weights))
    eta = features @ matrix[3:].T + hidden @ wires.T + torch.tensor(numbers.head_biases[3:])
    predictor, gradient = slopes(net, numbers, images)
    np.testing.assert_allclose(predictor, eta.detach().numpy(), atol=1e-12)
    for output in range(3):
        (expected,) = torch.autograd.grad(eta[:, output].sum(), x, retain_graph=True)
        found = gradient[:, output].reshape(images.shape)
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-12)


def test_pixels_outside_the_receptive_field_have_no_slope():
    network = posterior(5, inclusion=SPARSE).median()
    found = explain_images(network, pixels(network.architecture), n_draws=2, random_state=0)
    field = np.moveaxis(network.receptive_field(), 0, -1).ravel()
    assert 0 < field.sum() < field.size
    np.testing.assert_array_equal(found.used, np.flatnonzero(field))
    everywhere = slopes(
        network.architecture,
        network.means(),
        pixels(network.architecture),
        network.head.covariates,
    )[1]
    assert (everywhere[..., ~field] == 0).all()


def test_response_is_the_probability():
    network, images, found = explained()
    expected = families.likelihood("categorical").mean(network.predictor(images))
    np.testing.assert_allclose(found.response, expected)


def test_contribution_images_have_the_layout_of_the_images():
    network, _, found = explained(output="b")
    shape = network.architecture.image_shape
    assert found.contribution_images.shape == (3, 1, *shape)
    expected = found.contribution[0, :, 0].reshape(8, 8, 2)[..., 1]
    np.testing.assert_array_equal(found.contribution_images[0, 0, 1], expected)


def test_frame_has_a_line_for_each_image_output_and_used_pixel():
    _, _, found = explained(output=["a", "c"])
    frame = found.to_frame()
    assert len(frame) == 3 * 2 * len(found.used)
    assert frame["covariate"][0].startswith("pixel[")
    assert (frame["contribution_lower"] <= frame["contribution_upper"]).all()


def test_a_plot_has_a_map_for_each_output():
    _, _, found = explained()
    panels = found.plot(row=1)
    drawn = np.asarray(panels[2].images[1].get_array())
    expected = found.contribution_images[1, 2].sum(axis=0)
    np.testing.assert_allclose(drawn, expected)


def test_a_curved_activation_is_refused():
    network = posterior(0, activation="tanh").median()
    with pytest.raises(ValueError, match="activation='tanh'"):
        explain_images(network, pixels(network.architecture))


def test_the_baseline_is_the_black_image():
    network, images, found = explained(output=["c", "a"])
    expected = network.predictor(np.zeros_like(images[:1]))[0]
    np.testing.assert_allclose(found.baseline_predictor, expected[[2, 0]])
