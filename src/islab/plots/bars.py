"""Bars for single rows: contributions with intervals, and sources of uncertainty."""

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
    on_one_line,
    quiet,
    shown,
)

if TYPE_CHECKING:
    from islab.explain import Drivers, LocalExplanation

BAR = 0.27
MOST_PANELS = 40
MOST_CLASSES = 3  # of many, in one row of panels
LONGEST_VALUE = 16


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
    by_variable: bool = True,
    ax: Any = None,
) -> Any:
    """Draws the largest contributions of each row to each output, with credible intervals.

    They are counted from the baseline of the explanation, whose values stand after "vs".

    Parameters
    ----------
    explanation : LocalExplanation
    rows : int or sequence of int, optional
        Positions of rows of the explanation; all if not given.
    outputs : name, position or several of them, optional
        Outputs of the explanation. If not given all of them, or of many classes the three most
        probable ones of each row.
    top : int
        Bars shown at most; what is left is added up in one more.
    by_variable : bool
        One bar for each variable, or one for each covariate: for each level of a category.
    ax : axes or array of axes, optional
        One for each row and output.

    Returns
    -------
    axes, or array of axes (rows, outputs)
        Plain axes for one panel.
    """
    where = _chosen_rows(rows, len(explanation.x))
    which = _chosen_outputs(explanation, outputs, where)

    def panel(row: int, output: int) -> _Bars:
        if by_variable:
            labels = variable_labels(explanation, row)
            names = [label.replace("$", r"\$") for label in labels]
            drawn = explanation.variable_draws(row)
        else:
            own = explanation.x[row, explanation.used]
            names = _with_values(explanation.covariates, own)
            drawn = explanation.covariate_draws(row)
        sizes = drawn[..., output].mean(axis=0)
        bars = largest_bars(names, sizes, top, drawn[..., output], explanation.level)
        title = _prediction(explanation, row, output)
        return _Bars(*bars, title, _predictor(explanation, row, output))

    return _grid(panel, where, which, ax)


def _chosen_outputs(
    explanation: LocalExplanation,
    outputs: str | int | Sequence[str | int] | None,
    rows: list[int],
) -> list[list[int]]:
    """Positions of the outputs to show for each row."""
    classes = families.likelihood(explanation.likelihood).one_hot
    if outputs is not None or not classes or len(explanation.outputs) <= MOST_CLASSES:
        return [output_numbers(explanation.outputs, outputs) for _ in rows]
    order = np.argsort(-explanation.response[rows], axis=1, kind="stable")
    return order[:, :MOST_CLASSES].tolist()


def variable_labels(explanation: LocalExplanation, row: int) -> list[str]:
    """``name = value vs baseline's value``, without the latter where it is the same."""
    values, start = explanation.shown_values(row)
    labels = []
    for name, value, base in zip(explanation.variables, values, start, strict=True):
        own, other = _value(value), _value(base)
        label = f"{on_one_line(name)} = {own}"
        counted_from_row = explanation.kind == "integrated" and own != other
        labels.append(f"{label} vs {other}" if counted_from_row else label)
    return labels


def _value(value: Any) -> str:
    if isinstance(value, str):
        return on_one_line(value, LONGEST_VALUE)
    return "missing" if np.isnan(value) else number(float(value))


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
    names = [*(shown(name) for name in drivers.variables), "(intercept)"]

    def panel(row: int, output: int) -> _Bars:
        share = np.append(drivers.share[row, :, output], drivers.intercept_share[row, output])
        bars = largest_bars(names, 100 * np.nan_to_num(share), top)
        name = shown(drivers.outputs[output])
        title = f"row {shown(drivers.labels[row])}, {name}: sources of uncertainty"
        label = f"% of the variance, sd {number(drivers.variance[row, output] ** 0.5)}"
        if drivers.noise is not None:
            label += f"; noise not included, sd {number(drivers.noise[output] ** 0.5)}"
        return _Bars(*bars, title, label)

    where = _chosen_rows(rows, len(drivers.share))
    return _grid(panel, where, [output_numbers(drivers.outputs, outputs)] * len(where), ax)


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
    label = shown(explanation.labels[row])
    return f"row {label}, {name} = {number(response)} [{number(low)}, {number(high)}]"


def _with_values(names: Sequence[str], values: Float) -> list[str]:
    return [f"{shown(name)} = {number(v)}" for name, v in zip(names, values, strict=True)]


def _predictor(explanation: LocalExplanation, row: int, output: int) -> str:
    """What the bars lead from and to, or what they add up to."""
    predictor, intercept = explanation.predictor[row, output], explanation.intercept[row, output]
    words = families.likelihood(explanation.likelihood).words
    scale = words.predictor or shown(explanation.outputs[output])
    if explanation.reference is not None:
        against = "the mean" if explanation.reference == "center" else explanation.reference
        scale += f" against {shown(against)}"
    note = "" if explanation.exact else "\n(approximate: the network is curved)"
    start = baseline_name(explanation.scale, explanation.baseline)
    if explanation.kind == "integrated":
        return f"{scale}\n{number(intercept)} at {start}, {number(predictor)} at this row{note}"
    rest = predictor - intercept
    sign = "+" if rest >= 0 else "\u2212"
    from_start = "" if start == "zero" else f"\n(slopes times distance from {start})"
    total = f"{number(intercept)} intercept {sign} {number(abs(rest))} bars"
    return f"{scale} {number(predictor)} = {total}{from_start}{note}"


def _grid(
    panel: Callable[[int, int], _Bars], rows: list[int], outputs: list[list[int]], axes: Any
) -> Any:
    """A panel for each row and each of its outputs, rows by outputs."""
    width = len(outputs[0]) if outputs else 0
    if axes is None and not 0 < len(rows) * width <= MOST_PANELS:
        raise ValueError(
            f"Got {len(rows)} rows x {width} outputs, expected 1 to {MOST_PANELS} panels in "
            "one figure; try rows=[0] or outputs=[0]."
        )
    places = zip(rows, outputs, strict=True)
    panels = [panel(row, output) for row, own in places for output in own]
    longest = max((len(name) for bars in panels for name in bars.names), default=0)
    most = max((len(bars.names) for bars in panels), default=1)
    grid = axes_grid(
        axes, len(rows), width, max(3.4 + 0.075 * longest, 4.6), 1.25 + BAR * max(most, 2)
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
