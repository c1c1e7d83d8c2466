"""Columns that cannot help to predict new rows: ids, and text that hardly any two rows share.

What is found must not depend on the order of the rows: a fold of a cross-validation, which is
shuffled and has gaps, is read as the whole table is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from islab.core.arrays import Float
from islab.core.expressions import Expression
from islab.core.names import is_number
from islab.tables.numbers import fewest_rows
from islab.tables.reading import FEW_LEVELS, Column, Labels

FEWEST_TO_COUNT = 20
COUNTS_ROWS = "counts the rows"
ID = "an id, another in every row"
FREE_TEXT = "free text"
DIFFERS = "text that differs from row to row"
SPELLS_DATES = "text that seems to spell dates, try pandas.to_datetime"
SPELLS_NUMBERS = "text that seems to spell numbers, make numbers of it if they are amounts"
WORDS_OF_PROSE = 4
ROWS_BETWEEN = 4
BY_CHANCE = -10.0  # log probability
NAME_OF_ID = re.compile(
    r"(?i:(?:^|[\W_])(?:id|uuid|guid|index|rownames?|row)$)|[a-z]I[Dd]$|^Unnamed: \d+$"
)
NAME_OF_TIME = re.compile(
    r"(?:^|[\W_])(?:t|time|second|minute|hour|day|date|week|month|quarter|year|age)s?(?:$|[\W_])",
    re.IGNORECASE,
)
BESIDE_NUMBERS = re.compile(r"[\s,$%\u00a3\u20ac]")
LIKE_A_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b.*|\w{3,9}\.? \d{1,2},? \d{4}\b.*")


@dataclass(frozen=True)
class LeftOut:
    """A variable that cannot help to predict new rows; any later content is accepted."""

    kind: ClassVar[str] = "left out"

    name: str
    reason: str

    @property
    def covariates(self) -> tuple[str, ...]:
        return ()

    @property
    def varies(self) -> tuple[bool, ...]:
        return ()

    @property
    def parts(self) -> tuple[()]:
        return ()

    @property
    def note(self) -> str:
        """What deserves to be said of it."""
        return self.reason

    def encode(self, column: Column, remarks: list[str]) -> Float:
        """No covariates, (rows, 0)."""
        return np.empty((len(column), 0))

    def expression(self, number: int, missing: str) -> Expression:
        """There is none."""
        raise IndexError(f"{self.name!r} is left out and has no covariates.")

    def natural_scale(self, covariates: Float) -> list[float]:
        return []


def ids(table: Any) -> dict[int, str]:
    """Places of the whole-numbered columns that name the rows of a data frame, and the reason.

    Their values all differ, and either they are called so ("id", "customer_id", "index"), or they
    fill their range but for gaps as a random part of the rows leaves them. Columns whose name
    speaks of a time are kept, and so is everything of a table with nothing else.
    """
    import narwhals as nw

    if isinstance(table, np.ndarray) or table.shape[0] < FEWEST_TO_COUNT:
        return {}
    found, frame = {}, nw.from_native(table, eager_only=True)
    for place, (name, series) in enumerate(zip(frame.columns, frame.iter_columns(), strict=True)):
        if series.dtype.is_integer() and not series.null_count():
            values = np.sort(series.to_numpy())
            reason = _why_id(str(name), values) if (values[1:] > values[:-1]).all() else None
            if reason:
                found[place] = reason
    return found if len(found) < len(frame.columns) else {}


def _why_id(name: str, values: NDArray[np.integer]) -> str | None:
    """Why whole numbers that all differ, in rising order, name rows, if they do."""
    if not NAME_OF_TIME.search(name) and _fill_their_range(values):
        return COUNTS_ROWS
    return ID if NAME_OF_ID.search(name) else None


def _fill_their_range(values: NDArray[np.integer]) -> bool:
    """Whether hardly anything but a count of rows, and a part of it, would give these."""
    n, reach = len(values), int(values[-1]) - int(values[0]) + 1
    if reach > ROWS_BETWEEN * n or np.gcd.reduce(np.diff(values)) > 1:
        return False  # real numbers are sparse, and times often spaced evenly
    # That n draws from so many numbers all differ, as those of a real quantity seldom do.
    chance = gammaln(reach + 1) - gammaln(reach - n + 1) - n * np.log(reach)
    return bool(chance < BY_CHANCE)


def reason_to_leave_out(column: Labels) -> str | None:
    """Why text cannot help to predict new rows, if hardly any two rows share it."""
    if column.declared or len(column.levels) <= FEW_LEVELS:
        return None
    if all(map(LIKE_A_DATE.fullmatch, column.levels)):
        return SPELLS_DATES
    if all(is_number(BESIDE_NUMBERS.sub("", level)) for level in column.levels):
        plain = all(map(is_number, column.levels))  # few of them are codes
        return None if plain and len(column.levels) <= len(column) / 2 else SPELLS_NUMBERS
    if len(column.levels) <= len(column) / 2:
        sizes = np.bincount(column.codes[column.codes >= 0])
        return None if sizes.max() >= fewest_rows(len(column)) else DIFFERS
    n_words = np.mean([len(level.split()) for level in column.levels])
    return FREE_TEXT if n_words >= WORDS_OF_PROSE else DIFFERS
