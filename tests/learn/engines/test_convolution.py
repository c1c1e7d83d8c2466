"""The convolutional engine against the dense layer on unfolded patches."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from islab.core import families
from islab.core.convolution.geometry import Convolution
from islab.core.equations import gaussian_kl, kl, moments
from islab.core.posterior import Initial
from islab.core.priors import Prior
from islab.images import ImageArchitecture, ImagePosterior
from islab.learn.checkpoint import Checkpoint
from islab.learn.engines.torch.convolution import ConvolutionEngine, NoisyConvolution, channels_last
from islab.learn.loop import run_stage
from islab.learn.stage import Stage
from islab.learn.variational import SpikeAndSlab

LAYER = Convolution(in_channels=2, height=7, width=6, out_channels=3, kernel_size=3, stride=2)
BIAS_TAU = 2.5


def tensors(seed=0, layer=LAYER, rows=4):
    """Images, means, variances, biases and noise of a convolution, in double precision."""
    rng = torch.Generator().manual_seed(seed)
    size, out = layer.kernel_size, layer.out_channels

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    x = channels_last(normal(rows, layer.in_channels, layer.height, layer.width))
    mean = normal(out, layer.in_channels, size, size)
    variance = normal(out, layer.in_channels, size, size) ** 2
    eps = normal(rows, out, layer.out_height, layer.out_width)
    return x, mean, variance, normal(out), normal(out) ** 2 + 0.1, eps


def by_patches(x, mean, variance, bias_mean, bias_variance, eps, layer):
    """The same by a dense layer on the unfolded patches."""
    patches = F.unfold(x, layer.kernel_size, stride=layer.stride, padding=layer.padding)
    m = mean.reshape(len(mean), -1) @ patches + bias_mean[:, None]
    v = variance.reshape(len(mean), -1) @ patches**2 + bias_variance[:, None]
    return (m + v.sqrt() * eps.reshape(m.shape)).reshape(eps.shape)


def test_output_is_the_dense_layer_on_unfolded_patches():
    parts = tensors()
    expected = by_patches(*parts, LAYER)
    found = NoisyConvolution.apply(*parts[:-1], parts[-1].clone(), LAYER)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_the_dense_layer_on_unfolded_patches():
    found, expected = ([part.clone().requires_grad_() for part in tensors()[:-1]] for _ in range(2))
    eps = tensors()[-1]
    weight = torch.randn(eps.shape, dtype=torch.float64)
    (NoisyConvolution.apply(*found, eps.clone(), LAYER) * weight).sum().backward()
    (by_patches(*expected, eps, LAYER) * weight).sum().backward()
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("channels", [1, 3])
def test_images_with_channels_last_hold_the_same_numbers(channels):
    images = torch.randn(2, channels, 4, 5)
    found = channels_last(images)
    torch.testing.assert_close(found, images)
    assert found.stride() == (20 * channels, 1, 5 * channels, channels)


NET = ImageArchitecture.build((2, 8, 8), (3, 4), 3, 2, hidden=(5,), n_outputs=3)


def engine(flow=False, dtype=torch.float64, inclusion=(-2.0, 2.0), net=NET, **options):
    initial = Initial(covariate_inclusion=inclusion, hidden_inclusion=inclusion)
    start = ImagePosterior.initialise(net, np.random.default_rng(0), initial)
    made = ConvolutionEngine(start, Bright(), seed=3, flow=flow, dtype=dtype, **options)
    set_prior(made)
    return made, start


def set_prior(made):
    prior = Prior.same(made.architecture, tau=0.7, psi=0.2)
    made.set_prior(prior, np.ones_like(prior.tau))


class Bright:
    """A source of the images that :func:`batch` makes."""

    n_rows, shuffled = 60, True

    def batch(self, number, rows):
        images, y = batch(len(rows), seed=number)
        return images.permute(0, 2, 3, 1).numpy(), y.argmax(1).numpy()


def batch(rows=6, dtype=torch.float64, seed=5):
    rng = torch.Generator().manual_seed(seed)
    images = torch.rand((rows, 2, 8, 8), generator=rng, dtype=dtype)
    labels = torch.arange(rows) % 3
    images[torch.arange(rows), 0, 2 * labels, 3] += 4.0  # a bright pixel tells the class
    return images, F.one_hot(labels, 3).to(dtype)


def test_divergence_is_the_sum_over_kernel_weights_head_and_biases():
    made, start = engine()
    expected = 0.0
    for part in start.layers:
        expected += kl(part.mu, part.sigma, part.alpha, tau=0.7, psi=0.2).sum()
        expected += gaussian_kl(part.bias_mu, part.bias_sigma, tau=BIAS_TAU).sum()
    assert made.kl() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("pixel_skip", [False, True])
def test_predictor_without_variance_is_the_network_at_its_means(pixel_skip):
    net = ImageArchitecture.build(
        (2, 8, 8), (3, 4), 3, 2, hidden=(5,), n_outputs=3, pixel_skip=pixel_skip
    )
    made, start = engine(inclusion=(40.0, 40.0), net=net)
    for part in made.engines:
        part.parts(part.theta.data)[1].fill_(-60.0)
        part.parts(part.theta.data)[4].fill_(-60.0)
    images, _ = batch()
    maps = images
    for layer, part in zip(NET.convolutions, start.kernels, strict=True):
        shape = (layer.out_channels, layer.in_channels, 3, 3)
        weights = torch.as_tensor(part.mu).reshape(shape)
        maps = F.relu(F.conv2d(maps, weights, torch.as_tensor(part.bias_mu), 2, 1))
    features = maps.permute(0, 2, 3, 1).flatten(1)
    if pixel_skip:
        features = torch.cat([features, images.permute(0, 2, 3, 1).flatten(1)], dim=1)
    head = start.head.layers
    hidden = F.relu(features @ torch.as_tensor(head[0].mu).T + torch.as_tensor(head[0].bias_mu))
    both = torch.cat([hidden, features], dim=1)
    expected = both @ torch.as_tensor(head[1].mu).T + torch.as_tensor(head[1].bias_mu)
    torch.testing.assert_close(made.forward(images)[0].detach(), expected, rtol=1e-9, atol=1e-9)


def test_noise_of_the_first_maps_has_the_variance_of_the_weights():
    made, start = engine()
    images, _ = batch(rows=1)
    layer, part = NET.convolutions[0], made.engines[0]
    repeated = channels_last(images.expand(4000, -1, -1, -1))
    mean, variance, _ = part.weights(part.generator)
    drawn = made._convolve(repeated, mean, variance, layer, part).detach()
    weights = moments(start.kernels[0].mu, start.kernels[0].sigma, start.kernels[0].alpha)
    patches = F.unfold(images, 3, stride=2, padding=1)[0].numpy()
    expected = weights[1].reshape(3, -1) @ patches**2 + start.kernels[0].bias_sigma[:, None] ** 2
    found = drawn.var(0).reshape(3, -1).numpy()
    np.testing.assert_allclose(found, expected, rtol=0.12)


@pytest.mark.parametrize("flow", [False, True])
def test_steps_lower_the_loss(flow):
    made, _ = engine(flow, dtype=torch.float32)
    images, y = batch(rows=40, dtype=torch.float32)
    losses = [float(made.step(images, y, 0.02, 0.02, 0.0)) for _ in range(40)]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])


@pytest.mark.parametrize("flow", [False, True])
def test_a_resumed_run_ends_in_the_same_numbers(flow, tmp_path):
    stage, file = Stage(n_steps=120, batch_size=20, shrink=None), Checkpoint(tmp_path / "run.npz")

    def run(**options):
        made, _ = engine(flow, dtype=torch.float32)
        progress = run_stage(SpikeAndSlab(made, stage), stage, n_rows=60, seed=1, **options)
        return made.parameters().mu, progress.history.to_array()

    def stop(steps, record):
        raise RuntimeError("power cut")

    whole = run()
    with pytest.raises(RuntimeError, match="power cut"):
        run(checkpoint=file, report=stop)
    for found, expected in zip(run(checkpoint=file), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("flow", [False, True])
def test_a_restored_engine_goes_on_with_the_same_numbers(flow):
    made, _ = engine(flow)
    images, y = batch()
    made.step(images, y, 0.01, 0.01, 0.1)
    state = made.state()
    first = [float(made.step(images, y, 0.01, 0.01, 0.1)) for _ in range(3)]
    made.restore(state)
    set_prior(made)
    assert [float(made.step(images, y, 0.01, 0.01, 0.1)) for _ in range(3)] == first


def test_the_flow_of_a_kernel_has_one_multiplier_for_each_channel_that_comes_in():
    made, _ = engine(flow=True)
    images, y = batch()
    made.step(images, y, 0.01, 0.01, 0.1)
    for layer, part in zip(NET.convolutions, made.posterior().kernels, strict=True):
        by_weight = part.multipliers[:, part.input_index]
        by_channel = by_weight.reshape(-1, layer.out_channels, layer.in_channels, 9)
        assert (by_channel == by_channel[:, :1, :, :1]).all()
        assert len(np.unique(by_channel[0])) == layer.in_channels


def test_the_loss_is_the_likelihoods():
    made, _ = engine(inclusion=(40.0, 40.0))
    for part in made.engines:
        part.parts(part.theta.data)[1].fill_(-60.0)
        part.parts(part.theta.data)[4].fill_(-60.0)
    images, y = batch()
    eta = made.forward(images)[0].detach().numpy()
    expected = families.likelihood("categorical").nll(y.numpy(), eta, np.ones(1)).sum()
    assert float(made.step(images, y, 0.0, 0.0, 0.0)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("flow", [False, True])
def test_adam_of_every_part_remembers_as_long_as_it_is_told(flow):
    made, _ = engine(flow=flow, betas=(0.8, 0.95))
    assert [part.optimiser.defaults["betas"] for part in made.engines] == [(0.8, 0.95)] * 3
