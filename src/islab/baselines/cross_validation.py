"""Cross-validation inside a fit: who leaves out which rows, and what the rows left out say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.learn.engines.base import Problem

N_FOLDS = 5
ROWS_FOR_ALL_FOLDS = 5_000
TOLERANCE = 0.005


def useful_folds(n_rows: int) -> int:
    """Folds that choosing a setting takes: with many rows one is enough."""
    return N_FOLDS if n_rows <= ROWS_FOR_ALL_FOLDS else 1


def fold_weights(problem: Problem, n_folds: int, rng: np.random.Generator) -> Float:
    """Weight of every row for all rows and without each fold, (1 + folds, rows).

    Rows are dealt to five folds in the order of their targets, so that each fold has its share
    of every class or size.
    """
    rows = problem.n_rows
    order = np.lexsort((rng.random(rows), *problem.y.T))
    fold = np.empty(rows, dtype=int)
    n_deals = max(min(N_FOLDS, rows), 1)
    dealt = rng.permuted(np.tile(np.arange(n_deals), (-(-rows // n_deals), 1)), axis=1)
    fold[order] = dealt.ravel()[:rows]
    left_out = fold == np.arange(min(n_folds, n_deals))[:, None]
    return problem.row_weights * np.concatenate([np.ones((1, rows)), ~left_out])


def judged_rows(row_weight: Float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of replicas and of the rows that they left out; without folds, all rows."""
    replicas, rows = np.nonzero(row_weight == 0 if len(row_weight) > 1 else row_weight)
    return replicas, rows


def sparsest_near_best(losses: Float, row_weight: Float) -> int:
    """The last candidate that is about as good as the best.

    Parameters
    ----------
    losses : (candidates, rows)
        Of held-out rows; the sparsest candidate comes last.
    row_weight : (rows,)

    Notes
    -----
    About as good is within one standard error of the difference, taken row by row, or within
    0.005 nats: candidates that hardly differ have hardly an error.
    """
    share = row_weight / row_weight.sum()
    best = int((losses @ share).argmin())
    excess = losses - losses[best]
    mean = excess @ share
    spread = np.sqrt(((excess - mean[:, None]) ** 2 @ share) / max(losses.shape[1] - 1, 1))
    return int(np.flatnonzero(mean <= np.maximum(spread, TOLERANCE)).max())
