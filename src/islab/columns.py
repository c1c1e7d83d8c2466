"""From a table of numbers, truth values and text to the matrix of covariates a network reads.

A *variable* is a column of the user's table; it becomes one covariate or several. Numbers stay
numbers, and missing ones get the training mean and a covariate of their own that says so. Text
becomes one covariate for each level (one in all if there are two levels), and a missing value is
a level. What a variable is, is learned once from the training table.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.floating]

MISSING = ("impute", "error")
MISSING_LEVEL = "(missing)"
MOST_LEVELS = 1000
FEW_LEVELS = 20
NAMES_SHOWN = 5


@dataclass(frozen=True)
class Labels:
    """A column of text: for each row the number of its level, -1 where it is missing."""

    codes: NDArray[np.intp]
    levels: tuple[str, ...]
    declared: bool  # whether the table says that the column is categorical

    def __len__(self) -> int:
        return len(self.codes)


Column = NDArray[np.float64] | Labels


@dataclass(frozen=True)
class Number:
    """A numeric or true-or-false variable.

    Attributes
    ----------
    name : str
    fill : float
        Stands in for missing values: the mean in training.
    indicator : bool
        Whether values were missing in training, so that a covariate tells where.
    constant : bool
        Whether training saw one value only, from which nothing can be learned.
    """

    name: str
    fill: float
    indicator: bool
    constant: bool

    @property
    def covariates(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} {MISSING_LEVEL}") if self.indicator else (self.name,)

    def encode(self, column: Column) -> Float:
        """The covariates of the variable, (rows, covariates)."""
        if isinstance(column, Labels):
            column = _numbers_from_text(column, self.name)
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
    """A variable with levels.

    Attributes
    ----------
    name : str
    levels : tuple of str
        Those seen in training, the missing one last.
    shares : tuple of float
        Share of the training rows in each level: what a row of unknown level gets.
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def _first(self) -> int:
        """The first level with a covariate of its own; of two levels, one says it all."""
        return 1 if len(self.levels) == 2 else 0

    @property
    def covariates(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={level}" for level in self.levels[self._first :])

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
        labels = _factorize(column, declared=True)
        if not any(_is_number(level) for level in self.levels) and labels.levels:
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
                f"never seen in training, which had {_listed(self.levels)}; these rows are "
                "predicted as of unknown level.",
                UserWarning,
                stacklevel=3,
            )


Variable = Number | Category
KINDS: dict[str, type[Number] | type[Category]] = {"number": Number, "category": Category}


@dataclass(frozen=True)
class ColumnEncoder:
    """How tables are turned into covariates, and how covariates are standardised.

    Attributes
    ----------
    variables : tuple of Number or Category
        In the order of the table's columns.
    missing : {"impute", "error"}
    center, scale : (covariates,)
        Mean and standard deviation in training; the scale of a constant is 1.
    """

    variables: tuple[Variable, ...]
    missing: str
    center: Float
    scale: Float

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
        for name, column in _columns(table, names):
            _check(column, name, missing)
            variable = _learn_variable(column, name, sample_weight)
            variables.append(variable)
            parts.append(variable.encode(column))
        covariates = np.concatenate(parts, axis=1)
        center, scale = _center_and_scale(covariates, sample_weight, variables)
        return cls(tuple(variables), missing, center, scale), covariates

    @property
    def names(self) -> tuple[str, ...]:
        """Of the covariates."""
        return tuple(name for variable in self.variables for name in variable.covariates)

    @property
    def owners(self) -> tuple[str, ...]:
        """For each covariate the name of its variable."""
        return tuple(v.name for v in self.variables for _ in v.covariates)

    @property
    def owner_index(self) -> NDArray[np.intp]:
        """For each covariate the position of its variable."""
        counts = [len(variable.covariates) for variable in self.variables]
        return np.repeat(np.arange(len(self.variables)), counts)

    def encode(self, table: Any) -> Float:
        """Covariates in the user's units, (rows, covariates)."""
        parts = []
        columns = _columns(table, [variable.name for variable in self.variables])
        for variable, (name, column) in zip(self.variables, columns, strict=True):
            _check(column, name, self.missing)
            parts.append(variable.encode(column))
        return np.concatenate(parts, axis=1)

    def standardise(self, covariates: Float) -> Float:
        """Covariates as the network reads them."""
        return (covariates - self.center) / self.scale

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, in JSON's types."""
        kinds = {cls: kind for kind, cls in KINDS.items()}
        variables = [{"kind": kinds[type(v)], **asdict(v)} for v in self.variables]
        return {"missing": self.missing, "variables": variables}


def _columns(table: Any, names: list[str]) -> Iterator[tuple[str, Column]]:
    if isinstance(table, np.ndarray):
        for number, name in enumerate(names):
            yield name, table[:, number].astype(np.float64)
        return
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    for name, series in zip(names, frame.iter_columns(), strict=True):
        yield name, _read(series, name)


