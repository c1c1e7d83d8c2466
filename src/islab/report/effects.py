"""Effects of the variables as pictures: curves with bands over a rug, levels with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core import families
from islab.core.arrays import Float, Mask
from islab.explain.grids import date_names
from islab.explain.importance import LEAST_SHARE, OTHERS, joint_effect
from islab.plots.effects import COLOURS, FEW_VALUES, MOST_BANDS, MOST_LEVELS
from islab.plots.style import number, on_one_line
from islab.report.bars import Bar, placed
from islab.report.charts import BOTTOM, RIGHT, TOP, Chart, Mark, Scale, apart, around, left_of

if TYPE_CHECKING:
    import pandas as pd

    from islab.explain import GlobalExplanation
    from islab.explain.effects import Effect
    from islab.explain.importance import Importance, JointEffect

WIDTH, HEIGHT = 330, 210
MOST_EFFECTS = 12
MOST_SHARES = 12
MOST_PAIRS = 4
MOST_TICKS = 150
LEVEL_ROW = 24
FEW_ROWS = 0.01  # whose values do not decide on the scale
PLACES = {"average": "", "accumulated": "accumulated local effect", "typical": ""}
SMALLEST_SHARE = 0.0005  # of an interaction that has a line
LONGEST_LEVEL = 16


@dataclass(frozen=True)
class Effects:
    """What the page shows of effects.

    ``scale`` names what effects are added to, ``key`` are the outputs with their CSS classes, if
    there are several.
    """

    scale: str
    key: list[tuple[str, str]]
    charts: list[Chart]
    n_used: int
    shares: list[Bar]
    zero: float  # of their axis, in percent
    interactions: pd.DataFrame
    n_weak: int  # more pairs that meet, with hardly any share
    others: float  # share of interactions that have no line
    pairs: list[Chart]


def effects_of(
    everything: GlobalExplanation, table: pd.DataFrame, ranges: dict[str, tuple[float, float]]
) -> Effects | None:
    """Pictures of the used variables, None if there are none.

    Parameters
    ----------
    everything : GlobalExplanation
        Over some rows.
    table : DataFrame
        The effects of the summary, those with the largest share of variance first.
    ranges : dict
        Least and greatest value of numbers in training: curves end there.
    """
    used = list(dict.fromkeys(table["variable"][table["p_used"] >= 0.5]))
    if not used:
        return None
    effects = [_within(everything.effect(name), ranges) for name in used[:MOST_EFFECTS]]
    first, pairs = effects[0], everything.interactions.to_frame()
    shares = everything.importance.to_frame().set_index("term")["share"]
    several = len(first.outputs) > 1
    words = families.likelihood(first.likelihood).words
    scale = words.predictor or ("the output" if several else on_one_line(first.outputs[0]))
    strong = pairs[pairs["share"] >= LEAST_SHARE].head(MOST_PAIRS)
    joint = [
        joint_effect(everything.curves, *names)
        for names in strong[["first", "second"]].itertuples(index=False, name=None)
    ]
    return Effects(
        scale=scale,
        key=[(colour(k), on_one_line(name)) for k, name in enumerate(first.outputs) if several],
        charts=effect_charts(effects),
        n_used=len(used),
        **share_bars(everything.importance),
        interactions=pairs[pairs["share"] >= SMALLEST_SHARE],
        n_weak=int((pairs["share"] < SMALLEST_SHARE).sum()),
        others=float(shares.get(OTHERS[0], 0.0)),
        pairs=[pair_chart(each) for each in joint],
    )


def _within(effect: Effect, ranges: dict[str, tuple[float, float]]) -> Effect:
    """The effect without numbers that training did not see: a few of them would dwarf the rest."""
    if effect.is_category or effect.variable not in ranges:
        return effect
    low, high = ranges[effect.variable]
    values = effect.values.astype(float)
    kept = np.isnan(values) | ((values >= low) & (values <= high))
    if not (kept & ~np.isnan(values)).any():
        return effect
    return replace(effect, values=values[kept], draws=effect.draws[:, kept])


def colour(output: int) -> str:
    """The CSS class of an output's colour."""
    return f"c{output % len(COLOURS)}"


