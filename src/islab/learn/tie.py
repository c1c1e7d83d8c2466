"""A start for flows from the curvature of the loss: weights tied where the data tie them.

Independent weights are narrow where others could make up for them: the best of them have the
variances ``1 / H_jj`` of the curvature ``H``, and are ``log |corr(H)| / 2`` nats below the evidence
of a Gaussian posterior. A flow that starts from multipliers of 1 has to discover along which
direction weights may move together, and it seldom does. Here it is computed.

Multipliers of a layer move along one direction, ``z = 1 + d t`` with ``t ~ N(0, 1)``, so that the
posterior is ``N(mu, S + u u')`` with a diagonal ``S`` and ``u = mu * d``. The auxiliary
``r(z | W)`` knows of the weights one number, ``c W``, summed over the units of the layer. By it
``t`` has the variance ``1 / (1 + h)``, ``h = sum d_j^2 M_j^2 / V_j`` where M_j sums the means and
V_j the variances of an input's weights. Up to a constant the bound is then

    (log(1 + h) - u' H u - tr(H S) + log |S|) / 2

which is largest in ``d`` along an eigenvector, and in ``S`` at a fixed point. With one output and
weights that are tied along one direction the result is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float, Index
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines import EngineChoice, Problem
from islab.learn.engines.flows import Factor
from islab.learn.prune import MOST_WORK, curvature

# Multipliers of a layer in which nothing is tied: wider ones would first spoil what was found.
JOINING_SPREAD = 0.001
ROUNDS = 500
LEAST_GAIN = 0.2  # nats
LEAST_MEAN = 1e-3  # of a weight that a multiplier moves, in its standard deviations
LEAST = 0.1  # of a variance that a weight keeps beside the direction
SMALL = 0.1  # noise of multipliers, where 1 is what the weights could tell of it
TAILS = 8  # standard deviations within which the statistic of r(z | W) is linear


@dataclass(frozen=True)
class Tied:
    """A posterior to start a flow from.

    Attributes
    ----------
    posterior : Posterior
        With the spreads that weights have beside the flow.
    factors : tuple of Factor or None
        Of each layer.
    gain : float
        Nats by which this should raise the bound of independent weights.
    """

    posterior: Posterior
    factors: tuple[Factor | None, ...]
    gain: float

    def options(self, engine: EngineChoice) -> dict[str, Any]:
        """What an engine needs to start there."""
        return {"z_spread": JOINING_SPREAD, "factors": self.factors, **engine.options}


def tie(posterior: Posterior, prior: Prior, problem: Problem) -> Tied:
    """Ties the used weights of each layer along the direction that gains most.

    Parameters
    ----------
    posterior, prior
        Of independent weights, and what they were learned with.
    problem : Problem
        The rows they were learned from.
    """
    net = posterior.architecture
    used = np.flatnonzero(posterior.alpha > 0.5)
    factors: list[Factor | None] = [None] * net.n_layers
    if not len(used) or problem.n_rows * net.n_outputs * len(used) ** 2 > MOST_WORK:
        return Tied(posterior, tuple(factors), 0.0)
    precision = curvature(posterior, problem, used)[: len(used), : len(used)]
    precision = precision + np.diag(1 / net.by_block(prior.tau)[used] ** 2)
    sigma, gain = posterior.sigma.copy(), 0.0
    for layer in range(net.n_layers):
        own = np.isin(used, net.weight_index(layer))
        if own.any():
            direction = _Direction.best(_Layer.of(posterior, used[own], layer), precision, own)
            if direction is not None:
                factors[layer], gain = direction.factor(), gain + direction.gain
                sigma[used[own]] = np.sqrt(direction.variance)
    rho = np.where(sigma == posterior.sigma, posterior.rho, _inverse_softplus(sigma))
    return Tied(posterior.copy(rho=rho), tuple(factors), gain)


@dataclass(frozen=True, eq=False)
class _Layer:
    """The used weights of a layer, (weights,) each."""

    mu: Float
    inputs: Index  # of the layer's, hidden units first
    units: Index  # of the layer's
    n_inputs: int
    n_units: int

    @classmethod
    def of(cls, posterior: Posterior, weights: Index, layer: int) -> _Layer:
        net = posterior.architecture
        place = net.weight_index(layer)
        units, inputs = np.nonzero(np.isin(place, weights))
        order = np.argsort(place[units, inputs])
        mu = posterior.mu[weights]
        return cls(mu, inputs[order], units[order], place.shape[1], place.shape[0])

    def by_input(self, values: Float) -> Float:
        """Sums over the weights of each input."""
        return np.bincount(self.inputs, values, self.n_inputs).astype(float)

    def by_unit(self, values: Float) -> Float:
        return np.bincount(self.units, values, self.n_units).astype(float)


@dataclass(frozen=True, eq=False)
class _Direction:
    """Where a layer's multipliers move, and the variances that its weights keep beside."""

    layer: _Layer
    along: Float  # (inputs,)
    variance: Float  # (weights,)
    known: Float  # (inputs,): what the weights tell of each multiplier, 1 / variance
    h: float
    gain: float

    @classmethod
    def best(cls, layer: _Layer, precision: Float, own: NDArray[np.bool_]) -> _Direction | None:
        """The fixed point of direction and variances; None if nothing is gained."""
        hessian = precision[np.ix_(own, own)]
        diagonal = hessian.diagonal()
        total = layer.by_input(layer.mu)
        movable = np.abs(layer.mu) * np.sqrt(diagonal) > LEAST_MEAN
        alive = np.flatnonzero((layer.by_input(np.where(movable, 0.0, 1.0)) == 0) & (total != 0))
        moves = np.zeros((len(layer.mu), layer.n_inputs))
        moves[np.arange(len(layer.mu)), layer.inputs] = layer.mu
        curved = moves.T @ hessian @ moves
        variance, found = 1 / diagonal, None
        for _ in range(ROUNDS if len(alive) > 1 else 0):
            known = np.zeros(layer.n_inputs)
            known[alive] = total[alive] ** 2 / layer.by_input(variance)[alive]
            root = 1 / np.sqrt(known[alive])
            values, vectors = np.linalg.eigh(root[:, None] * curved[np.ix_(alive, alive)] * root)
            h = 1 / max(values[0], 1e-12) - 1
            if h <= 0:
                break
            along = np.zeros(layer.n_inputs)
            along[alive] = np.sqrt(h) * root * vectors[:, 0]
            share = variance * diagonal
            gain = np.log1p(h) - along @ curved @ along + (np.log(share) - share + 1).sum()
            if found is not None and gain / 2 < found.gain + 1e-9:
                break
            found = cls(layer, along, variance, known, h, float(gain / 2))
            told = along**2 * known / np.where(known > 0, layer.by_input(variance), 1.0)
            variance = 1 / np.minimum(diagonal + told[layer.inputs] / (1 + h), diagonal / LEAST)
        return found if found is not None and found.gain > LEAST_GAIN else None

    def factor(self) -> Factor:
        """With it how r(z | W) finds the place along the direction from the weights."""
        layer = self.layer
        total, spread = layer.by_input(layer.mu), layer.by_input(self.variance)
        tells = np.where(self.known > 0, self.along * total / np.where(spread, spread, 1.0), 0.0)
        own = tells[layer.inputs]
        centre = layer.by_unit(own * layer.mu)
        swing = layer.by_unit(own * layer.mu * self.along[layer.inputs]) ** 2
        reach = np.abs(centre) + TAILS * np.sqrt(swing + layer.by_unit(own**2 * self.variance))
        scale = 1 / reach.max()
        return Factor(
            direction=self.along,
            spread=SMALL / np.sqrt(np.maximum(self.known, 1.0)),
            statistic=scale * tells,
            centre=float(scale * centre.mean()),
            slope=layer.n_units / (scale * (1 + self.h)),
            variance=1 / (1 + self.h),
        )


def _inverse_softplus(value: Float) -> Float:
    return value + np.log(-np.expm1(-value))
