"""From a table of numbers, booleans, text and dates to the matrix of covariates a network reads.

A *variable* is a column of the user's table; it becomes one covariate or several. Each kind has
a class and a file: ``Number``, ``Category``, levels in an order (``Ordered``), a date (``Moment``)
and a column to leave out (``LeftOut``). The kind of a variable is learned once, from the training
table.

Covariates of two values stay on their natural scale: a change from one to the other counts as two
standard deviations of a number, however rare one of them is.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.expressions import Expression
from islab.core.names import counted, listed
from islab.tables.categories import Category, learn_category
from islab.tables.dates import Moment, learn_moment
from islab.tables.leaks import Variable, leaks
from islab.tables.left_out import LeftOut, ids, reason_to_leave_out
from islab.tables.numbers import (
    LEAST_SPREAD,
    MOST_WORDS,
    Number,
    learn_number,
    remark_on_words,
    too_large,
)
from islab.tables.orders import Ordered, has_order, learn_ordered
from islab.tables.reading import (
    Column,
    Days,
    Labels,
    UnusableColumns,
    UnusableKind,
    check_cells,
    read_column,
    sources_of,
)
from islab.tables.spelled import spelled_amounts, spelled_days, text_among_numbers

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("impute", "error")
SMALLEST_SCALE = 1e-150
ROUNDING = 1e-9  # of a range
FEWEST_TO_SUSPECT, ROWS_SEEN = 50, 5000  # rows that are looked through for leaks
MOST_SUSPECTS = 3


class TableWarning(UserWarning):
    """What a fit leaves out of a table."""


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
        target: NDArray | None = None,
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
        target : (rows,) or (rows, outputs), optional
            Numbers or classes, for a word on columns that tell it alone.
        """
        found = learn_columns(table, names, missing, sample_weight)
        if found.problems:
            raise UnusableColumns(found.problems)
        _check_names(found.variables)
        said = [
            *_words_of_left_out(found.variables),
            *_words_of_unusable(found),
            *_words_of_leaks(found, target),
        ]
        if said:
            _say("\n".join(said))
        return cls(tuple(found.variables), missing), found.covariates

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

    @property
    def groups(self) -> NDArray[np.intp]:
        """For each covariate the group that shares a prior: levels, a number and its mark of gaps.

        The trend, the seasons and the weekday of a date are groups of their own.
        """
        parts = (part for variable in self.variables for part in variable.parts)
        sizes = [len(part.covariates) for part in parts]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def ranges(self) -> Float:
        """Least and greatest value of each covariate in training, (2, covariates).

        Infinite for what is no number: levels, marks of missing values, seasons.
        """
        found = np.array([[-np.inf], [np.inf]]).repeat(len(self.names), axis=1)
        first = 0
        for part in (part for variable in self.variables for part in variable.parts):
            if isinstance(part, Number):
                found[:, first] = part.low, part.high
            first += len(part.covariates)
        return found

    def encode(self, table: Any) -> Float:
        """Covariates in the user's units, (rows, covariates); one warning says what is new."""
        remarks: list[str] = []
        found = self.covariates_of(table, remarks)
        if remarks:
            warnings.warn("\n".join(remarks), UserWarning, stacklevel=2)
        return found

    def covariates_of(self, table: Any, remarks: list[str]) -> Float:
        """The same; remarks on what is new are added to the list."""
        parts: list[Float] = []
        names = [variable.name for variable in self.variables]
        for variable, (name, source) in zip(self.variables, sources_of(table, names), strict=True):
            if isinstance(variable, LeftOut):
                continue
            column = read_column(source, name, text=isinstance(variable, Category | Ordered))
            if isinstance(variable, Number):
                column = variable.numbers(column, remarks)
            check_cells(column, name, self.missing)
            parts.append(variable.encode(column, remarks))
        return np.concatenate(parts, axis=1)

    def with_ranges(self, ranges: Float) -> ColumnEncoder:
        """The same with the least and greatest values of more rows than it was learned from.

        Parameters
        ----------
        ranges : (2, covariates)
            Only wider ones of numbers are taken.
        """
        variables: list[Variable] = []
        first = 0
        for variable in self.variables:
            if isinstance(variable, Number) and not variable.constant:
                slack = ROUNDING * (variable.high - variable.low)
                low, high = (float(end) for end in ranges[:, first])
                variable = replace(
                    variable,
                    low=low if low < variable.low - slack else variable.low,
                    high=high if high > variable.high + slack else variable.high,
                )
            variables.append(variable)
            first += len(variable.covariates)
        return replace(self, variables=tuple(variables))

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
            raise too_large(self.owners[number], covariates[:, number])
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

    def to_frame(self) -> pd.DataFrame:
        """A line for each column of the table: its kind, how many covariates it gives, a note."""
        import pandas as pd

        lines = [(v.name, v.kind, len(v.covariates), v.note) for v in self.variables]
        return pd.DataFrame(lines, columns=["column", "kind", "covariates", "note"])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, in JSON's types."""
        variables = [{"kind": v.kind, **asdict(v)} for v in self.variables]
        return {"missing": self.missing, "variables": variables}


class Learned(NamedTuple):
    """What was made of the columns of a training table."""

    variables: list[Variable]
    covariates: Float  # (rows, covariates)
    empty: list[str]  # columns without a single value
    problems: dict[str, str]  # columns that cannot be used, which have no variable
    remarks: dict[str, str]  # on words among the numbers of a column


