"""Bars for single rows: contributions with intervals, attributions, drivers of uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core import families
from islab.core.arrays import Float
from islab.core.outputs import baseline_name, output_numbers
from islab.core.summary import summarise
from islab.plots.style import (
    INK,
    MUTED,
    NEGATIVE,
    POSITIVE,
    axes_grid,
    heading,
    number,
    quiet,
    shown,
)

if TYPE_CHECKING:
    from islab.explain import Drivers, IntegratedGradients, LocalExplanation

BAR = 0.27
MOST_PANELS = 40


@dataclass(frozen=True)
class _Bars:
    """One panel: bars from the largest to the smallest, with intervals if there are any."""

    names: list[str]
    sizes: Float
    lower: Float | None
    upper: Float | None
    title: str
    label: str


def local_bars(
    explanation: LocalExplanation,
    *,
    rows: int | Sequence[int] | None = None,
    outputs: str | int | Sequence[str | int] | None = None,
    top: int = 10,
    by_variable: bool = False,
    ax: Any = None,
) -> Any:
    """Draws the largest contributions of each row to each output, with credible intervals.

    They are counted from the baseline of the explanation, which the label names;
    :meth:`LocalExplanation.plot` counts them from the center of the data.

    Parameters
    ----------
    explanation : LocalExplanation
    rows : int or sequence of int, optional
        Rows of the explanation; all if not given.
    outputs : name, position or several of them, optional
        Outputs of the explanation; all if not given.
    top : int
        Bars shown at most; what is left is added up in one more.
    by_variable : bool
        One bar for each variable: its one-hot columns together.
    ax : axes or array of axes, optional
        One for each row and output.

    Returns
    -------
    axes, or array of axes (rows, outputs)
        Plain axes for one panel.
    """
    names: Sequence[str]
    if by_variable:
        names, point, draws = explanation.by_variable()
        labels = [shown(name) for name in names]
    else:
        names, point = explanation.covariates, explanation.contribution_used
        distance = (explanation.x - explanation.baseline)[:, explanation.used]

    def panel(row: int, output: int) -> _Bars:
        if by_variable:
            own, drawn = labels, draws[:, row, :, output]
        else:
            own = _with_values(names, explanation.x[row, explanation.used])
            drawn = explanation.draws_slope_used[:, row, :, output] * distance[row]
        bars = largest_bars(own, point[row, :, output], top, drawn, explanation.level)
        title = _prediction(explanation, row, output)
        return _Bars(*bars, title, _predictor(explanation, row, output))

    return _grid(panel, rows, len(explanation.x), outputs, explanation.outputs, ax)


def attribution_bars(
    attributions: IntegratedGradients,
    *,
    rows: int | Sequence[int] | None = None,
    outputs: str | int | Sequence[str | int] | None = None,
    top: int = 10,
    ax: Any = None,
) -> Any:
    """Draws the largest integrated gradients of each row and output.

    Parameters and returned axes are those of :func:`local_bars`.
    """

    def panel(row: int, output: int) -> _Bars:
        names = _with_values(attributions.covariates, attributions.x[row])
        bars = largest_bars(names, attributions.attribution[row, :, output], top)
        start, end = attributions.baseline_predictor[output], attributions.predictor[row, output]
        title = f"row {row}, {shown(attributions.outputs[output])}"
        label = f"from {number(start)} at the baseline to {number(end)} at the row"
        return _Bars(*bars, title, label)

    return _grid(panel, rows, len(attributions.x), outputs, attributions.outputs, ax)


def driver_bars(
    drivers: Drivers,
    *,
    rows: int | Sequence[int] | None = None,
    outputs: str | int | Sequence[str | int] | None = None,
    top: int = 10,
    ax: Any = None,
) -> Any:
    """Draws the largest shares of the variance of each row's predictor, in percent.

    Parameters and returned axes are those of :func:`local_bars`.
    """
    names = [*(shown(name) for name in drivers.covariates), "(intercept)"]

    def panel(row: int, output: int) -> _Bars:
        share = np.append(drivers.share[row, :, output], drivers.intercept_share[row, output])
        bars = largest_bars(names, 100 * np.nan_to_num(share), top)
        title = f"row {row}, {shown(drivers.outputs[output])}: sources of uncertainty"
        label = f"% of the variance, sd {number(drivers.variance[row, output] ** 0.5)}"
        if drivers.noise is not None:
            label += f"; noise not included, sd {number(drivers.noise[output] ** 0.5)}"
        return _Bars(*bars, title, label)

    return _grid(panel, rows, len(drivers.share), outputs, drivers.outputs, ax)


def largest_bars(
    names: list[str], sizes: Float, top: int, draws: Float | None = None, level: float = 0.95
) -> tuple[list[str], Float, Float | None, Float | None]:
    """Names, sizes and interval ends of the largest; what is left is added up under one name.

    ``draws`` are (draws, bars).
    """
    order = np.argsort(-np.abs(sizes), kind="stable")
    # A rest of one takes no more room under its own name.
    n_shown = len(order) if len(order) <= top + 1 else top
    kept, rest = order[:n_shown], order[n_shown:]
    labels, lower, upper = [names[index] for index in kept], None, None
    if len(rest):
        labels.append(f"{len(rest)} others together")
        sizes = np.append(sizes, sizes[rest].sum())
        kept = np.append(kept, len(names))
    if draws is not None:
        if len(rest):
            draws = np.concatenate([draws, draws[:, rest].sum(axis=1, keepdims=True)], axis=1)
        summary = summarise(draws[:, kept], level)
        lower, upper = summary.lower, summary.upper
    return labels, sizes[kept], lower, upper


def _chosen_rows(rows: int | Sequence[int] | None, n_rows: int) -> list[int]:
    """Positions of the rows asked for, all of them for None."""
    asked = range(n_rows) if rows is None else np.atleast_1d(np.asarray(rows, dtype=int)).tolist()
    for row in asked:
        if not -n_rows <= row < n_rows:
            raise ValueError(f"Got row {row}, expected a position below {n_rows}.")
    return [row % n_rows for row in asked]


def _prediction(explanation: LocalExplanation, row: int, output: int) -> str:
    """What is predicted for the row, with its credible interval, on the response scale."""
    response, summary = explanation.response[row, output], explanation.response_summary
    low, high = summary.lower[row, output], summary.upper[row, output]
    name = shown(explanation.outputs[output])
    if families.likelihood(explanation.likelihood).words.symbol == "P":
        name = f"P({name})"
    return f"row {row}, {name} = {number(response)} [{number(low)}, {number(high)}]"


def _with_values(names: Sequence[str], values: Float) -> list[str]:
    return [f"{shown(name)} = {number(v)}" for name, v in zip(names, values, strict=True)]


def _predictor(explanation: LocalExplanation, row: int, output: int) -> str:
    """What the bars add up to."""
    predictor, intercept = explanation.predictor[row, output], explanation.intercept[row, output]
    words = families.likelihood(explanation.likelihood).words
    scale = words.predictor or shown(explanation.outputs[output])
    if explanation.reference is not None:
        against = "the mean" if explanation.reference == "center" else explanation.reference
        scale += f" against {shown(against)}"
    rest = predictor - intercept
    sign = "+" if rest >= 0 else "\u2212"
    start = f"at {baseline_name(explanation.scale, explanation.baseline)}"
    notes = []
    if explanation.bends[row, output]:
        start = f"on its line {start}"
        notes.append(f"(the network has {number(explanation.baseline_predictor[output])} there)")
    if not explanation.exact:
        notes.append("(gradient: exact only at the row itself)")
    total = f"= {number(intercept)} {start} {sign} bars {number(abs(rest))}"
    return "\n".join([f"{scale} {number(predictor)}", total, *notes])


def _grid(
    panel: Callable[[int, int], _Bars],
    rows: int | Sequence[int] | None,
    n_rows: int,
    outputs: str | int | Sequence[str | int] | None,
    names: tuple[str, ...],
    axes: Any,
) -> Any:
    """A panel for each row and output asked for, rows by outputs."""
    where, which = _chosen_rows(rows, n_rows), output_numbers(names, outputs)
    panels = [panel(row, output) for row in where for output in which]
    if axes is None and not 0 < len(panels) <= MOST_PANELS:
        raise ValueError(
            f"Got {len(where)} rows x {len(which)} outputs, expected 1 to {MOST_PANELS} panels in "
            "one figure; try rows=[0] or outputs=[0]."
        )
    longest = max((len(name) for bars in panels for name in bars.names), default=0)
    most = max((len(bars.names) for bars in panels), default=1)
    grid = axes_grid(
        axes, len(where), len(which), max(3.4 + 0.075 * longest, 4.6), 1.25 + BAR * max(most, 2)
    )
    for ax, bars in zip(grid.ravel(), panels, strict=True):
        _draw_bars(ax, bars, most)
    return grid[0, 0] if grid.size == 1 else grid


def _draw_bars(ax: Any, panel: _Bars, most: int) -> None:
    places = np.arange(len(panel.names))
    colours = np.where(panel.sizes >= 0, POSITIVE, NEGATIVE)
    ax.barh(places, panel.sizes, height=0.66, color=colours, alpha=0.85, zorder=2)
    if panel.lower is not None and panel.upper is not None:
        ax.hlines(places, panel.lower, panel.upper, color=INK, linewidth=1.3, zorder=3)
        for ends in (panel.lower, panel.upper):
            ax.vlines(ends, places - 0.14, places + 0.14, color=INK, linewidth=1.3, zorder=3)
    ax.axvline(0, color=MUTED, linewidth=0.8, zorder=1)
    ax.set_yticks(places, panel.names)
    # Bars are as thick in every panel, however many it has.
    ax.set_ylim(max(most, 2) - 0.4, -0.6)
    quiet(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0, labelsize=8.5)
    ax.tick_params(axis="x", labelsize=8)
    ax.locator_params(axis="x", nbins=6)
    ax.set_xlabel(panel.label, fontsize=8.5)
    heading(ax, panel.title, size=9.5)
