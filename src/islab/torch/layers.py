"""Linear and convolutional layers whose weights have a spike-and-slab posterior.

The equations are those of the torch engine: moments, KL and their gradients come from
:class:`~islab.learn.engines.torch.dense.SpikeAndSlab`, flows from
:mod:`islab.learn.engines.torch.flow`. A layer only says which shape its weights have.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p, sqrt
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from islab.core.equations import gaussian_kl, inverse_softplus
from islab.learn.engines.flows import BANK, N_TRANSFORMS, Z_SPREAD, FlowGroup
from islab.learn.engines.torch.convolution import NoisyConvolution, channels_last
from islab.learn.engines.torch.dense import SpikeAndSlab, TensorPrior
from islab.learn.engines.torch.flow import log_r, sample

FLOW_WIDTH = 50
SIGMA, BIAS_TAU = 0.05, 10.0
THRESHOLD = 0.5
SMALLEST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Weights:
    """What a layer's weights are given the flow's draw: moments of weights and biases."""

    mean: Tensor
    variance: Tensor
    bias_mean: Tensor
    bias_variance: Tensor
    kl: Tensor


@dataclass(frozen=True)
class _Steps:
    """How a kernel moves over an image."""

    stride: int
    padding: int


class _Flow(nn.Module):
    """The multipliers of a layer's inputs, ``z ~ q``, and the auxiliary ``r(z | W)``."""

    def __init__(self, kind: str, n_inputs: int, width: int, n_transforms: int) -> None:
        super().__init__()
        self.group = FlowGroup((0,), n_inputs, kind, n_transforms, width)
        seed = int(torch.randint(2**31, ()))
        start = self.group.initial(np.random.default_rng(seed), Z_SPREAD)
        self.pieces = nn.ParameterList(self._cut(start))
        for number, (piece, free) in enumerate(
            zip(self.pieces, self._cut(self.group.free().astype(float)), strict=True)
        ):
            # Weights that a mask forbids are zero and stay so.
            piece.register_hook(lambda by, number=number: by * getattr(self, f"free{number}"))
            self.register_buffer(f"free{number}", free, persistent=False)
        for number, transform in enumerate(self.group.transforms):
            self.register_buffer(f"moved{number}", torch.tensor(transform.moved), persistent=False)

    def _cut(self, flat: np.ndarray) -> list[Tensor]:
        parts = torch.tensor(flat, dtype=torch.get_default_dtype()).split(self.group.sizes)
        shapes = self.group.shapes
        return [part.reshape(shape).clone() for part, shape in zip(parts, shapes, strict=True)]

    def _moved(self) -> list[Tensor]:
        dtype = self.pieces[0].dtype
        numbers = range(len(self.group.transforms))
        return [getattr(self, f"moved{number}").to(dtype) for number in numbers]

    def draw(self, n_draws: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """``z`` (draws, inputs) and the mean of ``log q(z)``."""
        eps = _normal((1, n_draws, self.group.n_inputs), self.pieces[0], generator)
        z, log_q = sample(list(self.pieces), eps, self._moved())
        return z[0], log_q.mean()

    def log_r(
        self, z: Tensor, mean: Tensor, variance: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        """``log r(z | W)`` for a draw of the weights, whose moments are (outputs, inputs)."""
        c = self.pieces[4][0, 0].repeat_interleave(mean.shape[1] // self.group.n_inputs)
        spread = (variance @ (c * c) + SMALLEST_VARIANCE).sqrt()
        eps = _normal((len(mean),), mean, generator)
        statistic = F.hardtanh(mean @ c + spread * eps).mean()
        return log_r(list(self.pieces), z[None], statistic.view(1, 1, 1), self._moved()).sum()


class SpikeSlab(nn.Module):
    """What linear and convolutional layers share: a posterior of weights and biases.

    Attributes
    ----------
    mu, rho, lam : Parameter, of the shape of the weights
        Mean and spread ``softplus(rho)`` of a weight that is included, which it is with
        probability ``sigmoid(lam)``.
    bias_mu, bias_rho : Parameter
    bias_lam : Parameter or None
        Inclusion of biases, which are always included without it.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        tau: float,
        psi: float,
        df: float | None,
        inclusion: tuple[float, float],
        flow: str | None,
        flow_width: int,
        n_transforms: int,
        bias_psi: float | None,
    ) -> None:
        super().__init__()
        _check(tau, psi)
        if bias_psi is not None:
            _check(tau, bias_psi, "bias_psi")
        self.tau, self.psi, self.df, self.bias_psi = tau, psi, df, bias_psi
        n_inputs = int(np.prod(shape[1:]))
        rho = inverse_softplus(torch.tensor(SIGMA))
        self.mu = nn.Parameter(torch.randn(shape) * sqrt(2 / n_inputs))
        self.rho = nn.Parameter(torch.full(shape, float(rho)))
        self.lam = nn.Parameter(torch.empty(shape).uniform_(*inclusion))
        self.bias_mu = nn.Parameter(torch.zeros(shape[0]))
        self.bias_rho = nn.Parameter(torch.full(shape[:1], float(rho)))
        self.bias_lam: nn.Parameter | None = None
        if bias_psi is not None:
            self.bias_lam = nn.Parameter(torch.empty(shape[:1]).uniform_(*inclusion))
        self.flow = _Flow(flow, shape[1], flow_width, n_transforms) if flow else None

    @property
    def alpha(self) -> Tensor:
        """Inclusion probability of each weight."""
        return torch.sigmoid(self.lam)

    @property
    def bias_alpha(self) -> Tensor:
        """Inclusion probability of each bias."""
        return torch.ones_like(self.bias_mu) if self.bias_lam is None else self.bias_lam.sigmoid()

    def weights(self, generator: torch.Generator | None = None) -> Weights:
        """Moments of the weights and their KL; of a flow for one draw of its multipliers."""
        shape, mu = self.mu.shape, self.mu.flatten(1)
        z = log_q = None
        if self.flow is not None:
            z, log_q = self.flow.draw(1, generator)
            mu = mu * z[0].repeat_interleave(mu.shape[1] // shape[1])
        prior = self._prior(self.tau, self.psi, self.df)
        mean, variance, kl = SpikeAndSlab.apply(mu, self.rho.flatten(1), self.lam.flatten(1), prior)
        bias_mean, bias_variance, bias_kl = self._biases()
        kl = kl + bias_kl
        if self.flow is not None and z is not None:
            kl = kl + log_q - self.flow.log_r(z, mean, variance, generator)
        return Weights(mean.view(shape), variance.view(shape), bias_mean, bias_variance, kl)

    def _biases(self) -> tuple[Tensor, Tensor, Tensor]:
        """Moments of the biases and their KL."""
        if self.bias_lam is not None and self.bias_psi is not None:
            prior = self._prior(BIAS_TAU, self.bias_psi, None)
            found: tuple[Tensor, Tensor, Tensor] = SpikeAndSlab.apply(
                self.bias_mu, self.bias_rho, self.bias_lam, prior
            )
            return found
        sigma = F.softplus(self.bias_rho)
        return self.bias_mu, sigma * sigma, gaussian_kl(self.bias_mu, sigma, tau=BIAS_TAU).sum()

    def kl(self) -> Tensor:
        """KL of the posterior from the prior; of a flow an estimate from one draw."""
        return self.weights().kl

    def _prior(self, tau: float, psi: float, df: float | None) -> TensorPrior:
        # Numbers rather than tensors: one prior for all weights of the layer.
        return TensorPrior(
            tau=self.mu.new_tensor(tau),
            logit_psi=self.mu.new_tensor(log(psi) - log1p(-psi)),
            log_not_psi=self.mu.new_tensor(log1p(-psi)),
            df=df,
            value=True,
        )

    @torch.no_grad()
    def multipliers(self, n_draws: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws of the flow's multipliers of the inputs, (draws, inputs); ones without a flow."""
        if self.flow is None:
            return self.mu.new_ones(n_draws, self.mu.shape[1])
        return self.flow.draw(n_draws, generator)[0]

    @torch.no_grad()
    def means(self) -> Tensor:
        """Means of the weights if they are included, with the mean multipliers of a flow."""
        if self.flow is None:
            return self.mu.detach()
        generator = torch.Generator(self.mu.device).manual_seed(0)
        return self.mu * self._by_weight(self.multipliers(BANK, generator).mean(0))

    def _by_weight(self, z: Tensor) -> Tensor:
        """Multipliers (..., inputs) in the shape of the weights but for their outputs."""
        return z.view(*z.shape[:-1], 1, z.shape[-1], *[1] * (self.mu.ndim - 2))

    @torch.no_grad()
    def draw(
        self,
        n_draws: int,
        *,
        kept: Tensor | None = None,
        kept_biases: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draws of weights (draws, ...) and of biases (draws, outputs).

        Parameters
        ----------
        n_draws : int
        kept, kept_biases : tensor of bool, optional
            Which weights and biases are included in every draw; drawn too if not given.
        generator : torch.Generator, optional
        """
        shape = (n_draws, *self.mu.shape)
        means = self.mu * self._by_weight(self.multipliers(n_draws, generator))
        weights = means + F.softplus(self.rho) * _normal(shape, self.mu, generator)
        if kept is None:
            kept = _uniform(shape, self.mu, generator) < self.alpha
        size = (n_draws, len(self.bias_mu))
        biases = self.bias_mu + F.softplus(self.bias_rho) * _normal(size, self.mu, generator)
        if kept_biases is None and self.bias_lam is not None:
            kept_biases = _uniform(size, self.mu, generator) < self.bias_alpha
        return weights * kept, biases if kept_biases is None else biases * kept_biases

    def median(self, threshold: float = THRESHOLD) -> nn.Module:
        """A plain layer with the means of weights that are more likely in than out."""
        raise NotImplementedError

    def _fill(self, layer: Any, threshold: float) -> Any:
        with torch.no_grad():
            layer.weight.copy_(self.means() * (self.alpha > threshold))
            layer.bias.copy_(self.bias_mu * (self.bias_alpha > threshold))
        return layer.to(self.mu.device, self.mu.dtype)


class SpikeSlabLinear(SpikeSlab):
    """A linear layer with spike-and-slab weights.

    In training mode every pre-activation has fresh random numbers (local reparametrisation); in
    evaluation mode weights are their posterior means.

    Parameters
    ----------
    in_features, out_features : int
    tau, psi : float
        Prior: standard deviation of the slab and inclusion probability.
    df : float, optional
        Degrees of freedom of a Student-t slab; Gaussian if not given.
    inclusion : (low, high)
        Range in which the logits of inclusion probabilities start.
    flow : {"iaf", "rnvp"}, optional
        Ties the weights together by multipliers of the inputs.
    flow_width, n_transforms : int
        Width of the networks inside a flow, and how many it has.
    bias_psi : float, optional
        Prior probability that a bias is needed: biases are selected as weights are. All are
        certain if not given.

    Examples
    --------
    >>> import torch
    >>> from islab.torch import SpikeSlabLinear
    >>> layer = SpikeSlabLinear(3, 2, psi=0.1)
    >>> tuple(layer(torch.zeros(5, 3)).shape), bool(layer.kl() > 0)
    ((5, 2), True)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        tau: float = 1.0,
        psi: float = 0.1,
        df: float | None = None,
        inclusion: tuple[float, float] = (0.0, 0.0),
        flow: str | None = None,
        flow_width: int = FLOW_WIDTH,
        n_transforms: int = N_TRANSFORMS,
        bias_psi: float | None = None,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        super().__init__(
            (out_features, in_features),
            tau=tau,
            psi=psi,
            df=df,
            inclusion=inclusion,
            flow=flow,
            flow_width=flow_width,
            n_transforms=n_transforms,
            bias_psi=bias_psi,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Pre-activations (..., out_features) of inputs (..., in_features)."""
        if not self.training:
            return F.linear(x, self.alpha * self.means(), self.bias_alpha * self.bias_mu)
        own = self.weights()
        mean = F.linear(x, own.mean, own.bias_mean)
        variance = F.linear(x * x, own.variance, own.bias_variance)
        return torch.addcmul(mean, variance.sqrt(), torch.randn_like(mean))

    def median(self, threshold: float = THRESHOLD) -> nn.Linear:
        return self._fill(nn.Linear(self.in_features, self.out_features), threshold)


class SpikeSlabConv2d(SpikeSlab):
    """A convolution of images (rows, channels, height, width) with spike-and-slab weights.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding : int
    tau, psi, df, inclusion, flow, flow_width, n_transforms, bias_psi
        See :class:`SpikeSlabLinear`. A flow has one multiplier for each channel that comes in.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        *,
        stride: int = 1,
        padding: int = 0,
        tau: float = 1.0,
        psi: float = 0.1,
        df: float | None = None,
        inclusion: tuple[float, float] = (0.0, 0.0),
        flow: str | None = None,
        flow_width: int = FLOW_WIDTH,
        n_transforms: int = N_TRANSFORMS,
        bias_psi: float | None = None,
    ) -> None:
        self.steps = _Steps(stride, padding)
        super().__init__(
            (out_channels, in_channels, kernel_size, kernel_size),
            tau=tau,
            psi=psi,
            df=df,
            inclusion=inclusion,
            flow=flow,
            flow_width=flow_width,
            n_transforms=n_transforms,
            bias_psi=bias_psi,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Feature maps (rows, out_channels, height, width)."""
        steps = {"stride": self.steps.stride, "padding": self.steps.padding}
        if not self.training:
            bias = self.bias_alpha * self.bias_mu
            return F.conv2d(x, self.alpha * self.means(), bias, **steps)
        own = self.weights()
        size = [
            (side + 2 * self.steps.padding - self.mu.shape[-1]) // self.steps.stride + 1
            for side in x.shape[-2:]
        ]
        eps = torch.randn(len(x), len(self.mu), *size, dtype=x.dtype, device=x.device)
        moments = (own.mean, own.variance, own.bias_mean, own.bias_variance)
        return NoisyConvolution.apply(channels_last(x), *moments, eps, self.steps)

    def median(self, threshold: float = THRESHOLD) -> nn.Conv2d:
        out_channels, in_channels, size, _ = self.mu.shape
        plain = nn.Conv2d(
            in_channels, out_channels, size, stride=self.steps.stride, padding=self.steps.padding
        )
        return self._fill(plain, threshold)


def _normal(shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.randn(shape, dtype=like.dtype, device=like.device, generator=generator)


def _uniform(shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.rand(shape, dtype=like.dtype, device=like.device, generator=generator)


def _check(tau: float, psi: float, name: str = "psi") -> None:
    if not 0 < psi < 1:
        raise ValueError(f"Got {name}={psi}, expected a probability between 0 and 1; try 0.1.")
    if not tau > 0:
        raise ValueError(f"Got tau={tau}, expected a positive standard deviation; try 1.")
