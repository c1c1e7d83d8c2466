"""Quantiles over draws: of numbers, and of equal mixtures of one distribution for each draw.

Draws are (draws, rows, outputs) and quantiles (levels, rows, outputs). Compiled code finds them;
the functions in numpy beside it do the same where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.core.native import compiled, instructions

Float = NDArray[np.floating]

GOLDEN_SHARE = (5**0.5 - 1) / 2
MOST_STEPS = 60
SMALL_STEP = 1e-10


@dataclass(frozen=True)
class Location:
    """A distribution about a centre, in units of its scale.

    Attributes
    ----------
    kernel : str
        Its name in compiled code.
    quantile, share, density : callable
        Of an array of levels, and of numbers.
    """

    kernel: str
    quantile: Callable[[Float], Float]
    share: Callable[[Float], Float]
    density: Callable[[Float], Float]


def scattered_levels(n_draws: int) -> Float:
    """A level between 0 and 1 for each draw, evenly spread and in no order."""
    return (np.arange(1, n_draws + 1) * GOLDEN_SHARE) % 1


def scattered_normals(n_draws: int) -> Float:
    """A value of a standard normal variable for each draw, evenly spread and in no order."""
    from scipy.special import ndtri

    return ndtri(scattered_levels(n_draws))


def sample_quantiles(values: Float, levels: Float) -> Float:
    """Quantiles of values (draws, ...), on the line between neighbouring ranks, (levels, ...)."""
    if compiled is None or values.dtype != np.float64:
        return np.quantile(values, levels, axis=0)
    order = np.argsort(levels, kind="stable")
    found = compiled.quantiles(numbers=_flat(values), levels=levels[order])
    return _unsorted(found, order, values.shape[1:])


def location_quantiles(kind: Location, centres: Float, scale: Float, levels: Float) -> Float:
    """Quantiles of equal mixtures of one distribution about each draw's centre.

    Parameters
    ----------
    kind : Location
    centres : (draws, rows, outputs)
    scale : broadcast against centres
    levels : (levels,)
    """
    if compiled is None:
        return np.stack([_location_quantile(kind, centres, scale, p) for p in levels.tolist()])
    order = np.argsort(levels, kind="stable")
    found = compiled.location_quantiles(
        kind=kind.kernel,
        centres=_flat(centres),
        inverse_scale=_as_matrix(1 / scale, centres.shape),
        levels=levels[order],
        reaches=kind.quantile(levels[order]),
        instructions=instructions,
    )
    return _unsorted(found, order, centres.shape[1:])


def _location_quantile(kind: Location, centres: Float, scale: Float, level: float) -> Float:
    """Newton's steps from the quantile of one distribution with the same mean and variance.

    They are kept inside a bracket that shrinks: a step that would leave it goes to the middle.
    """
    reach = float(kind.quantile(np.array(level)))
    ends = centres + reach * scale
    low, high = ends.min(axis=0), ends.max(axis=0)
    own = np.broadcast_to(scale**2, centres.shape).mean(axis=0)
    x = centres.mean(axis=0) + reach * np.sqrt(centres.var(axis=0) + own)
    for _ in range(MOST_STEPS):
        x = np.where((x >= low) & (x <= high), x, (low + high) / 2)
        z = (x - centres) / scale
        excess = kind.share(z).mean(axis=0) - level
        density = (kind.density(z) / scale).mean(axis=0)
        low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
        step = excess / np.maximum(density, np.finfo(float).tiny)
        x = x - step
        if (np.abs(step) <= SMALL_STEP * np.sqrt(own)).all():
            break
    return np.clip(x, low, high)


def count_quantiles(
    rates: Float,
    dispersion: Float | None,
    levels: Float,
    share: Callable[..., Float],
) -> Float:
    """Smallest counts that equal mixtures of counts do not exceed with these shares.

    Parameters
    ----------
    rates : (draws, rows, outputs)
    dispersion : broadcast against rates, optional
        Of negative binomial counts; None for Poisson counts.
    levels : (levels,)
    share : callable
        Share of counts up to a number (columns,), from rates (draws, columns) and dispersions
        that broadcast against them.

    Notes
    -----
    Compiled code goes through the counts one by one; counts of many thousands are found by a
    bracket that shrinks.
    """
    matrix = _flat(rates)
    spread = None if dispersion is None else _as_matrix(dispersion, rates.shape)
    order = np.argsort(levels, kind="stable")
    if compiled is None:
        found = np.full((len(levels), matrix.shape[1]), np.nan)
    else:
        found = compiled.count_quantiles(
            rates=matrix, dispersion=spread, levels=levels[order], instructions=instructions
        )
    for level, own in zip(levels[order].tolist(), found, strict=True):
        left = np.isnan(own)
        if left.any():
            some = spread if spread is None or spread.shape[1] == 1 else spread[:, left]
            own[left] = _count_quantile(matrix[:, left], some, level, share)
    return _unsorted(found, order, rates.shape[1:])


def _count_quantile(
    rates: Float,
    dispersion: Float | None,
    level: float,
    share: Callable[..., Float],
) -> Float:
    """One quantile of each column, by a bracket whose inner points are guessed.

    The guess is the quantile of the normal distribution through the last point; every third point
    is the middle.
    """
    from scipy.special import ndtri

    own = 0 if dispersion is None else dispersion
    variance = rates + own * rates**2
    sd = np.sqrt(variance.mean(axis=0) + rates.var(axis=0))
    low = np.full(rates.shape[1], -1.0)
    high = np.ceil(10 + (rates + 80 * np.sqrt(variance)).max(axis=0))
    guess, target = rates.mean(axis=0) + ndtri(level) * sd, float(ndtri(level))
    for number in range(200):
        middle = np.floor((low + high) / 2)
        going = (middle > low) & (middle < high)
        if not going.any():
            break
        if number % 3 < 2:
            middle = np.where(going, np.clip(np.floor(guess), low + 1, high - 1), middle)
        reached = share(np.maximum(middle, 0), rates, dispersion).mean(axis=0)
        below = reached < level
        low, high = (
            np.where(going & below, middle, low),
            np.where(going & ~below, middle, high),
        )
        with np.errstate(invalid="ignore"):
            step = (target - np.clip(ndtri(reached), target - 8, target + 8)) * sd
        # The smallest count that reaches the level lies just above the point of that share.
        guess = middle + np.where(below, np.maximum(step, 1), np.minimum(step, -1))
    return high


def _flat(values: Float) -> Float:
    """(draws, columns)"""
    return np.ascontiguousarray(values, dtype=np.float64).reshape(len(values), -1)


def _as_matrix(spread: Float, shape: tuple[int, ...]) -> Float:
    """A spread that broadcasts against draws, as (draws or 1, columns or 1)."""
    spread = np.asarray(spread, dtype=np.float64)
    spread = spread.reshape((1,) * (len(shape) - spread.ndim) + spread.shape)
    if spread[0].size > 1:
        spread = np.broadcast_to(spread, (len(spread), *shape[1:]))
    return np.ascontiguousarray(spread).reshape(len(spread), -1)


def _unsorted(found: Float, order: NDArray[np.intp], shape: tuple[int, ...]) -> Float:
    quantiles = np.empty((len(order), *shape))
    quantiles[order] = found.reshape(len(order), *shape)
    return quantiles
