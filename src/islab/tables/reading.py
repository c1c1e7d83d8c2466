"""Columns of any table as numbers or as labels: arrays, and data frames that narwhals knows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.names import is_number, shortened


@dataclass(frozen=True)
class Labels:
    """A column of text: for each row the number of its level, -1 where it is missing."""

    codes: NDArray[np.intp]
    levels: tuple[str, ...]
    declared: bool  # whether the table says that the column is categorical

    def __len__(self) -> int:
        return len(self.codes)


Column = NDArray[np.float64] | Labels

BOOLEANS = ("False", "True")
LONGEST_CELL = 60
MICROSECONDS = 86_400e6  # in a day
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?")


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


def columns_of(
    table: Any, names: list[str], ignored: Collection[str] = (), text: Collection[str] = ()
) -> Iterator[tuple[str, Column]]:
    """Name and content of each column of an array or of a data frame.

    Those ``ignored`` are NaN; those of ``text`` stay text even if all of it spells dates.
    """
    if isinstance(table, np.ndarray):
        for number, name in enumerate(names):
            yield name, table[:, number].astype(np.float64)
        return
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    for name, series in zip(names, frame.iter_columns(), strict=True):
        if name in ignored:
            yield name, np.full(len(series), np.nan)
            continue
        try:
            column = _read(series, name)
            if isinstance(column, Labels) and name not in text:
                column = _days_if_dates(column)
            if isinstance(column, Labels):
                "".join(column.levels).encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"Got text with an unpaired surrogate, {error.object[error.start]!a}, in column "
                f"{name!r}, expected Unicode; try to read the file with its own encoding."
            ) from error
        yield name, column


def date_columns(table: Any) -> set[int]:
    """Places of the columns of a data frame that hold dates, or text, which may spell dates."""
    if isinstance(table, np.ndarray):
        return set()
    import narwhals as nw

    found = set()
    for place, series in enumerate(nw.from_native(table, eager_only=True).iter_columns()):
        kind = series.dtype
        if kind == nw.Object:
            text = any(isinstance(value, str) for value in series.drop_nulls().head(1).to_list())
        else:
            text = kind == nw.String
        if text or kind in (nw.Date, nw.Datetime):
            found.add(place)
    return found


def labelled(values: Any, declared: bool) -> Labels:
    """Values as labels; those that are spelled alike are one level."""
    import pandas as pd

    codes, found = pd.factorize(np.asarray(values, dtype=object), use_na_sentinel=True)
    spelled = [_label(value) for value in found]
    levels = tuple(dict.fromkeys(spelled))
    if len(levels) < len(spelled):
        # The last entry serves code -1, a missing value.
        codes = np.array([*map(levels.index, spelled), -1])[codes]
    return Labels(np.asarray(codes), levels, declared)


def numbers_from_text(column: Labels, name: str) -> NDArray[np.float64]:
    """Text as the numbers that it spells; booleans, if there is nothing else, as 0 and 1."""
    if set(column.levels) <= set(BOOLEANS):
        return np.array([*map(BOOLEANS.index, column.levels), np.nan])[column.codes]
    wrong = [number for number, level in enumerate(column.levels) if not is_number(level)]
    if wrong:
        row = int(np.isin(column.codes, wrong).argmax())
        raise text_among_numbers(column.levels[column.codes[row]], row, name)
    return np.array([*map(float, column.levels), np.nan])[column.codes]


def text_among_numbers(value: str, row: int, name: str) -> ValueError:
    """The error for a cell of text in a column of numbers."""
    return UnusableCell(
        f"Got {shortened(value, LONGEST_CELL)!r} in column {name!r}",
        row,
        ", where other values are numbers, expected numbers only; try to correct it, to replace "
        "it by NaN, or to declare the column categorical (on the command line, --text).",
    )


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
        return _in_days(series.cast(nw.Datetime("us")).to_numpy().astype("datetime64[us]"))
    if kind == nw.Duration:
        return _in_days(series.cast(nw.Duration("us")).to_numpy().astype("timedelta64[us]"))
    if kind in (nw.String, nw.Categorical, nw.Enum):
        # Not all frames keep what is missing in a categorical column.
        values = np.where(series.is_null().to_numpy(), None, series.to_numpy())
        return labelled(values, declared=kind != nw.String)
    values = series.to_list()
    if kind in (nw.Object, nw.Unknown):
        text = [isinstance(value, str) for value in values if not _is_missing(value)]
        if all(text):
            return labelled(values, declared=False)
        number = [_is_real(value) for value in values if not _is_missing(value)]
        if all(number):
            return np.array([np.nan if _is_missing(value) else _float(value) for value in values])
        if all(a or b for a, b in zip(text, number, strict=True)):
            return numbers_from_text(labelled(values, declared=True), name)
    example = next(value for value in values if not _is_missing(value))
    raise ValueError(
        f"Got column {name!r} of type {kind}, for example {example!r}, expected numbers, "
        "booleans or text; try to derive such columns from it (from a date: the year, the month, "
        "the days since a start) or drop it."
    )


def _in_days(times: NDArray) -> NDArray[np.float64]:
    """Dates as days since 1970, durations as days; NaN where there is none."""
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / MICROSECONDS)


def _days_if_dates(column: Labels) -> Column:
    """Text that spells dates, such as 2024-05-31 or 2024-05-31 14:30, as days; else as it is."""
    import pandas as pd

    if column.declared or not all(map(ISO_DATE.fullmatch, column.levels)):
        return column
    try:
        times = pd.to_datetime(list(column.levels), format="ISO8601").to_numpy()
    except ValueError:  # 2024-02-30
        return column
    # The last entry serves code -1, a missing value.
    return np.append(_in_days(times.astype("datetime64[us]")), np.nan)[column.codes]


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
