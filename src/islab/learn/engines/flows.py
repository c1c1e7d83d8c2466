"""Normalizing flows for the multiplicative posterior: what their parameters are.

A posterior of the FLOW kind multiplies the means of a layer by a random vector ``z``, one entry
for each input of the layer. Its distribution ``q(z)`` is a Gaussian pushed through invertible
transforms, and an auxiliary ``r(z | W)`` closes the bound (Louizos & Welling 2017). Here are the
wiring and the start of both; the engines compute them.

Layers with equally many inputs can form a group that runs as one batch. A :class:`FlowGroup` says
which pieces its parameters have; weights that a mask forbids are zero from the start and get no
gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.arrays import Float
from islab.core.posterior import Posterior

KINDS = ("iaf", "rnvp")
LARGEST_LOG_SCALE = 2.0
SMALL = 0.01
N_VECTORS = 7
BANK = 1000
KL_SAMPLES = 8

# The stretch of the hyperbolic tangents through which an entry moves the others, and how much of a
# straight line two of them leave: E[x tanh(tanh(x STRETCH))] / STRETCH for a standard normal x.
STRETCH, STRAIGHT = 0.2, 0.9315

# Defaults of the engines' flows.
N_TRANSFORMS, FLOW_WIDTH, Z_SPREAD, FLOW_STEP = 2, 250, 0.01, 0.1


@dataclass(frozen=True)
class Transform:
    """An invertible map of (group, draws, inputs) with a log-determinant.

    ``z' = z * exp(s) + t`` where ``s`` and ``t`` come from a masked two-hidden-layer network:
    an autoregressive one (IAF), or one that maps one half of ``z`` by the other (RNVP).
    """

    first: NDArray[np.bool_]  # (in, out): weights of the three layers that may be other than zero
    middle: NDArray[np.bool_]
    last: NDArray[np.bool_]
    moved: NDArray[np.bool_]  # (inputs,), entries of ``z`` that the transform changes

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
        # Rising degrees: what a unit may reach lies together.
        degree = np.arange(width) * max(n_inputs - 1, 1) // width
        return cls(
            first=order[:, None] <= degree[None, :],
            middle=degree[:, None] <= degree[None, :],
            last=np.tile(degree[:, None] < order[None, :], (1, 2)),
            moved=np.ones(n_inputs, dtype=bool),
        )

    @property
    def masks(self) -> tuple[NDArray[np.bool_], ...]:
        return self.first, self.middle, self.last

    def shifts(self) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
        """Which entries (inputs, inputs) each entry moves through one unit in each hidden layer.

        The units, (inputs,) each, are those through which it reaches most.
        """
        n_inputs = len(self.moved)
        last = self.last[:, n_inputs:] & self.moved
        reaches = last.sum(axis=1)
        high = np.where(self.middle, reaches, -1).argmax(axis=1)  # (width,), from each low unit
        low = np.where(self.first, reaches[high], -1).argmax(axis=1)
        through = high[low]
        reached = last[through] & self.first[np.arange(n_inputs), low][:, None]
        return reached & self.middle[low, through][:, None], low, through


@dataclass(frozen=True, eq=False)
class Factor:
    """A direction along which the entries of a layer's ``z`` move together at the start.

    ``z = 1 + direction t`` with a standard normal ``t``, and small noise of each entry besides. Of
    ``t`` the weights tell ``slope (s - centre)`` up to a variance, where ``s`` is the mean over
    units of ``statistic W``.
    """

    direction: Float  # (inputs,)
    spread: Float  # (inputs,) standard deviations of the noise
    statistic: Float  # (inputs,)
    centre: float
    slope: float
    variance: float


@dataclass(frozen=True)
class FlowGroup:
    """The flows of layers with equally many inputs."""

    layers: tuple[int, ...]
    n_inputs: int
    kind: str  # "iaf" or "rnvp"
    n_transforms: int  # of ``q`` and of ``r`` each
    width: int  # hidden units of the networks inside a transform

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

    def initial(
        self,
        rng: np.random.Generator,
        spread: float,
        factors: Sequence[Factor | None] = (),
    ) -> NDArray[np.float64]:
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
        start = np.concatenate(parts)
        for layer in self.layers:
            if len(factors) and (factor := factors[layer]) is not None:
                self.tie(start, layer, factor)
        return start

    def tie(self, flat: NDArray[np.float64], layer: int, factor: Factor) -> None:
        """Changes a start of this group, in place: a layer's entries move along a factor.

        The entry that carries the factor, the lead, moves the others through one unit in each
        hidden layer of a transform. r takes the same steps back, so that all other entries are
        noise again, and knows of the lead what the weights tell.
        """
        pieces = [
            piece.reshape(shape)[self.layers.index(layer)]
            for piece, shape in zip(
                np.split(flat, np.cumsum(self.sizes)[:-1]), self.shapes, strict=True
            )
        ]
        mean, log_variance, r_mean, r_log_variance, c, b1, _ = (p[0] for p in pieces[:N_VECTORS])
        log_variance[:] = r_log_variance[:] = 2 * np.log(factor.spread)
        lead, shifts = self._shifts(factor)
        size = abs(factor.direction[lead])
        for number, (reached, units) in enumerate(shifts):
            for back in (False, True):
                at = N_VECTORS + 6 * (number + back * self.n_transforms)
                first, first_bias, middle, middle_bias, last, _ = pieces[at : at + 6]
                low, high = units
                first[:, low], first_bias[0, low] = 0.0, -STRETCH / size
                first[lead, low] = STRETCH / size
                middle[:, high], middle_bias[0, high] = 0.0, 0.0
                middle[low, high] = 1.0
                shift = factor.direction[reached] * np.sign(factor.direction[lead])
                step = shift / (STRETCH * STRAIGHT)
                last[high, self.n_inputs + reached] = -step if back else step
        c[:] = factor.statistic
        log_variance[lead] = 2 * np.log(size)
        b1[lead] = factor.direction[lead] * factor.slope
        r_mean[lead] = mean[lead] - b1[lead] * factor.centre
        r_log_variance[lead] = 2 * np.log(size) + np.log(factor.variance)

    def _shifts(self, factor: Factor) -> tuple[int, list[tuple[NDArray[np.intp], tuple[int, int]]]]:
        """The lead, and for each transform the entries that it moves, and through which units."""
        weight = factor.direction**2 / factor.spread**2
        reach = [transform.shifts() for transform in self.transforms]
        moved = np.any([reached for reached, _, _ in reach], axis=0)
        lead = int(np.argmax(np.where(weight > 0, moved @ weight + 2 * weight, -1.0)))
        left, found = factor.direction != 0, []
        left[lead] = False
        for reached, low, high in reach:
            now = left & reached[lead]
            left &= ~now
            found.append((np.flatnonzero(now), (int(low[lead]), int(high[lead]))))
        return lead, found

    @cached_property
    def sizes(self) -> list[int]:
        """Parameters of each piece."""
        return [prod(shape) for shape in self.shapes]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(self.sizes)


@dataclass(frozen=True)
class FlowOptions:
    """What the engines are told of the flows of all layers.

    Parameters
    ----------
    flow : {"iaf", "rnvp"}
        Kind of transform.
    n_transforms : int
        Of ``q(z)`` and of the auxiliary ``r(z | W)`` each.
    flow_width : int
        Hidden units of the networks inside a transform.
    z_spread : float
        Standard deviation of ``z`` at the start; its mean is 1.
    flow_step : float
        Factor on the learning rate for the flows' parameters: networks learn at slower rates
        than the means they multiply.
    factors : sequence of Factor or None
        Of each layer, a direction along which its entries of ``z`` move together at the start.
    """

    flow: str = "iaf"
    n_transforms: int = N_TRANSFORMS
    flow_width: int = FLOW_WIDTH
    z_spread: float = Z_SPREAD
    flow_step: float = FLOW_STEP
    factors: Sequence[Factor | None] = ()

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> FlowOptions:
        """Those among an engine's options, which lose them."""
        known = [each.name for each in fields(cls)]
        return cls(**{name: options.pop(name) for name in known if name in options})

    def group(self, layers: tuple[int, ...], n_inputs: int) -> FlowGroup:
        """The flows of layers with so many inputs."""
        return FlowGroup(layers, n_inputs, self.flow, self.n_transforms, self.flow_width)

    def starts(self, groups: Sequence[FlowGroup], seed: int) -> list[NDArray[np.float64]]:
        """Parameters of each group to start from."""
        rng = np.random.default_rng([seed, 1])
        return [group.initial(rng, self.z_spread, self.factors) for group in groups]


