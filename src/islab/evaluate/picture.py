"""One picture of a comparison: how good, how large, how well calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from islab.plots.style import INK, MUTED, fresh_axes, heading, quiet, sequential, shown

if TYPE_CHECKING:
    from islab.evaluate.result import Comparison

LEVEL = 0.9
WIDE_RANGE = 20


def score_by_size(comparison: Comparison, model: str = "median", ax: Any = None) -> Any:
    """Draws medians over seeds with lines from the least to the greatest.

    Parameters
    ----------
    comparison : Comparison
    model : {"median", "full"}
        Of methods that have both.
    ax : matplotlib axes, optional

    Notes
    -----
    Colour is the expected calibration error for classes, and for numbers how far the coverage of
    90 % intervals is from that.
    """
    if model not in ("median", "full"):
        raise ValueError(f"Got model={model!r}, expected 'median' or 'full'.")
    classes = comparison.task == "classification"
    score = "accuracy" if classes else "rmse"
    colour = "calibration error" if classes else "distance of coverage from 90 %"
    points = _points(comparison.of_model(model), score, classes)
    if points.empty:
        raise ValueError("Got no method with a score and a size, expected at least one.")
    ax = fresh_axes(ax, 6.4, 4.4)
    middle = points.xs("median", axis=1, level=1)
    least, most = (points.xs(name, axis=1, level=1) for name in ("min", "max"))
    ax.hlines(middle["score"], least["size"], most["size"], color=MUTED, linewidth=1, zorder=1)
    ax.vlines(middle["size"], least["score"], most["score"], color=MUTED, linewidth=1, zorder=1)
    dots = ax.scatter(
        middle["size"],
        middle["score"],
        c=middle["calibration"],
        cmap=sequential(),
        edgecolors=INK,
        linewidths=0.8,
        s=60,
        zorder=2,
    )
    for number, (method, row) in enumerate(middle.iterrows()):
        side = 6 if number % 2 == 0 else -13  # neighbours' names above and below
        place = (row["size"], row["score"])
        ax.annotate(
            shown(method, 24),
            place,
            xytext=(6, side),
            textcoords="offset points",
            fontsize=8.5,
            color=INK,
        )
    if most["size"].max() > WIDE_RANGE * max(least["size"].min(), 1):
        ax.set_xscale("symlog", linthresh=1)
    ax.margins(x=0.15, y=0.12)
    ax.set_xlabel("used weights")
    ax.set_ylabel("accuracy" if classes else "root mean squared error")
    bar = ax.figure.colorbar(dots, ax=ax)
    bar.set_label(colour, color=INK)
    bar.outline.set_visible(False)
    heading(ax, "Score, size and calibration" + ("" if classes else ": low is good"))
    quiet(ax, grid="y")
    return ax


def _points(chosen: pd.DataFrame, score: str, classes: bool) -> pd.DataFrame:
    """Median, least and greatest of score, size and calibration, by method in the given order."""
    values = pd.DataFrame(
        {
            "method": chosen["method"],
            "score": chosen[score],
            "size": chosen["used_weights"],
            "calibration": chosen["ece"] if classes else (chosen["coverage"] - LEVEL).abs(),
        }
    ).dropna()
    return values.groupby("method", sort=False).agg(["median", "min", "max"])
