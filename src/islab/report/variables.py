"""The used variables of a model as a person sets them: a number, or one of some choices.

A date is several settings: the trend, the month, the hour and the weekday.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from islab.core.arrays import Float, Index
from islab.core.names import printable
from islab.plots.style import number, on_one_line
from islab.tables.categories import Category
from islab.tables.columns import ColumnEncoder
from islab.tables.dates import Cycle
from islab.tables.numbers import Number
from islab.tables.orders import Ordered

STEPS = 200

Part = Number | Category | Ordered | Cycle


@dataclass(frozen=True)
class Setting:
    """A variable that the network reads, or a part of it, and how values become covariates.

    A setting's *state* is a number, None for a missing number, or the position of a choice.
    """

    variable: Part
    owner: str  # the variable that it is a part of
    first: int  # its first covariate
    used: list[int]  # its used covariates, as positions among those that networks read
    columns: list[int]  # the same, as positions among the variable's own covariates
    low: float  # least value in training
    high: float
    step: float  # suits the range

    @property
    def name(self) -> str:
        return printable(self.variable.name)

    def state(self, covariates: Float) -> float | int | None:
        """The state of one row of all covariates."""
        width = len(self.variable.covariates)
        own = covariates[self.first : self.first + width]
        if isinstance(self.variable, Number):
            return None if self.variable.indicator and own[1] else float(own[0])
        return int(np.abs(self.variable.choices()[1] - own).sum(axis=1).argmin())

    def words(self, covariates: Float) -> str:
        """``name = value`` of one row of all covariates."""
        state = self.state(covariates)
        if isinstance(self.variable, Number):
            value = "missing" if state is None else number(float(state))
        else:
            assert isinstance(state, int)
            value = on_one_line(self.variable.choices()[0][state])
        return f"{on_one_line(self.variable.name)} = {value}"

    def to_dict(self) -> dict[str, Any]:
        """What the page needs to offer the variable, in JSON's types."""
        shared = {"name": self.name, "used": self.used}
        if not isinstance(self.variable, Number):
            names, table = self.variable.choices()
            codes = table[:, self.columns].tolist()
            return {
                **shared,
                "kind": "category",
                "levels": [*map(printable, names)],
                "codes": codes,
            }
        return {
            **shared,
            "kind": "number",
            "columns": self.columns,
            "fill": self.variable.fill,
            "may_miss": self.variable.indicator,
            "low": self.low,
            "high": self.high,
            "step": self.step,
        }


def settings_of(used: Index, encoder: ColumnEncoder, covariates: Float) -> list[Setting]:
    """A setting for each variable that networks read, for a date several.

    Parameters
    ----------
    used : (used covariates,)
        Columns that some network reads, rising.
    covariates : (rows, covariates)
        Rows that settings start from; whole numbers among them are changed in whole steps.
    """
    position = {int(column): place for place, column in enumerate(used)}
    settings, first = [], 0
    for owner, part in ((v.name, part) for v in encoder.variables for part in v.parts):
        width = len(part.covariates)
        columns = [column for column in range(width) if first + column in position]
        if columns:
            places = [position[first + column] for column in columns]
            reach = _reach(part, covariates[:, first])
            settings.append(Setting(part, owner, first, places, columns, *reach))
        first += width
    return settings


def training_ranges(encoder: ColumnEncoder) -> dict[str, tuple[float, float]]:
    """Least and greatest value of each number in training, as people know them."""
    found = {}
    for variable in encoder.variables:
        if isinstance(variable, Number):
            ends = np.array([variable.low, variable.high])
            low, high = ends if variable.tails is None else variable.tails.restore(ends)
            found[variable.name] = float(low), float(high)
    return found


def _reach(variable: Part, values: Float) -> tuple[float, float, float]:
    """The range of the variable in training, and a round step for it."""
    if not isinstance(variable, Number):
        return 0.0, 0.0, 1.0
    low, high = variable.low, variable.high
    given = values[values != variable.fill]  # what is missing is no whole number
    if variable.constant or bool((np.mod([low, high, *given], 1) == 0).all()):
        return low, high, 1.0
    return low, high, float(10 ** np.floor(np.log10((high - low) / STEPS)))
