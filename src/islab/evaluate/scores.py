"""Scores of predictions and of selections that scikit-learn does not have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.floating]

PINBALL_LEVELS = np.arange(1, 20) / 20
NUMBERS_AT_ONCE = 400_000


def calibration_error(y: ArrayLike, probability: ArrayLike, n_bins: int = 10) -> float:
    """Expected calibration error: how far stated probabilities lie from observed shares.

    Parameters
    ----------
    y : (rows,)
        Positions of classes; try ``np.searchsorted(model.classes_, y)``.
    probability : (rows, classes) or (rows,)
        Of each class, and the error is then that of the most probable one; or of class 1 alone,
        and the error is that of the probability as stated.
    n_bins : int
        Equal bins of the probability from 0 to 1; its upper end belongs to a bin.

    Examples
    --------
    >>> round(calibration_error([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9]), 3)
    0.15
    """
    truth, stated = np.asarray(y), np.asarray(probability, dtype=float)
    _check_shapes("y", truth, "probability", stated[:, 0] if stated.ndim == 2 else stated)
    if not ((stated >= 0) & (stated <= 1)).all():
        raise ValueError(
            f"Got probabilities from {stated.min():.3g} to {stated.max():.3g}, expected numbers "
            "from 0 to 1; try predict_proba."
        )
    n_classes = stated.shape[1] if stated.ndim == 2 else 2
    if not np.isin(truth, np.arange(n_classes)).all():
        raise ValueError(
            f"Got y with {np.unique(truth).tolist()[:5]}, expected positions of classes, 0 to "
            f"{n_classes - 1}; try np.searchsorted(model.classes_, y)."
        )
    if n_bins < 1:
        raise ValueError(f"Got n_bins={n_bins}, expected at least 1; try 10.")
    if stated.ndim == 2:
        truth, stated = truth == stated.argmax(axis=1), stated.max(axis=1)
    # Rounding keeps 0.3 * 10 from falling into the bin above.
    bins = np.ceil(np.round(stated * n_bins, 9)).astype(int)
    surplus = np.bincount(np.maximum(bins, 1), weights=truth - stated)
    return float(np.abs(surplus).sum() / len(truth))


def pinball_loss(y: ArrayLike, quantiles: ArrayLike, levels: ArrayLike = PINBALL_LEVELS) -> float:
    """Mean pinball loss of predictive quantiles over rows and levels; small is best.

    Parameters
    ----------
    y : (rows,)
    quantiles : (rows, levels)
        Try ``model.predict_quantiles(X, PINBALL_LEVELS)``.
    levels : (levels,)
        0.05, 0.1, ... 0.95 if not given.
    """
    from sklearn.metrics import mean_pinball_loss

    predicted, levels = np.asarray(quantiles, dtype=float), np.atleast_1d(levels)
    if predicted.ndim != 2 or predicted.shape[1] != len(levels):
        raise ValueError(
            f"Got quantiles of shape {predicted.shape}, expected (rows, {len(levels)}): one for "
            "each level; try model.predict_quantiles(X, levels)."
        )
    columns = zip(predicted.T, levels, strict=True)
    return float(np.mean([mean_pinball_loss(y, column, alpha=a) for column, a in columns]))


def interval_coverage(y: ArrayLike, interval: ArrayLike) -> float:
    """Share of targets (rows,) inside their intervals (rows, 2), ends included."""
    truth, ends = np.asarray(y, dtype=float), _ends(interval)
    _check_shapes("y", truth, "interval", ends[:, 0])
    return float(((truth >= ends[:, 0]) & (truth <= ends[:, 1])).mean())


def interval_width(interval: ArrayLike) -> float:
    """Mean width of intervals (rows, 2)."""
    return float(np.diff(_ends(interval), axis=1).mean())


def crps(y: ArrayLike, draws: ArrayLike, sd: ArrayLike = 0.0) -> float:
    """Mean continuous ranked probability score, in the unit of the target; 0 is best.

    Parameters
    ----------
    y : (rows,)
    draws : (draws, rows)
        Of the target; or, with ``sd``, of its mean.
    sd : float or (rows,)
        Standard deviation of normal noise about the means.

    Notes
    -----
    ``E|Y - y| - E|Y - Y'| / 2`` in closed form, for the distribution that gives each draw the
    same weight or, with ``sd``, for the mixture of normals around them. A mixture of ``d`` draws
    costs ``d**2 / 2`` steps for each row.
    """
    truth, centres = np.asarray(y, dtype=float), np.asarray(draws, dtype=float)
    check_draws(truth, centres)
    spreads = np.broadcast_to(np.asarray(sd, dtype=float), truth.shape)
    if not ((spreads >= 0) & (spreads < np.inf)).all():
        raise ValueError(f"Got sd={spreads.min():g}, expected 0 or a positive number.")
    distance = _mean_distance(truth - centres, spreads).mean(axis=0)
    return float((distance - 0.5 * _spread(centres, spreads)).mean())


def selection_stability(selections: Sequence[Collection[str]]) -> float:
    """Mean agreement of all pairs of selections: shared names over all names (Jaccard).

    Parameters
    ----------
    selections : sequence of collections of str
        The names each fit selected; two empty selections agree.

    Examples
    --------
    >>> selection_stability([{"a", "b"}, {"a"}])
    0.5
    """
    if len(selections) < 2:
        raise ValueError(f"Got {len(selections)} selections, expected at least 2 to compare.")
    pairs = combinations([set(selection) for selection in selections], 2)
    return float(np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs]))


def inclusion_rate(selections: Sequence[Collection[str]], names: Sequence[str]) -> dict[str, float]:
    """For each name the share of selections that hold it.

    Examples
    --------
    >>> inclusion_rate([{"a", "b"}, {"a"}], ["a", "b", "c"])
    {'a': 1.0, 'b': 0.5, 'c': 0.0}
    """
    if not selections:
        raise ValueError("Got no selections, expected at least 1.")
    return {name: sum(name in chosen for chosen in selections) / len(selections) for name in names}


def _mean_distance(z: Float, sd: ArrayLike) -> Float:
    """``E|Z|`` of a normal with mean ``z`` and that standard deviation."""
    from scipy.special import erf

    width = np.asarray(sd, dtype=float)
    score = z / (np.where(width > 0, width, 1.0) * np.sqrt(2))
    spread = z * erf(score) + width * np.sqrt(2 / np.pi) * np.exp(-score * score)
    return np.where(width > 0, spread, np.abs(z))


def _spread(centres: Float, sd: Float) -> Float:
    """Mean distance of two independent values of each row's mixture, (rows,)."""
    count, n_rows = centres.shape
    found = np.empty(n_rows)
    sharp = sd == 0
    ranks = 2 * np.arange(count) - count + 1
    found[sharp] = 2 * (ranks @ np.sort(centres[:, sharp], axis=0)) / count**2
    one, other = np.triu_indices(count, 1)
    wide, at_once = np.flatnonzero(~sharp), max(1, NUMBERS_AT_ONCE // max(len(one), 1))
    for rows in np.split(wide, range(at_once, len(wide), at_once)):
        own, both = centres[:, rows], sd[rows] * np.sqrt(2)
        pairs = 2 * _mean_distance(own[one] - own[other], both).sum(axis=0)
        alone = count * _mean_distance(np.zeros(len(rows)), both)
        found[rows] = (pairs + alone) / count**2
    return found


def check_draws(truth: Float, draws: Float) -> None:
    if draws.ndim != 2:
        raise ValueError(f"Got draws of shape {draws.shape}, expected (draws, rows).")
    _check_shapes("y", truth, "draws", draws[0])


def _ends(interval: ArrayLike) -> Float:
    ends = np.asarray(interval, dtype=float)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise ValueError(
            f"Got interval of shape {ends.shape}, expected (rows, 2); try "
            "model.predict_interval(X)."
        )
    return ends


def _check_shapes(name: str, one: NDArray, other_name: str, other: NDArray) -> None:
    if one.ndim != 1 or one.shape != other.shape or not len(one):
        raise ValueError(
            f"Got {name} of shape {one.shape} and {other_name} for {len(np.atleast_1d(other))} "
            "rows, expected one dimension and as many rows of each, not 0."
        )