def _read(series: Any, name: str) -> Column:
    """A column of a frame as numbers or as labels."""
    import narwhals as nw

    kind = series.dtype
    if kind.is_numeric() or kind == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return _factorize(series.to_numpy(), declared=kind != nw.String)
    values = series.to_list()
    if kind == nw.Object:
        text = [isinstance(value, str) for value in values if not _is_missing(value)]
        if all(text):
            return _factorize(np.array(values, dtype=object), declared=False)
        number = [_is_real(value) for value in values if not _is_missing(value)]
        if all(number):
            return np.array([np.nan if _is_missing(v) else float(v) for v in values])
        if all(a or b for a, b in zip(text, number, strict=True)):
            return _numbers_from_text(_factorize(np.array(values, dtype=object), True), name)
    example = next(value for value in values if not _is_missing(value))
    raise ValueError(
        f"Got column {name!r} of type {kind}, for example {example!r}, expected numbers, truth "
        "values or text; try to derive such columns from it (from a date: the year, the month, "
        "the days since a start) or drop it."
    )


def _factorize(values: NDArray, declared: bool) -> Labels:
    import pandas as pd

    codes, found = pd.factorize(np.asarray(values, dtype=object), use_na_sentinel=True)
    return Labels(np.asarray(codes), tuple(_label(value) for value in found), declared)


def _label(value: Any) -> str:
    whole = _is_real(value) and not isinstance(value, bool) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value)) if np.ndim(value) == 0 else False


def _is_real(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check(column: Column, name: str, missing: str) -> None:
    """Refuses infinite values, and missing ones if the user wants that."""
    if isinstance(column, Labels):
        absent = column.codes == -1
    else:
        infinite = np.isinf(column)
        if infinite.any():
            row = int(infinite.argmax())
            raise ValueError(
                f"Got {column[row]} in column {name!r} (row {row}), expected finite numbers; try "
                "to replace infinity by the largest value that makes sense, or by NaN."
            )
        absent = np.isnan(column)
    if missing == "error" and absent.any():
        raise ValueError(
            f"Got missing='error' and NaN in column {name!r} (row {int(absent.argmax())}), "
            "expected no missing values; try missing='impute', or impute them beforehand."
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
        return Number(name, fill=0.0, indicator=False, constant=True)
    weight = None if sample_weight is None else sample_weight[present]
    values = column[present]
    constant = bool((values == values[0]).all())
    with np.errstate(over="ignore"):
        fill = values[0] if constant else np.average(values, weights=weight)
    if not np.isfinite(fill):
        raise _too_large(name, values)
    return Number(name, float(fill), indicator=not present.all(), constant=constant)


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
        levels.append(MISSING_LEVEL)
        sizes.append(counts[0])
    shares = (np.array(sizes, dtype=float) / counts.sum()).tolist()
    return Category(name, tuple(levels), tuple(shares))


def _check_levels(column: Labels, name: str) -> None:
    """Refuses text that is a spoilt column of numbers, or that no two rows share."""
    text = [level for level in column.levels if not _is_number(level)]
    if text and len(text) < len(column.levels) / 2 and len(column.levels) > FEW_LEVELS:
        code = column.levels.index(text[0])
        raise _text_among_numbers(text[0], int((column.codes == code).argmax()), name)
    if len(column.levels) > max(FEW_LEVELS, len(column) / 2):
        raise ValueError(
            f"Got {len(column.levels)} different texts in the {len(column)} rows of column "
            f"{name!r}, for example {column.levels[0]!r}, expected levels that rows share; try to "
            "drop the column, to make numbers of it, or to declare it categorical."
        )


def _numbers_from_text(column: Labels, name: str) -> NDArray[np.float64]:
    """Text in a column that held numbers in training: fine where it spells numbers."""
    wrong = [number for number, level in enumerate(column.levels) if not _is_number(level)]
    if wrong:
        row = int(np.isin(column.codes, wrong).argmax())
        raise _text_among_numbers(column.levels[column.codes[row]], row, name)
    values = np.array([*map(float, column.levels), np.nan])[column.codes]
    _check(values, name, missing="impute")
    return values


def _text_among_numbers(value: str, row: int, name: str) -> ValueError:
    return ValueError(
        f"Got {value!r} in column {name!r} (row {row}), where other values are numbers, expected "
        "numbers only; try to correct it, to replace it by NaN, or to declare the column "
        "categorical."
    )


def _too_large(name: str, values: Float) -> ValueError:
    return ValueError(
        f"Got {np.abs(values).max():.3g} in column {name!r}, expected values whose mean and "
        "standard deviation are finite; try another unit or a logarithm."
    )


def _center_and_scale(
    covariates: Float, sample_weight: Float | None, variables: list[Variable]
) -> tuple[Float, Float]:
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.average(covariates, axis=0, weights=sample_weight)
        variance = np.average((covariates - center) ** 2, axis=0, weights=sample_weight)
    scale = np.sqrt(variance)
    owners = [variable.name for variable in variables for _ in variable.covariates]
    for number in np.flatnonzero(~np.isfinite(scale)):
        raise _too_large(owners[number], covariates[:, number])
    # Rounding leaves a little variance in a column of one value.
    varies = scale > 1e-12 * np.maximum(np.abs(center), 1e-300)
    return center, np.where(varies, scale, 1.0)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
