"""Which inputs a horseshoe network keeps: thresholds by the ELBO of what would be left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from islab.baselines.scales import Horseshoe
from islab.core import families
from islab.core.equations import slab_kl
from islab.core.network import forward
from islab.learn.engines.base import Problem
from islab.learn.variational import ELBO_PASSES

Float = NDArray[np.floating]

MOST_CANDIDATES = 25
MOST_ROWS = 2000


def best_thresholds(
    found: Horseshoe, problem: Problem, scale_kl: Float, rng: np.random.Generator
) -> Float:
    """The threshold of each layer whose pruned network has the highest ELBO.

    A pruned input costs no divergence, and what it had explained is lost. Layers are pruned one
    after the other, the last one first, and each keeps at least one input. Candidates lie halfway
    between inputs that are next to each other in shrinkage.

    Parameters
    ----------
    found : Horseshoe
    problem : Problem
        The training data.
    scale_kl : (inputs,)
        Divergence of each input's own scale.
    rng : Generator

    Returns
    -------
    thresholds : (layers,)
    """
    net, index = found.architecture, found.architecture.input_index
    used = found.sigma > 0
    cost = np.where(used, slab_kl(found.mu, np.where(used, found.sigma, 1.0), tau=1.0), 0.0)
    kl = scale_kl + np.bincount(index, weights=cost, minlength=len(scale_kl))
    weights, biases = found.draw(ELBO_PASSES, rng)
    rows = rng.permutation(problem.n_rows)[:MOST_ROWS]

    def loss(thresholds: Float) -> float:
        kept = replace(found, threshold=thresholds).kept()
        return _nll(found, problem, rows, weights * kept[index], biases) + float(kl[kept].sum())

    layer_of = found.by_input(np.arange(net.n_layers))
    best = np.full(net.n_layers, np.inf)
    for layer in reversed(range(net.n_layers)):
        trials = np.tile(best, (MOST_CANDIDATES, 1))
        trials[:, layer] = _between(found.shrinkage()[layer_of == layer])
        best = min(trials, key=loss)
    return best


def _between(shrinkage: Float) -> Float:
    """Thresholds that keep from one to all of these inputs, (candidates,)."""
    order = np.sort(shrinkage)
    middles = np.append((order[1:] + order[:-1]) / 2, order[-1] + 1)
    return middles[np.linspace(0, len(middles) - 1, MOST_CANDIDATES).round().astype(int)]


def expected_nll(found: Horseshoe, problem: Problem, rng: np.random.Generator) -> float:
    """Negative log likelihood of all rows, averaged over draws of the whole network."""
    rows = rng.permutation(problem.n_rows)[:MOST_ROWS]
    return _nll(found, problem, rows, *found.draw(ELBO_PASSES, rng))


def _nll(
    found: Horseshoe, problem: Problem, rows: NDArray[np.intp], weights: Float, biases: Float
) -> float:
    """Of all rows under known weights (draws, weights), estimated from some of the rows."""
    eta = forward(found.architecture, weights, biases, problem.x[rows])
    nll = families.likelihood(found.likelihood).nll(problem.y[rows], eta, found.noise).mean(axis=0)
    return float((problem.row_weights[rows] * nll).mean()) * problem.n_rows
