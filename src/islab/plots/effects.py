"""Curves of effects with credible bands, joint effects of two variables, bars of importance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core import families
from islab.core.arrays import Float
from islab.core.summary import Summary
from islab.plots.style import (
    FAINT,
    INK,
    MUTED,
    NEGATIVE,
    POSITIVE,
    axes_grid,
    diverging,
    fresh_axes,
    heading,
    number,
    pyplot,
    quiet,
    shown,
)

if TYPE_CHECKING:
    from islab.explain.effects import Effect
    from islab.explain.importance import Importance, JointEffect

COLOURS = (POSITIVE, NEGATIVE, "#3b8f5a", "#8a5fb0", "#b0892a", "#c2477f", "#4aa3b5", MUTED)
LONGEST_LEVEL = 14
MOST_LEVELS = 12
MOST_TICKS = 400
FEW_VALUES = 6
MOST_BANDS = 3  # more on top of each other cannot be told apart
COLUMNS = 3
KINDS = {
    "average": "0 is the mean over the rows",
    "accumulated": "0 is the mean over the rows; accumulated local effect",
    "typical": "other variables as in the typical row",
}


def effect_curves(effects: Sequence[Effect], *, ax: Any = None) -> Any:
    """Draws effects side by side.

    Parameters
    ----------
    effects : sequence of Effect
    ax : axes or array of axes, optional
        One for each effect.

    Returns
    -------
    axes, or array of axes (effects,)
    """
    if not effects:
        return _nothing(ax, "No variable is used.")
    panels = _panels(ax, len(effects), COLUMNS, 3.7, 2.9)
    for panel, effect in zip(panels, effects, strict=True):
        effect_curve(effect, ax=panel)
        if panel is not panels[0] and panel.get_legend() is not None:
            panel.get_legend().remove()
    # On one scale, so that sizes can be compared.
    ends = np.array([panel.get_ylim() for panel in panels])
    for panel in panels:
        panel.set_ylim(ends[:, 0].min(), ends[:, 1].max())
    return panels[0] if len(panels) == 1 else panels


def _nothing(ax: Any, words: str) -> Any:
    """Axes that only say that there is nothing to draw."""
    panel = fresh_axes(ax, 4, 1.2)
    panel.set_axis_off()
    panel.text(0.5, 0.5, words, ha="center", color=MUTED)
    return panel


def _panels(ax: Any, count: int, most_columns: int, width: float, height: float) -> Any:
    """So many axes: new ones in rows, or those given."""
    columns = min(most_columns, count) if ax is None else count
    grid = axes_grid(ax, -(-count // columns), columns, width, height).ravel()
    for panel in grid[count:]:
        panel.set_axis_off()
    return grid[:count]


def effect_curve(effect: Effect, *, ax: Any = None) -> Any:
    """Draws one effect: a curve and its band over a rug of the data, or points with intervals.

    Several outputs are lines of different colours; of more than three, those on which the effect
    is largest have bands.

    Parameters
    ----------
    effect : Effect
    ax : axes, optional

    Returns
    -------
    axes
    """
    ax = fresh_axes(ax, 4.2, 3.1)
    draw = _levels if effect.is_category else _curve
    for output, name in enumerate(effect.outputs):
        colour = COLOURS[output % len(COLOURS)]
        label = shown(name, LONGEST_LEVEL) if len(effect.outputs) > 1 else None
        draw(ax, effect, output, colour, label)
    ax.axhline(0, color=MUTED, linewidth=0.7, zorder=1)
    quiet(ax, grid="y")
    ax.locator_params(axis="y", nbins=6)
    heading(ax, shown(effect.variable), 9.5)
    words = families.likelihood(effect.likelihood).words
    name = "effect" if len(effect.outputs) > 1 else f"effect on {shown(effect.outputs[0], 20)}"
    ax.set_ylabel(f"effect on {words.predictor}" if words.predictor else name, fontsize=8.5)
    few = not effect.is_category and len(effect.outputs) > MOST_BANDS
    bands = f"\nbands of the {MOST_BANDS} largest" if few else ""
    ax.set_xlabel(KINDS[effect.kind] + bands, fontsize=7.5)
    ax.xaxis.label.set_color(MUTED)
    ax.tick_params(labelsize=8)
    if len(effect.outputs) > 1:
        ax.legend(frameon=False, fontsize=7, labelcolor=INK, ncols=1 + len(effect.outputs) // 5)
    return ax


def _curve(ax: Any, effect: Effect, output: int, colour: str, label: str | None) -> None:
    values, summary = effect.values.astype(float), effect.summary
    known = ~np.isnan(values)
    x = values[known]
    lower, upper = summary.lower[known, output], summary.upper[known, output]
    if output in effect.clearest(MOST_BANDS):
        ax.fill_between(x, lower, upper, color=colour, alpha=0.2, linewidth=0, zorder=2)
    ax.plot(x, summary.mean[known, output], color=colour, linewidth=1.7, zorder=3, label=label)
    if output == 0 and len(x) <= FEW_VALUES:
        ax.set_xticks(x, [number(value) for value in x])
    if output == 0 and effect.start is not None:
        places = np.linspace(0, len(x) - 1, 3).round().astype(int)
        ax.set_xticks(x[places], effect.shown_values[known][places])
    if not known.all():
        _missing_point(ax, x, summary, int(np.flatnonzero(~known)[0]), output, colour)
    if output == 0 and len(effect.observed):
        step = max(1, len(effect.observed) // MOST_TICKS)
        ticks = np.sort(effect.observed)[::step]
        ax.plot(
            ticks,
            np.full(len(ticks), 0.015),
            "|",
            color=INK,
            alpha=0.35,
            markersize=6,
            markeredgewidth=0.6,
            transform=ax.get_xaxis_transform(),
            zorder=1,
        )


def _missing_point(
    ax: Any, x: Float, summary: Summary, point: int, output: int, colour: str
) -> None:
    """The effect of a missing value, to the right of the curve."""
    place = x.max() + 0.08 * max(np.ptp(x), np.finfo(float).tiny)
    mean, low, high = (part[point, output] for part in (summary.mean, summary.lower, summary.upper))
    ax.vlines(place, low, high, color=colour, linewidth=1.4)
    ax.plot([place], [mean], "o", color=colour, markersize=4)
    if output == 0:
        ax.annotate(
            "missing",
            (place, 0.02),
            xycoords=("data", "axes fraction"),
            fontsize=7,
            rotation=90,
            ha="right",
            color=MUTED,
        )


def _levels(ax: Any, effect: Effect, output: int, colour: str, label: str | None) -> None:
    """Points with intervals, the most frequent levels if there are many."""
    counts = np.bincount(effect.observed.astype(int), minlength=len(effect.values))
    order = np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
    shift = 0.12 * (output - (len(effect.outputs) - 1) / 2)
    places = np.arange(len(order)) + shift
    summary = effect.summary
    ax.vlines(
        places,
        summary.lower[order, output],
        summary.upper[order, output],
        color=colour,
        linewidth=1.5,
    )
    ax.plot(places, summary.mean[order, output], "o", color=colour, markersize=4.5, label=label)
    if output:
        return
    names = [shown(effect.values[number_], LONGEST_LEVEL) for number_ in order]
    if len(effect.observed):
        shares = counts[order] / counts.sum()
        names = [f"{name}\n{share:.0%}" for name, share in zip(names, shares, strict=True)]
    crowded = len(names) > 4 or max(map(len, names)) * len(names) > 42
    ax.set_xticks(np.arange(len(order)), names, rotation=40 if crowded else 0)
    if crowded:
        for text in ax.get_xticklabels():
            text.set_ha("right")
            text.set_rotation_mode("anchor")
    ax.set_xlim(-0.6, len(order) - 0.4)


def joint_effects(effects: Sequence[JointEffect], *, ax: Any = None) -> Any:
    """Draws how pairs of variables act together.

    Two numbers are a map; a number and a category are a curve for each level; two
    categories are points for each pair of levels. Of several outputs the first is shown.

    Parameters
    ----------
    effects : sequence of JointEffect
    ax : axes or array of axes, optional
        One for each pair.

    Returns
    -------
    axes, or array of axes (pairs,)
    """
    if not effects:
        return _nothing(ax, "No two variables interact noticeably.")
    panels = _panels(ax, len(effects), 2, 4.6, 3.4)
    for panel, effect in zip(panels, effects, strict=True):
        _joint(panel, effect)
    return panels[0] if len(panels) == 1 else panels


def _joint(ax: Any, effect: JointEffect) -> None:
    first, second = effect.first, effect.second
    words = families.likelihood(effect.likelihood).words
    on = words.predictor or shown(effect.outputs[0], 20)
    heading(ax, f"{shown(first.variable, 24)} and {shown(second.variable, 24)}", 9.5)
    if not second.is_category:
        largest = np.abs(effect.mean[..., 0]).max() or 1.0
        x, y = first.values.astype(float), second.values.astype(float)
        mesh = ax.pcolormesh(
            x,
            y,
            effect.mean[..., 0].T,
            cmap=diverging(),
            vmin=-largest,
            vmax=largest,
            shading="gouraud",
        )
        bar = pyplot().colorbar(mesh, ax=ax)
        bar.set_label(f"effect on {on}", fontsize=8, color=INK)
        bar.outline.set_visible(False)
        ax.set_ylabel(shown(second.variable), fontsize=8.5)
    else:
        places = np.arange(len(first.values)) if first.is_category else first.values.astype(float)
        for level in range(min(len(second.values), len(COLOURS))):
            colour = COLOURS[level]
            mean, low, high = (
                part[:, level, 0] for part in (effect.mean, effect.lower, effect.upper)
            )
            style = "o-" if first.is_category else "-"
            label = shown(second.values[level], LONGEST_LEVEL)
            ax.plot(places, mean, style, color=colour, linewidth=1.6, label=label)
            ax.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
        if first.is_category:
            ax.set_xticks(places, [shown(value, LONGEST_LEVEL) for value in first.values])
        ax.set_ylabel(f"effect on {on}", fontsize=8.5)
        title = shown(second.variable, 20)
        ax.legend(frameon=False, fontsize=7.5, title=title, title_fontsize=8, labelcolor=INK)
        ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    quiet(ax)
    ax.set_xlabel(shown(first.variable), fontsize=8.5)
    ax.tick_params(labelsize=8)


def importance_bars(importance: Importance, *, top: int = 15, ax: Any = None) -> Any:
    """Draws shares of the predictor's variance with intervals, the largest first.

    Parameters
    ----------
    importance : Importance
    top : int
        Bars at most.
    ax : axes, optional

    Returns
    -------
    axes
    """
    frame = importance.to_frame().head(top)
    ax = fresh_axes(ax, 5.4, 1.1 + 0.28 * max(len(frame), 2))
    places = np.arange(len(frame))
    colours = [POSITIVE if n == 1 else MUTED for n in frame["n_variables"]]
    ax.barh(places, 100 * frame["share"], height=0.66, color=colours, alpha=0.85, zorder=2)
    ends = 100 * frame[["share_lower", "share_upper"]].to_numpy()
    ax.hlines(places, ends[:, 0], ends[:, 1], color=INK, linewidth=1.3, zorder=3)
    ax.set_yticks(places, [shown(term, 40) for term in frame["term"]])
    ax.invert_yaxis()
    quiet(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0, labelsize=8.5)
    total = importance.summary.mean.sum()
    ax.set_xlabel(f"% of the predictor's variance; all terms {number(100 * total)} %", fontsize=8.5)
    heading(ax, "importance")
    return ax
