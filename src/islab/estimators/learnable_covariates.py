"""Covariates that nothing can be learned from: kept out of training, and certain to be unused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from islab.core.compaction import drop_covariates
from islab.core.posterior import Posterior
from islab.learn.engines.base import LARGEST_LAMBDA

Float = NDArray[np.floating]
Mask = NDArray[np.bool_]

# Standard errors above what the largest of many correlations would be by chance.
CLEAR = 20.0  # nats


def learnable(varies: Mask) -> Mask:
    """The covariates to learn from: those that vary, or one if none does."""
    return varies if varies.any() else np.arange(len(varies)) == 0


def clearly_correlated(x: Float, y: Float) -> tuple[int, float] | None:
    """The covariate (rows, covariates) most correlated with a target, if that cannot be chance.

    Its position and correlation, or None if the largest of so many could be as large by chance.
    """
    n_rows, n_covariates = x.shape
    moved = y - y.mean(axis=0)
    size = np.sqrt((moved**2).mean(axis=0))
    if n_rows < 4 or not size.all():
        return None
    correlations = np.abs(x.T @ (moved / size)) / n_rows
    column, output = np.unravel_index(correlations.argmax(), correlations.shape)
    largest = min(float(correlations[column, output]), 1 - 1e-12)
    # Log likelihood that a line in this covariate alone would gain, less what chance gives.
    gain = -0.5 * n_rows * np.log1p(-(largest**2)) - np.log(n_covariates * y.shape[1])
    return (int(column), largest) if gain > CLEAR else None


def over_all_covariates(posterior: Posterior, varies: Mask, n_weights_initial: int) -> Posterior:
    """The posterior over all covariates of one that was learned from the learnable ones.

    The weights of the others have the least inclusion probability there is.

    Parameters
    ----------
    posterior : Posterior
    varies : (covariates,)
        For each covariate whether there is something to learn from it.
    n_weights_initial : int
        Weights of a network over all covariates before training.
    """
    if varies.all():
        return posterior
    wide = replace(posterior.architecture, n_covariates=len(varies))
    learned = drop_covariates(wide, np.flatnonzero(learnable(varies)))[1]
    usable = np.ones(wide.n_weights, dtype=bool)
    wide.covariate_matrix(usable)[:, ~varies] = False

    def spread(values: NDArray, others: float) -> NDArray:
        everywhere = np.full(wide.n_weights, others, dtype=values.dtype)
        everywhere[learned] = values
        return np.where(usable, everywhere, everywhere.dtype.type(others))

    index = posterior.input_index
    return replace(
        posterior,
        architecture=wide,
        mu=spread(posterior.mu, 0.0),
        rho=spread(posterior.rho, 0.0),
        lam=spread(posterior.lam, -LARGEST_LAMBDA),
        input_index=None if index is None else spread(index, 0),
        n_weights_initial=n_weights_initial,
    )
