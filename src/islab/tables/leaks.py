"""Columns that alone tell a target nearly perfectly: they may not be known beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from islab.core.arrays import Float
from islab.tables.categories import Category
from islab.tables.dates import Moment
from islab.tables.left_out import FEWEST_TO_COUNT, LeftOut
from islab.tables.numbers import Number
from islab.tables.orders import Ordered

LEAKS = 0.999
MOST_CLASSES = 2  # of numbers; more of them are a scale


Variable = Number | Category | Ordered | Moment | LeftOut


def leaks(variables: Iterable[Variable], covariates: Float, y: NDArray) -> dict[str, str]:
    """Variables that put the rows in the order of the target, or part all its classes.

    For each the covariate that does, or the variable itself if its levels do together.

    Parameters
    ----------
    variables : sequence of variables
    covariates : (rows, covariates)
    y : (rows,)
        NaN where it is missing.
    """
    import pandas as pd

    known = ~pd.isna(y)
    if known.sum() < FEWEST_TO_COUNT:
        return {}
    target, covariates = pd.Series(y[known]).infer_objects(), covariates[known]
    numbers = pd.api.types.is_numeric_dtype(target.dtype) and target.nunique() > MOST_CLASSES
    codes = target.rank().to_numpy() if numbers else pd.factorize(target, sort=True)[0]
    strength = _rank_correlation if numbers else _separation
    found, first = {}, 0
    for variable in variables:
        names = variable.covariates
        own = covariates[:, first : first + len(names)]
        first += len(names)
        pairs = zip(names, own.T, strict=True)
        told = [name for name, column in pairs if strength(column, codes) >= LEAKS]
        if not told and isinstance(variable, Category) and names:
            told = [variable.name] if strength(_by_level(own, codes), codes) >= LEAKS else []
        if told:
            found[variable.name] = told[0]
    return found


def _by_level(own: Float, codes: NDArray) -> Float:
    """Levels in the order of their mean targets."""
    level = np.unique(own, axis=0, return_inverse=True)[1].ravel()
    return (np.bincount(level, codes) / np.bincount(level))[level]


def _rank_correlation(column: Float, ranks: Float) -> float:
    """Absolute rank correlation with a number, of which the ranks are given."""
    x, target = rankdata(column) - (len(ranks) + 1) / 2, ranks - (len(ranks) + 1) / 2
    size = np.linalg.norm(x) * np.linalg.norm(target)
    return float(np.abs(target @ x) / max(size, 1.0))


def _separation(column: Float, codes: NDArray[np.intp]) -> float:
    """How well the order of a column parts classes: the least |2 AUC - 1| of two neighbours."""
    n_in = np.bincount(codes)
    if len(n_in) < 2:
        return 0.0
    order = np.argsort(np.bincount(codes, rankdata(column)) / n_in, kind="stable")
    found = 1.0
    for low, high in pairwise(order):
        ranks = rankdata(np.concatenate([column[codes == low], column[codes == high]]))
        above = ranks[n_in[low] :].sum() - n_in[high] * (n_in[high] + 1) / 2
        found = min(found, abs(2 * above / (n_in[low] * n_in[high]) - 1))
    return float(found)
