"""Normalizing flows for the multiplicative posterior, batched over layers.

A posterior of the FLOW kind multiplies the means of a layer by a random vector ``z``, one entry
for each input of the layer. Here live the distribution ``q(z)``, a Gaussian pushed through
invertible transforms, and the auxiliary ``r(z | W)`` that closes the bound (Louizos & Welling
2017). Layers with equally many inputs form a group and run as one batch.

A :class:`FlowGroup` says which pieces its parameters have; weights that a mask forbids are zero
from the start and get no gradient, so masks cost nothing in the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, pi, prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

KINDS = ("iaf", "rnvp")
LARGEST_LOG_SCALE = 2.0
SMALL = 0.01
N_VECTORS = 7


@dataclass(frozen=True)
class Transform:
    """An invertible map of (group, draws, inputs) with a log-determinant.

    ``z' = z * exp(s) + t`` where ``s`` and ``t`` come from a masked two-hidden-layer network:
    an autoregressive one (IAF), or one that maps one half of ``z`` by the other (RNVP).

    Attributes
    ----------
    first, middle, last : bool arrays
        Which weights of the three layers may be other than zero, (in, out).
    moved : (inputs,) bool
        Entries of ``z`` that the transform changes.
    """

    first: NDArray[np.bool_]
    middle: NDArray[np.bool_]
    last: NDArray[np.bool_]
    moved: NDArray[np.bool_]

    @classmethod
    def make(cls, kind: str, n_inputs: int, width: int, number: int) -> Transform:
        """The ``number``-th transform; orders and halves alternate from one to the next."""
        if kind not in KINDS:
            raise ValueError(f"Got flow={kind!r}, expected one of {', '.join(KINDS)}.")
        order = np.arange(n_inputs)
        if number % 2:
            order = order[::-1]
        if kind == "rnvp":
            moved = order % 2 == 1 if n_inputs > 1 else np.zeros(1, dtype=bool)
            return cls(
                first=np.repeat(~moved[:, None], width, axis=1),
                middle=np.ones((width, width), dtype=bool),
                last=np.repeat(np.tile(moved, 2)[None], width, axis=0),
                moved=moved,
            )
        degree = np.arange(width) % max(n_inputs - 1, 1)
        return cls(
            first=order[:, None] <= degree[None, :],
            middle=degree[:, None] <= degree[None, :],
            last=np.tile(degree[:, None] < order[None, :], (1, 2)),
            moved=np.ones(n_inputs, dtype=bool),
        )

    @property
    def masks(self) -> tuple[NDArray[np.bool_], ...]:
        return self.first, self.middle, self.last

    def __call__(self, z: Tensor, pieces: list[Tensor], moved: Tensor) -> tuple[Tensor, Tensor]:
        """The transformed ``z`` and its log-determinant, (group, draws)."""
        w1, b1, w2, b2, w3, b3 = pieces
        hidden = torch.baddbmm(b1, z, w1).tanh_()
        hidden = torch.baddbmm(b2, hidden, w2).tanh_()
        s, t = torch.baddbmm(b3, hidden, w3).chunk(2, dim=-1)
        s = moved * (LARGEST_LOG_SCALE * torch.tanh(s / LARGEST_LOG_SCALE))
        return torch.addcmul(moved * t, z, s.exp()), s.sum(-1)


@dataclass(frozen=True)
class FlowGroup:
    """The flows of layers with equally many inputs.

    Parameters
    ----------
    layers : tuple of int
    n_inputs : int
    kind : {"iaf", "rnvp"}
    n_transforms : int
        Of ``q`` and of ``r`` each.
    width : int
        Hidden units of the networks inside a transform.
    """

    layers: tuple[int, ...]
    n_inputs: int
    kind: str
    n_transforms: int
    width: int

    @cached_property
    def transforms(self) -> tuple[Transform, ...]:
        return tuple(
            Transform.make(self.kind, self.n_inputs, self.width, number)
            for number in range(self.n_transforms)
        )

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the pieces: mean and log variance of q0 and of r, r's c, b1, b2, the transforms."""
        n_layers, v = len(self.layers), self.n_inputs
        shapes: list[tuple[int, ...]] = [(n_layers, 1, v)] * N_VECTORS
        for transform in (*self.transforms, *self.transforms):
            for mask in transform.masks:
                shapes += [(n_layers, *mask.shape), (n_layers, 1, mask.shape[1])]
        return shapes

    def free(self) -> NDArray[np.bool_]:
        """Which parameters may move, flat."""
        parts = [np.ones(N_VECTORS * len(self.layers) * self.n_inputs, dtype=bool)]
        for transform in (*self.transforms, *self.transforms):
            for mask in transform.masks:
                parts.append(np.broadcast_to(mask, (len(self.layers), *mask.shape)).ravel())
                parts.append(np.ones(len(self.layers) * mask.shape[1], dtype=bool))
        return np.concatenate(parts)

    def initial(self, rng: np.random.Generator, spread: float) -> NDArray[np.float64]:
        """Parameters of a flow near ``z = 1`` where r equals q: the transforms do nothing yet.

        Their last layers are zero, and so is what the weights say about ``z`` in r. Anything
        else, however small, would be large beside a small spread.
        """
        n_layers, v = len(self.layers), self.n_inputs
        gaussian = [np.ones(n_layers * v), np.full(n_layers * v, 2 * np.log(spread))]
        c, b1, b2 = SMALL * rng.standard_normal(n_layers * v), *np.zeros((2, n_layers * v))
        parts = [*gaussian, *gaussian, c, b1, b2]
        for transform in (*self.transforms, *self.transforms):
            for scale, mask in zip((1.0, 1.0, 0.0), transform.masks, strict=True):
                drawn = rng.standard_normal((n_layers, *mask.shape)) * mask / np.sqrt(len(mask))
                parts += [scale * drawn.ravel(), np.zeros(n_layers * mask.shape[1])]
        return np.concatenate(parts)

    @cached_property
    def sizes(self) -> list[int]:
        """Parameters of each piece."""
        return [prod(shape) for shape in self.shapes]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(self.sizes)

    def moved(self, device: torch.device, dtype: torch.dtype) -> list[Tensor]:
        """The transforms' masks of moved entries as tensors."""
        return [torch.as_tensor(t.moved, device=device, dtype=dtype) for t in self.transforms]

    def sample(
        self, pieces: list[Tensor], eps: Tensor, moved: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """``z`` (group, draws, inputs) from standard normal ``eps``, and ``log q(z)``."""
        mean, log_variance = pieces[0], pieces[1]
        z = torch.addcmul(mean, (0.5 * log_variance).exp(), eps)
        log_q = -0.5 * (log(2 * pi) + log_variance + eps * eps).sum(-1)
        z, log_det = self._push(z, pieces[N_VECTORS : N_VECTORS + 6 * self.n_transforms], moved)
        return z, log_q - log_det

    def log_r(
        self, pieces: list[Tensor], z: Tensor, statistic: Tensor, moved: list[Tensor]
    ) -> Tensor:
        """``log r(z | W)``, (group, draws), given the mean over units of ``hardtanh(c W)``."""
        mean = torch.addcmul(pieces[2], pieces[5], statistic)
        log_variance = torch.addcmul(pieces[3], pieces[6], statistic)
        z_b, log_det = self._push(z, pieces[N_VECTORS + 6 * self.n_transforms :], moved)
        error = z_b - mean
        density = log(2 * pi) + log_variance + error * error * (-log_variance).exp()
        return -0.5 * density.sum(-1) + log_det

    def _push(self, z: Tensor, pieces: list[Tensor], moved: list[Tensor]) -> tuple[Tensor, Tensor]:
        log_det = z.new_zeros(z.shape[:-1])
        for number, transform in enumerate(self.transforms):
            z, change = transform(z, pieces[6 * number : 6 * number + 6], moved[number])
            log_det = log_det + change
        return z, log_det
