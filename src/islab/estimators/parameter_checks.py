"""Tests of parameter values, to be combined: each says whether a value may be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

Rule = Callable[[Any], bool]
Rules = dict[str, tuple[Rule, str]]


def auto(rule: Any) -> Any:
    """ "auto", or what the other rule allows."""
    return lambda value: (isinstance(value, str) and value == "auto") or rule(value)


def count(value: Any) -> bool:
    """A whole number of at least 1."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def positive(value: Any) -> bool:
    """A positive finite number."""
    return real(value) and value > 0


def real(value: Any) -> bool:
    """A finite number that is not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def flag(value: Any) -> bool:
    """True or False."""
    return isinstance(value, bool | np.bool_)


def widths(value: Any) -> bool:
    """A whole number of at least 1, or several."""
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return all(count(width) for width in value)
    return count(value)


def one_of(*known: str) -> Any:
    """One of these words."""
    return lambda value: isinstance(value, str) and value in known


def one_or_each(*known: str) -> Any:
    """One of these words, or several."""
    one = one_of(*known)
    return lambda value: (
        one(value) or (isinstance(value, list | tuple) and len(value) > 0 and all(map(one, value)))
    )
