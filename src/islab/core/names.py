"""Names: text from the user's data, which may hold anything, and attributes that were renamed."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

NAMES_SHOWN, LONGEST_LISTED = 5, 60


def printable(name: str) -> str:
    """The name on one line: control characters, line ends and odd spaces become spaces.

    Examples
    --------
    >>> printable("two\\nlines")
    'two lines'
    """
    return "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in str(name))


@contextmanager
def unicode_in(place: str) -> Iterator[None]:
    """Refuses halves of characters, which cannot be encoded inside, and says where they stand."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Got text with an unpaired surrogate, {error.object[error.start]!a}, in {place}, "
            "expected Unicode; try to read the file with its own encoding."
        ) from error


def shortened(name: str, length: int) -> str:
    """The name with its middle left out if it is longer than that; ends tell names apart.

    Examples
    --------
    >>> shortened("worst concave points (mean of three)", 20)
    'worst concave…three)'
    """
    if len(name) <= length:
        return name
    tail = (length - 1) // 3
    return name[: length - 1 - tail].rstrip() + "…" + name[-tail:].lstrip()


def counted(number: int, thing: str) -> str:
    """A number of things whose plural has an s: 1 row, 2 rows."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def in_figures(value: float, digits: int = 3) -> str:
    """A number in so many figures; in full up to a million.

    Examples
    --------
    >>> in_figures(12345.6), in_figures(0.0012345)
    ('12346', '0.00123')
    """
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e6 else text


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(shortened(name, LONGEST_LISTED) for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"


def former_name(old: str, new: str) -> Any:
    """A property that reads a renamed attribute by its old name, with a warning."""

    def read(self: Any) -> Any:
        warnings.warn(f"{old} is now called {new}", FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read, doc=f"Deprecated: the attribute is called ``{new}``.")


def is_number(text: str) -> bool:
    """Whether the text spells a number; 1_000 does in Python's programs, not in tables."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
