"""The Bayesian convolution against the dense layer on unfolded patches."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from islab.engines.convolution import SpikeAndSlabConv2d
from islab.engines.torch_engine import TensorPrior
from islab.equations import gaussian_kl, kl, moments


@pytest.fixture
def layer():
    torch.manual_seed(0)
    layer = SpikeAndSlabConv2d(2, 3, 3, stride=2, padding=1, inclusion=(-2.0, 2.0)).double()
    layer.bias_mu.data.normal_()
    return layer


def prior(value=True, tau=0.7, psi=0.2):
    numbers = (tau, np.log(psi / (1 - psi)), np.log1p(-psi))
    return TensorPrior(*(torch.tensor(number) for number in numbers), df=None, value=value)


def dense_moments(layer, x):
    """Mean and variance of every output position from the patches, by a dense product."""
    alpha, sigma = torch.sigmoid(layer.lam), F.softplus(layer.rho)
    mean, variance = (m.reshape(3, -1) for m in moments(layer.mu, sigma, alpha))
    patches = F.unfold(x, 3, stride=2, padding=1)
    m = mean @ patches + layer.bias_mu[:, None]
    v = variance @ patches**2 + F.softplus(layer.bias_rho)[:, None] ** 2
    return m, v


def test_output_is_the_dense_layer_on_unfolded_patches(layer):
    x = torch.randn(4, 2, 7, 7, dtype=torch.float64)
    out, _ = layer(x, prior(), torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(1)
    eps = torch.randn(out.shape, generator=generator, dtype=torch.float64)
    m, v = dense_moments(layer, x)
    expected = m + v.sqrt() * eps.reshape(m.shape)
    torch.testing.assert_close(out.reshape(m.shape), expected, rtol=1e-10, atol=1e-10)


def test_divergence_is_the_sum_over_kernel_weights_and_biases(layer):
    _, divergence = layer(torch.zeros(1, 2, 7, 7, dtype=torch.float64), prior())
    alpha, sigma = torch.sigmoid(layer.lam), F.softplus(layer.rho)
    expected = kl(layer.mu, sigma, alpha, tau=0.7, psi=0.2).sum()
    expected = expected + gaussian_kl(layer.bias_mu, F.softplus(layer.bias_rho), tau=1.0).sum()
    torch.testing.assert_close(divergence, expected)


def test_gradient_of_moments_and_divergence_matches_finite_differences():
    torch.manual_seed(1)
    mu, rho, lam = (torch.randn(2, 1, 2, 2, dtype=torch.float64) for _ in range(3))
    layer = SpikeAndSlabConv2d(1, 2, 2).double()
    x = torch.randn(2, 1, 3, 3, dtype=torch.float64)

    def loss(mu, rho, lam):
        state = {"mu": mu, "rho": rho, "lam": lam}
        generator = torch.Generator().manual_seed(3)
        call = (x, prior(), generator)
        out, divergence = torch.func.functional_call(layer, state, call)
        return out.square().sum() + divergence

    inputs = tuple(t.requires_grad_() for t in (mu, rho, lam))
    assert torch.autograd.gradcheck(loss, inputs)
