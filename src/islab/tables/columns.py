"""From a table of numbers, booleans and text to the matrix of covariates a network reads.

A *variable* is a column of the user's table; it becomes one covariate or several. Numbers stay
numbers, dates and durations are days, and missing ones get the training mean and a covariate of
their own that says so. Text becomes one covariate for each level (one in all if there are two
levels), and a missing value is a level. The kind of a variable is learned once, from the training
table.

A level, or a gap, that fewer than log n of n rows share has no covariate of its own: one weight
costs about log(n) / 2 nats, so that such a level could pay for it only with an effect larger than
the residual SD. Covariates of two values stay on their natural scale: a change from one to the
other counts as two standard deviations of a number, however rare one of them is.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.expressions import (
    MISSING_TEXT,
    Cell,
    CellKind,
    Constant,
    Expression,
    Lookup,
    call,
    where,
)
from islab.core.names import counted, is_number, shortened
from islab.tables.reading import (
    BOOLEANS,
    LONGEST_CELL,
    Column,
    Labels,
    UnusableCell,
    columns_of,
    date_columns,
    labelled,
    numbers_from_text,
    text_among_numbers,
)

MISSING = ("impute", "error")
MISSING_LEVEL = MISSING_TEXT
OTHER_LEVEL = "(other)"
MOST_LEVELS = 1000
FEW_LEVELS = 20
NAMES_SHOWN = 5
FEWEST_TO_COUNT = 20
COUNTS_ROWS = "counts the rows"
FREE_TEXT = "free text"
DIFFERS = "text that differs from row to row"
LEAST_SPREAD = 1e-12
HALF = 0.5
WORDS_OF_PROSE = 4
SMALLEST_SCALE = 1e-150


@dataclass(frozen=True)
class Number:
    """A numeric or true-or-false variable."""

    name: str
    fill: float  # stands in for missing values: the mean in training
    low: float  # least value in training
    high: float
    indicator: bool  # whether a covariate marks missing values: enough were missing in training
    gaps: bool = False  # whether values were missing in training, but too few for a covariate
    date: bool = False  # whether the column holds dates, of which the covariate is days since 1970

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
        if missing.any() and not (self.indicator or self.gaps or self.constant):
            warnings.warn(
                f"Got missing values in {missing.sum()} rows of column {self.name!r}, which had "
                f"none in training; they are replaced by the training mean, {self.fill:.6g}.",
                UserWarning,
                stacklevel=2,
            )
        values = np.where(missing | self.constant, self.fill, column)
        return np.column_stack([values, missing]) if self.indicator else values[:, None]

    def expression(self, number: int, missing: str) -> Expression:
        """One of the covariates as a formula of the cell, for exports; see :meth:`encode`."""
        kind: CellKind = "boolean" if (self.low, self.high) == (0.0, 1.0) else "number"
        cell = Cell(self.name, "days" if self.date else kind)
        if number == 1:
            return where(call("missing", cell), 1.0, 0.0)
        if self.constant:
            return Constant(self.fill)
        return where(call("missing", cell), np.nan if missing == "error" else self.fill, cell)

    def natural_scale(self, covariates: Float) -> list[float]:
        """For each of its covariates half the distance of two values; NaN where there are more."""
        values = covariates[:, 0]
        two = np.isin(values, (self.low, self.high, self.fill)).all() and not self.constant
        scale = [(self.high - self.low) / 2 if two else np.nan]
        return [*scale, HALF] if self.indicator else scale


@dataclass(frozen=True)
class Category:
    """A variable with levels."""

    name: str
    levels: tuple[str, ...]  # with enough rows in training; then the others together, and missing
    shares: tuple[float, ...]  # of the training rows in each level: for rows of unknown level
    pooled: tuple[str, ...] = ()  # too rare for a covariate, the most frequent first
    n_pooled: int = 0  # all of them; the names of the rarest are not kept

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
        names = (*labels.levels, MISSING_LEVEL)
        rest = self._rest
        codes = np.array([position.get(name, rest) for name in names], dtype=np.intp)[labels.codes]
        if self.n_pooled == len(self.pooled):
            known = {*self.levels, *self.pooled}
            new = np.array([name not in known for name in names])[labels.codes]
            self._warn_of_unknown(labels, new)
        table = np.vstack([np.eye(len(self.levels)), self.shares])
        return table[codes][:, self._first :]

    @property
    def _rest(self) -> int:
        """How other text is read: as the rare levels together or, if these are few, as unknown."""
        return self.levels.index(OTHER_LEVEL) if OTHER_LEVEL in self.levels else -1

    def expression(self, number: int, missing: str) -> Expression:
        """One of the covariates as a formula of the cell, for exports; see :meth:`encode`."""
        own = number + self._first
        values = {level: float(place == own) for place, level in enumerate(self.levels)}
        if set(self.levels) <= {*BOOLEANS, MISSING_LEVEL}:
            values |= {str(k): values[level] for k, level in enumerate(BOOLEANS) if level in values}
        default = float(self.shares[own] if self._rest == -1 else self._rest == own)
        absent = np.nan if missing == "error" else values.get(MISSING_LEVEL, default)
        others = tuple((level, value) for level, value in values.items() if value != default)
        return Lookup(self.name, others, default, absent)

    def natural_scale(self, covariates: Float) -> list[float]:
        """For each of its covariates half the distance of 0 and 1."""
        return [HALF] * covariates.shape[1]

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

    def _warn_of_unknown(self, labels: Labels, unknown: NDArray[np.bool_]) -> None:
        if unknown.any():
            seen = {labels.levels[code] if code >= 0 else None for code in labels.codes[unknown]}
            names = ["a missing value" if name is None else repr(name) for name in seen]
            warnings.warn(
                f"Got {_listed(sorted(names))} in {unknown.sum()} rows of column {self.name!r}, "
                f"not seen in training, which had {_listed(self.levels)}; these rows are "
                f"predicted as of {'rare' if OTHER_LEVEL in self.levels else 'unknown'} level.",
                UserWarning,
                stacklevel=3,
            )


@dataclass(frozen=True)
class LeftOut:
    """A variable that cannot help to predict new rows; any later content is accepted."""

    name: str
    reason: str

    @property
    def covariates(self) -> tuple[str, ...]:
        return ()

    @property
    def varies(self) -> tuple[bool, ...]:
        return ()

    def encode(self, column: Column) -> Float:
        """No covariates, (rows, 0)."""
        return np.empty((len(column), 0))

    def expression(self, number: int, missing: str) -> Expression:
        raise IndexError(f"{self.name!r} is left out and has no covariates.")

    def natural_scale(self, covariates: Float) -> list[float]:
        return []


class TableWarning(UserWarning):
    """What a fit leaves out of a table."""


Variable = Number | Category | LeftOut
KINDS: dict[str, type[Number] | type[Category] | type[LeftOut]] = {
    "number": Number,
    "category": Category,
    "left out": LeftOut,
}


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
        variables: list[Variable] = []
        parts = []
        counts_rows = dict.fromkeys(row_numbers(table), COUNTS_ROWS)
        dates = date_columns(table)
        for place, (name, column) in enumerate(columns_of(table, names)):
            reason = counts_rows.get(place) or _reason_to_leave_out(column)
            variable: Variable
            if reason:
                variable = LeftOut(name, reason)
            else:
                _check(column, name, missing)
                variable = _learn_variable(column, name, sample_weight)
                if isinstance(variable, Number):
                    variable = replace(variable, date=place in dates)
            variables.append(variable)
            parts.append(variable.encode(column))
        _check_names(variables)
        _warn_of_left_out(variables)
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
        names = [variable.name for variable in self.variables]
        ignored = {v.name for v in self.variables if isinstance(v, LeftOut)}
        text = {v.name for v in self.variables if isinstance(v, Category)}
        columns = columns_of(table, names, ignored, text)
        for variable, (name, column) in zip(self.variables, columns, strict=True):
            if name not in ignored:
                _check(column, name, self.missing)
            parts.append(variable.encode(column))
        return np.concatenate(parts, axis=1)

    def expression(self, covariate: int) -> Expression:
        """A covariate as a formula of cells of the table, for exports."""
        owner = self.owner_index[covariate]
        first = int(np.searchsorted(self.owner_index, owner))
        return self.variables[owner].expression(covariate - first, self.missing)

    def center_and_scale(
        self, covariates: Float, sample_weight: Float | None = None
    ) -> tuple[Float, Float]:
        """Mean and scale of the training rows; the value and 1 for a constant.

        The scale is the standard deviation, and half the distance of those that take two values:
        what a balanced one has, so that a rare value is not blown up.
        """
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
        parts = np.split(covariates, np.flatnonzero(np.diff(self.owner_index)) + 1, axis=1)
        owners = [v for v in self.variables if v.covariates]
        pairs = zip(owners, parts, strict=True)
        natural = np.concatenate([v.natural_scale(part) for v, part in pairs])
        scale = np.where(np.isnan(natural), scale, natural)
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


def row_numbers(table: Any) -> list[int]:
    """Places of the whole-numbered columns that count the rows of a data frame up or down.

    A table with nothing else keeps them: they may be a time.
    """
    import narwhals as nw

    if isinstance(table, np.ndarray) or table.shape[0] < FEWEST_TO_COUNT:
        return []
    found, frame = [], nw.from_native(table, eager_only=True)
    for place, series in enumerate(frame.iter_columns()):
        if series.dtype.is_integer() and not series.null_count():
            steps = np.diff(series.to_numpy().astype(np.int64))
            if abs(steps[0]) == 1 and (steps == steps[0]).all():
                found.append(place)
    return found if len(found) < len(frame.columns) else []


def _reason_to_leave_out(column: Column) -> str | None:
    """Why text cannot help to predict new rows, if hardly any two rows share it."""
    if not isinstance(column, Labels) or column.declared:
        return None
    numbers = sum(map(is_number, column.levels))
    if len(column.levels) / 2 < numbers < len(column.levels):
        return None  # numbers with a few words among them are an error
    if len(column.levels) <= max(FEW_LEVELS, len(column) / 2):
        return None
    n_words = np.mean([len(level.split()) for level in column.levels])
    return FREE_TEXT if n_words >= WORDS_OF_PROSE else DIFFERS


def _warn_of_left_out(variables: list[Variable]) -> None:
    """Says in one warning which columns are left out, why, and how to keep them."""
    left = [v for v in variables if isinstance(v, LeftOut)]
    if not left:
        return
    words = "; ".join(f"{v.name!r}: {v.reason}" for v in left)
    if len(left) == len(variables):
        raise ValueError(
            f"Got no column that can help to predict new rows ({words}), expected at least one; "
            "try to declare a column categorical, or to make numbers of it."
        )
    message = (
        f"{counted(len(left), 'column')} left out ({words}); to keep one, make whole numbers "
        "floats with astype(float), or text categorical with astype('category')."
    )
    if not (_called_by_machinery() and message in _SAID):
        _SAID.add(message)
        warnings.warn(message, TableWarning, stacklevel=2)


_SAID: set[str] = set()


def _called_by_machinery() -> bool:
    """Whether a fit is one of many, of a cross-validation say, rather than the user's own."""
    frame: Any = sys._getframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("islab.tables", "islab.estimators", "islab.baselines")):
            return module.startswith(("sklearn.", "joblib.", "islab."))
        frame = frame.f_back
    return False


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
    counts = np.bincount(present, weights=sample_weight, minlength=2)
    enough = bool(counts[0] >= fewest_rows(counts.sum())) and not present.all()
    # Rounding may move the mean of equal numbers away from them.
    mean = min(max(mean, low), high)
    return Number(name, mean, low, high, indicator=enough, gaps=not (enough or present.all()))


