"""Columns of any table as numbers or as labels: arrays, and data frames that narwhals knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.names import is_number, unicode_in

FEW_LEVELS = 20


@dataclass(frozen=True)
class Labels:
    """A column of text: for each row the number of its level, -1 where it is missing."""

    codes: NDArray[np.intp]
    levels: tuple[str, ...]
    declared: bool  # whether the table says that the column is categorical
    order: tuple[str, ...] = ()  # all levels that the table declares, if it orders them
    spoilt: bool = False  # whether it holds numbers, and a little text among them

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Days:
    """A column of dates: days since 1970, the time of day as their fraction; NaN where missing."""

    days: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.days)


Column = NDArray[np.float64] | Labels | Days

BOOLEANS = ("False", "True")
BLANKS = frozenset(("", "?", "-", "--", ".", "na", "n/a", "null", "none"))  # in lower case
LONGEST_CELL = 60
MICROSECONDS = 86_400e6  # in a day
ISO_DATE = re.compile(
    r"(\d{4}([-/])\d{2}\2\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?)(?:Z|[+-]\d{2}:?\d{2})?"
)
WORDED_DATE = re.compile(r"[A-Za-z]{3,9} \d{1,2},? \d{4}|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{4}")
WORDED_DATES = (
    "%b %d %Y",
    "%b %d, %Y",
    "%B %d %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
)


class UnusableCell(ValueError):
    """A value that cannot be used, and its row in the table."""

    def __init__(self, found: str, row: int, rest: str) -> None:
        super().__init__(f"{found} (row {row}){rest}")
        self.found, self.row, self.rest = found, row, rest

    def at(self, row: int) -> UnusableCell:
        """The same of a table of which the other was a part."""
        return UnusableCell(self.found, row, self.rest)

    def __reduce__(self) -> Any:
        return UnusableCell, (self.found, self.row, self.rest)


class UnusableKind(ValueError):
    """A column of things that are no numbers, booleans, text or dates."""

    def __init__(self, message: str, words: str) -> None:
        super().__init__(message)
        self.words = words

    def __reduce__(self) -> Any:
        return UnusableKind, (str(self), self.words)


class UnusableColumns(ValueError):
    """All columns that cannot be used, with what is wrong in each."""

    def __init__(self, problems: dict[str, str]) -> None:
        many = [f"Got {len(problems)} columns that cannot be used:"] if len(problems) > 1 else []
        super().__init__("\n".join([*many, *problems.values()]))
        self.problems = problems

    def __reduce__(self) -> Any:
        return UnusableColumns, (self.problems,)


def sources_of(table: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
    """Name and content, not yet read, of each column of an array or of a data frame."""
    if isinstance(table, np.ndarray):
        yield from zip(names, table.T, strict=True)
        return
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    yield from zip(names, frame.iter_columns(), strict=True)


def read_column(source: Any, name: str, *, text: bool = False) -> Column:
    """A column as numbers, labels or days; with ``text`` what text spells stays text."""
    if isinstance(source, np.ndarray):
        return source.astype(np.float64)
    with unicode_in(f"column {name!r}"):
        column = _read(source, name)
        if isinstance(column, Labels) and not text:
            column = _days_if_dates(column)
        if isinstance(column, Labels):
            "".join(column.levels).encode()
    return column


def check_cells(column: Column, name: str, missing: str) -> None:
    """Refuses infinite values, and missing ones if the user wants that."""
    if isinstance(column, Labels):
        absent = column.codes == -1
    else:
        numbers = column.days if isinstance(column, Days) else column
        infinite = np.isinf(numbers)
        if infinite.any():
            row = int(infinite.argmax())
            raise UnusableCell(
                f"Got {numbers[row]} in column {name!r}",
                row,
                ", expected finite numbers; try to replace infinity by the largest value that "
                "makes sense, or by NaN.",
            )
        absent = np.isnan(numbers)
    if missing == "error" and absent.any():
        raise UnusableCell(
            f"Got missing='error' and NaN in column {name!r}",
            int(absent.argmax()),
            ", expected no missing values; try missing='impute', or impute them beforehand.",
        )


def wrong_kind(found: str, name: str, expected: str) -> ValueError:
    """The error for a later column of another kind than in training."""
    return ValueError(f"Got {found} in column {name!r}, expected {expected}, as in training.")


def labelled(values: Any, declared: bool, order: Iterable[Any] = ()) -> Labels:
    """Values as labels; those that are spelled alike are one level."""
    import pandas as pd

    codes, found = pd.factorize(np.asarray(values, dtype=object), use_na_sentinel=True)
    spelled = [_label(value) for value in found]
    levels = tuple(dict.fromkeys(spelled))
    if len(levels) < len(spelled):
        # The last entry serves code -1, a missing value.
        codes = np.array([*map(levels.index, spelled), -1])[codes]
    return Labels(np.asarray(codes), levels, declared, tuple(dict.fromkeys(map(_label, order))))


def _mixed(column: Labels) -> Labels:
    """Cells that are text or numbers: levels, such as 1, 2 and 3+, if they are few and text is not
    rare, else numbers among which text has come.
    """
    text = [k for k, level in enumerate(column.levels) if not (is_number(level) or is_blank(level))]
    rare = np.isin(column.codes, text).sum() < max(2.0, np.log(len(column)))
    return replace(column, spoilt=bool(rare or len(column.levels) > FEW_LEVELS))


def is_blank(text: str) -> bool:
    """Whether that is how people write that a number is missing."""
    return text.strip().lower() in BLANKS


def _read(series: Any, name: str) -> Column:
    """A column of a frame as numbers or as labels."""
    import narwhals as nw

    kind = series.dtype
    if kind.is_numeric() or kind == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if kind in (nw.Date, nw.Datetime):
        if getattr(kind, "time_zone", None):
            series = series.dt.replace_time_zone(None)  # as a clock on the wall shows it
        times = series.cast(nw.Datetime("us")).to_numpy()
        return Days(_in_days(times.astype("datetime64[us]")))
    if kind == nw.Duration:
        return _in_days(series.cast(nw.Duration("us")).to_numpy().astype("timedelta64[us]"))
    if kind in (nw.String, nw.Categorical, nw.Enum):
        # Not all frames keep what is missing in a categorical column.
        values = np.where(series.is_null().to_numpy(), None, series.to_numpy())
        return labelled(values, declared=kind != nw.String, order=_order(series))
    cells: list[Any] = series.to_list()
    if kind in (nw.Object, nw.Unknown):
        dates = [_as_date(value) for value in cells]
        if all(isinstance(value, date) for value in dates if not _is_missing(value)):
            return _days_of_objects(dates)
        text = [isinstance(value, str) for value in cells if not _is_missing(value)]
        if all(text):
            return labelled(cells, declared=False)
        number = [_is_real(value) for value in cells if not _is_missing(value)]
        if all(number):
            return np.array([np.nan if _is_missing(value) else _float(value) for value in cells])
        if all(a or b for a, b in zip(text, number, strict=True)):
            return _mixed(labelled(cells, declared=False))
    example = next(value for value in cells if not _is_missing(value))
    raise UnusableKind(
        f"Got column {name!r} of type {kind}, for example {example!r}, expected numbers, "
        "booleans, text or dates; try to derive such columns from it or to drop it.",
        f"holds values of type {type(example).__name__}",
    )


def _order(series: Any) -> Iterable[Any]:
    """The levels of a categorical column in the order that it declares, if it does."""
    import narwhals as nw

    native = series.to_native()
    kind = getattr(native, "dtype", None) or getattr(native, "type", None)
    if getattr(kind, "ordered", False):  # pandas and Arrow
        categories = getattr(kind, "categories", None)
        if categories is not None:
            return categories
        return native.unify_dictionaries().chunk(0).dictionary.to_pylist()
    return getattr(kind, "categories", ()) if series.dtype == nw.Enum else ()


def _in_days(times: NDArray) -> NDArray[np.float64]:
    """Dates as days since 1970, durations as days; NaN where there is none."""
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / MICROSECONDS)


def _as_date(value: Any) -> Any:
    """A period as its first moment; anything else as it is."""
    import pandas as pd

    return value.start_time.to_pydatetime() if isinstance(value, pd.Period) else value


def _days_of_objects(values: list[Any]) -> Days:
    """Dates that are objects of Python's; times as a clock on the wall shows them."""
    shown = [
        None
        if _is_missing(value)
        else value.replace(tzinfo=None)
        if isinstance(value, datetime)
        else value
        for value in values
    ]
    return Days(_in_days(np.array(shown, dtype="datetime64[us]")))