def learn_columns(
    table: Any, names: list[str], missing: str = "impute", sample_weight: Float | None = None
) -> Learned:
    """The variables of a table, and what is wrong with columns that cannot be used."""
    found = Learned([], np.empty((table.shape[0], 0)), [], {}, {})
    parts = [found.covariates]
    names_of_rows = ids(table)
    for place, (name, source) in enumerate(sources_of(table, names)):
        try:
            column = read_column(source, name)
            reason = names_of_rows.get(place)
            variable = _learn_variable(column, name, reason, missing, sample_weight)
            parts.append(variable.encode(column, []))
        except UnusableKind as error:
            found.variables.append(LeftOut(name, error.words))
            continue
        except ValueError as error:
            found.problems[name] = str(error)
            continue
        found.variables.append(variable)
        if isinstance(variable, Number) and variable.words:
            found.remarks[name] = remark_on_words(name, variable.words)[0]
        if isinstance(column, np.ndarray) and np.isnan(column).all():
            found.empty.append(name)
    return found._replace(covariates=np.concatenate(parts, axis=1))


def _learn_variable(
    column: Column, name: str, reason: str | None, missing: str, sample_weight: Float | None
) -> Variable:
    """The variable of a training column; with a reason to leave it out, nothing of it matters."""
    if reason:
        return LeftOut(name, reason)
    if isinstance(column, Labels):
        return _learn_text(column, name, missing, sample_weight)
    check_cells(column, name, missing)
    if isinstance(column, Days):
        return learn_moment(column, name, sample_weight)
    return learn_number(column, name, sample_weight)


def _learn_text(
    column: Labels, name: str, missing: str, sample_weight: Float | None
) -> Number | Category | Ordered | Moment | LeftOut:
    """The variable of a training column of text: what it spells, else its levels."""
    amounts, dated = spelled_amounts(column), spelled_days(column)
    if amounts is not None:
        if amounts.words and missing == "error":
            raise text_among_numbers(column, amounts.words, name)
        check_cells(amounts.values, name, missing)
        number, words = learn_number(amounts.values, name, sample_weight), amounts.words
        return replace(number, unit=amounts.unit, words=words[:MOST_WORDS])
    if dated is not None:
        check_cells(dated[0], name, missing)
        return replace(learn_moment(dated[0], name, sample_weight), spelling=dated[1])
    reason = reason_to_leave_out(column)
    if reason:
        return LeftOut(name, reason)
    check_cells(column, name, missing)
    learn = learn_ordered if has_order(column) else learn_category
    return learn(column, name, sample_weight)


def _words_of_left_out(variables: list[Variable]) -> list[str]:
    """Which columns are left out, why, and how to keep them."""
    left = [v for v in variables if isinstance(v, LeftOut)]
    if not left:
        return []
    reasons = dict.fromkeys(v.reason for v in left)
    same = [(reason, [repr(v.name) for v in left if v.reason == reason]) for reason in reasons]
    words = "; ".join(f"{listed(names)}: {reason}" for reason, names in same)
    if len(left) == len(variables):
        raise ValueError(
            f"Got no column that can help to predict new rows ({words}), expected at least one; "
            "try to declare a column categorical, or to make numbers of it."
        )
    return [
        f"{counted(len(left), 'column')} left out ({words}); to keep one, make whole numbers "
        "floats with astype(float), or text categorical with astype('category') (on the command "
        "line, --keep)."
    ]


_SAID: set[str] = set()


def _say(message: str) -> None:
    """Warns, but of the same only once in fits that are some of many."""
    if not (_called_by_machinery() and message in _SAID):
        _SAID.add(message)
        warnings.warn(message, TableWarning, stacklevel=6)  # past learning, fit and all_or_nothing


def _called_by_machinery() -> bool:
    """Whether a fit is one of many, of a cross-validation say, rather than the user's own."""
    frame: Any = sys._getframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("islab.tables", "islab.estimators", "islab.baselines")):
            return module.startswith(("sklearn.", "joblib.", "islab."))
        frame = frame.f_back
    return False


def _words_of_unusable(learned: Learned) -> list[str]:
    """Which columns hold words among numbers, no value, or what varies too little to be used."""
    said, empty = [*learned.remarks.values()], learned.empty
    if empty:
        said.append(
            f"Got {'column' if len(empty) == 1 else 'columns'} "
            f"{listed([repr(name) for name in empty])} without a single "
            f"value; {'it' if len(empty) == 1 else 'they'} cannot be used."
        )
    numbers = [v for v in learned.variables if isinstance(v, Number)]
    rounded = [v.name for v in numbers if v.constant and v.low < v.high]
    if rounded:
        said.append(
            f"Got values that vary by less than {LEAST_SPREAD:g} of their size in "
            f"{counted(len(rounded), 'column')} ({listed(rounded)}), which cannot be used; try to "
            "subtract a constant."
        )
    return said


def _words_of_leaks(learned: Learned, target: NDArray | None) -> list[str]:
    """Which columns tell the target alone, if there are others.

    Of many that do, none is a suspect: such a target is easy.
    """
    used = [v for v in learned.variables if any(v.varies)]
    if target is None or len(used) < 2 or len(target) < FEWEST_TO_SUSPECT:
        return []
    n_rows = len(target)
    rows = slice(None, None, 1 + n_rows // ROWS_SEEN)
    targets = target[rows].reshape(len(learned.covariates[rows]), -1).T
    every = (leaks(learned.variables, learned.covariates[rows], y) for y in targets)
    found = list(dict.fromkeys(name for each in every for name in each))
    if not found or len(found) > MOST_SUSPECTS:
        return []
    each = "which" if len(found) == 1 else "each of which"
    return [
        f"Got {'column' if len(found) == 1 else 'columns'} {listed([repr(name) for name in found])}"
        f", {each} alone tells the target nearly perfectly; drop what is not known when a "
        "prediction is asked for."
    ]


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
