"""Amounts and dates that text spells: 12.5, $1,234, 45 %, 70 kg, 2:31:38, 31/05/2024.

How a column spells them, its unit or the order of day and month, is learned from the training rows:
a few later rows need not tell.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.core.names import is_number, shortened
from islab.tables.reading import (
    BOOLEANS,
    FEW_LEVELS,
    LONGEST_CELL,
    Days,
    Labels,
    UnusableCell,
    days_of,
    is_blank,
)

CODE = re.compile(r"[+-]?0\d+(\s?[^\W\d_]+)?")  # 007 names something
AMOUNT = re.compile(
    r"(?P<sign>[+\-\u2212]?)(?P<before>[$\u00a3\u20ac\u00a5]?) ?"
    r"(?P<number>[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
    r"\s?(?P<after>(?:[%\u2030\u00b0$\u00a3\u20ac\u00a5]|[^\W\d_])[^\d,]{0,14})?"
)
NAMED = re.compile(r"[+-]?\d+\s?[^\W\d_]*")  # a whole number, which may be a name
CLOCK = re.compile(r"(-?)(?:(\d+) days? )?\+?(\d{1,3}):([0-5]\d):([0-5]\d(?:\.\d+)?)")
TIME = "h:mm:ss"
SECONDS = 86_400.0  # in a day
ORDERS = ("%d{0}%m{0}%Y", "%m{0}%d{0}%Y")
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
SPELLINGS = tuple(order.format(mark) + time for order in ORDERS for mark in "/.-" for time in TIMES)
SLASHED_DATE = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{4}( \d{1,2}:\d{2}(:\d{2})?( [AaPp][Mm])?)?")


@dataclass(frozen=True)
class Amounts:
    """What a column of text spells.

    Attributes
    ----------
    values : (rows,)
        NaN where the cell is blank or a word.
    unit : str
        Empty for plain numbers.
    words : tuple of str
        Levels that are no amounts in this unit.
    """

    values: NDArray[np.float64]
    unit: str
    words: tuple[str, ...]


def spelled_amounts(column: Labels) -> Amounts | None:
    """The amounts that the text of a training column spells; None if it is no column of amounts.

    A few numbers may be codes, those that begin with a zero are, and whole ones that hardly any
    two rows share may be names.
    """
    if column.declared:
        return None
    if column.spoilt:
        return amounts_in(column, "")
    cells = [level for level in column.levels if not is_blank(level)]
    units = Counter(amount[1] for amount in map(_amount, cells) if amount is not None)
    if not units or units.total() <= FEW_LEVELS or any(map(CODE.fullmatch, cells)):
        return None
    unit = units.most_common(1)[0][0]
    found = amounts_in(column, unit)
    if len(found.words) >= len(cells) / 2:
        return None
    named = not found.words and all(map(NAMED.fullmatch, cells))
    return None if named and len(cells) > len(column) / 2 else found


def amounts_in(column: Labels, unit: str) -> Amounts:
    """Text as amounts in this unit, or without one; booleans, if nothing else, as 0 and 1."""
    if set(column.levels) <= set(BOOLEANS):
        known = [float(level == BOOLEANS[1]) for level in column.levels]
        return Amounts(np.array([*known, np.nan])[column.codes], unit, ())
    values, words = np.full(len(column.levels) + 1, np.nan), []
    for place, level in enumerate(column.levels):
        amount = None if is_blank(level) else _amount(level)
        if amount is not None and amount[1] in (unit, ""):
            values[place] = amount[0]
        elif not is_blank(level):
            words.append(level)
    return Amounts(values[column.codes], unit, tuple(words))


def text_among_numbers(column: Labels, words: tuple[str, ...], name: str) -> ValueError:
    """The error for the first cell of text in a column of numbers."""
    codes = [column.levels.index(word) for word in words]
    row = int(np.isin(column.codes, codes).argmax())
    return UnusableCell(
        f"Got {shortened(column.levels[column.codes[row]], LONGEST_CELL)!r} in column {name!r}",
        row,
        ", where other values are numbers, expected numbers only; try to correct it, to replace "
        "it by NaN, or to declare the column categorical (on the command line, --text).",
    )


def _amount(cell: str) -> tuple[float, str] | None:
    """Number and unit that a cell spells."""
    if is_number(cell):
        return float(cell), ""
    time = CLOCK.fullmatch(cell)
    if time:
        days, hours, minutes, seconds = (float(part or 0) for part in time.groups()[1:])
        of_day = (hours * 3600 + minutes * 60 + seconds) / SECONDS
        if not time[1]:
            return days + of_day, TIME
        return (of_day - days if time[2] else -of_day), TIME  # -1 days +23:00:00 is an hour before
    amount = AMOUNT.fullmatch(cell.strip())
    if amount is None:
        return None
    value = float(amount["number"].replace(",", ""))
    unit = amount["before"] + (amount["after"] or "").strip()
    return (-value if amount["sign"] in ("-", "\u2212") else value), unit


def spelled_days(column: Labels) -> tuple[Days, str] | None:
    """Days that text such as 31/05/2024 spells, and its format; None if that is not sure.

    Some day must be above 12 for day and month to be told apart, unless points stand between them.
    """
    levels = [level for level in column.levels if not is_blank(level)]
    if column.declared or not levels or not all(map(SLASHED_DATE.fullmatch, levels)):
        return None
    fitting = [spelling for spelling in SPELLINGS if days_spelled(column, spelling) is not None]
    if len(fitting) == 2 and "." in fitting[0]:
        fitting = fitting[:1]
    if len(fitting) != 1:
        return None
    days = days_spelled(column, fitting[0])
    return None if days is None else (days, fitting[0])


def days_spelled(column: Labels, spelling: str) -> Days | None:
    """Text in this format as days; None if some is not."""
    import pandas as pd

    levels = [level for level in column.levels if not is_blank(level)]
    try:
        times = pd.to_datetime(levels, format=spelling).to_numpy()
    except ValueError:
        return None
    return days_of(column, times)
