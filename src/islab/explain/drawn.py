"""What draws of a network give for rows, in the user's units: the stuff of explanations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.compaction import LivingDraws, living_draws
from islab.core.integration import integrated_contributions
from islab.core.network import forward, slopes
from islab.core.outputs import contrast_matrix
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork
from islab.explain.linear_region import linear_reach

Float = NDArray[np.floating]
Index = NDArray[np.intp]
Weights = tuple[Float, Float]  # (draws, weights), (draws, units)

DRAWS_AT_ONCE = 50  # neighbouring draws use nearly the same weights
NUMBERS_AT_ONCE = 500_000


class Source(Protocol):
    """What networks are drawn from: a posterior, or the readable network."""

    @property
    def architecture(self) -> Architecture: ...

    @property
    def likelihood(self) -> str: ...

    @property
    def noise(self) -> Float: ...

    def draw(self, n_draws: int, rng: np.random.Generator) -> Weights: ...


@dataclass(frozen=True, eq=False)
class ExplainedNetworks:
    """Draws of networks that read the same covariates, a few at a time without what they lack.

    Attributes
    ----------
    parts : tuple of LivingDraws
        Their ``covariates`` are columns of the data.
    scale : Scale
    likelihood : str
    noise : (outputs,)
        Noise variance on the scale of the data, 1 for likelihoods without.
    """

    parts: tuple[LivingDraws, ...]
    scale: Scale
    likelihood: str
    noise: Float

    @classmethod
    def collect(cls, source: Source, scale: Scale, draws: Iterable[Weights]) -> ExplainedNetworks:
        """Draws of a source, which come in portions of any size."""
        columns = np.arange(source.architecture.n_covariates)
        if isinstance(source, SparseNetwork):
            columns = source.covariates
        parts = []
        for weights, biases in draws:
            for first in range(0, len(weights), DRAWS_AT_ONCE):
                some = slice(first, first + DRAWS_AT_ONCE)
                part = living_draws(source.architecture, weights[some], biases[some])
                own = columns[part.covariates]
                parts.append(LivingDraws(part.architecture, own, part.weights, part.biases))
        noise = source.noise * scale.y_scale**2
        return cls(tuple(parts), scale, source.likelihood, noise)

    @property
    def n_draws(self) -> int:
        return sum(len(part.weights) for part in self.parts)

    @cached_property
    def used(self) -> Index:
        """Columns of the data that some draw reads."""
        return np.unique(np.concatenate([part.covariates for part in self.parts]))

    @property
    def exact(self) -> bool:
        """Whether contributions and slopes are exact: no draw is curved."""
        shapes = [part.architecture for part in self.parts]
        activation = families.activation(shapes[0].activation)
        return activation.piecewise_linear or not any(sum(shape.hidden) for shape in shapes)

    def thinned(self, most: int) -> ExplainedNetworks:
        """At most so many of the draws, evenly spaced."""
        if self.n_draws <= most:
            return self
        kept = ((np.arange(most) + 0.5) / most * self.n_draws).astype(np.intp)
        parts, first = [], 0
        for part in self.parts:
            own = kept[(kept >= first) & (kept < first + len(part.weights))] - first
            first += len(part.weights)
            if len(own):
                parts.append(replace(part, weights=part.weights[own], biases=part.biases[own]))
        return replace(self, parts=tuple(parts))

    def predictor(self, x: Float) -> Float:
        """(draws, rows, outputs)"""
        found = [
            forward(part.architecture, part.weights, part.biases, self._columns(part, x))
            for part in self.parts
        ]
        return self.scale.restore(np.concatenate(found))

    def slopes(self, x: Float) -> Float:
        """(draws, rows, used covariates, outputs)"""

        def of(part: LivingDraws, rows: slice) -> Float:
            columns = self._columns(part, x[rows])
            return slopes(part.architecture, part.weights, part.biases, columns)[1]

        return self._by_covariate(of, len(x), 1 / self.scale.x_scale)

    def contributions(self, start: Float, x: Float) -> Float:
        """From ``start`` (covariates,) or (rows, covariates), (draws, rows, used, outputs)."""
        start = np.broadcast_to(start, x.shape)

        def of(part: LivingDraws, rows: slice) -> Float:
            ends = self._columns(part, start[rows]), self._columns(part, x[rows])
            return integrated_contributions(part.architecture, part.weights, part.biases, *ends)

        return self._by_covariate(of, len(x), np.ones(len(self.scale.names)))

    def reach(self, x: Float) -> tuple[Float, Float]:
        """How far each draw stays linear below and above each row, (draws, rows, used)."""
        shape = (self.n_draws, len(x), len(self.used))
        below, above = np.full(shape, np.inf), np.full(shape, np.inf)
        first = 0
        for part in self.parts:
            draws = slice(first, first + len(part.weights))
            first = draws.stop
            places = np.searchsorted(self.used, part.covariates)
            for rows in self._row_blocks(part, len(x)):
                columns = self._columns(part, x[rows])
                found = linear_reach(part.architecture, part.weights, part.biases, columns)
                for whole, distance in zip((below, above), found, strict=True):
                    whole[draws, rows, places] = distance * self.scale.x_scale[part.covariates]
        return below, above

    def _columns(self, part: LivingDraws, x: Float) -> Float:
        return self.scale.standardise(x, part.covariates)

    def _by_covariate(self, of: Any, n_rows: int, factor: Float) -> Float:
        """What ``of`` gives by outputs and covariates, placed among all used covariates."""
        n_outputs = len(self.scale.outputs)
        found = np.zeros((self.n_draws, n_rows, len(self.used), n_outputs))
        first = 0
        for part in self.parts:
            draws = slice(first, first + len(part.weights))
            first = draws.stop
            places = np.searchsorted(self.used, part.covariates)
            for rows in self._row_blocks(part, n_rows):
                own = of(part, rows) * factor[part.covariates]
                found[draws, rows, places] = np.swapaxes(own, -1, -2) * self.scale.y_scale
        return found

    def _row_blocks(self, part: LivingDraws, n_rows: int) -> list[slice]:
        net = part.architecture
        own = len(part.weights) * (net.n_units + net.n_outputs * (net.n_covariates + net.n_units))
        step = max(1, NUMBERS_AT_ONCE // max(own, 1))
        return [slice(row, min(row + step, n_rows)) for row in range(0, n_rows, step)]


@dataclass(frozen=True, eq=False)
class RowDraws:
    """Draws for some rows and outputs, against a reference class if there is one.

    Attributes
    ----------
    networks : ExplainedNetworks
    x : (rows, covariates)
    outputs : list of int
        The outputs wanted.
    reference : str, optional
        ``"center"`` or a class.
    """

    networks: ExplainedNetworks
    x: Float
    outputs: list[int]
    reference: str | None

    @property
    def n_draws(self) -> int:
        return self.networks.n_draws

    def predictor(self, rows: slice) -> Float:
        """(draws, rows, outputs)"""
        return self._wanted(self.networks.predictor(self.x[rows]))

    def response(self, rows: slice) -> Float:
        """(draws, rows, outputs)"""
        likelihood = families.likelihood(self.networks.likelihood)
        return likelihood.mean(self.networks.predictor(self.x[rows]))[..., self.outputs]

    def predictor_at(self, point: Float) -> Float:
        """(draws, outputs)"""
        return self._wanted(self.networks.predictor(point[None])[:, 0])

    def slopes(self, rows: slice) -> Float:
        """(draws, rows, used covariates, outputs)"""
        return self._wanted(self.networks.slopes(self.x[rows]))

    def contributions(self, rows: slice, start: Float) -> Float:
        """(draws, rows, used covariates, outputs)"""
        return self._wanted(self.networks.contributions(start, self.x[rows]))

    def reach(self, rows: slice) -> tuple[Float, Float]:
        """(draws, rows, used covariates)"""
        return self.networks.reach(self.x[rows])

    def _wanted(self, values: Float) -> Float:
        """(..., outputs) against the reference, of the outputs wanted."""
        networks = self.networks
        if self.reference is not None:
            contrast = contrast_matrix(networks.scale, networks.likelihood, self.reference)
            return values @ contrast[self.outputs].T
        every = self.outputs == list(range(len(networks.scale.outputs)))
        return values if every else values[..., self.outputs]
