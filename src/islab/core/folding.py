"""Units that no covariate feeds: what they send on is a constant, folded into biases of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Float, Index, Mask
from islab.core.compaction import drop_covariates
from islab.core.network import preactivations
from islab.core.paths import active_weights, fed_units, heard_units

if TYPE_CHECKING:
    from islab.core.posterior import Posterior


@dataclass(frozen=True, eq=False)
class FoldedUnits:
    """Units that no covariate feeds, kept so that every draw folds the constants of its own.

    Attributes
    ----------
    architecture : Architecture
        Of these units and of all that remain in the network; it has no covariates.
    units : (units of the network,) int
        Where those that remain stand there.
    edges : (edges,) int
        Flat positions of the kept weights out of units that no covariate feeds.
    mu, sigma : (edges,)
    bias_mu, bias_sigma : (units,)
        Nothing is folded in.
    input_index : (edges,), optional
        Column of the network's multipliers for each edge.
    """

    architecture: Architecture
    units: Index
    edges: Index
    mu: Float
    sigma: Float
    bias_mu: Float
    bias_sigma: Float
    input_index: Index | None = None

    def draw(self, multipliers: Float | None, n_draws: int, rng: np.random.Generator) -> Float:
        """Draws of the network's biases with the constants in them, (draws, units).

        Parameters
        ----------
        multipliers : (draws, inputs), optional
            Of a flow, the same as for the network's other weights.
        """
        mu = self.mu if multipliers is None else self.mu * multipliers[:, self.input_index]
        weights = np.zeros((n_draws, self.architecture.n_weights))
        weights[:, self.edges] = mu + self.sigma * rng.standard_normal((n_draws, len(self.edges)))
        normals = rng.standard_normal((n_draws, len(self.bias_mu)))
        biases = self.bias_mu + self.bias_sigma * normals
        sums = preactivations(self.architecture, weights, biases, np.zeros((1, 0)))
        return sums[:, 0, self.units]


def folded_units(
    posterior: Posterior, kept: Mask, remain: Index, threshold: float = 0.5
) -> tuple[FoldedUnits, Index]:
    """What sends constants to the units that remain, and its weights in the posterior.

    Parameters
    ----------
    kept : (weights,)
        The median network's, those on no active path included.
    remain : (units,)
        Numbers of the units on active paths, and of the outputs.
    threshold : float
        Of biases, where they are selected.
    """
    net, (bias_mu, bias_sigma) = posterior.architecture, posterior.kept_biases(threshold)
    silent = heard_units(net, kept) & ~fed_units(net, kept)
    silent[net.units[-1]] = False
    both = silent.copy()
    both[remain] = True
    smaller = net.keep_units([both[units] for units in net.units[:-1]])
    shape, positions = drop_covariates(smaller.architecture, np.zeros(0, dtype=np.intp))
    weights = smaller.weights[positions]
    sources = net.ends[0][weights] - net.n_covariates
    targets = net.ends[1][weights]
    edges = np.flatnonzero(kept[weights] & silent[sources] & both[targets])
    chosen = weights[edges]
    return FoldedUnits(
        architecture=shape,
        units=np.searchsorted(smaller.units, remain),
        edges=edges,
        mu=posterior.mu[chosen].astype(float),
        sigma=posterior.sigma[chosen].astype(float),
        bias_mu=bias_mu[smaller.units],
        bias_sigma=bias_sigma[smaller.units],
    ), chosen


def folded_biases(posterior: Posterior, kept: Mask, threshold: float = 0.5) -> tuple[Float, Float]:
    """Mean and spread of all biases with the constants of units that no covariate feeds.

    The first is exact at the posterior mean of the weights. The second is right to first
    order, and a constant that reaches several units counts as independent in each; draws are exact.
    """
    net = posterior.architecture
    fed = fed_units(net, kept)
    mean, spreads = posterior.kept_biases(threshold)
    variance = spreads**2
    weight = np.where(kept, posterior.mu * posterior.mean_multiplier(), 0.0).astype(float)
    spread = np.where(kept, posterior.slab_variance(), 0.0)
    for layer in range(1, net.n_layers):
        below, here = net.units[layer - 1], net.units[layer]
        activation = net.activations[layer - 1]
        constant = np.where(fed[below], 0.0, activation.value(mean[below]))
        slope = np.where(fed[below], 0.0, activation.slope(mean[below]))
        block = net.hidden_block(layer)
        w, s = block.view(weight), block.view(spread)
        mean[here] += w @ constant
        variance[here] += s @ constant**2 + (w**2 + s) @ (slope**2 * variance[below])
    return mean, np.sqrt(variance)


def folded_draws(net: Architecture, weights: Float, biases: Float) -> tuple[Float, Float]:
    """Draws (draws, weights) and (draws, units) with weights on active paths only.

    What units that no covariate feeds send on is in the biases, so predictions are the same.
    """
    kept = weights != 0
    fed = fed_units(net, kept)
    biases = biases.copy()
    for layer in range(1, net.n_layers):
        below, here = net.units[layer - 1], net.units[layer]
        value = net.activations[layer - 1].value
        constant = np.where(fed[:, below], 0.0, value(biases[:, below]))
        wires = net.hidden_block(layer).view(weights)
        biases[:, here] += np.einsum("dij,dj->di", wires, constant)
    return np.where(active_weights(net, kept), weights, 0.0), biases