def _days_if_dates(column: Labels) -> Column:
    """Text that spells dates, such as 2024-05-31 or 2024-05-31 14:30, as days; else as it is."""
    levels = tuple(level for level in column.levels if not is_blank(level))
    times = None if column.declared or not levels else _times(levels)
    return column if times is None else days_of(column, times)


def days_of(column: Labels, times: NDArray) -> Days:
    """The days of a column of text, given the times of those of its levels that are not blank."""
    known = [not is_blank(level) for level in column.levels]
    days = np.full(len(known) + 1, np.nan)  # the last entry serves code -1, a missing value
    days[:-1][known] = _in_days(times.astype("datetime64[us]"))
    return Days(days[column.codes])


def _times(levels: tuple[str, ...]) -> NDArray | None:
    """The times that all of these spell: ISO dates, or such as Jun 12 1998; else None.

    An offset from universal time is passed over, as that of a column with a time zone is. What
    could be day and month or month and day is no date for sure.
    """
    import pandas as pd

    formats: tuple[str, ...]
    iso = [ISO_DATE.fullmatch(level) for level in levels]
    if all(iso):
        shown, formats = [match[1].replace("/", "-") for match in iso if match], ("ISO8601",)
    elif not WORDED_DATE.fullmatch(levels[0]):
        return None
    else:
        shown, formats = list(levels), WORDED_DATES
    for spelling in formats:
        try:
            return pd.to_datetime(shown, format=spelling).to_numpy()
        except ValueError:  # 2024-02-30
            continue
    return None


def _label(value: Any) -> str:
    whole = _is_real(value) and not isinstance(value, bool) and value == value // 1
    return str(int(value)) if whole else str(value)


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value)) if np.ndim(value) == 0 else False


def _is_real(value: Any) -> bool:
    return isinstance(value, bool | int | float | Decimal | np.bool_ | np.integer | np.floating)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf
