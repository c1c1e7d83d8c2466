"""The name that integrated gradients had before contributions were made of them."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import ArrayLike

from islab.core.outputs import Baseline
from islab.core.sparse import SparseNetwork
from islab.explain.drawn import Explainable
from islab.explain.local import explain_local
from islab.explain.local_explanation import LocalExplanation


def integrated_gradients(
    network: SparseNetwork | Explainable, x: ArrayLike | Any, baseline: Baseline = "center"
) -> LocalExplanation:
    """Exact integrated gradients of the predictor at the posterior mean of the weights.

    Deprecated: the contributions of :func:`explain_local` are these, for every draw.

    Parameters
    ----------
    network : SparseNetwork, or a fitted estimator, whose readable network is explained
    x : (rows, covariates), or of an estimator a DataFrame or (rows, columns)
    baseline : {"typical", "center", "zero"} or (covariates,)
    """
    warnings.warn(
        "integrated_gradients is now explain_local, whose contributions they are",
        FutureWarning,
        stacklevel=2,
    )
    if isinstance(network, Explainable):
        return network.explain_local(x, baseline=baseline, model="median")
    at_mean = network.mean_weights()[None], network.bias_mu[None]
    return explain_local(network, x, baseline=baseline, draws=at_mean)
