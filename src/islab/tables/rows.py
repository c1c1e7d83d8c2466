"""Rows of a table, seen through its encoder: the typical one, values to show, what is unusual."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.tables.columns import (
    MISSING_LEVEL,
    OTHER_LEVEL,
    Category,
    ColumnEncoder,
    Number,
    Variable,
)
from islab.tables.reading import Column, Labels, columns_of, numbers_from_text

UNKNOWN_LEVEL = "(rare or not seen in training)"


def typical_row(
    encoder: ColumnEncoder, covariates: Float, sample_weight: Float | None = None
) -> Float:
    """Median of each number, most frequent level of each category, nothing missing, (covariates,).

    Parameters
    ----------
    covariates : (rows, covariates)
        Of the training table.
    sample_weight : (rows,), optional
        How often each row counts.
    """
    weight = np.ones(len(covariates)) if sample_weight is None else sample_weight
    parts = []
    for variable, own in _parts(encoder, covariates):
        if isinstance(variable, Category):
            parts.append(level_codes(variable)[_most_frequent(variable)])
        else:
            known = own[:, 1] == 0 if own.shape[1] > 1 else np.ones(len(own), dtype=bool)
            parts.append(np.array([_median(own[known, 0], weight[known]), 0.0])[: own.shape[1]])
    return np.concatenate(parts) if parts else np.zeros(0)


def shown_values(
    encoder: ColumnEncoder, covariates: Float, table: Any = None
) -> NDArray[np.object_]:
    """Values of the variables that have covariates, (rows, variables): numbers or names of levels.

    A missing number is NaN if the model knows that it is missing, else what stands in for it.

    Parameters
    ----------
    covariates : (rows, covariates)
    table : DataFrame, optional
        Where the rows come from: rare levels are shown by their own name.
    """
    found = np.empty((len(covariates), len(set(encoder.owners))), dtype=object)
    for place, (variable, own) in enumerate(_parts(encoder, covariates)):
        if isinstance(variable, Category):
            found[:, place] = _levels_of(variable, own)
        else:
            missing = own[:, 1] != 0 if own.shape[1] > 1 else np.zeros(len(own), dtype=bool)
            found[:, place] = np.where(missing, np.nan, own[:, 0])
    if table is not None:
        _name_levels(encoder, table, found)
    return found


def _levels_of(variable: Category, own: Float) -> NDArray[np.object_]:
    nearest = np.abs(own[:, None] - level_codes(variable)).sum(axis=2).argmin(axis=1)
    return np.array([*variable.levels, UNKNOWN_LEVEL], dtype=object)[nearest]


def _name_levels(encoder: ColumnEncoder, table: Any, found: NDArray[np.object_]) -> None:
    """Puts the table's own text in the place of levels."""
    names = [variable.name for variable in encoder.variables]
    text = {v.name for v in encoder.variables if isinstance(v, Category)}
    ignored = set(names) - text
    shown = [v.name for v in encoder.variables if v.covariates]
    for name, column in columns_of(table, names, ignored, text):
        if name in text and isinstance(column, Labels):
            levels = np.array([*column.levels, MISSING_LEVEL], dtype=object)
            found[:, shown.index(name)] = levels[column.codes]


def level_codes(variable: Category) -> Float:
    """Covariates of each level and of an unknown one, (levels + 1, covariates)."""
    table = np.vstack([np.eye(len(variable.levels)), variable.shares])
    return table[:, len(variable.levels) - len(variable.covariates) :]


def outside_range(encoder: ColumnEncoder, table: Any) -> dict[str, NDArray[np.bool_]]:
    """For each variable which rows have a value that training did not see.

    Of a number: one below its least or above its greatest value in training, or a missing one
    where none was missing; of a category: a level that training did not have.
    """
    names = [variable.name for variable in encoder.variables]
    ignored = {v.name for v in encoder.variables if not v.covariates}
    text = {v.name for v in encoder.variables if isinstance(v, Category)}
    columns = columns_of(table, names, ignored, text)
    pairs = zip(encoder.variables, columns, strict=True)
    return {v.name: _unusual(v, column) for v, (_, column) in pairs if v.covariates}


def _unusual(variable: Variable, column: Column) -> NDArray[np.bool_]:
    if isinstance(variable, Number):
        if isinstance(column, Labels) and variable.constant:
            return np.zeros(len(column), dtype=bool)
        if isinstance(column, Labels):
            column = numbers_from_text(column, variable.name)
        missing = np.isnan(column)
        new = missing & (not (variable.indicator or variable.gaps))
        return new | (~missing & ((column < variable.low) | (column > variable.high)))
    assert isinstance(variable, Category)
    labels = column if isinstance(column, Labels) else variable.text_from_numbers(column)
    if variable.n_pooled > len(variable.pooled):  # names of the rarest levels were not kept
        return np.zeros(len(labels.codes), dtype=bool)
    known = {*variable.levels, *variable.pooled}
    levels = (*labels.levels, MISSING_LEVEL)  # the last entry serves code -1
    return np.array([level not in known for level in levels])[labels.codes]


def _parts(encoder: ColumnEncoder, covariates: Float) -> list[tuple[Variable, Float]]:
    """Variables that have covariates, with those covariates."""
    owners = [variable for variable in encoder.variables if variable.covariates]
    ends = np.cumsum([len(variable.covariates) for variable in owners])
    return list(zip(owners, np.split(covariates, ends[:-1], axis=1), strict=True)) if owners else []


def _most_frequent(variable: Category) -> int:
    """Position of the most frequent level, of those with a name if there are any."""
    named = [level not in (MISSING_LEVEL, OTHER_LEVEL) for level in variable.levels]
    shares = np.array(variable.shares)
    return int(np.argmax(np.where(named, shares, shares - 1.0)))


def _median(values: Float, weight: Float) -> float:
    """The middle value: one of them, so that it is a value of the variable."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
