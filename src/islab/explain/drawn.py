"""What draws of a network give for rows, in the user's units: the stuff of explanations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.compaction import LivingDraws, living_draws
from islab.core.drawn import DrawnNetworks
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


@runtime_checkable
class Explainable(Protocol):
    """An estimator, which explains rows of its own tables."""

    def explain_local(self, X: Any, *, baseline: Any = None, **options: Any) -> Any: ...

    def explain_global(self, X: Any = None, **options: Any) -> Any: ...


@dataclass(frozen=True, eq=False)
class ExplainedNetworks:
    """Draws of networks that read the same covariates, on the scale of the data.

    Attributes
    ----------
    networks : DrawnNetworks
    columns : (covariates of the networks,)
        Where these stand among the covariates of the data.
    scale : Scale
    likelihood : str
    noise : (outputs,)
        Noise variance on the scale of the data, 1 for likelihoods without; or what else the
        likelihood learns besides the weights.
    """

    networks: DrawnNetworks
    columns: Index
    scale: Scale
    likelihood: str
    noise: Float

    @classmethod
    def collect(cls, source: Source, scale: Scale, draws: Iterable[Weights]) -> ExplainedNetworks:
        """Draws of a source, which come in portions of any size."""
        net = source.architecture
        parts = [DrawnNetworks.from_dense(net, *drawn) for drawn in draws]
        return cls.of(source, scale, DrawnNetworks.joined(parts))

    @classmethod
    def of(cls, source: Source, scale: Scale, networks: DrawnNetworks) -> ExplainedNetworks:
        """Networks that were drawn from a source."""
        columns = np.arange(source.architecture.n_covariates)
        if isinstance(source, SparseNetwork):
            columns = source.covariates
        scaled = families.likelihood(source.likelihood).scales_target
        noise = source.noise * scale.y_scale**2 if scaled else source.noise
        return cls(networks, columns, scale, source.likelihood, noise)

    @property
    def n_draws(self) -> int:
        return len(self.networks)

    @cached_property
    def used(self) -> Index:
        """Columns of the data that some draw reads."""
        return self.columns[self.networks.covariates]

    @cached_property
    def parts(self) -> tuple[LivingDraws, ...]:
        """A few draws at a time, without the units and covariates that they lack.

        Their ``covariates`` are columns of the data.
        """
        found = []
        for first in range(0, self.n_draws, DRAWS_AT_ONCE):
            some = self.networks[first : first + DRAWS_AT_ONCE]
            part = living_draws(some.architecture, *some.dense())
            found.append(replace(part, covariates=self.columns[part.covariates]))
        return tuple(found)

    @cached_property
    def entering(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Columns of the data that each draw reads, and those that a hidden unit of it reads.

        Both (draws, columns of the data).
        """
        net = self.networks.architecture
        shape = (self.n_draws, len(self.scale.x_scale))
        draws = np.repeat(np.arange(self.n_draws), np.diff(self.networks.ends, prepend=0))
        sources, targets = (end[self.networks.slots] for end in net.ends)
        found = []
        for edges in (sources < net.n_covariates, targets < sum(net.hidden)):
            edges &= sources < net.n_covariates
            read = np.zeros(shape, dtype=bool)
            read[draws[edges], self.columns[sources[edges]]] = True
            found.append(read)
        return found[0], found[1]

    @property
    def exact(self) -> bool:
        """Whether contributions and slopes are exact: no draw is curved."""
        net = self.networks.architecture
        sources = net.ends[0][self.networks.slots]
        return net.piecewise_linear or not bool((sources >= net.n_covariates).any())

    def take(self, draws: Index) -> ExplainedNetworks:
        """These draws, in their order."""
        return replace(self, networks=self.networks.take(draws))

    def thinned(self, most: int) -> ExplainedNetworks:
        """At most so many of the draws, evenly spaced."""
        if self.n_draws <= most:
            return self
        return self.take(((np.arange(most) + 0.5) / most * self.n_draws).astype(np.intp))

    def predictor(self, x: Float) -> Float:
        """(draws, rows, outputs)"""
        return self.scale.restore(self.networks.predictor(self._read(x)))

    def slopes(self, x: Float) -> Float:
        """(draws, rows, used covariates, outputs)"""
        gradient = self.networks.slopes(self._read(x))[1]
        gradient *= self.scale.y_scale[:, None] / self.scale.x_scale[self.used]
        return np.swapaxes(gradient, -1, -2)

    def contributions(self, start: Float, x: Float) -> Float:
        """From ``start`` (covariates,) or (rows, covariates), (draws, rows, used, outputs)."""
        found = self.networks.contributions(self._read(np.atleast_2d(start)), self._read(x))
        found *= self.scale.y_scale
        return found

    def reach(self, x: Float) -> tuple[Float, Float]:
        """How far each draw stays linear below and above each row, (draws, rows, used)."""
        shape = (self.n_draws, len(x), len(self.used))
        below, above = np.full(shape, np.inf), np.full(shape, np.inf)
        first = 0
        for part in self.parts:
            draws = slice(first, first + len(part.weights))
            first = draws.stop
            own = np.isin(part.covariates, self.used)
            places = np.searchsorted(self.used, part.covariates[own])
            for rows in _row_blocks(part, len(x)):
                columns = self.scale.standardise(x[rows], part.covariates)
                found = linear_reach(part.architecture, part.weights, part.biases, columns)
                for whole, distance in zip((below, above), found, strict=True):
                    scaled = distance * self.scale.x_scale[part.covariates]
                    whole[draws, rows, places] = scaled[..., own]
        return below, above

    def _read(self, x: Float) -> Float:
        """The columns of the data that the networks read, standardised."""
        return self.scale.standardise(x, self.columns)


def _row_blocks(part: LivingDraws, n_rows: int) -> list[slice]:
    """Rows in blocks whose unit slopes fit in memory."""
    net = part.architecture
    step = max(1, NUMBERS_AT_ONCE // max(1, len(part.weights) * net.n_units * net.n_covariates))
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
        likelihood = families.likelihood(self.networks.likelihood).given(self.networks.noise)
        return likelihood.mean(self.networks.predictor(self.x[rows]))[..., self.outputs]

    def predictor_at(self, point: Float) -> Float:
        """(draws, outputs)"""
        return self.at(point[None])[:, 0]

    def at(self, points: Float) -> Float:
        """Of other rows (rows, covariates), (draws, rows, outputs)."""
        return self._wanted(self.networks.predictor(points))

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
