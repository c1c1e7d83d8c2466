"""Values of a variable at which effects are found, and the covariates that stand for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float, Index, Mask
from islab.core.scale import Scale

MOST_POINTS = 40


@dataclass(frozen=True, eq=False)
class Grid:
    """Some values of one variable.

    Attributes
    ----------
    variable : str
    columns : (own covariates,)
        Its covariates.
    values : (points,)
        Rising numbers, then NaN if it may be missing; or names of levels.
    codes : (points, own covariates)
        What its covariates are at these values.
    is_category : bool
    mark : int, optional
        The covariate that marks a number as missing.
    start : float, optional
        Of dates: the day since 1970 from which values count, in days.
    switches : tuple of Grid
        Of dates: month, hour and weekday, which change by themselves.
    """

    variable: str
    columns: Index
    values: NDArray
    codes: Float
    is_category: bool
    mark: int | None = None
    start: float | None = None
    switches: tuple[Grid, ...] = ()

    def known(self, x: Float) -> Mask:
        """Which rows have a value of a number."""
        return np.ones(len(x), dtype=bool) if self.mark is None else x[:, self.mark] == 0

    def numbers(self, covariate: Float) -> Float:
        """Values of a number from its first covariate, between the points linearly."""
        known = ~np.isnan(self.values.astype(float))
        return np.interp(covariate, self.codes[known, 0], self.values[known].astype(float))

    def nearest(self, x: Float) -> Index:
        """The point that each row's own value is, or lies nearest to, (rows,)."""
        spread = np.ptp(self.codes, axis=0)
        telling = spread > 0
        own, codes = x[:, self.columns[telling]], self.codes[:, telling]
        distance = np.abs(own[:, None] - codes) / spread[telling]
        return distance.sum(axis=2).argmin(axis=1)


def date_names(start: float, days: Float) -> list[str]:
    """Dates of days since a start that is counted from 1970."""
    return np.floor(start + days).astype("datetime64[D]").astype(str).tolist()


def number_points(
    values: Float,
    low: float | None = None,
    high: float | None = None,
    most: int = MOST_POINTS,
) -> Float:
    """Points that lie where values do: their quantiles, and both ends, rising."""
    known = values[np.isfinite(values)]
    every = np.unique(known)
    if len(every) > most:
        shares = np.linspace(0, 1, most)
        every = np.unique(np.quantile(known, shares, method="inverted_cdf"))
    ends = [end for end in (low, high) if end is not None]
    return np.unique(np.concatenate([every, ends]))


def plain_grids(scale: Scale, x: Float) -> list[Grid]:
    """Grids of variables of which no more is known than their covariates.

    One covariate is a number; several are a category with a level for each.
    """
    grids = []
    owners = np.array(scale.variables, dtype=object)
    for variable in scale.variable_names:
        columns = np.flatnonzero(owners == variable)
        if len(columns) == 1:
            values = number_points(x[:, columns[0]])
            grids.append(Grid(variable, columns, values, values[:, None], is_category=False))
        else:
            names = [scale.names[column].removeprefix(f"{variable}=") for column in columns]
            levels = np.array(names, dtype=object)
            grids.append(Grid(variable, columns, levels, np.eye(len(columns)), is_category=True))
    return grids
