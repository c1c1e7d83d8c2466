"""Passes over rows: what a block of rows adds to sums, and where rows come from.

A pass is a function of a block that gives numbers to add up. Rows may lie in an array, come from
files batch after batch, or be spread over a cluster: only the sums leave the place where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import islice
from operator import add
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from joblib import Parallel, delayed

from islab.core import families
from islab.core.arrays import Float, Mask
from islab.core.drawn import DrawnNetworks
from islab.core.families import Likelihood
from islab.learn.engines.base import Problem

ROWS_AT_ONCE = 16_384
NUMBERS_AT_ONCE = 2_000_000  # roots of the curvature by network, row and outputs
NOISE_STEP = 1e-3  # of the logarithm of noise, for differences
BLOCKS_AT_ONCE = 64


class Sum(Protocol):
    """What a pass gives for a block of rows."""

    def __add__(self, other: Any) -> Any: ...


class Rows(Protocol):
    """All rows of a fit, on the scale that networks see."""

    @property
    def n_rows(self) -> int: ...

    def total(self, task: Callable[[Problem], Any]) -> Any:
        """The sum of what a pass gives for every block of rows."""


class NewtonSums(NamedTuple):
    """Sums over rows of what a Gauss-Newton step of one network needs.

    Parameters are those of :attr:`DrawnNetworks.parameters`, then the logarithms of the noise.

    Attributes
    ----------
    log_likelihood : float
    gradient : (parameters,)
    information : (parameters, parameters)
        Of weights the expected one (Gauss-Newton), of noise the observed one.
    """

    log_likelihood: float
    gradient: Float
    information: Float


@dataclass(frozen=True, eq=False)
class PartialSums:
    """What blocks of rows add to the :class:`NewtonSums` of several networks, in few arrays.

    Attributes
    ----------
    log_likelihood : (draws,)
    slopes : (1 + numbers, parameters of all draws)
        Of the log likelihood, and of its slopes by the logarithms of the noise.
    squares : (squared numbers of parameters of all draws,)
    noise_gradient : (draws, numbers)
    noise_information : (draws, numbers, numbers)
    """

    log_likelihood: Float
    slopes: Float
    squares: Float
    noise_gradient: Float
    noise_information: Float

    def __add__(self, other: PartialSums) -> PartialSums:
        return PartialSums(*(a + b for a, b in zip(self._parts, other._parts, strict=True)))

    @property
    def _parts(self) -> tuple[Float, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def by_network(self, sizes: Sequence[int]) -> list[NewtonSums]:
        """Those of each network, given its number of parameters without noise."""
        slopes = np.split(self.slopes, np.cumsum(sizes)[:-1], axis=1)
        squares = np.split(self.squares, np.cumsum(np.square(sizes))[:-1])
        noise = zip(self.noise_gradient, self.noise_information, strict=True)
        found = []
        for value, slope, square, (gradient, information) in zip(
            self.log_likelihood, slopes, squares, noise, strict=True
        ):
            size, cross = slope.shape[1], -slope[1:]
            whole = np.block([[square.reshape(size, size), cross.T], [cross, information]])
            found.append(NewtonSums(float(value), np.concatenate([slope[0], gradient]), whole))
        return found


@dataclass(frozen=True, eq=False)
class NewtonPass:
    """Gives :class:`PartialSums` of a block of rows."""

    networks: DrawnNetworks
    noise: Float  # (draws, numbers)
    likelihood: str

    def __call__(self, block: Problem) -> PartialSums:
        size = max(1, NUMBERS_AT_ONCE // (len(self.networks) * block.y.shape[1] ** 2))
        if block.n_rows <= size:
            return self._sums(block)
        parts = (
            self._sums(rows_of(block, slice(first, first + size)))
            for first in range(0, block.n_rows, size)
        )
        return reduce(add, parts)

    def _sums(self, block: Problem) -> PartialSums:
        family = families.likelihood(self.likelihood)
        predictor = _predictor(self.networks, block)
        learned = self.noise.shape[1] if family.learns_noise else 0
        found = [
            _Derivatives.of(family, block.y, *each, block.row_weights, learned)
            for each in zip(predictor, self.noise, strict=True)
        ]
        slopes, squares = self.networks.newton_sums(
            block.x,
            np.stack([each.residuals for each in found], axis=1),
            np.stack([each.roots for each in found], axis=1),
        )
        return PartialSums(
            np.array([each.value for each in found]),
            slopes,
            squares,
            np.array([each.noise_gradient for each in found]),
            np.array([each.noise_information for each in found]),
        )


@dataclass(frozen=True, eq=False)
class _Derivatives:
    """Of the log likelihood of some rows under one network."""

    value: float
    residuals: Float  # (1 + numbers, rows, outputs): by the predictor, and that by log noise
    roots: Float  # (roots, rows, outputs)
    noise_gradient: Float  # (numbers,)
    noise_information: Float  # (numbers, numbers)

    @classmethod
    def of(
        cls,
        family: Likelihood,
        y: Float,
        eta: Float,
        noise: Float,
        weight: Float,
        n_numbers: int,
    ) -> Self:
        """``n_numbers`` of the noise are learned: all or none."""

        def value(*moved: int) -> float:
            return -float(weight @ family.nll(y, eta, _moved(noise, *moved)))

        steps = range(n_numbers)
        middle = value()
        up, down = ([value(sign * (k + 1)) for k in steps] for sign in (1, -1))
        information = np.zeros((n_numbers, n_numbers))
        for k in steps:
            information[k, k] = (2 * middle - up[k] - down[k]) / NOISE_STEP**2
            for other in range(k):
                both = value(k + 1, other + 1)
                crossed = (up[k] + up[other] - middle - both) / NOISE_STEP**2
                information[k, other] = information[other, k] = crossed
        residuals = [-family.gradient(y, eta, noise)]
        for k in steps:
            higher, lower = (family.gradient(y, eta, _moved(noise, s * (k + 1))) for s in (1, -1))
            residuals.append((lower - higher) / (2 * NOISE_STEP))
        return cls(
            middle,
            np.array(residuals) * weight[:, None],
            family.hessian_roots(eta, noise) * np.sqrt(weight)[:, None],
            (np.array(up) - np.array(down)) / (2 * NOISE_STEP),
            information,
        )


def _moved(noise: Float, *numbers: int) -> Float:
    """Noise of which some numbers, counted from 1, are a step larger, or smaller if negative."""
    if not numbers:
        return noise
    moved = noise.copy()
    for number in numbers:
        moved[abs(number) - 1] *= np.exp(np.sign(number) * NOISE_STEP)
    return moved


@dataclass(frozen=True, eq=False)
class LogLikelihoods:
    """Gives the log likelihood of a block of rows under each network, (draws,)."""

    networks: DrawnNetworks
    noise: Float  # (draws, numbers)
    likelihood: str

    def __call__(self, block: Problem) -> Float:
        return self.by_row(block) @ block.row_weights

    def by_row(self, block: Problem) -> Float:
        """Of each row, (draws, rows)."""
        family = families.likelihood(self.likelihood)
        pairs = zip(_predictor(self.networks, block), self.noise, strict=True)
        return np.array([-family.nll(block.y, eta, noise) for eta, noise in pairs])


def _predictor(networks: DrawnNetworks, block: Problem) -> Float:
    predictor = networks.predictor(block.x)
    return predictor if block.offset is None else predictor + block.offset


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows of a problem in memory.

    Parameters
    ----------
    problem : Problem
    n_jobs : int, optional
        Threads. Sums do not depend on it: blocks are added in their order.
    """

    problem: Problem
    n_jobs: int | None = None

    @property
    def n_rows(self) -> int:
        return self.problem.n_rows

    def total(self, task: Callable[[Problem], Any]) -> Any:
        blocks, found = blocks_of(self.problem), None
        while some := list(islice(blocks, BLOCKS_AT_ONCE)):
            jobs = (delayed(task)(block) for block in some)
            for part in Parallel(n_jobs=self.n_jobs, require="sharedmem")(jobs):
                found = part if found is None else found + part
        return found


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows as a network sees them: some of the covariates, targets for each of its predictors.

    Parameters
    ----------
    rows : Rows
    columns : (covariates,) bool
        Those that are seen.
    likelihood : str
    """

    rows: Rows
    columns: Mask
    likelihood: str

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    def total(self, task: Callable[[Problem], Any]) -> Any:
        return self.rows.total(_Seen(task, self.columns, self.likelihood))


@dataclass(frozen=True, eq=False)
class _Seen:
    task: Callable[[Problem], Any]
    columns: Mask
    likelihood: str

    def __call__(self, block: Problem) -> Any:
        family = families.likelihood(self.likelihood)
        return self.task(block.of_covariates(self.columns).with_predictors(family))


def blocks_of(problem: Problem) -> Iterator[Problem]:
    """Neighbouring rows, some at a time."""
    for first in range(0, problem.n_rows, ROWS_AT_ONCE):
        yield rows_of(problem, slice(first, first + ROWS_AT_ONCE))


def rows_of(problem: Problem, rows: Any) -> Problem:
    """The same problem with some of its rows."""
    weight, offset = problem.sample_weight, problem.offset
    return replace(
        problem,
        x=problem.x[rows],
        y=problem.y[rows],
        sample_weight=None if weight is None else weight[rows],
        offset=None if offset is None else offset[rows],
    )
