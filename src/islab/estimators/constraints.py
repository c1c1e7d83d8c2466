"""Constraints of columns, as a user gives them and as covariates have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.constraints import Limits
from islab.tables.columns import ColumnEncoder

EXCLUDE, INCLUDE, LINEAR = "exclude", "include", "linear"
SIGNS = {"increasing": 1, "decreasing": -1}
WORDS = (EXCLUDE, INCLUDE, LINEAR, *SIGNS)

Mask = NDArray[np.bool_]


def valid_constraints(value: Any) -> bool:
    """None, or words for columns; which columns there are is not known yet."""
    if value is None:
        return True
    return isinstance(value, dict) and all(isinstance(key, str | int) for key in value)


def read_constraints(
    constraints: dict[Any, Any] | None, columns: ColumnEncoder, n_outputs: int
) -> tuple[Mask, Limits | None]:
    """Which covariates are excluded, and what the others may do; None if all is free.

    Parameters
    ----------
    constraints : dict, optional
        A word, or several, for columns by name or position.
    columns : ColumnEncoder
    n_outputs : int
        Outputs of the target, the first of the network.
    """
    owners, names = np.array(columns.owners, dtype=object), np.array(columns.names, dtype=object)
    of = {word: np.zeros(len(names), dtype=bool) for word in WORDS}
    problems = []
    for key, given in (constraints or {}).items():
        name = _name(key, columns)
        words = (given,) if isinstance(given, str) else tuple(given)
        covariates = owners == name
        found = _problem(key, name, words, columns, covariates, names)
        if found is not None:
            problems.append(found)
            continue
        for word in words:
            # A column's own number rises; the covariate that says where it is missing does not.
            of[word] |= covariates & (names == name) if word in SIGNS else covariates
    if constraints and not problems and of[EXCLUDE][columns.varies].all():
        problems.append("every column is excluded")
    if problems:
        raise ValueError(f"Got constraints that cannot be kept: {'; '.join(problems)}.")
    sign = sum(value * of[word].astype(np.int8) for word, value in SIGNS.items())
    limits = Limits(of[LINEAR], of[INCLUDE], np.asarray(sign, dtype=np.int8), n_outputs)
    free = not (of[LINEAR].any() or of[INCLUDE].any() or limits.sign.any())
    return of[EXCLUDE], None if free else limits


def _name(key: str | int, columns: ColumnEncoder) -> str | None:
    names = [variable.name for variable in columns.variables]
    if isinstance(key, str):
        return key if key in names else None
    return names[key] if 0 <= key < len(names) else None


def _problem(
    key: Any,
    name: str | None,
    words: tuple[Any, ...],
    columns: ColumnEncoder,
    covariates: Mask,
    names: NDArray,
) -> str | None:
    """What is wrong with a column's constraints, if something is."""
    if name is None:
        return f"there is no column {key!r}"
    unknown = [word for word in words if word not in WORDS]
    if unknown or not words:
        wrong = repr(unknown[0]) if unknown else "nothing"
        return f"column {key!r} has {wrong}, expected {', '.join(map(repr, WORDS))}"
    signs = [word for word in words if word in SIGNS]
    if len(signs) > 1 or (EXCLUDE in words and len(words) > 1):
        return f"column {key!r} has {' and '.join(map(repr, words))}, which exclude each other"
    if signs and not (covariates & (names == name)).any():
        return f"column {key!r} is no number, so it cannot be {signs[0]}"
    if INCLUDE in words and not columns.varies[covariates].any():
        return f"column {key!r} is the same in all rows, so it cannot be included"
    return None
