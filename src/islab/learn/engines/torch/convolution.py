"""The torch engine for convolutional networks: dense engines on patches, and one as the head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from islab.core import families
from islab.core.convolution.geometry import Convolution
from islab.core.convolution.paths import active_image_weights
from islab.core.convolution.posterior import ImagePosterior
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines.base import (
    ADAM_BETAS,
    ImageSource,
    Parameters,
    Problem,
    State,
    Steps,
)
from islab.learn.engines.torch.dense import TorchEngine
from islab.learn.engines.torch.distributed import Team
from islab.learn.engines.torch.flow import FlowEngine

Augment = Callable[[Tensor], Tensor]

# The head reads thousands of features: the networks inside its flows must be narrow.
FLOW_WIDTH = 50


class Moves(Protocol):
    """How a kernel moves over an image."""

    @property
    def stride(self) -> int: ...
    @property
    def padding(self) -> int: ...


class NoisyConvolution(torch.autograd.Function):
    """``conv(x, E[w]) + sqrt(conv(x**2, Var[w])) * eps``, with the gradient in closed form.

    A place of the output sums ``kernel * patch``, so its mean and variance are those of a dense
    layer on the unfolded patches. ``eps`` is overwritten.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        mean: Tensor,
        variance: Tensor,
        bias_mean: Tensor,
        bias_variance: Tensor,
        eps: Tensor,
        layer: Moves,
    ) -> Tensor:
        square = channels_last(x * x)
        steps = {"stride": layer.stride, "padding": layer.padding}
        sd = torch.conv2d(square, variance, bias_variance, **steps).sqrt_()
        z = torch.conv2d(x, mean, bias_mean, **steps).addcmul_(sd, eps)
        by_variance = eps.div_(sd).mul_(0.5)
        ctx.save_for_backward(x, square, mean, variance, by_variance)
        ctx.layer = layer
        return z

    @staticmethod
    def backward(ctx: Any, *by: Tensor) -> Any:
        x, square, mean, variance, by_variance = ctx.saved_tensors
        needed = ctx.needs_input_grad[0]
        by_x, by_mean, by_bias = _backward(by[0], x, mean, ctx.layer, needed)
        by_square, by_spread, by_bias_spread = _backward(
            by[0] * by_variance, square, variance, ctx.layer, needed
        )
        if needed:
            by_x.addcmul_(x, by_square, value=2)
        return by_x, by_mean, by_spread, by_bias, by_bias_spread, None, None


