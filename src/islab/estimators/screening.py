"""Very many covariates: those that chains choose among are the most associated with the target."""

from __future__ import annotations

import warnings

import numpy as np

from islab.core.arrays import Float, Mask
from islab.estimators.sampling import MOST_COVARIATES
from islab.learn.engines import Problem
from islab.tables.columns import TableWarning

KEPT = 500
COLUMNS_AT_ONCE = 1000


def screened(problem: Problem, usable: Mask) -> Mask:
    """The covariates to learn from: all, or the most associated ones if there are too many.

    Parameters
    ----------
    problem : Problem
        With all covariates.
    usable : (covariates,)
        Those that may be learned from.

    Notes
    -----
    A covariate counts by the larger of the correlations of a target with it and with its square, so
    that one whose effect only bends is seen. One that matters only together with another, without
    any effect of its own on average, is not.
    """
    n_usable = int(usable.sum())
    if n_usable <= MOST_COVARIATES:
        return usable
    strength = np.where(usable, association(problem.x, problem.y, problem.row_weights), -1.0)
    if problem.limits is not None:
        strength[problem.limits.include & usable] = np.inf
    kept = np.zeros(len(usable), dtype=bool)
    kept[np.argsort(-strength, kind="stable")[:KEPT]] = True
    return kept


def warn_of_screening(kept: Mask, usable: Mask) -> None:
    """Says that some covariates were left out, if they were."""
    if kept.sum() < usable.sum():
        warnings.warn(
            f"Got {usable.sum():,} covariates, more than the {MOST_COVARIATES:,} that chains can "
            f"choose among: the {kept.sum():,} most associated with the target are learned from; "
            "try posterior='independent' to learn from all, or fewer columns.",
            TableWarning,
            stacklevel=6,  # past the estimators
        )


def association(x: Float, y: Float, weight: Float) -> Float:
    """Of each covariate, the largest correlation with a target of it or of its square.

    Parameters
    ----------
    x : (rows, covariates)
    y : (rows, outputs)
    weight : (rows,)
    """
    share = weight / weight.sum()
    targets = _standard(y, share)
    found = [
        np.maximum(
            _largest(_standard(part, share), targets, share),
            _largest(_standard(part**2, share), targets, share),
        )
        for part in np.array_split(x, max(1, x.shape[1] // COLUMNS_AT_ONCE), axis=1)
    ]
    return np.concatenate(found)


def _standard(values: Float, share: Float) -> Float:
    moved = values - share @ values
    size = np.sqrt(share @ moved**2)
    return moved / np.where(size > 0, size, 1.0)


def _largest(columns: Float, targets: Float, share: Float) -> Float:
    return np.abs(columns.T @ (targets * share[:, None])).max(axis=1)