def effect_charts(effects: Sequence[Effect]) -> list[Chart]:
    """A picture for each effect, all on one scale, so that sizes can be compared.

    The scale is that of values which more than a few rows have: beyond them bands are often so wide
    that nothing else could be seen.
    """
    ends = [
        part[_often(each)].ravel()
        for each in effects
        for part in (each.summary.lower, each.summary.upper)
    ]
    shared = np.concatenate([*ends, [0.0]])
    return [
        _levels_chart(each, shared) if each.is_category else _curve_chart(each, shared)
        for each in effects
    ]


def _often(effect: Effect) -> Mask:
    """Points among the middle rows, and levels of more than a few, (points,)."""
    observed = effect.observed
    if not len(observed):
        return np.ones(len(effect.values), dtype=bool)
    if effect.is_category:
        shares = np.bincount(observed.astype(int), minlength=len(effect.values)) / len(observed)
        return shares >= FEW_ROWS
    low = np.quantile(observed, FEW_ROWS, method="lower")
    high = np.quantile(observed, 1 - FEW_ROWS, method="higher")
    values = effect.values.astype(float)
    return np.isnan(values) | ((values >= low) & (values <= high))


def _curve_chart(effect: Effect, shared: Float) -> Chart:
    values, summary = effect.values.astype(float), effect.summary
    known = ~np.isnan(values)
    y = around(shared, HEIGHT - BOTTOM, TOP)
    low, high = float(values[known].min()), float(values[known].max())
    reach = (high - low) or 1.0
    # What is missing stands to the right of the curve.
    room = 0.0 if known.all() else 0.12 * reach
    x = Scale(low, low + reach + room, left_of(y.labels()), WIDTH - RIGHT)
    marks = [Mark("line", "rule", (x.start, float(y(0)), x.end, float(y(0))))]
    for k in range(len(effect.outputs)):
        lower, mean, upper = (
            np.column_stack([x(values[known]), y(part[known, k])])
            for part in (summary.lower, summary.mean, summary.upper)
        )
        around_curve = tuple(np.concatenate([lower, upper[::-1]]).ravel())
        if k in effect.clearest(MOST_BANDS):
            marks.append(Mark("area", f"spread {colour(k)}", around_curve))
        marks.append(Mark("line", f"trace {colour(k)}", tuple(mean.ravel())))
        if not known.all():
            where = x.end - 4.0 * (1 + k)
            marks += _point(where, y, summary, int(np.flatnonzero(~known)[0]), k)
    places = _rug(x, effect.observed)
    marks.append(
        Mark(
            "rug", "ticks", tuple(np.column_stack([places, np.full(len(places), y.start)]).ravel())
        )
    )
    x_ticks = [(place, text) for place, text in x.ticks() if place <= float(x(high)) + 0.5]
    if known.sum() <= FEW_VALUES:
        x_ticks = [(float(x(value)), number(value)) for value in values[known]]
    if effect.start is not None:
        # Labels at the ends would leave the picture.
        places = low + (high - low) * np.array([0.12, 0.5, 0.88])
        x_ticks = list(zip(x(places).tolist(), date_names(effect.start, places), strict=True))
    if not known.all():
        x_ticks = [tick for tick in x_ticks if tick[0] < x.end - 60] + [(x.end - 4, "missing")]
    name = on_one_line(effect.variable)
    label = f"Effect of {name}, with its credible band."
    found = Chart(name, label, WIDTH, HEIGHT, x, y, PLACES[effect.kind], marks=marks, cut=True)
    return replace(found, x_ticks=apart(x_ticks), y_ticks=y.ticks())


def _point(where: float, y: Scale, summary: Any, point: int, output: int) -> list[Mark]:
    """A mean with its interval, upright."""
    low, mean, high = (
        float(y(part[point, output])) for part in (summary.lower, summary.mean, summary.upper)
    )
    css = colour(output)
    return [
        Mark("segment", f"interval {css}", (where, low, where, high)),
        Mark("dot", f"point {css}", (where, mean)),
    ]