def fewest_rows(n_rows: float) -> float:
    """Rows that must share a level, or a gap, for it to have a covariate: log n, rounded down."""
    return np.floor(np.log(max(n_rows, 1.0)))


def _learn_category(column: Labels, name: str, sample_weight: Float | None) -> Category:
    if not column.declared:
        _check_levels(column, name)
    counts = np.bincount(column.codes + 1, weights=sample_weight, minlength=len(column.levels) + 1)
    sizes = {level: float(counts[number + 1]) for number, level in enumerate(column.levels)}
    if (column.codes == -1).any():
        # A table may spell missing values as we do, and have others besides.
        sizes[MISSING_LEVEL] = sizes.get(MISSING_LEVEL, 0.0) + float(counts[0])
    n_rows, fewest = sum(sizes.values()), fewest_rows(sum(sizes.values()))
    by_size = sorted(sizes, key=lambda level: (-sizes[level], level))
    frequent = [level for level in by_size[:MOST_LEVELS] if sizes[level] >= fewest]
    kept = {level: sizes[level] for level in frequent}
    pooled = [level for level in by_size if level not in kept]
    rest = sum(sizes[level] for level in pooled)
    if pooled and (rest >= fewest or not kept):
        kept[OTHER_LEVEL] = kept.get(OTHER_LEVEL, 0.0) + rest
    last = {OTHER_LEVEL: 1, MISSING_LEVEL: 2} if pooled or counts[0] else {}
    levels = sorted(kept, key=lambda level: (last.get(level, 0), level))
    total = sum(kept.values()) or n_rows
    shares = tuple(kept[level] / total for level in levels)
    return Category(name, tuple(levels), shares, tuple(pooled[:MOST_LEVELS]), len(pooled))


def _check_levels(column: Labels, name: str) -> None:
    """Refuses text in a column of numbers."""
    text = [level for level in column.levels if not is_number(level)]
    if text and len(text) < len(column.levels) / 2 and len(column.levels) > FEW_LEVELS:
        code = column.levels.index(text[0])
        raise text_among_numbers(text[0], int((column.codes == code).argmax()), name)


def _too_large(name: str, values: Float) -> ValueError:
    return ValueError(
        f"Got {np.abs(values).max():.3g} in column {name!r}, expected values whose mean and "
        "standard deviation are finite; try another unit or a logarithm."
    )


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(shortened(name, LONGEST_CELL) for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
