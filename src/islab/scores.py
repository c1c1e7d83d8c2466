"""Scores of predictions and of selections, from arrays."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.arrays import Float

PINBALL_LEVELS = np.arange(1, 20) / 20
NUMBERS_AT_ONCE = 400_000
QUANTILE_DRAWS = 200


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
    observed, stated = np.asarray(y), np.asarray(probability, dtype=float)
    _check_shapes("y", observed, "probability", stated[:, 0] if stated.ndim == 2 else stated)
    if not ((stated >= 0) & (stated <= 1)).all():
        raise ValueError(
            f"Got probabilities from {stated.min():.3g} to {stated.max():.3g}, expected numbers "
            "from 0 to 1; try predict_proba."
        )
    n_classes = stated.shape[1] if stated.ndim == 2 else 2
    if not np.isin(observed, np.arange(n_classes)).all():
        raise ValueError(
            f"Got y with {np.unique(observed).tolist()[:5]}, expected positions of classes, 0 to "
            f"{n_classes - 1}; try np.searchsorted(model.classes_, y)."
        )
    if n_bins < 1:
        raise ValueError(f"Got n_bins={n_bins}, expected at least 1; try 10.")
    if stated.ndim == 2:
        observed, stated = observed == stated.argmax(axis=1), stated.max(axis=1)
    # Rounding keeps 0.3 * 10 from falling into the bin above.
    bins = np.ceil(np.round(stated * n_bins, 9)).astype(int)
    surplus = np.bincount(np.maximum(bins, 1), weights=observed - stated)
    return float(np.abs(surplus).sum() / len(observed))


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
    observed, ends = np.asarray(y, dtype=float), _ends(interval)
    _check_shapes("y", observed, "interval", ends[:, 0])
    return float(((observed >= ends[:, 0]) & (observed <= ends[:, 1])).mean())


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
    sd : float, (rows,) or (draws, rows)
        Standard deviation of normal noise about the means.

    Notes
    -----
    ``E|Y - y| - E|Y - Y'| / 2`` in closed form, for the distribution that gives each draw the
    same weight or, with ``sd``, for the mixture of normals around them. A mixture of ``d`` draws
    costs ``d**2 / 2`` steps for each row.
    """
    observed, centres = np.asarray(y, dtype=float), np.asarray(draws, dtype=float)
    check_draws(observed, centres)
    spreads = np.broadcast_to(np.asarray(sd, dtype=float), centres.shape)
    if not ((spreads >= 0) & (spreads < np.inf)).all():
        raise ValueError(f"Got sd={spreads.min():g}, expected 0 or a positive number.")
    distance = _mean_distance(observed - centres, spreads).mean(axis=0)
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
    sharp = (sd == 0).all(axis=0)
    ranks = 2 * np.arange(count) - count + 1
    found[sharp] = 2 * (ranks @ np.sort(centres[:, sharp], axis=0)) / count**2
    one, other = np.triu_indices(count, 1)
    wide, at_once = np.flatnonzero(~sharp), max(1, NUMBERS_AT_ONCE // max(len(one), 1))
    for rows in np.split(wide, range(at_once, len(wide), at_once)):
        own, width = centres[:, rows], sd[:, rows]
        both = np.hypot(width[one], width[other])
        pairs = 2 * _mean_distance(own[one] - own[other], both).sum(axis=0)
        alone = _mean_distance(np.zeros_like(own), width * np.sqrt(2)).sum(axis=0)
        found[rows] = (pairs + alone) / count**2
    return found


def check_draws(observed: Float, draws: Float) -> None:
    if draws.ndim != 2:
        raise ValueError(f"Got draws of shape {draws.shape}, expected (draws, rows).")
    _check_shapes("y", observed, "draws", draws[0])


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


def score_classes(y: ArrayLike, probability: ArrayLike, classes: ArrayLike) -> dict[str, float]:
    """Accuracy, ROC AUC, calibration error, log score and Brier score of class probabilities.

    Parameters
    ----------
    y : (rows,)
        Classes.
    probability : (rows, classes)
        Averaged over draws, if there are any.
    classes : (classes,)
        What the columns stand for, in ascending order.

    Returns
    -------
    dict
        ``accuracy``; ``auc``, of several classes the mean of each against the others, NaN if y
        lacks one; ``ece``, :func:`calibration_error` of the most probable class in ten bins, also
        for two classes; ``nll``; and ``brier``, for two classes the squared error of one
        probability, for several the sum over all.

    Examples
    --------
    >>> scores = score_classes(["a", "b"], [[0.9, 0.1], [0.4, 0.6]], ["a", "b"])
    >>> scores["accuracy"], round(scores["brier"], 3)
    (1.0, 0.085)
    """
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    labels, stated = np.asarray(classes), np.asarray(probability, dtype=float)
    observed = np.asarray(y)
    if stated.ndim != 2 or stated.shape[1] != len(labels):
        raise ValueError(
            f"Got probability of shape {stated.shape} for {len(labels)} classes, expected a "
            "column for each; try predict_proba."
        )
    unknown = observed[~np.isin(observed, labels)]
    if len(unknown):
        raise ValueError(
            f"Got class {unknown.tolist()[0]!r} in y, expected those of the training: "
            f"{', '.join(map(str, labels))}."
        )
    codes = np.searchsorted(labels, observed)
    every, two = np.arange(len(labels)), len(labels) == 2
    errors = (stated - (codes[:, None] == every)) ** 2  # (rows, classes)
    auc = float("nan")
    if len(np.unique(codes)) == len(labels):
        ranked = stated[:, 1] if two else stated / stated.sum(axis=1, keepdims=True)
        auc = float(roc_auc_score(codes, ranked, multi_class="ovr", labels=every))
    return {
        "accuracy": float(accuracy_score(codes, stated.argmax(axis=1))),
        "auc": auc,
        "ece": calibration_error(codes, stated),
        "nll": float(log_loss(codes, stated, labels=every)),
        "brier": float(np.mean(errors[:, 1] if two else errors.sum(axis=1))),
    }


def score_numbers(
    y: ArrayLike,
    draws: ArrayLike,
    noise: ArrayLike = 0.0,
    *,
    likelihood: str = "gaussian",
    level: float = 0.9,
) -> dict[str, float]:
    """Errors of predicted numbers, and how well their distribution fits.

    Parameters
    ----------
    y : (rows,)
    draws : (draws, rows)
        Of the target's mean; of the logarithm of the rate for counts.
    noise : float, (rows,), (1, numbers) or (draws, 1, numbers)
        Variance of normal noise about the means, positive, or what else the likelihood learns, of
        each draw if they differ; Poisson counts have none.
    likelihood : str
        One of numbers or counts.
    level : float
        Of the interval that is judged.

    Returns
    -------
    dict
        ``rmse``, ``mae``, ``r2`` and ``pearson`` (NaN where nothing varies) of the mean;
        ``nll``, the negative log of the predictive density; ``pinball`` over the predictive
        quantiles 0.05 to 0.95, and ``pinball_paper``, the same with the mean in place of every
        quantile, which is half the absolute error; ``coverage`` and ``width`` of the central
        interval; ``crps``.

    Notes
    -----
    Quantiles and ``crps`` are those of at most 200 draws, evenly spaced. For counts ``crps`` is
    twice the pinball loss over 99 levels.
    """
    from scipy.stats import pearsonr
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    from islab.core import families

    observed, centres = np.asarray(y, dtype=float), np.asarray(draws, dtype=float)
    variance = np.asarray(noise, dtype=float)
    if variance.ndim < 2 or variance.size == 1:
        variance = np.broadcast_to(variance.ravel(), observed.shape)[:, None]
    check_draws(observed, centres)
    family, count = families.likelihood(likelihood), min(len(centres), QUANTILE_DRAWS)
    # Draws of one chain are neighbours.
    chosen = ((np.arange(count) + 0.5) / count * len(centres)).astype(np.intp)
    few, own = centres[chosen, :, None], variance[chosen] if variance.ndim == 3 else variance
    if family.learns_noise and not (variance > 0).all():
        raise ValueError(f"Got noise={variance.min():.3g}, expected positive variances.")

    def quantiles(levels: Float) -> Float:
        return family.predictive_quantiles(few, own, levels)[..., 0].T

    mean = family.given(variance).predictive_mean(centres[..., None])[:, 0]
    interval = quantiles(np.array([(1 - level) / 2, (1 + level) / 2]))
    if family.normal_noise:
        rank_score = crps(observed, few[..., 0], np.sqrt(own[..., 0]))
    else:
        fine = np.arange(1, 100) / 100
        rank_score = 2 * pinball_loss(observed, quantiles(fine), fine)
    varies = np.ptp(observed) > 0
    return {
        "rmse": float(root_mean_squared_error(observed, mean)),
        "mae": float(mean_absolute_error(observed, mean)),
        "r2": float(r2_score(observed, mean)) if varies else float("nan"),
        "pearson": float(pearsonr(observed, mean)[0])
        if varies and np.ptp(mean) > 0
        else float("nan"),
        "nll": float(family.log_score(observed[:, None], centres[..., None], variance).mean()),
        "pinball": pinball_loss(observed, quantiles(PINBALL_LEVELS)),
        "pinball_paper": pinball_loss(
            observed, np.repeat(mean[:, None], len(PINBALL_LEVELS), axis=1)
        ),
        "coverage": interval_coverage(observed, interval),
        "width": interval_width(interval),
        "crps": rank_score,
    }
