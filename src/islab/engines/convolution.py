"""A convolution whose kernel weights carry spike-and-slab posteriors."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from islab.engines.torch_engine import SpikeAndSlab, TensorPrior
from islab.equations import gaussian_kl
from islab.posterior import Bounds, inclusion_bounds


class SpikeAndSlabConv2d(nn.Module):
    """2-d convolution with the local reparametrisation trick.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding : int
        As in :class:`torch.nn.Conv2d`.
    inclusion : str or (low, high)
        Range of ``logit(alpha)`` at the start.
    sigma : float
        Standard deviation of the weights at the start.

    Notes
    -----
    A position of the output sums ``kernel * patch``, so its mean and variance are those of a
    dense layer on the unfolded patches: ``conv(x, E[w])`` and ``conv(x**2, Var[w])``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        stride: int = 1,
        padding: int = 0,
        inclusion: str | Bounds = (2.0, 2.0),
        sigma: float = 0.05,
    ) -> None:
        super().__init__()
        shape = (out_channels, in_channels, kernel_size, kernel_size)
        self.stride, self.padding = stride, padding
        fan_in = in_channels * kernel_size**2
        rho = float(np.log(np.expm1(sigma)))
        self.mu = nn.Parameter(torch.randn(shape) * (2 / fan_in) ** 0.5)
        self.rho = nn.Parameter(torch.full(shape, rho))
        self.lam = nn.Parameter(torch.empty(shape).uniform_(*inclusion_bounds(inclusion)))
        self.bias_mu = nn.Parameter(torch.zeros(out_channels))
        self.bias_rho = nn.Parameter(torch.full((out_channels,), rho))

    def forward(
        self, x: Tensor, prior: TensorPrior, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Pre-activations (rows, channels, height, width) with fresh noise, and the divergence."""
        mean, variance, kl = SpikeAndSlab.apply(self.mu, self.rho, self.lam, prior)
        bias_sigma = F.softplus(self.bias_rho)
        m = F.conv2d(x, mean, self.bias_mu, self.stride, self.padding)
        v = F.conv2d(x * x, variance, bias_sigma * bias_sigma, self.stride, self.padding)
        eps = torch.randn(m.shape, generator=generator, dtype=m.dtype, device=m.device)
        kl = kl + gaussian_kl(self.bias_mu, bias_sigma, tau=1.0).sum()
        return torch.addcmul(m, v.sqrt(), eps), kl
