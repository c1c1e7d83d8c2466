"""The used variables of a model as a person sets them: a number, or one of some levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from islab.core.arrays import Float
from islab.core.names import printable
from islab.core.sparse import SparseNetwork
from islab.plots.style import number, on_one_line
from islab.tables.columns import Category, ColumnEncoder, Number, Variable

UNKNOWN = "(not seen in training)"
STEPS = 200


@dataclass(frozen=True)
class Setting:
    """A variable that the network reads, and how its values become covariates.

    A setting's *state* is a number, None for a missing number, or the position of a level; the
    position after the last level is a level never seen in training.
    """

    variable: Variable
    first: int  # its first covariate
    used: list[int]  # its used covariates, as positions among those the network reads
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
        assert isinstance(self.variable, Category)  # one that is left out has no covariates
        codes = level_codes(self.variable)
        return int(np.abs(codes - own).sum(axis=1).argmin())

    def words(self, covariates: Float) -> str:
        """``name = value`` of one row of all covariates."""
        state = self.state(covariates)
        if isinstance(self.variable, Number):
            value = "missing" if state is None else number(float(state))
        else:
            assert isinstance(state, int)
            assert isinstance(self.variable, Category)
            value = on_one_line(level_names(self.variable)[state])
        return f"{on_one_line(self.variable.name)} = {value}"

    def to_dict(self) -> dict[str, Any]:
        """What the page needs to offer the variable, in JSON's types."""
        shared = {"name": self.name, "used": self.used}
        if isinstance(self.variable, Category):
            codes = level_codes(self.variable)[:, self.columns]
            levels = [printable(name) for name in level_names(self.variable)]
            return {**shared, "kind": "category", "levels": levels, "codes": codes.tolist()}
        assert isinstance(self.variable, Number)
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


def settings_of(network: SparseNetwork, encoder: ColumnEncoder, covariates: Float) -> list[Setting]:
    """A setting for each variable that the network reads.

    Parameters
    ----------
    covariates : (rows, covariates)
        Rows that settings start from; whole numbers among them are changed in whole steps.
    """
    position = {int(column): place for place, column in enumerate(network.covariates)}
    settings, first = [], 0
    for variable in encoder.variables:
        width = len(variable.covariates)
        columns = [column for column in range(width) if first + column in position]
        if columns:
            used = [position[first + column] for column in columns]
            reach = _reach(variable, covariates[:, first])
            settings.append(Setting(variable, first, used, columns, *reach))
        first += width
    return settings


def level_names(variable: Category) -> list[str]:
    """Levels to choose from, the unknown one last."""
    return [*variable.levels, UNKNOWN]


def level_codes(variable: Category) -> Float:
    """Covariates of each level, (levels + 1, covariates)."""
    table = np.vstack([np.eye(len(variable.levels)), variable.shares])
    return table[:, len(variable.levels) - len(variable.covariates) :]


def _reach(variable: Variable, values: Float) -> tuple[float, float, float]:
    """The range of the variable in training, and a round step for it."""
    if not isinstance(variable, Number):
        return 0.0, 0.0, 1.0
    low, high = variable.low, variable.high
    given = values[values != variable.fill]  # what is missing is no whole number
    if variable.constant or bool((np.mod([low, high, *given], 1) == 0).all()):
        return low, high, 1.0
    return low, high, float(10 ** np.floor(np.log10((high - low) / STEPS)))
