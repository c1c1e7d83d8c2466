"""The effects of all variables as one table: a slope for each number, a switch for each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from islab.core import families
from islab.core.arrays import Float, Index
from islab.core.names import in_figures
from islab.core.paths import active_weights
from islab.core.summary import summarise
from islab.explain.effects import EffectCurves
from islab.explain.grids import Grid, date_names
from islab.explain.importance import meetings

if TYPE_CHECKING:
    import pandas as pd

DAYS_IN_YEAR = 365.2425
LIKELY = 0.5  # from this probability on a number is looked at for a bend
UNLIKE = 0.5  # of the larger slope: a difference that is worth two lines


@dataclass(frozen=True, eq=False)
class _Change:
    """A change of one variable: covariates before and after, and by how many units."""

    variable: str
    term: str
    columns: Index
    before: Float
    after: Float
    units: float


def effect_table(curves: EffectCurves) -> pd.DataFrame:
    """A line for each number, and for each level of a category but the reference, and output.

    Returns
    -------
    DataFrame
        ``variable``; ``term``, the change that is meant; ``output``; ``effect`` with ``effect_sd``
        over draws, ``effect_lower`` and ``effect_upper``, on the scale of the predictor; for
        likelihoods whose predictor is a logarithm ``ratio``, its exponential, with interval;
        ``size``, the
        effect over the range; ``p_used`` and ``p_nonlinear``, the probabilities that the variable
        is used, and that it enters a hidden unit. The largest size first.

    Notes
    -----
    The effect of a number is its mean slope between one scale (standard deviation) below and above
    its mean, within the range of the data, and ``size`` the change from there to there; of a number
    with two values it is between these. A number that bends has two lines if its mean slopes below
    and above the typical value differ by more than half of the larger: one slope could be near 0
    where the effect is large. Of a level it is the change from the reference, the level
    of the typical row. A date has the slope of its trend by year, or by day if it spans less than
    a year, and for month, hour and weekday the change from the lowest to the highest. All are
    averaged over the rows of the curves, or at the typical row without any.
    """
    import pandas as pd

    networks = curves.networks
    used, _ = meetings(networks)
    bent = bent_probability(curves)
    names = networks.scale.variable_names
    changes = [
        change
        for grid in curves.grids
        if used[names.index(grid.variable)] > 0
        for change in _changes(grid, curves, float(bent[names.index(grid.variable)]))
    ]
    lines = []
    ratio = families.likelihood(networks.likelihood).words.ratio is not None
    drawn = _effects(curves, changes)
    for number, change in enumerate(changes):
        summary = summarise(drawn[:, number], curves.level)
        place = names.index(change.variable)
        for output, position in enumerate(curves.outputs):
            ends = [part[output] for part in (summary.mean, summary.lower, summary.upper)]
            sd = summary.sd[output]
            line = {
                "variable": change.variable,
                "term": change.term,
                "output": networks.scale.outputs[position],
                **dict(zip(("effect", "effect_lower", "effect_upper"), ends, strict=True)),
                "effect_sd": sd,
            }
            if ratio:
                powers = np.exp(np.clip(ends, -700, 700))
                line |= dict(zip(("ratio", "ratio_lower", "ratio_upper"), powers, strict=True))
            line |= {
                "size": ends[0] * change.units,
                "p_used": used[place],
                "p_nonlinear": bent[place],
            }
            lines.append(line)
    extra = ["ratio", "ratio_lower", "ratio_upper"] if ratio else []
    columns = ["variable", "term", "output", "effect", "effect_sd", "effect_lower", "effect_upper"]
    columns += extra
    frame = pd.DataFrame(lines, columns=[*columns, "size", "p_used", "p_nonlinear"])
    order = np.argsort(-np.abs(frame["size"].to_numpy(dtype=float)), kind="stable")
    return frame.iloc[order].reset_index(drop=True)


def bent_probability(curves: EffectCurves) -> Float:
    """Probability that each variable enters a hidden unit on an active path, (variables,)."""
    scale = curves.networks.scale
    place = {name: number for number, name in enumerate(scale.variable_names)}
    found = np.zeros(len(place))
    for part in curves.networks.parts:
        net = part.architecture
        entering = net.covariate_matrix(active_weights(net, part.weights != 0))
        into_hidden = np.asarray(entering[:, : sum(net.hidden)].any(axis=1))
        owner = np.array([place[scale.variables[column]] for column in part.covariates], int)
        own = np.zeros((len(place), len(into_hidden)))
        np.maximum.at(own, owner, into_hidden.T)
        found += own.sum(axis=1)
    return found / curves.networks.n_draws


def _changes(grid: Grid, curves: EffectCurves, p_bent: float) -> list[_Change]:
    if grid.is_category:
        reference = int(grid.nearest(curves.networks.scale.typical[None])[0])
        others = [number for number in range(len(grid.values)) if number != reference]
        return [_switch(grid, grid.variable, reference, number) for number in others]
    values = grid.values.astype(float)
    known = values[~np.isnan(values)]
    found = _slopes(grid, curves, grid.codes[: len(known), 0], p_bent)
    found += [_extremes(grid.variable, part, curves) for part in _used(grid.switches, curves)]
    if len(known) < len(values):
        typical = curves.networks.scale.typical[grid.columns]
        missing = f"{grid.variable}: missing vs typical"
        found.append(_Change(grid.variable, missing, grid.columns, typical, grid.codes[-1], 1.0))
    return found


def _switch(grid: Grid, variable: str, before: int, after: int) -> _Change:
    """From one level of a category to another."""
    term = f"{grid.variable}: {grid.values[after]} vs {grid.values[before]}"
    return _Change(variable, term, grid.columns, grid.codes[before], grid.codes[after], 1.0)


def _used(grids: tuple[Grid, ...], curves: EffectCurves) -> list[Grid]:
    return [grid for grid in grids if np.isin(grid.columns, curves.networks.used).any()]


def _extremes(variable: str, part: Grid, curves: EffectCurves) -> _Change:
    """From the lowest to the highest level on average, of the output where they differ most."""
    mean = curves.averaged(part).mean(axis=0)
    own = mean[:, int(np.ptp(mean, axis=0).argmax())]
    return _switch(part, variable, int(own.argmin()), int(own.argmax()))


def _slopes(grid: Grid, curves: EffectCurves, points: Float, p_bent: float) -> list[_Change]:
    """The change of a number about its mean: one, or two if its slope differs."""
    scale, first = curves.networks.scale, grid.columns[0]
    ends = scale.x_center[first] + scale.x_scale[first] * np.array([-1.0, 1.0])
    ends = points if len(points) == 2 else np.clip(ends, points[0], points[-1])
    whole = _slope(grid, curves, ends)
    middle = scale.typical[first]
    if p_bent < LIKELY or len(points) == 2 or not ends[0] < middle < ends[1]:
        return [whole]
    outer = np.clip(_rounded(ends), points[0], points[-1]) if grid.start is None else ends
    halves = [
        _slope(grid, curves, np.array(pair), named=True)
        for pair in ((outer[0], middle), (middle, outer[1]))
    ]
    below, above = _effects(curves, halves).mean(axis=0)
    differ = np.abs(above - below) > UNLIKE * np.maximum(np.abs(below), np.abs(above))
    return halves if differ.any() else [whole]


def _rounded(ends: Float) -> Float:
    """Two numbers with as many digits as their distance needs."""
    step = 10.0 ** np.floor(np.log10(ends[1] - ends[0]) - 0.5)
    return np.round(ends / step) * step


def _slope(grid: Grid, curves: EffectCurves, ends: Float, *, named: bool = False) -> _Change:
    """The change between two values of the first covariate, of which terms may tell."""
    before, after = (curves.networks.scale.typical[grid.columns].copy() for _ in range(2))
    before[0], after[0] = ends
    if grid.mark is not None:
        before[1] = after[1] = 0.0
    low, high = grid.numbers(ends)
    term, unit = grid.variable, 1.0
    if grid.start is not None:
        unit = DAYS_IN_YEAR if np.ptp(grid.values.astype(float)) >= DAYS_IN_YEAR else 1.0
        term += " (per year)" if unit > 1 else " (per day)"
    if named:
        names = [in_figures(low, 4), in_figures(high, 4)]
        if grid.start is not None:
            names = date_names(grid.start, np.array([low, high]))
            names = [name[:7] for name in names] if unit > 1 else names
        term += f" from {names[0]} to {names[1]}"
    return _Change(grid.variable, term, grid.columns, before, after, float(high - low) / unit)


def _effects(curves: EffectCurves, changes: list[_Change]) -> Float:
    """Effects of the changes in every draw, (draws, changes, outputs)."""
    found = []
    for change in changes:
        ends = np.stack([change.before, change.after])
        grid = Grid(change.variable, change.columns, np.arange(2), ends, is_category=True)
        drawn = curves.averaged(grid)
        found.append((drawn[:, 1] - drawn[:, 0]) / change.units)
    if not found:
        return np.zeros((curves.networks.n_draws, 0, len(curves.outputs)))
    return np.stack(found, axis=1)
