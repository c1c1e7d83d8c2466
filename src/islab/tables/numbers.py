"""Numbers and booleans as covariates, and where they are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.expressions import MISSING_TEXT, Cell, CellKind, Constant, Expression, call, where
from islab.core.names import counted, listed
from islab.tables.reading import Column, Days, Labels, check_cells, wrong_kind
from islab.tables.spelled import TIME, amounts_in, text_among_numbers
from islab.tables.tails import Tails

MISSING_LEVEL = MISSING_TEXT
NOTHING_TO_LEARN = "nothing can be learned from it"
LEAST_SPREAD = 1e-12
HALF = 0.5
MOST_WORDS = 1000


@dataclass(frozen=True)
class Number:
    """A numeric or boolean variable; its numbers are on the scale of the covariate."""

    kind: ClassVar[str] = "number"

    name: str
    fill: float  # stands in for missing values: the mean in training
    low: float  # least value in training
    high: float
    indicator: bool  # whether a covariate marks missing values: enough were missing in training
    gaps: bool = False  # whether values were missing in training, but too few for a covariate
    tails: Tails | None = None  # beyond the usual range, if training had numbers far outside it
    unit: str = ""  # that text in the column spells besides its numbers, such as $ or kg
    words: tuple[str, ...] = ()  # cells of training that were no numbers and counted as missing

    @property
    def constant(self) -> bool:
        """Whether training saw one value only, from which nothing can be learned."""
        return self.high - self.low <= LEAST_SPREAD * max(abs(self.low), abs(self.high))

    @property
    def varies(self) -> tuple[bool, ...]:
        """For each covariate whether it did in training."""
        return (not self.constant, True) if self.indicator else (not self.constant,)

    @property
    def covariates(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} {MISSING_LEVEL}") if self.indicator else (self.name,)

    @property
    def parts(self) -> tuple[Number]:
        return (self,)

    @property
    def note(self) -> str:
        """What deserves to be said of it."""
        if self.constant:
            return NOTHING_TO_LEARN
        unit = "in days" if self.unit == TIME else f"in {self.unit}" if self.unit else ""
        if self.tails is None:
            return unit
        far = f"beyond {self.tails.low:.4g} and {self.tails.high:.4g} by its logarithm"
        return f"{unit}, {far}" if unit else far

    def encode(self, column: Column, remarks: list[str]) -> Float:
        """The covariates of the variable, (rows, covariates); remarks on what is new are added."""
        values: Float = self.numbers(column, remarks)
        if self.tails is not None:
            values = self.tails.shorten(values)
        missing = np.isnan(values)
        if missing.any() and not (self.indicator or self.gaps or self.constant):
            remarks.append(
                f"Got missing values in {counted(int(missing.sum()), 'row')} of column "
                f"{self.name!r}, which had none in training; they are replaced by "
                f"the training mean, {self.fill:.6g}."
            )
        values = np.where(missing | self.constant, self.fill, values)
        return np.column_stack([values, missing]) if self.indicator else values[:, None]

    def expression(self, number: int, missing: str, cell: Expression | None = None) -> Expression:
        """One of the covariates as a formula of the cell, for exports; see :meth:`encode`."""
        if cell is None:
            kind: CellKind = "boolean" if (self.low, self.high) == (0.0, 1.0) else "number"
            cell = Cell(self.name, kind)
        if number == 1:
            return where(call("missing", cell), 1.0, 0.0)
        if self.constant:
            return Constant(self.fill)
        value = cell if self.tails is None else self.tails.expression(cell)
        return where(call("missing", cell), np.nan if missing == "error" else self.fill, value)

    def natural_scale(self, covariates: Float) -> list[float]:
        """For each of its covariates half the distance of two values; NaN where there are more."""
        values = covariates[:, 0]
        two = np.isin(values, (self.low, self.high, self.fill)).all() and not self.constant
        scale = [(self.high - self.low) / 2 if two else np.nan]
        return [*scale, HALF] if self.indicator else scale

    def numbers(self, column: Column, remarks: list[str]) -> NDArray[np.float64]:
        """The column's numbers, NaN where missing; remarks on words that count so are added."""
        if isinstance(column, Days):
            raise wrong_kind("dates", self.name, "numbers")
        if not isinstance(column, Labels):
            return column
        if self.constant:
            return np.where(column.codes == -1, np.nan, self.fill).astype(np.float64)
        found = amounts_in(column, self.unit)
        if found.words and not (self.indicator or self.gaps):
            raise text_among_numbers(column, found.words, self.name)
        remarks += remark_on_words(self.name, [w for w in found.words if w not in self.words])
        check_cells(found.values, self.name, missing="impute")
        return found.values


def remark_on_words(name: str, words: Sequence[str]) -> list[str]:
    """What is said of cells that are no numbers, if there are any."""
    if not words:
        return []
    rest = "is no number and counts" if len(words) == 1 else "are no numbers and count"
    found = listed([repr(word) for word in words])
    return [f"Got {found} in column {name!r}, which {rest} as missing."]


def fewest_rows(n_rows: float) -> float:
    """Rows that must share a level, or a gap, for it to have a covariate: log n, rounded down.

    One weight costs about log(n) / 2 nats, so that a level of fewer rows could pay for it only with
    an effect larger than the residual SD.
    """
    return np.floor(np.log(max(n_rows, 1.0)))


def learn_number(
    column: NDArray[np.float64], name: str, sample_weight: Float | None = None
) -> Number:
    """The variable of a training column; one without a single value is constant."""
    present = ~np.isnan(column)
    if not present.any():
        return Number(name, fill=0.0, low=0.0, high=0.0, indicator=False)
    weight = None if sample_weight is None else sample_weight[present]
    values: Float = column[present]
    tails = Tails.around(values, weight)
    if tails is not None:
        values = tails.shorten(values)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.average(values, weights=weight))
        spread = float(np.var(values))
    if not (np.isfinite(mean) and np.isfinite(spread)):
        raise too_large(name, values)
    low, high = float(values.min()), float(values.max())
    indicator, gaps = marks_missing(present, sample_weight)
    # Rounding may move the mean of equal numbers away from them.
    return Number(name, min(max(mean, low), high), low, high, indicator, gaps, tails)


def marks_missing(present: NDArray[np.bool_], sample_weight: Float | None) -> tuple[bool, bool]:
    """Whether enough values are missing for a covariate; whether some are, but too few."""
    counts = np.bincount(present, weights=sample_weight, minlength=2)
    enough = bool(counts[0] >= fewest_rows(counts.sum())) and not present.all()
    return enough, not (enough or present.all())


def too_large(name: str, values: Float) -> ValueError:
    """The error for numbers whose mean or standard deviation is no number."""
    return ValueError(
        f"Got {np.abs(values).max():.3g} in column {name!r}, expected values whose mean and "
        "standard deviation are finite; try another unit or a logarithm."
    )
