"""Levels in an order, such as school grades: a covariate for each step up.

The covariate ``name>=level`` is 1 from that level upwards, so that a weight is the difference
between neighbours. Steps without a weight join levels; weights of one sign are a rising or falling
effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from islab.core.arrays import Float
from islab.core.expressions import Expression
from islab.tables.categories import (
    MOST_LEVELS,
    UNKNOWN,
    as_labels,
    level_lookup,
    listed,
    unknown_levels,
)
from islab.tables.numbers import HALF, MISSING_LEVEL, fewest_rows, marks_missing
from islab.tables.reading import Column, Labels

FEWEST_LEVELS = 3  # an order of two says nothing


@dataclass(frozen=True)
class Ordered:
    """A variable with levels in an order."""

    kind: ClassVar[str] = "ordered"

    name: str
    levels: tuple[str, ...]  # all that the table declares, the lowest first
    steps: tuple[str, ...]  # levels that a covariate tells from the ones below
    shares: tuple[float, ...]  # of the training rows at a step or above: for rows of unknown level
    indicator: bool  # whether a covariate marks missing values
    gaps: bool = False  # whether values were missing in training, but too few for a covariate

    @property
    def covariates(self) -> tuple[str, ...]:
        steps = tuple(f"{self.name}>={step}" for step in self.steps)
        return (*steps, f"{self.name} {MISSING_LEVEL}") if self.indicator else steps

    @property
    def varies(self) -> tuple[bool, ...]:
        """For each covariate whether it did in training."""
        return (True,) * len(self.covariates)

    @property
    def parts(self) -> tuple[Ordered]:
        return (self,)

    @property
    def note(self) -> str:
        """What deserves to be said of it."""
        return f"in the order {listed(self.levels)}"

    @property
    def spelled(self) -> tuple[str, ...]:
        """The text that the column may hold."""
        return self.levels

    def choices(self) -> tuple[list[str], Float]:
        """What a row may be, and its covariates, (choices, covariates).

        Levels in their order, then missing if it has a covariate, and the unknown level last.
        """
        places = np.array([self.levels.index(step) for step in self.steps])
        above = np.arange(len(self.levels))[:, None] >= places
        table = np.vstack([above, self.shares, self.shares])
        names = [*self.levels, MISSING_LEVEL, UNKNOWN]
        if self.indicator:
            return names, np.column_stack([table, np.eye(len(table))[:, -2]])
        return [*self.levels, UNKNOWN], table[:-1]

    def encode(self, column: Column, remarks: list[str]) -> Float:
        """The covariates of the variable, (rows, covariates); remarks on what is new are added."""
        labels = as_labels(column, self.name, self.levels)
        names, table = self.choices()
        position = {level: number for number, level in enumerate(names)}
        given = (*labels.levels, MISSING_LEVEL)  # the last entry serves code -1, a missing value
        codes = np.array([position.get(name, -1) for name in given], dtype=np.intp)[labels.codes]
        known = {*self.levels, *([MISSING_LEVEL] if self.indicator or self.gaps else [])}
        new = np.array([name not in known for name in given])[labels.codes]
        remarks += unknown_levels(self.name, labels, new, self.levels, "unknown")
        return table[codes]

    def expression(self, number: int, missing: str) -> Expression:
        """One of the covariates as a formula of the cell, for exports; see :meth:`encode`."""
        names, table = self.choices()
        *own, default = table[:, number].tolist()
        return level_lookup(self.name, dict(zip(names[:-1], own, strict=True)), default, missing)

    def natural_scale(self, covariates: Float) -> list[float]:
        """For each of its covariates half the distance of 0 and 1."""
        return [HALF] * covariates.shape[1]


def has_order(column: Labels) -> bool:
    """Whether a training column is to be read as levels in an order."""
    n_seen = len(np.unique(column.codes[column.codes >= 0]))
    return bool(column.order) and n_seen >= FEWEST_LEVELS and len(column.order) <= MOST_LEVELS


def learn_ordered(column: Labels, name: str, sample_weight: Float | None = None) -> Ordered:
    """The variable of a training column; levels of few rows are joined with the next ones."""
    weight = np.ones(len(column)) if sample_weight is None else sample_weight
    present = column.codes >= 0
    place = np.array([column.order.index(level) for level in column.levels])
    sizes = np.bincount(
        place[column.codes[present]], weights=weight[present], minlength=len(column.order)
    )
    above = np.cumsum(sizes[::-1])[::-1]
    fewest, below, steps = fewest_rows(weight.sum()), 0.0, []
    for number in range(1, len(sizes)):
        below += sizes[number - 1]
        if sizes[number] and min(below, above[number]) >= fewest:
            steps.append(number)
            below = 0.0
    if not steps:  # nearly all rows have one level: a single step, as even as can be
        steps = [1 + int(np.minimum(above[1:], above[0] - above[1:]).argmax())]
    indicator, gaps = marks_missing(present, sample_weight)
    named = tuple(column.order[number] for number in steps)
    shares = tuple((above[steps] / above[0]).tolist())
    return Ordered(name, column.order, named, shares, indicator, gaps)
