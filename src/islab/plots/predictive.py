"""Whether predictions can be trusted: calibration of probabilities, coverage of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from islab.plots.style import (
    INK,
    MUTED,
    NEGATIVE,
    POSITIVE,
    fresh_axes,
    heading,
    quiet,
)


def calibration_curve(
    y: ArrayLike, probability: ArrayLike, *, n_bins: int = 10, ax: Any = None
) -> Any:
    """Draws how often predictions of each probability came true, with 95 % intervals.

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
    expected calibration error is the mean distance from the diagonal over rows.
    """
    from scipy.stats import beta

    happened, stated = _binary(np.asarray(y), np.asarray(probability, dtype=float))
    order = np.argsort(stated, kind="stable")
    bins = [part for part in np.array_split(order, min(n_bins, len(order))) if len(part)]
    size = np.array([len(part) for part in bins])
    hits = np.array([happened[part].sum() for part in bins])
    mean = np.array([stated[part].mean() for part in bins])
    share = hits / size
    low = np.where(hits > 0, beta.ppf(0.025, hits + 0.5, size - hits + 0.5), 0.0)
    high = np.where(hits < size, beta.ppf(0.975, hits + 0.5, size - hits + 0.5), 1.0)
    error = (size * np.abs(share - mean)).sum() / size.sum()

    ax = fresh_axes(ax, 4.6, 4.4)
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    ax.vlines(mean, low, high, color=POSITIVE, linewidth=1.4, alpha=0.6)
    ax.plot(mean, share, "o-", color=POSITIVE, markersize=5, linewidth=1.2)
    counts, edges = np.histogram(stated, bins=25, range=(0, 1))
    heights = 0.12 * counts / max(counts.max(), 1)
    ax.bar(edges[:-1], heights, width=0.04, align="edge", color=INK, alpha=0.15)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("share that came true")
    heading(ax, f"Calibration: expected error {error:.3f}")
    quiet(ax)
    return ax


def predictive_intervals(
    y: ArrayLike,
    mean: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    level: float = 0.95,
    max_rows: int = 150,
    ax: Any = None,
) -> Any:
    """Draws predictive intervals in order of their means, and the values that they caught.

    Parameters
    ----------
    y, mean, lower, upper : (rows,)
    level : float
        What the intervals were made for.
    max_rows : int
        With more rows an even selection is drawn; the coverage counts them all.
    ax : matplotlib axes, optional
    """
    values = [np.asarray(part, dtype=float).ravel() for part in (y, mean, lower, upper)]
    if len({len(part) for part in values}) != 1:
        raise ValueError(
            f"Got y, mean, lower and upper of lengths {[len(part) for part in values]}, expected "
            "one length."
        )
    truth, centre, low, high = values
    caught = (truth >= low) & (truth <= high)
    order = np.argsort(centre, kind="stable")
    if len(order) > max_rows:
        order = order[np.linspace(0, len(order) - 1, max_rows).astype(int)]
    place = np.arange(len(order))
    ax = fresh_axes(ax, 7, 3.6)
    ax.vlines(place, low[order], high[order], color=POSITIVE, alpha=0.25, linewidth=2)
    ax.plot(place, centre[order], color=POSITIVE, linewidth=1.2, label="prediction")
    inside = caught[order]
    ax.plot(place[inside], truth[order][inside], "o", color=INK, markersize=3, label="inside")
    ax.plot(
        place[~inside], truth[order][~inside], "X", color=NEGATIVE, markersize=6, label="outside"
    )
    ax.set_xlabel("rows in order of their prediction")
    ax.set_xticks([])
    ax.legend(frameon=False, fontsize=8, loc="upper left", labelcolor=INK)
    heading(ax, f"{caught.mean():.1%} of {len(truth)} values inside their {level:.0%} intervals")
    quiet(ax, grid="y")
    return ax


def _binary(y: np.ndarray, probability: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether what was predicted came true, and the probability stated for it."""
    if len(y) != len(probability) or not len(y):
        raise ValueError(
            f"Got {len(y)} values and {len(probability)} probabilities, expected as many, not 0."
        )
    if probability.ndim == 1:
        return y.astype(float), probability
    predicted = probability.argmax(axis=1)
    return (y == predicted).astype(float), probability[np.arange(len(y)), predicted]