# -- which entries of z a network has ---------------------------------------------------------


def inputs_of_layers(net: Architecture) -> list[NDArray[np.intp]]:
    """The entries of each layer's ``z``, all of them, hidden units first."""
    return [np.arange(net.n_inputs(layer)) for layer in range(net.n_layers)]


def tied_layers(net: Architecture) -> list[int]:
    """Layers with weights to tie together: with units and inputs."""
    return [n for n, width in enumerate(net.widths) if width and net.n_inputs(n)]


def kept_inputs(
    inputs: list[NDArray[np.intp]], masks: list[NDArray[np.bool_]]
) -> list[NDArray[np.intp]]:
    """The entries in use once the hidden units of each layer but these are dropped."""
    kept = list(inputs)
    for layer, mask in enumerate(masks, start=1):
        hidden, covariates = np.split(inputs[layer], [len(mask)])
        kept[layer] = np.concatenate([hidden[mask], covariates])
    return kept


def with_multipliers(
    posterior: Posterior, bank: list[NDArray], inputs: list[NDArray[np.intp]]
) -> Posterior:
    """The posterior with draws of ``z``, (draws, inputs) for each layer, entries in use only."""
    used = [z[:, index] for z, index in zip(bank, inputs, strict=True)]
    posterior.multipliers = np.concatenate(used, axis=1)
    posterior.input_index = posterior.architecture.input_index
    return posterior
