"""Effects: how the predictor changes with one variable, averaged over rows, for every draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float, Index
from islab.core.names import shortened
from islab.core.summary import Summary, summarise
from islab.explain.drawn import ExplainedNetworks
from islab.explain.grids import Grid, date_names, number_points

if TYPE_CHECKING:
    import pandas as pd

EffectKind = Literal["average", "accumulated", "typical"]

MOST_AVERAGED = 100  # rows over which partial dependence is averaged
MOST_ACCUMULATED = 2000  # rows whose local differences are accumulated
MOST_CONTRIBUTIONS = 1000  # rows over which sizes of contributions are averaged
CORRELATED = 0.5
NUMBERS_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of one variable on the predictor, with draws.

    Attributes
    ----------
    variable : str
    kind : {"average", "accumulated", "typical"}
        ``"average"``: partial dependence, the predictor averaged over rows in which only this
        variable is changed. ``"accumulated"``: accumulated local effects, for a variable that is
        correlated with others: changes of the predictor between neighbouring values, each over the
        rows that lie there. ``"typical"``: all other variables are those of the typical row.
    outputs : tuple of str
    values : (points,)
        Rising numbers, then NaN for a missing value; or names of levels.
    is_category : bool
    draws : (draws, points, outputs)
        Counted from the mean over the rows, or from the typical row.
    level : float
        Of the credible intervals.
    observed : (rows,)
        Values in the data: the number, or the position of the level.
    likelihood : str
    start : float, optional
        Of dates: the day since 1970 from which values count, in days.
    """

    variable: str
    kind: EffectKind
    outputs: tuple[str, ...]
    values: NDArray
    is_category: bool
    draws: Float
    level: float
    observed: Float
    likelihood: str
    start: float | None = None

    @property
    def shown_values(self) -> NDArray:
        """Values as people know them: dates as text."""
        if self.start is None:
            return self.values
        return np.array(date_names(self.start, self.values.astype(float)), dtype=object)

    @cached_property
    def summary(self) -> Summary:
        """(points, outputs)"""
        return summarise(self.draws, self.level)

    def clearest(self, most: int) -> Index:
        """Positions of the outputs on which the effect is largest, at most so many."""
        size = np.ptp(self.summary.mean, axis=0)
        return np.argsort(-size, kind="stable")[:most]

    def to_frame(self) -> pd.DataFrame:
        """A line for each value and output: effect, sd and interval."""
        import pandas as pd

        points, outputs = self.summary.mean.shape
        return pd.DataFrame(
            {
                "variable": self.variable,
                "output": np.tile(np.array(self.outputs, dtype=object), points),
                "value": np.repeat(self.shown_values, outputs),
                "effect": self.summary.mean.ravel(),
                "effect_sd": self.summary.sd.ravel(),
                "effect_lower": self.summary.lower.ravel(),
                "effect_upper": self.summary.upper.ravel(),
                "kind": self.kind,
            }
        )

    def plot(self, *, ax: Any = None) -> Any:
        """A curve with its band, or points with intervals; see :func:`islab.plots.effect_curve`."""
        from islab.plots import effect_curve

        return effect_curve(self, ax=ax)

    def __repr__(self) -> str:
        name = shortened(self.variable, 40)
        return f"Effect({name!r}, {len(self.values)} values, {len(self.draws)} draws, {self.kind})"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, float_format="{:.4g}".format)


