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
APART = "no interaction"

Mask = NDArray[np.bool_]


def valid_constraints(value: Any) -> bool:
    """None, or words for columns; which columns there are is not known yet."""
    if value is None:
        return True
    return isinstance(value, dict) and all(isinstance(key, str | int | tuple) for key in value)


def read_constraints(
    constraints: dict[Any, Any] | None, columns: ColumnEncoder, n_outputs: int
) -> tuple[Mask, Limits | None]:
    """Which covariates are excluded, and what the others may do; None if all is free.

    Parameters
    ----------
    constraints : dict, optional
        A word, or several, for columns by name or position; or, for a tuple of columns or groups
        of them, that they do not interact.
    columns : ColumnEncoder
    n_outputs : int
        Outputs of the target, the first of the network.
    """
    owners, names = np.array(columns.owners, dtype=object), np.array(columns.names, dtype=object)
    of = {word: np.zeros(len(names), dtype=bool) for word in WORDS}
    problems = []
    apart = np.zeros((len(names), len(names)), dtype=bool)
    for key, given in (constraints or {}).items():
        if isinstance(key, tuple):
            found = _keep_apart(key, given, columns, apart)
            problems += [] if found is None else [found]
            continue
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
    limits = Limits(
        of[LINEAR],
        of[INCLUDE],
        np.asarray(sign, dtype=np.int8),
        n_outputs,
        apart if apart.any() else None,
    )
    free = not (of[LINEAR].any() or of[INCLUDE].any() or limits.need_chains)
    return of[EXCLUDE], None if free else limits


def _keep_apart(
    key: tuple[Any, ...], given: Any, columns: ColumnEncoder, apart: Mask
) -> str | None:
    """Marks the pairs of covariates that are to stay apart; or what is wrong."""
    if given != APART or len(key) < 2:
        return f"{key!r} has {given!r}, expected two or more columns or groups with {APART!r}"
    groups = [each if isinstance(each, tuple) else (each,) for each in key]
    unknown = [name for group in groups for name in group if _name(name, columns) is None]
    if unknown:
        return f"there is no column {unknown[0]!r}"
    owners = np.array(columns.owners, dtype=object)
    members = [np.isin(owners, [str(_name(each, columns)) for each in group]) for group in groups]
    for number, one in enumerate(members):
        for other in members[:number]:
            pairs = one[:, None] & other
            apart |= pairs | pairs.T
    np.fill_diagonal(apart, False)
    return None


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