def _rug(x: Scale, observed: Float) -> Float:
    """Different places of the data, evenly spaced ones of many."""
    inside = np.sort(observed[(observed >= x.low) & (observed <= x.high)])
    step = max(1, len(inside) // MOST_TICKS)
    return np.unique(np.round(x(inside[::step]), 1))


def _levels_chart(effect: Effect, shared: Float) -> Chart:
    """A line for each level, the most frequent ones if there are many."""
    counts = np.bincount(effect.observed.astype(int), minlength=len(effect.values))
    order = np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
    shares = counts[order] / max(int(counts.sum()), 1)
    names = [
        f"{on_one_line(effect.values[level], LONGEST_LEVEL)} {share:.0%}"
        for level, share in zip(order, shares, strict=True)
    ]
    n_outputs = len(effect.outputs)
    row = max(LEVEL_ROW, 7 * n_outputs)
    height = TOP + row * len(order) + BOTTOM
    x = around(shared, left_of(names), WIDTH - RIGHT)
    y = Scale(len(order) - 0.5, -0.5, height - BOTTOM, TOP)
    marks = [Mark("line", "rule", (float(x(0)), y.start, float(x(0)), y.end))]
    for k in range(n_outputs):
        shift = 0.7 * (k - (n_outputs - 1) / 2) / n_outputs
        places = y(np.arange(len(order)) + shift)
        low, mean, high = (
            x(part[order, k])
            for part in (effect.summary.lower, effect.summary.mean, effect.summary.upper)
        )
        css = colour(k)
        marks += [
            Mark("segment", f"interval {css}", (a, at, b, at))
            for a, b, at in zip(low, high, places, strict=True)
        ]
        marks += [Mark("dot", f"point {css}", pair) for pair in zip(mean, places, strict=True)]
    name = on_one_line(effect.variable)
    label = f"Effects of the levels of {name}, with credible intervals and shares of the rows."
    levels = [(float(y(k)), text) for k, text in enumerate(names)]
    found = Chart(name, label, WIDTH, height, x, y, PLACES[effect.kind], marks=marks, cut=True)
    return replace(found, x_ticks=x.ticks(3), y_ticks=levels)


def share_bars(importance: Importance) -> dict[str, Any]:
    """Shares of the predictor's variance in percent, the largest first."""
    frame = importance.to_frame()
    shown = frame[frame["share"].abs() >= SMALLEST_SHARE].head(MOST_SHARES)
    parts = (100 * shown[name].to_numpy() for name in ("share", "share_lower", "share_upper"))
    names = {" x ".join(term): " \N{MULTIPLICATION SIGN} ".join(term) for term in importance.terms}
    found = placed([on_one_line(names[term]) for term in shown["term"]], *parts)
    return {"shares": found["bars"], "zero": found["zero"]}


def pair_chart(effect: JointEffect) -> Chart:
    """The first variable's curve at some values of the second; of several outputs the first."""
    first, second = effect.first, effect.second
    name, other = on_one_line(first.variable), on_one_line(second.variable, 20)
    y = around(np.append(effect.mean[..., 0], 0.0), HEIGHT - BOTTOM, TOP)
    if second.is_category:
        chosen = np.arange(min(len(second.values), 4))
        labels = [on_one_line(second.values[k], LONGEST_LEVEL) for k in chosen]
    else:
        chosen = np.unique(np.linspace(0, len(second.values) - 1, 3).round().astype(int))
        labels = [number(float(second.values[k])) for k in chosen]
    if first.is_category:
        values = np.arange(len(first.values), dtype=float)
    else:
        values = first.values.astype(float)
    end = float(values[-1]) if values[-1] > values[0] else float(values[0]) + 1
    x = Scale(float(values[0]), end, left_of(y.labels()) + 14, WIDTH - RIGHT - 14)
    marks = [Mark("line", "rule", (x.start, float(y(0)), x.end, float(y(0))))]
    for place, k in enumerate(chosen):
        line = np.column_stack([x(values), y(effect.mean[:, k, 0])])
        marks.append(Mark("line", f"trace {colour(place)}", tuple(line.ravel())))
    levels = [(float(x(k)), on_one_line(v, 10)) for k, v in enumerate(first.values)]
    on = f" (on {on_one_line(effect.outputs[0], 20)})" if len(effect.outputs) > 1 else ""
    return Chart(
        title=f"{name} and {other}{on}",
        label=f"Effect of {name} at several values of {other}.",
        width=WIDTH,
        height=HEIGHT,
        x=x,
        y=y,
        x_name=name,
        x_ticks=levels[:4] if first.is_category else x.ticks(),
        y_ticks=y.ticks(),
        marks=marks,
        key=[(colour(place), f"{other} = {text}") for place, text in enumerate(labels)],
    )
