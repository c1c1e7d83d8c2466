"""The torch engine for FLOW posteriors: means multiplied by ``z`` from a normalizing flow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log, pi
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from islab.core.architecture import Block
from islab.core.posterior import Posterior
from islab.learn.engines.base import Problem, State
from islab.learn.engines.flows import (
    BANK,
    KL_SAMPLES,
    LARGEST_LOG_SCALE,
    N_VECTORS,
    FlowOptions,
    inputs_of_layers,
    kept_inputs,
    tied_layers,
    with_multipliers,
)
from islab.learn.engines.torch.dense import ADAM_MOMENTS, Flat, TorchEngine


class FlowEngine(TorchEngine):
    """Learns a dense posterior whose weights a multiplicative normalizing flow ties together.

    Parameters
    ----------
    posterior, problem, seed, **options
        See :class:`~islab.learn.engines.torch.dense.TorchEngine`.
        And those of :class:`~islab.learn.engines.flows.FlowOptions`.
    """

    def __init__(
        self, posterior: Posterior, problem: Problem, *, seed: int, **options: Any
    ) -> None:
        own = FlowOptions.taken_from(options)
        self.flow_step = own.flow_step
        net = posterior.architecture
        n_inputs = [net.n_inputs(layer) for layer in range(net.n_layers)]
        self.n_inputs = n_inputs
        tied = tied_layers(net)
        self.groups = [
            own.group(tuple(layer for layer in tied if n_inputs[layer] == size), size)
            for size in sorted({n_inputs[layer] for layer in tied})
        ]
        super().__init__(posterior, problem, seed=seed, **options)
        self.take_inputs(inputs_of_layers(net))
        self._take_flows(_joined(own.starts(self.groups, seed)))
        self._free = self._pieces(_joined([group.free() for group in self.groups]))
        self._moved = [
            [self._tensor(transform.moved) for transform in group.transforms]
            for group in self.groups
        ]

    def posterior(self) -> Posterior:
        return with_multipliers(super().posterior(), self._bank(), self.layer_inputs)

    def kl(self) -> float:
        return float(self.kl_draws(KL_SAMPLES).mean())

    def kl_draws(self, draws: int) -> NDArray[np.float64]:
        with torch.no_grad():
            return np.array([super(FlowEngine, self).kl() for _ in range(draws)])

    def keep_units(self, masks: list[NDArray[np.bool_]], bias_shift: NDArray) -> None:
        """Drops the units; the flows keep their width, the dropped entries of ``z`` go unused."""
        self.take_inputs(kept_inputs(self.layer_inputs, masks))
        super().keep_units(masks, bias_shift)

    def state(self) -> State:
        states = [self.flow_optimiser.state[piece] for piece in self.flows]
        arrays = {f"flow_{name}": _flat([s[name] for s in states]) for name in ADAM_MOMENTS}
        arrays["flow_parameters"] = _flat(self.flows)
        arrays["flow_step"] = np.array(max((float(s["step"]) for s in states), default=0.0))
        inputs = {f"inputs{layer}": index for layer, index in enumerate(self.layer_inputs)}
        return super().state() | arrays | inputs

    def restore(self, state: State) -> None:
        self.take_inputs([state[f"inputs{layer}"] for layer in range(len(self.layer_inputs))])
        moments = [state[f"flow_{name}"] for name in ADAM_MOMENTS]
        self._take_flows(state["flow_parameters"], moments, int(state["flow_step"]))
        super().restore(state)

    # -- one step -----------------------------------------------------------------------

    def weights(self, generator: torch.Generator, value: bool = False) -> tuple[Flat, Flat, Tensor]:
        mu, *others = self.parts(self.theta)
        cut = self._cut()
        z, log_q = self._sample(cut, 1, generator)
        by_weight = self._by_weight([z[layer][0] for layer in range(len(z))])
        mean, variance, kl = self._spike_and_slab(by_weight * mu, *others, value=value)
        log_r = self._log_r(cut, z, mean[0], variance[0], generator)
        return mean, variance, kl + log_q - log_r

    def _sample(
        self, cut: list[list[Tensor]], n_draws: int, generator: torch.Generator
    ) -> tuple[list[Tensor], Tensor]:
        """``z`` of every layer, (draws, inputs), and the mean over draws of ``log q``."""
        z = [self.theta.new_ones(n_draws, size) for size in self.n_inputs]
        log_q = self.theta.new_zeros(())
        for group, pieces, moved in zip(self.groups, cut, self._moved, strict=True):
            shape = (len(group.layers), n_draws, group.n_inputs)
            eps = self.normal(shape, generator)
            drawn, density = sample(pieces, eps, moved)
            log_q = log_q + density.mean(1).sum()
            for place, layer in enumerate(group.layers):
                z[layer] = drawn[place]
        return z, log_q

    def _by_weight(self, z: list[Tensor]) -> Tensor:
        """``z`` of each weight's input, flat."""
        parts = []
        for block in self.architecture.blocks:
            part = _inputs_of(block, z[block.layer][self._inputs[block.layer]])
            parts.append(part.expand(block.n_targets, -1).reshape(-1))
        return torch.cat(parts)

    def _log_r(
        self,
        cut: list[list[Tensor]],
        z: list[Tensor],
        mean: Tensor,
        variance: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        total = self.theta.new_zeros(())
        for group, pieces, moved in zip(self.groups, cut, self._moved, strict=True):
            statistics = [
                self._statistic(layer, pieces[4][place, 0], mean, variance, generator)
                for place, layer in enumerate(group.layers)
            ]
            statistic = torch.stack(statistics)[:, None, None]
            drawn = torch.stack([z[layer] for layer in group.layers])
            total = total + log_r(pieces, drawn, statistic, moved).sum()
        return total

    def _statistic(
        self, layer: int, c: Tensor, mean: Tensor, variance: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Mean over a layer's units of ``hardtanh(c W)`` for a draw of the weights."""
        net = self.architecture
        c = c[self._inputs[layer]]
        m = v = mean.new_zeros(net.widths[layer])
        for block in (b for b in net.blocks if b.layer == layer and b.size):
            part = _inputs_of(block, c)
            m = m + block.view(mean) @ part
            v = v + block.view(variance) @ (part * part)
        eps = self.normal((len(m),), generator)
        if not len(m):
            return m.sum()
        return F.hardtanh(m + (v + 1e-12).sqrt() * eps).mean()

    def gradients(self) -> list[Tensor]:
        return [*super().gradients(), *(p.grad for p in self.flows if p.grad is not None)]

    @torch.no_grad()
    def update(self, rate: float, lambda_rate: float) -> None:
        for piece, free in zip(self.flows, self._free, strict=True):
            if piece.grad is not None:
                piece.grad.mul_(free)
        if self.flows:
            self.flow_optimiser.param_groups[0]["lr"] = self.flow_step * rate
            self.flow_optimiser.step()
            self.flow_optimiser.zero_grad()
        super().update(rate, lambda_rate)

    # -- memory -------------------------------------------------------------------------

    def _take_flows(
        self, flows: NDArray, moments: Sequence[NDArray] = (), n_steps: int = 0
    ) -> None:
        """Each piece is a tensor of its own: gradients then need not be put together."""
        self.flows = [piece.requires_grad_() for piece in self._pieces(flows)]
        if self.flows:
            of_pieces = [self._pieces(moment) for moment in moments]
            self.flow_optimiser = self._adam(self.flows, of_pieces, n_steps)

    def _pieces(self, flat: NDArray) -> list[Tensor]:
        """A number for every parameter of the flows, cut into pieces, group after group."""
        sizes = [size for group in self.groups for size in group.sizes]
        shapes = [shape for group in self.groups for shape in group.shapes]
        parts = self._tensor(flat).split(sizes)
        return [part.reshape(shape).clone() for part, shape in zip(parts, shapes, strict=True)]

    def _cut(self) -> list[list[Tensor]]:
        """The flows' pieces by group."""
        ends = np.cumsum([0, *(len(group.sizes) for group in self.groups)]).tolist()
        return [self.flows[start:stop] for start, stop in pairwise(ends)]

    def take_inputs(self, inputs: list[NDArray[np.intp]]) -> None:
        """Entries of each layer's ``z`` that are still in use."""
        self.layer_inputs = inputs
        self._inputs = [torch.as_tensor(index, device=self.device) for index in inputs]

    def _bank(self) -> list[NDArray]:
        """Draws of ``z`` for every layer, (bank, inputs)."""
        generator = torch.Generator(self.device)
        generator.set_state(self.generator.get_state())
        with torch.no_grad():
            z, _ = self._sample(self._cut(), BANK, generator)
        return [layer.cpu().numpy().astype(float) for layer in z]


def _inputs_of(block: Block, by_input: Tensor) -> Tensor:
    """The entries of a layer's inputs, hidden units first, that belong to one block."""
    start = 0 if block.source == "hidden" else len(by_input) - block.n_sources
    return by_input[start : start + block.n_sources]


def _joined(parts: list[NDArray]) -> NDArray:
    return np.concatenate([np.ones(0), *parts])


def _flat(pieces: list[Tensor]) -> NDArray:
    parts = [piece.detach().cpu().numpy().ravel() for piece in pieces]
    return np.concatenate(parts) if parts else np.zeros(0)


# -- transforms, a group of layers at a time ------------------------------------------------------


def transformed(z: Tensor, pieces: list[Tensor], moved: Tensor) -> tuple[Tensor, Tensor]:
    """``z`` (group, draws, inputs) after one transform, and the log-determinant (group, draws)."""
    w1, b1, w2, b2, w3, b3 = pieces
    hidden = torch.baddbmm(b1, z, w1).tanh_()
    hidden = torch.baddbmm(b2, hidden, w2).tanh_()
    s, t = torch.baddbmm(b3, hidden, w3).chunk(2, dim=-1)
    s = moved * (LARGEST_LOG_SCALE * torch.tanh(s / LARGEST_LOG_SCALE))
    return torch.addcmul(moved * t, z, s.exp()), s.sum(-1)


def push(z: Tensor, pieces: list[Tensor], moved: list[Tensor]) -> tuple[Tensor, Tensor]:
    """``z`` after transforms, one for each of ``moved``, and the sum of their log-determinants."""
    log_det = z.new_zeros(z.shape[:-1])
    for number, entries in enumerate(moved):
        z, change = transformed(z, pieces[6 * number : 6 * number + 6], entries)
        log_det = log_det + change
    return z, log_det


def sample(pieces: list[Tensor], eps: Tensor, moved: list[Tensor]) -> tuple[Tensor, Tensor]:
    """``z`` (group, draws, inputs) from standard normal ``eps``, and ``log q(z)``."""
    mean, log_variance = pieces[0], pieces[1]
    z = torch.addcmul(mean, (0.5 * log_variance).exp(), eps)
    log_q = -0.5 * (log(2 * pi) + log_variance + eps * eps).sum(-1)
    z, log_det = push(z, pieces[N_VECTORS : N_VECTORS + 6 * len(moved)], moved)
    return z, log_q - log_det


def log_r(pieces: list[Tensor], z: Tensor, statistic: Tensor, moved: list[Tensor]) -> Tensor:
    """``log r(z | W)``, (group, draws), given the mean over units of ``hardtanh(c W)``."""
    mean = torch.addcmul(pieces[2], pieces[5], statistic)
    log_variance = torch.addcmul(pieces[3], pieces[6], statistic)
    z_b, log_det = push(z, pieces[N_VECTORS + 6 * len(moved) :], moved)
    error = z_b - mean
    density = log(2 * pi) + log_variance + error * error * (-log_variance).exp()
    return -0.5 * density.sum(-1) + log_det
