"""Rows of a table, seen through its encoder: the typical one, values to show, what is unusual."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.tables.categories import OTHER_LEVEL, Category, as_labels
from islab.tables.columns import ColumnEncoder, Variable
from islab.tables.dates import Moment
from islab.tables.left_out import LeftOut
from islab.tables.numbers import MISSING_LEVEL, Number
from islab.tables.orders import Ordered
from islab.tables.reading import (
    Column,
    Days,
    Labels,
    read_column,
    sources_of,
)


def typical_row(
    encoder: ColumnEncoder, covariates: Float, sample_weight: Float | None = None
) -> Float:
    """Median of each number, most frequent level of each category, nothing missing, (covariates,).

    Of levels in an order the middle one, of dates the one in the middle.

    Parameters
    ----------
    covariates : (rows, covariates)
        Of the training table.
    sample_weight : (rows,), optional
        How often each row counts.
    """
    weight = np.ones(len(covariates)) if sample_weight is None else sample_weight
    parts = [_typical(variable, own, weight) for variable, own in _parts(encoder, covariates)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _typical(variable: Variable, own: Float, weight: Float) -> Float:
    if isinstance(variable, Category):
        return variable.choices()[1][_most_frequent(variable)]
    if isinstance(variable, Moment):
        # The whole of one row, so that day, season and weekday go together.
        known = _known(variable.trend, own)
        return own[known][_middle(own[known, 0], weight[known])]
    assert isinstance(variable, Number | Ordered)
    known = _known(variable, own)
    values = [own[known, k][_middle(own[known, k], weight[known])] for k in range(own.shape[1])]
    return np.array(values)


def _known(variable: Number | Ordered, own: Float) -> NDArray[np.bool_]:
    """Rows that are not missing, as far as a covariate says so."""
    width = len(variable.covariates)
    return own[:, width - 1] == 0 if variable.indicator else np.ones(len(own), dtype=bool)


def shown_values(
    encoder: ColumnEncoder, covariates: Float, table: Any = None
) -> NDArray[np.object_]:
    """Values of the variables that have covariates, (rows, variables): numbers, levels, dates.

    A missing number is NaN if the model knows that it is missing, else what stands in for it.

    Parameters
    ----------
    covariates : (rows, covariates)
    table : DataFrame, optional
        Where the rows come from: rare levels are shown by their own name.
    """
    found = np.empty((len(covariates), len(set(encoder.owners))), dtype=object)
    for place, (variable, own) in enumerate(_parts(encoder, covariates)):
        found[:, place] = _shown(variable, own)
    if table is not None:
        _name_levels(encoder, table, found)
    return found


def _shown(variable: Variable, own: Float) -> NDArray[np.object_]:
    if isinstance(variable, Category | Ordered):
        names, codes = variable.choices()
        nearest = np.abs(own[:, None] - codes).sum(axis=2).argmin(axis=1)
        return np.array(names, dtype=object)[nearest]
    trend = variable.trend if isinstance(variable, Moment) else variable
    assert isinstance(trend, Number)
    values = own[:, 0] if trend.tails is None else trend.tails.restore(own[:, 0])
    values = np.where(_known(trend, own), values, np.nan)
    if not isinstance(variable, Moment):
        return values.astype(object)
    days = np.where(np.isnan(values), 0.0, values + variable.start)
    dates = days.astype("datetime64[D]").astype(str).astype(object)
    return np.where(np.isnan(values), MISSING_LEVEL, dates)


def _name_levels(encoder: ColumnEncoder, table: Any, found: NDArray[np.object_]) -> None:
    """Puts the table's own text in the place of levels."""
    names = [variable.name for variable in encoder.variables]
    shown = [v.name for v in encoder.variables if v.covariates]
    for variable, (name, source) in zip(encoder.variables, sources_of(table, names), strict=True):
        if not isinstance(variable, Category | Ordered) or not variable.covariates:
            continue
        column = read_column(source, name, text=True)
        if isinstance(column, Labels):
            levels = np.array([*column.levels, MISSING_LEVEL], dtype=object)
            found[:, shown.index(name)] = levels[column.codes]


def outside_range(encoder: ColumnEncoder, table: Any) -> dict[str, NDArray[np.bool_]]:
    """For each variable which rows have a value that training did not see.

    Of a number or date: one below its least or above its greatest value in training, or a missing
    one where none was missing; of a category: a level that training did not have.
    """
    names = [variable.name for variable in encoder.variables]
    found = {}
    for variable, (name, source) in zip(encoder.variables, sources_of(table, names), strict=True):
        if isinstance(variable, LeftOut) or not variable.covariates:
            continue
        text = isinstance(variable, Category | Ordered)
        found[name] = _unusual(variable, read_column(source, name, text=text))
    return found


def _unusual(variable: Variable, column: Column) -> NDArray[np.bool_]:
    if isinstance(variable, Number):
        column = variable.numbers(column, [])
    if isinstance(variable, Number | Moment):
        trend = variable.trend if isinstance(variable, Moment) else variable
        values = variable.encode(column, [])[:, 0]
        missing = _missing(column)
        new = missing & (not (trend.indicator or trend.gaps))
        return new | (~missing & ((values < trend.low) | (values > trend.high)))
    assert isinstance(variable, Category | Ordered)
    labels = as_labels(column, variable.name, variable.levels)
    known = {*variable.levels, *variable.spelled}
    if isinstance(variable, Category):
        known.update(variable.pooled)  # missing values among them
    if isinstance(variable, Ordered) and (variable.indicator or variable.gaps):
        known.add(MISSING_LEVEL)
    if isinstance(variable, Category) and variable.n_pooled > len(variable.pooled):
        return np.zeros(len(labels.codes), dtype=bool)  # names of the rarest were not kept
    levels = (*labels.levels, MISSING_LEVEL)  # the last entry serves code -1
    return np.array([level not in known for level in levels])[labels.codes]


def _missing(column: Column) -> NDArray[np.bool_]:
    if isinstance(column, Labels):
        return column.codes == -1
    return np.isnan(column.days if isinstance(column, Days) else column)


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


def _middle(values: Float, weight: Float) -> int:
    """Where the middle value stands: one of them, so that it is a value of the variable."""
    if (weight == weight[0]).all():
        middle = (len(values) - 1) // 2
        return int(np.argpartition(values, middle)[middle])
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return int(order[np.searchsorted(total, total[-1] / 2)])
