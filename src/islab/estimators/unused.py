"""Covariates that nothing can be learned from: kept out of training, and certain to be unused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from islab.core.posterior import Posterior
from islab.core.sparse import drop_covariates
from islab.learn.engines.base import LARGEST_LAMBDA

Float = NDArray[np.floating]
Mask = NDArray[np.bool_]


def learnable(varies: Mask) -> Mask:
    """The covariates to learn from: those that vary, or one if none does."""
    return varies if varies.any() else np.arange(len(varies)) == 0


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
