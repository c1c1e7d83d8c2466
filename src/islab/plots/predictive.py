"""Whether predictions can be trusted: calibration of probabilities, coverage of intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.arrays import Float
from islab.plots.style import (
    INK,
    MUTED,
    NEGATIVE,
    POSITIVE,
    fresh_axes,
    heading,
    quiet,
)


@dataclass(frozen=True)
class Calibration:
    """How often predicted events were observed, in bins of predicted probability."""

    predicted: Float  # (bins,), mean predicted probability
    observed: Float  # (bins,), share of the bin's rows in which the event was observed
    lower: Float  # (bins,), ends of Jeffreys' 95 % intervals of the share
    upper: Float
    stated: Float  # (rows,), every predicted probability


def calibration(y: ArrayLike, probability: ArrayLike, n_bins: int = 10) -> Calibration:
    """Bins with equally many rows each; parameters are those of :func:`calibration_curve`."""
    from scipy.stats import beta

    if n_bins < 1:
        raise ValueError(f"Got n_bins={n_bins}, expected at least 1; try 10.")
    happened, stated = _binary(np.asarray(y), np.asarray(probability, dtype=float))
    order = np.argsort(stated, kind="stable")
    bins = np.array_split(order, min(n_bins, len(order)))
    size = np.array([len(part) for part in bins])
    hits = np.array([happened[part].sum() for part in bins])
    predicted = np.array([stated[part].mean() for part in bins])
    ends = beta.ppf([[0.025], [0.975]], hits + 0.5, size - hits + 0.5)
    return Calibration(
        predicted=predicted,
        observed=hits / size,
        lower=np.where(hits > 0, ends[0], 0.0),
        upper=np.where(hits < size, ends[1], 1.0),
        stated=stated,
    )


def calibration_curve(
    y: ArrayLike, probability: ArrayLike, *, n_bins: int = 10, ax: Any = None
) -> Any:
    """Draws observed frequencies against predicted probabilities, with 95 % intervals.

    Parameters
    ----------
    y : (rows,)
        0 or 1; for several classes their positions.
    probability : (rows,) or (rows, classes)
        Of 1; for several classes of each, and the curve is then that of the class predicted.
    n_bins : int
        Bins with equally many rows each.
    ax : matplotlib axes, optional

    Notes
    -----
    Intervals are Jeffreys': quantiles of a Beta distribution given the counts of the bin. The
    heading states :func:`~islab.evaluate.calibration_error`, whose ten bins are of equal width.
    """
    from islab.scores import calibration_error

    found = calibration(y, probability, n_bins)
    ax = fresh_axes(ax, 4.6, 4.4)
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    ax.vlines(found.predicted, found.lower, found.upper, color=POSITIVE, linewidth=1.4, alpha=0.6)
    ax.plot(found.predicted, found.observed, "o-", color=POSITIVE, markersize=5, linewidth=1.2)
    counts, edges = np.histogram(found.stated, bins=25, range=(0, 1))
    heights = 0.12 * counts / max(counts.max(), 1)
    ax.bar(edges[:-1], heights, width=0.04, align="edge", color=INK, alpha=0.15)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("observed frequency")
    heading(ax, f"Calibration: expected error {calibration_error(y, probability):.3f}")
    quiet(ax)
    return ax


def predictive_intervals(
    y: ArrayLike,
    mean: ArrayLike,
    interval: ArrayLike,
    *,
    level: float = 0.9,
    max_rows: int = 150,
    ax: Any = None,
) -> Any:
    """Draws predictive intervals in order of their means, and the values that they caught.

    Parameters
    ----------
    y, mean : (rows,)
    interval : (rows, 2)
        Lower and upper ends, as ``predict_interval`` gives them.
    level : float
        What the intervals were made for.
    max_rows : int
        With more rows an even selection is drawn; the coverage counts them all.
    ax : matplotlib axes, optional
    """
    observed, centre = (np.asarray(part, dtype=float).ravel() for part in (y, mean))
    ends = np.asarray(interval, dtype=float)
    if len(observed) != len(centre) or ends.shape != (len(observed), 2):
        raise ValueError(
            f"Got y and mean of lengths {len(observed)} and {len(centre)} and interval of shape "
            f"{ends.shape}, expected (rows,), (rows,) and (rows, 2); try model.predict_interval(X)."
        )
    low, high = ends.T
    caught = (observed >= low) & (observed <= high)
    order = np.argsort(centre, kind="stable")
    if len(order) > max_rows:
        order = order[np.linspace(0, len(order) - 1, max_rows).astype(int)]
    place = np.arange(len(order))
    ax = fresh_axes(ax, 7, 3.6)
    ax.vlines(place, low[order], high[order], color=POSITIVE, alpha=0.25, linewidth=2)
    ax.plot(place, centre[order], color=POSITIVE, linewidth=1.2, label="prediction")
    inside = caught[order]
    ax.plot(place[inside], observed[order][inside], "o", color=INK, markersize=3, label="inside")
    ax.plot(
        place[~inside], observed[order][~inside], "X", color=NEGATIVE, markersize=6, label="outside"
    )
    ax.set_xlabel("rows in order of their prediction")
    ax.set_xticks([])
    ax.legend(frameon=False, fontsize=8, loc="upper left", labelcolor=INK)
    heading(ax, f"{caught.mean():.1%} of {len(observed)} values inside their {level:.0%} intervals")
    quiet(ax, grid="y")
    return ax


def _binary(y: NDArray, probability: Float) -> tuple[Float, Float]:
    """Whether the predicted event was observed, and its predicted probability."""
    if y.ndim != 1 or probability.ndim not in (1, 2) or len(y) != len(probability) or not len(y):
        raise ValueError(
            f"Got y of shape {y.shape} and probability of shape {probability.shape}, expected "
            "(rows,) and (rows,) or (rows, classes) with as many rows, not 0."
        )
    if not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError(
            f"Got probabilities from {probability.min():.3g} to {probability.max():.3g}, expected "
            "numbers from 0 to 1; try predict_proba."
        )
    n_classes = 2 if probability.ndim == 1 else probability.shape[1]
    strange = y[~np.isin(y, np.arange(n_classes))] if y.dtype.kind in "biuf" else y
    if len(strange):
        raise ValueError(
            f"Got {strange[0]!r} in y, expected positions of classes, 0 to {n_classes - 1}; try "
            "np.searchsorted(model.classes_, y)."
        )
    if probability.ndim == 1:
        return y.astype(float), probability
    predicted = probability.argmax(axis=1)
    return (y == predicted).astype(float), probability[np.arange(len(y)), predicted]
