"""From a table of numbers, booleans and text to the matrix of covariates a network reads.

A *variable* is a column of the user's table; it becomes one covariate or several. Numbers stay
numbers, and missing ones get the training mean and a covariate of their own that says so. Text
becomes one covariate for each level (one in all if there are two levels), and a missing value is
a level. The kind of a variable is learned once, from the training table.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.names import counted, is_number, shortened
from islab.tables.reading import (
    BOOLEANS,
    LONGEST_CELL,
    Column,
    Labels,
    UnusableCell,
    columns_of,
    labelled,
    numbers_from_text,
    text_among_numbers,
)

MISSING = ("impute", "error")
MISSING_LEVEL = "(missing)"
MOST_LEVELS = 1000
FEW_LEVELS = 20
NAMES_SHOWN = 5
LEAST_SPREAD = 1e-12
SMALLEST_SCALE = 1e-150


@dataclass(frozen=True)
class Number:
    """A numeric or true-or-false variable."""

    name: str
    fill: float  # stands in for missing values: the mean in training
    low: float  # least value in training
    high: float
    indicator: bool  # whether values were missing in training, so that a covariate marks them

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

    def encode(self, column: Column) -> Float:
        """The covariates of the variable, (rows, covariates)."""
        if isinstance(column, Labels) and self.constant:
            column = np.where(column.codes == -1, np.nan, self.fill)
        elif isinstance(column, Labels):
            column = numbers_from_text(column, self.name)
            _check(column, self.name, missing="impute")
        missing = np.isnan(column)
        if missing.any() and not (self.indicator or self.constant):
            warnings.warn(
                f"Got missing values in {missing.sum()} rows of column {self.name!r}, which had "
                f"none in training; they are replaced by the training mean, {self.fill:.6g}.",
                UserWarning,
                stacklevel=2,
            )
        values = np.where(missing | self.constant, self.fill, column)
        return np.column_stack([values, missing]) if self.indicator else values[:, None]


@dataclass(frozen=True)
class Category:
    """A variable with levels."""

    name: str
    levels: tuple[str, ...]  # those seen in training, the missing one last
    shares: tuple[float, ...]  # of the training rows in each level: for rows of unknown level

    @property
    def _first(self) -> int:
        """The first level with a covariate of its own; of two levels, one says it all."""
        return 1 if len(self.levels) == 2 else 0

    @property
    def covariates(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={level}" for level in self.levels[self._first :])

    @property
    def varies(self) -> tuple[bool, ...]:
        """For each covariate whether it did in training."""
        return (len(self.levels) > 1,) * len(self.covariates)

    def encode(self, column: Column) -> Float:
        """The covariates of the variable, (rows, covariates)."""
        labels = column if isinstance(column, Labels) else self._text_from_numbers(column)
        position = {level: number for number, level in enumerate(self.levels)}
        # The last entry serves code -1, a missing value.
        known = [position.get(level, -1) for level in (*labels.levels, MISSING_LEVEL)]
        codes = np.array(known, dtype=np.intp)[labels.codes]
        self._warn_of_unknown(labels, codes)
        table = np.vstack([np.eye(len(self.levels)), self.shares])
        return table[codes][:, self._first :]

    def _text_from_numbers(self, column: NDArray[np.float64]) -> Labels:
        labels = labelled(column, declared=True)
        if set(self.levels) <= {*BOOLEANS, MISSING_LEVEL} and set(labels.levels) <= {"0", "1"}:
            return replace(labels, levels=tuple(BOOLEANS[int(level)] for level in labels.levels))
        if not any(is_number(level) for level in self.levels) and labels.levels:
            raise ValueError(
                f"Got the number {labels.levels[0]} in column {self.name!r}, expected text as in "
                f"training: {_listed(self.levels)}."
            )
        return labels

    def _warn_of_unknown(self, labels: Labels, codes: NDArray[np.intp]) -> None:
        unknown = codes == -1
        if unknown.any():
            seen = {labels.levels[code] if code >= 0 else None for code in labels.codes[unknown]}
            names = ["a missing value" if name is None else repr(name) for name in seen]
            warnings.warn(
                f"Got {_listed(sorted(names))} in {unknown.sum()} rows of column {self.name!r}, "
                f"not seen in training, which had {_listed(self.levels)}; these rows are "
                "predicted as of unknown level.",
                UserWarning,
                stacklevel=3,
            )


Variable = Number | Category
KINDS: dict[str, type[Number] | type[Category]] = {"number": Number, "category": Category}


@dataclass(frozen=True)
class ColumnEncoder:
    """How tables are turned into covariates."""

    variables: tuple[Variable, ...]  # in the order of the table's columns
    missing: str  # "impute" or "error"

    @classmethod
    def learn(
        cls,
        table: Any,
        names: list[str],
        missing: str = "impute",
        sample_weight: Float | None = None,
    ) -> tuple[ColumnEncoder, Float]:
        """An encoder for this training table, and the table's covariates.

        Parameters
        ----------
        table : DataFrame or (rows, columns) array
            Any eager data frame that narwhals knows.
        names : list of str
            Of the columns.
        missing : {"impute", "error"}
        sample_weight : (rows,), optional
            Weights of rows in means and standard deviations.
        """
        variables, parts = [], []
        for name, column in columns_of(table, names):
            _check(column, name, missing)
            variable = _learn_variable(column, name, sample_weight)
            variables.append(variable)
            parts.append(variable.encode(column))
        _check_names(variables)
        _warn_of_rounded(variables)
        return cls(tuple(variables), missing), np.concatenate(parts, axis=1)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the covariates."""
        return tuple(name for variable in self.variables for name in variable.covariates)

    @property
    def owners(self) -> tuple[str, ...]:
        """For each covariate the name of its variable."""
        return tuple(v.name for v in self.variables for _ in v.covariates)

    @property
    def varies(self) -> NDArray[np.bool_]:
        """For each covariate whether it did in training; the others carry no information."""
        return np.array([varies for v in self.variables for varies in v.varies], dtype=bool)

    @property
    def owner_index(self) -> NDArray[np.intp]:
        """For each covariate the position of its variable."""
        counts = [len(variable.covariates) for variable in self.variables]
        return np.repeat(np.arange(len(self.variables)), counts)

    def encode(self, table: Any) -> Float:
        """Covariates in the user's units, (rows, covariates)."""
        parts = []
        columns = columns_of(table, [variable.name for variable in self.variables])
        for variable, (name, column) in zip(self.variables, columns, strict=True):
            _check(column, name, self.missing)
            parts.append(variable.encode(column))
        return np.concatenate(parts, axis=1)

    def center_and_scale(
        self, covariates: Float, sample_weight: Float | None = None
    ) -> tuple[Float, Float]:
        """Mean and standard deviation of the training rows; the value and 1 for a constant."""
        with np.errstate(over="ignore", invalid="ignore"):
            center = np.average(covariates, axis=0, weights=sample_weight)
            variance = np.average((covariates - center) ** 2, axis=0, weights=sample_weight)
        scale, varies = np.sqrt(variance), self.varies
        for number in np.flatnonzero(~np.isfinite(scale)):
            raise _too_large(self.owners[number], covariates[:, number])
        for number in np.flatnonzero(varies & ~(scale > SMALLEST_SCALE)):
            raise ValueError(
                f"Got values from {covariates[:, number].min():.3g} to "
                f"{covariates[:, number].max():.3g} in column {self.owners[number]!r}, expected a "
                f"standard deviation above {SMALLEST_SCALE:g}; try another unit."
            )
        # The rounded mean of equal numbers may differ from them.
        return np.where(varies, center, covariates[0]), np.where(varies, scale, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, in JSON's types."""
        kinds = {cls: kind for kind, cls in KINDS.items()}
        variables = [{"kind": kinds[type(v)], **asdict(v)} for v in self.variables]
        return {"missing": self.missing, "variables": variables}


def _check(column: Column, name: str, missing: str) -> None:
    """Refuses infinite values, and missing ones if the user wants that."""
    if isinstance(column, Labels):
        absent = column.codes == -1
    else:
        infinite = np.isinf(column)
        if infinite.any():
            row = int(infinite.argmax())
            raise UnusableCell(
                f"Got {column[row]} in column {name!r}",
                row,
                ", expected finite numbers; try to replace infinity by the largest value that "
                "makes sense, or by NaN.",
            )
        absent = np.isnan(column)
    if missing == "error" and absent.any():
        raise UnusableCell(
            f"Got missing='error' and NaN in column {name!r}",
            int(absent.argmax()),
            ", expected no missing values; try missing='impute', or impute them beforehand.",
        )


def _warn_of_rounded(variables: list[Variable]) -> None:
    """Says which columns vary so little that they are left out as constants are."""
    rounded = [v.name for v in variables if isinstance(v, Number) and v.constant and v.low < v.high]
    if rounded:
        warnings.warn(
            f"Got values that vary by less than {LEAST_SPREAD:g} of their size in "
            f"{counted(len(rounded), 'column')} ({_listed(rounded)}), which cannot be used; try to "
            "subtract a constant.",
            UserWarning,
            stacklevel=2,
        )


def _check_names(variables: list[Variable]) -> None:
    """Refuses a column that is called as a covariate of another one."""
    owners: dict[str, str] = {}
    for variable in variables:
        for covariate in variable.covariates:
            other = owners.setdefault(covariate, variable.name)
            if other != variable.name:
                raise ValueError(
                    f"Got columns {other!r} and {variable.name!r}, which both give a covariate "
                    f"{covariate!r}, expected names that differ; try to rename or drop one."
                )


def _learn_variable(column: Column, name: str, sample_weight: Float | None) -> Variable:
    if isinstance(column, Labels):
        return _learn_category(column, name, sample_weight)
    present = ~np.isnan(column)
    if not present.any():
        warnings.warn(
            f"Got column {name!r} without a single value; it cannot be used.",
            UserWarning,
            stacklevel=2,
        )
        return Number(name, fill=0.0, low=0.0, high=0.0, indicator=False)
    weight = None if sample_weight is None else sample_weight[present]
    values = column[present]
    with np.errstate(over="ignore"):
        mean = float(np.average(values, weights=weight))
    if not np.isfinite(mean):
        raise _too_large(name, values)
    low, high = float(values.min()), float(values.max())
    # Rounding may move the mean of equal numbers away from them.
    return Number(name, min(max(mean, low), high), low, high, indicator=not present.all())


def _learn_category(column: Labels, name: str, sample_weight: Float | None) -> Category:
    if not column.declared:
        _check_levels(column, name)
    if len(column.levels) > MOST_LEVELS:
        raise ValueError(
            f"Got {len(column.levels)} levels in column {name!r}, expected at most {MOST_LEVELS}; "
            "try to merge rare levels or drop the column."
        )
    order = sorted(range(len(column.levels)), key=lambda number: column.levels[number])
    counts = np.bincount(column.codes + 1, weights=sample_weight, minlength=len(order) + 1)
    levels = [column.levels[number] for number in order]
    sizes = [counts[number + 1] for number in order]
    if (column.codes == -1).any():
        if MISSING_LEVEL in levels:
            # A table that spells missing values as we do, and has others besides.
            sizes[levels.index(MISSING_LEVEL)] += counts[0]
        else:
            levels.append(MISSING_LEVEL)
            sizes.append(counts[0])
    shares = (np.array(sizes, dtype=float) / counts.sum()).tolist()
    return Category(name, tuple(levels), tuple(shares))


def _check_levels(column: Labels, name: str) -> None:
    """Refuses text in a column of numbers, and text that no two rows share."""
    text = [level for level in column.levels if not is_number(level)]
    if text and len(text) < len(column.levels) / 2 and len(column.levels) > FEW_LEVELS:
        code = column.levels.index(text[0])
        raise text_among_numbers(text[0], int((column.codes == code).argmax()), name)
    if len(column.levels) > max(FEW_LEVELS, len(column) / 2):
        example = shortened(column.levels[0], LONGEST_CELL)
        raise ValueError(
            f"Got {len(column.levels)} different texts in the {len(column)} rows of column "
            f"{name!r}, for example {example!r}, expected levels that rows share; try to "
            "drop the column, to make numbers of it, or to declare it categorical (on the command "
            "line, --text)."
        )


def _too_large(name: str, values: Float) -> ValueError:
    return ValueError(
        f"Got {np.abs(values).max():.3g} in column {name!r}, expected values whose mean and "
        "standard deviation are finite; try another unit or a logarithm."
    )


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(shortened(name, LONGEST_CELL) for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
