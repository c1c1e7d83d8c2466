"""Conformal prediction from draws: which new targets are no stranger than those of training.

A new row with a candidate target joins the training rows. Draws ``t`` of the posterior stand for
the posterior with that row, once each has the weight ``p(candidate | x, t)``: add-one-in importance
weights (Fong and Holmes, 2021), so that no rows are held out and nothing is fitted again. All rows,
the new one among them, get a score of how strange their targets are under the weighted draws. If
rows are exchangeable, the new one's rank is uniform whatever the data are like, and the candidates
that are not among the strangest ``1 - level`` hold the target with probability ``level``, up to
the Monte Carlo error of the weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float

NUMBERS_AT_ONCE = 4_000_000
MOST_DOUBLINGS, BISECTIONS = 12, 14


def add_one_in(log_density: Float) -> Float:
    """Weights of draws with one more observation, (draws, candidates), from its log density."""
    weights = np.exp(log_density - log_density.max(axis=0))
    return weights / weights.sum(axis=0)


def scores_of_numbers(weights: Float, residuals: Float) -> Float:
    """How far targets lie from their mean, in predictive SDs, (candidates, rows).

    Parameters
    ----------
    weights : (draws, candidates)
    residuals : (draws, rows)
        Pearson residuals of each draw: ``(y - mean) / sd``.
    """
    mean = weights.T @ residuals
    return _in_sds(mean, weights.T @ residuals**2)


def scores_of_classes(weights: Float, probability: Float) -> Float:
    """One minus the averaged probability of each row's class, (candidates, rows)."""
    return 1 - weights.T @ probability


def p_values(kept: Float, log_density: Float, own: Float, *, classes: bool) -> Float:
    """Share of rows, the new one among them, that are at least as strange, (candidates,).

    Parameters
    ----------
    kept : (draws, rows)
        Of training rows: residuals of numbers, or the probability of the row's class.
    log_density : (draws, candidates)
        Of each candidate target of a new row.
    own : (draws, candidates)
        The same as ``kept`` for the candidates.
    classes : bool
    """
    n_candidates, n_rows = log_density.shape[1], kept.shape[1]
    found, at_once = np.empty(n_candidates), max(1, NUMBERS_AT_ONCE // n_rows)
    for start in range(0, n_candidates, at_once):
        part = slice(start, start + at_once)
        weights, values = add_one_in(log_density[:, part]), own[:, part]
        if classes:
            new = 1 - (weights * values).sum(axis=0)
            others = scores_of_classes(weights, kept)
        else:
            new = _in_sds((weights * values).sum(axis=0), (weights * values**2).sum(axis=0))
            others = scores_of_numbers(weights, kept)
        found[part] = (1 + (others >= new[:, None]).sum(axis=1)) / (n_rows + 1)
    return found


def _in_sds(mean: Float, second: Float) -> Float:
    return np.abs(mean) / np.sqrt(1 + np.maximum(second - mean**2, 0))


def interval_around(
    inside: Callable[[Float, NDArray[np.intp]], NDArray[np.bool_]], centre: Float, width: Float
) -> Float:
    """Ends of the intervals around centres where candidates are inside, (rows, 2).

    Parameters
    ----------
    inside : callable
        Whether candidates (n,) of rows with these numbers (n,) are inside.
    centre, width : (rows,)
        Where to start, and the first distance to try; an end is infinite if no candidate within
        2,048 widths is outside.
    """
    n_rows = len(centre)
    side = np.repeat([-1.0, 1.0], n_rows)
    rows, middle = np.tile(np.arange(n_rows), 2), np.tile(centre, 2)
    low, high = np.zeros(2 * n_rows), np.tile(width, 2)
    searching = np.ones(2 * n_rows, dtype=bool)
    for _ in range(MOST_DOUBLINGS):
        at = np.flatnonzero(searching)
        if not len(at):
            break
        still = inside(middle[at] + side[at] * high[at], rows[at])
        low[at[still]] = high[at[still]]
        high[at[still]] *= 2
        searching[at[~still]] = False
    bounded = np.flatnonzero(~searching)
    for _ in range(BISECTIONS if len(bounded) else 0):
        half = (low[bounded] + high[bounded]) / 2
        still = inside(middle[bounded] + side[bounded] * half, rows[bounded])
        low[bounded] = np.where(still, half, low[bounded])
        high[bounded] = np.where(still, high[bounded], half)
    # The outer end of each bracket: what is between may be inside.
    ends = middle + side * np.where(searching, np.inf, high)
    return ends.reshape(2, n_rows).T