@dataclass(frozen=True, eq=False)
class EffectCurves:
    """Where effects come from: networks, rows, and values of each variable.

    Attributes
    ----------
    draw : callable
        Draws the networks, when they are first needed.
    x : (rows, covariates), optional
        Without rows effects are those of a change of the typical row.
    grids : tuple of Grid
        Of all variables with covariates.
    outputs : list of int
        The outputs wanted.
    combine : (outputs, outputs wanted)
        Takes predictors to predictors against the reference.
    level : float
    """

    draw: Callable[[], ExplainedNetworks]
    x: Float | None
    grids: tuple[Grid, ...]
    outputs: list[int]
    combine: Float
    level: float

    @cached_property
    def networks(self) -> ExplainedNetworks:
        return self.draw()

    @cached_property
    def contributions(self) -> Float:
        """Mean contributions to the given rows, from the typical row, (rows, used, outputs)."""
        rows = evenly(self.rows, MOST_CONTRIBUTIONS)
        networks = self.networks
        per_row = networks.n_draws * max(len(networks.used), 1) * len(networks.scale.outputs)
        step = max(1, NUMBERS_AT_ONCE // per_row)
        start = networks.scale.typical
        found = [
            networks.contributions(start, rows[first : first + step]).mean(axis=0) @ self.combine
            for first in range(0, len(rows), step)
        ]
        return np.concatenate(found)

    def grid(self, variable: str) -> Grid:
        """The grid of a variable, or an error that names those there are."""
        for grid in self.grids:
            if grid.variable == variable:
                return grid
        names = ", ".join(repr(grid.variable) for grid in self.grids[:10])
        raise ValueError(f"Got variable={variable!r}, expected one of the data: {names}.")

    def effect(self, variable: str, kind: str = "auto") -> Effect:
        """The effect of one variable.

        Parameters
        ----------
        variable : str
        kind : {"auto", "average", "accumulated"}
            ``"auto"`` accumulates the effects of numbers that have a correlation above 0.5 with a
            covariate of another variable that is used, and averages the others.
        """
        grid = self.grid(variable)
        chosen = self._chosen_kind(grid, kind)
        own = accumulated_grid(grid, self.rows) if chosen == "accumulated" else grid
        drawn = self._accumulated(own) if chosen == "accumulated" else self.averaged(own)
        return Effect(
            variable=variable,
            kind=chosen,
            outputs=tuple(self.networks.scale.outputs[number] for number in self.outputs),
            values=own.values,
            is_category=own.is_category,
            draws=drawn - self._center(own, drawn),
            level=self.level,
            observed=self._observed(own),
            likelihood=self.networks.likelihood,
            start=own.start,
        )

    def averaged(self, *grids: Grid, rows: Float | None = None) -> Float:
        """Predictor averaged over rows, for all values of one variable or more.

        (draws, points, outputs), or (draws, points, points of the second, outputs).
        """
        rows = self.background if rows is None else rows
        shape = tuple(len(grid.values) for grid in grids)
        places = np.indices(shape).reshape(len(shape), -1).T
        found = np.empty((self.networks.n_draws, len(places), len(self.outputs)))
        per_point = self.networks.n_draws * len(rows) * len(self.networks.scale.outputs)
        step = max(1, NUMBERS_AT_ONCE // per_point)
        for first in range(0, len(places), step):
            some = places[first : first + step]
            moved = np.repeat(rows[None], len(some), axis=0)
            for number, grid in enumerate(grids):
                moved[:, :, grid.columns] = grid.codes[some[:, number]][:, None]
            eta = self.networks.predictor(moved.reshape(-1, rows.shape[1])) @ self.combine
            eta = eta.reshape(len(eta), len(some), len(rows), -1)
            found[:, first : first + step] = eta.mean(axis=2)
        return found.reshape(len(found), *shape, -1)

    @property
    def rows(self) -> Float:
        """Rows to average over: those given, or the typical one."""
        typical = self.networks.scale.typical[None]
        return typical if self.x is None else self.x

    @property
    def background(self) -> Float:
        """Some of them."""
        return evenly(self.rows, MOST_AVERAGED)

    def _chosen_kind(self, grid: Grid, kind: str) -> EffectKind:
        if kind not in ("auto", "average", "accumulated"):
            raise ValueError(f"Got kind={kind!r}, expected 'auto', 'average' or 'accumulated'.")
        if self.x is None:
            return "typical"
        if kind == "average" or grid.is_category or len(np.unique(self._observed(grid))) < 2:
            return "average"
        if kind == "accumulated" or self._correlation(grid) > CORRELATED:
            return "accumulated"
        return "average"

    def _correlation(self, grid: Grid) -> float:
        """The largest correlation of a number with used covariates of other variables."""
        others = np.setdiff1d(self.networks.used, grid.columns)
        x = self.rows - self.rows.mean(axis=0)
        size = np.sqrt((x**2).sum(axis=0))
        own = grid.columns[0]
        if len(x) < 3 or not len(others) or not size[own]:
            return 0.0
        others = others[size[others] > 0]
        found = x[:, others].T @ x[:, own] / (size[others] * size[own])
        return float(np.abs(found).max(initial=0.0))

    def _accumulated(self, grid: Grid) -> Float:
        """Accumulated local effects of a number, (draws, points, outputs)."""
        rows = evenly(self.rows[grid.known(self.rows)], MOST_ACCUMULATED)
        edges, own = grid.codes[:, 0], grid.columns[0]
        piece = np.clip(np.searchsorted(edges, rows[:, own], side="left"), 1, len(edges) - 1)
        ends = []
        for shift in (-1, 0):
            moved = rows.copy()
            moved[:, own] = edges[piece + shift]
            ends.append(moved)
        step = max(1, NUMBERS_AT_ONCE // (self.networks.n_draws * 2))
        total = np.zeros((self.networks.n_draws, len(edges), len(self.outputs)))
        for first in range(0, len(rows), step):
            some = slice(first, first + step)
            low, high = (self.networks.predictor(end[some]) @ self.combine for end in ends)
            np.add.at(np.swapaxes(total, 0, 1), piece[some], np.swapaxes(high - low, 0, 1))
        counts = np.bincount(piece, minlength=len(edges))
        return np.cumsum(total / np.maximum(counts, 1)[:, None], axis=1)

    def _center(self, grid: Grid, drawn: Float) -> Float:
        """What the effect is counted from in each draw, (draws, 1, outputs)."""
        shares = np.bincount(grid.nearest(self.rows), minlength=len(grid.values)) / len(self.rows)
        return (shares @ drawn)[:, None]

    def _observed(self, grid: Grid) -> Float:
        if self.x is None:
            return np.zeros(0)
        if grid.is_category:
            return grid.nearest(self.x).astype(float)
        return grid.numbers(self.x[grid.known(self.x), grid.columns[0]])


def accumulated_grid(grid: Grid, rows: Float) -> Grid:
    """The numbers of a grid, between which each piece holds rows."""
    points = number_points(rows[grid.known(rows), grid.columns[0]])
    codes = np.zeros((len(points), len(grid.columns)))
    codes[:, 0] = points
    values = grid.numbers(points)
    return replace(grid, values=values, codes=codes)


def evenly(rows: Float, most: int) -> Float:
    """At most so many rows, evenly spaced."""
    return rows[even_places(len(rows), most)]


def even_places(n_rows: int, most: int) -> Index:
    """Positions of at most so many rows, evenly spaced."""
    if n_rows <= most:
        return np.arange(n_rows)
    return ((np.arange(most) + 0.5) / most * n_rows).astype(np.intp)