def _backward(
    by: Tensor, x: Tensor, weights: Tensor, layer: Moves, needed: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of a convolution by its input (if needed), weights and biases."""
    stride, padding = [layer.stride] * 2, [layer.padding] * 2
    mask = [needed, True, True]
    return torch.ops.aten.convolution_backward(
        by, x, weights, [len(weights)], stride, padding, [1, 1], False, [0, 0], 1, mask
    )


def channels_last(images: Tensor) -> Tensor:
    """Images (rows, channels, height, width) whose channels lie together in memory.

    Convolutions are several times faster so. For a single channel torch takes both orders for
    one and goes by the strides, which are therefore written out.
    """
    _, channels, height, width = images.shape
    strides = (channels * height * width, 1, channels * width, channels)
    pixels = images.permute(0, 2, 3, 1).contiguous()
    return pixels.as_strided(images.shape, strides)


class KernelFlowEngine(FlowEngine):
    """The flow of a convolution: one multiplier for each channel that comes in.

    The numbers of a patch that belong to one channel share its multiplier, so ``z`` has as many
    entries as there are channels.
    """

    def __init__(
        self, posterior: Posterior, problem: Problem, *, channels: int, **options: Any
    ) -> None:
        self.channels = channels
        super().__init__(posterior, problem, **options)

    def take_inputs(self, inputs: list[NDArray[np.intp]]) -> None:
        # Called before the flows are made, which then have an entry for each channel.
        self.groups = [replace(group, n_inputs=self.channels) for group in self.groups]
        size = self.architecture.n_covariates // self.channels
        super().take_inputs([np.repeat(np.arange(self.channels), size)])


class ConvolutionEngine:
    """Holds the posterior of a convolutional network and improves it batch by batch.

    Parameters
    ----------
    posterior : ImagePosterior
        Where to start; copied.
    source : ImageSource
    seed : int
    augment : callable, optional
        Changes each batch (rows, channels, height, width) before it is learned from.
    flow : bool
        Whether normalizing flows tie the weights together.
    flow_width : int
        Hidden units of the networks inside the flows.
    device : str
        cpu, cuda or mps.
    dtype : torch.dtype
    betas : (float, float)
        How long Adam remembers gradients and their squares.
    team : Team
        The processes that share each batch.
    """

    def __init__(
        self,
        posterior: ImagePosterior,
        source: ImageSource,
        *,
        seed: int,
        augment: Augment | None = None,
        flow: bool = False,
        flow_width: int = FLOW_WIDTH,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        betas: tuple[float, float] = ADAM_BETAS,
        team: Team = Team(),  # noqa: B008 (frozen)
    ) -> None:
        self.team = team
        self.architecture, self.source, self.augment = posterior.architecture, source, augment
        self.device, self.dtype = torch.device(device), dtype
        options: dict[str, Any] = {"device": device, "dtype": dtype, "betas": betas}
        seeds = np.random.SeedSequence(seed).generate_state(len(posterior.layers)).tolist()
        self.engines: list[TorchEngine] = []
        for number, (part, own) in enumerate(zip(posterior.layers, seeds, strict=True)):
            # Batches come from outside: the engines of the parts hold no rows of their own.
            x, y = (np.zeros((1, n)) for n in _sizes(part))
            rows = Problem(x, y)
            if not flow:
                engine = TorchEngine(part, rows, seed=own, **options)
            elif part is posterior.head:
                engine = FlowEngine(part, rows, seed=own, flow_width=flow_width, **options)
            else:
                channels = self.architecture.convolutions[number].in_channels
                width = {"flow_width": flow_width, "channels": channels}
                engine = KernelFlowEngine(part, rows, seed=own, **width, **options)
            self.engines.append(engine)
        self.head = self.engines[-1]

    # -- protocol -----------------------------------------------------------------------

    def set_prior(self, prior: Prior, mu_step: NDArray) -> None:
        start = 0
        for engine in self.engines:
            own = slice(start, start + len(engine.architecture.blocks))
            start = own.stop
            part = replace(prior, tau=prior.tau[own], psi=prior.psi[own])
            engine.set_prior(part, mu_step[own])

    def run(self, steps: Steps) -> float:
        total, n_seen, ends = 0.0, 0, np.cumsum(steps.sizes).tolist()
        for number, (stop, size) in enumerate(zip(ends, steps.sizes.tolist(), strict=True)):
            chosen = steps.rows[stop - size : stop]
            images, y, n_rows = self._batch(steps.first + number, chosen)
            rate, lambda_rate = float(steps.rate[number]), float(steps.lambda_rate[number])
            kl_weight = float(steps.kl_weight[number]) * n_rows / self.source.n_rows
            total += float(self.step(images, y, rate, lambda_rate, kl_weight, n_rows))
            n_seen += n_rows
        return total / n_seen

    def parameters(self) -> Parameters:
        """Those of all parts, kernels first; the noise is the head's."""
        parts = [engine.parameters() for engine in self.engines]
        names = ("mu", "rho", "lam", "bias_mu", "bias_rho")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return Parameters(**joined, noise=parts[-1].noise)

    def n_used_weights(self, kept: NDArray[np.bool_]) -> int:
        ends = np.cumsum([layer.n_weights for layer in self.architecture.layers])[:-1]
        used = active_image_weights(self.architecture, np.split(kept, ends))
        return sum(int(part.sum()) for part in used)

    def kl(self) -> float:
        return sum(engine.kl() for engine in self.engines)

    def posterior(self) -> ImagePosterior:
        """A copy of what has been learned."""
        *kernels, head = [engine.posterior() for engine in self.engines]
        return ImagePosterior(self.architecture, tuple(kernels), head)

    def state(self) -> State:
        return {
            f"part{number}/{name}": array
            for number, engine in enumerate(self.engines)
            for name, array in engine.state().items()
        }

    def restore(self, state: State) -> None:
        for number, engine in enumerate(self.engines):
            prefix = f"part{number}/"
            own = {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}
            engine.restore(own)

    # -- one step -----------------------------------------------------------------------

    def _batch(self, number: int, rows: NDArray[np.intp]) -> tuple[Tensor, Tensor, int]:
        """This process's images (rows, channels, height, width) and targets (rows, outputs).

        And how many rows the whole batch has.
        """
        if self.source.shuffled:
            # A source sorts its rows: parts of sorted rows stay in the order of the whole batch.
            n_rows, rows = len(rows), np.sort(rows)
            pixels, codes = self.source.batch(number, rows[self.team.part(n_rows)])
        else:
            pixels, codes = self.source.batch(number, rows)
            n_rows, own = len(codes), self.team.part(len(codes))
            pixels, codes = pixels[own], codes[own]
        images = torch.from_numpy(pixels).permute(0, 3, 1, 2).to(self.device, self.dtype)
        if self.augment is not None:
            images = _augmented(self.augment, images)
        labels, n_outputs = torch.from_numpy(codes).to(self.device), self.head.y.shape[1]
        y = labels[:, None]
        if n_outputs > 1:
            y = torch.nn.functional.one_hot(labels, n_outputs)
        return images, y.to(self.dtype), n_rows

    def step(
        self,
        images: Tensor,
        y: Tensor,
        rate: float,
        lambda_rate: float,
        kl_weight: float,
        n_rows: int | None = None,
    ) -> Tensor:
        """Takes one step on ``sum NLL + kl_weight * KL``; returns the sum of the batch's NLL.

        Parameters
        ----------
        images : (rows, channels, height, width)
        y : (rows, outputs)
            One-hot for the categorical likelihood.
        rate, lambda_rate, kl_weight : float
        n_rows : int, optional
            Rows of the whole batch, of which other processes have the rest.
        """
        whole = len(y) if n_rows is None else n_rows
        eta, kl = self.forward(images, whole)
        nll = self.head.likelihood.nll(y, eta, self.head.noise).sum()
        # Each process counts an equal part of the KL.
        (nll + kl_weight / self.team.size * kl).backward()
        total = nll.detach()
        self.team.add_up([*(grad for e in self.engines for grad in e.gradients()), total])
        for engine in self.engines:
            engine.update(rate, lambda_rate)
        return total

    def forward(self, images: Tensor, n_rows: int | None = None) -> tuple[Tensor, Tensor]:
        """The predictor with fresh random numbers at every place and unit, and the KL.

        Of the KL only the gradient is right; :meth:`kl` has its number.
        """
        whole = len(images) if n_rows is None else n_rows
        maps = channels_last(images)
        total = maps.new_zeros(())
        activation = families.activation(self.architecture.activation)
        for layer, engine in zip(self.architecture.convolutions, self.engines, strict=False):
            mean, variance, kl = engine.weights(engine.generator)
            total = total + kl
            maps = activation.torch(self._convolve(maps, mean, variance, layer, engine, whole))
            if layer.pool > 1:
                maps = torch.max_pool2d(maps, layer.pool, ceil_mode=True)
        features = maps.permute(0, 2, 3, 1).flatten(1)
        if self.architecture.pixel_skip:
            features = torch.cat([features, images.permute(0, 2, 3, 1).flatten(1)], dim=1)
        mean, variance, kl = self.head.weights(self.head.generator)
        eps = self.head.normal((self.head.architecture.n_units, whole), self.head.generator)
        own = eps[:, self.team.part(whole)]
        return self.head.forward(features, mean, variance, own), total + kl

    def _convolve(
        self,
        maps: Tensor,
        mean: Any,
        variance: Any,
        layer: Convolution,
        engine: TorchEngine,
        n_rows: int | None = None,
    ) -> Tensor:
        shape = (layer.out_channels, layer.in_channels, layer.kernel_size, layer.kernel_size)
        whole = len(maps) if n_rows is None else n_rows
        places = (whole, layer.out_height, layer.out_width, layer.out_channels)
        own = engine.normal(places, engine.generator)[self.team.part(whole)]
        eps = own.permute(0, 3, 1, 2)
        kernels = mean[0].view(shape), variance[0].view(shape)
        return NoisyConvolution.apply(maps, *kernels, mean[1], variance[1], eps, layer)


def _augmented(augment: Augment, images: Tensor) -> Tensor:
    changed = augment(images)
    if getattr(changed, "shape", None) != images.shape:
        raise ValueError(
            f"Got {getattr(changed, 'shape', type(changed).__name__)} from augment for a batch of "
            f"shape {tuple(images.shape)}, expected a tensor of the same shape."
        )
    return changed.to(images)


def _sizes(part: Posterior) -> tuple[int, int]:
    return part.architecture.n_covariates, part.architecture.n_outputs
