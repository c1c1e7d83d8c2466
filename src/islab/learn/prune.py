"""Weights that a found network can do without, proposed by the curvature of its loss.

Training ends where no inclusion probability wants to move while all other weights stay. Yet a
weight, or a hidden unit, may be worth less than it costs once the others make up for it. How
far they can is in the curvature: leaving out the weights ``S`` and adapting the others costs
``theta_S' (inverse H)_SS^-1 theta_S / 2`` nats (optimal brain surgeon, Hassibi & Stork 1993).
What it saves is the KL of these weights, ``log((1 - psi) / psi) + log(tau / sigma)``
each. The numbers only say what to try: whether the simpler network stays is for training and
its bound to decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.arrays import Float, Index
from islab.core.network import preactivations, unit_flows
from islab.core.paths import active_weights
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines.base import LARGEST_LAMBDA, Problem
from islab.learn.stage import Stage

# Exact null directions, such as the scale of a unit, let weights adapt without end; with this
# share of the diagonal on top they may move by a few standard deviations only.
DAMPING = 0.03
ROWS_AT_ONCE = 2_000
MOST_WORK = 5e9


@dataclass(frozen=True)
class Prune:
    """How a found network is made smaller.

    Parameters
    ----------
    stage : Stage
        Trains what a trial leaves.
    tolerance : float
        Nats of expected log likelihood that each weight left out may cost. The objective must
        rise in any case.
    patience : int
        Proposals in vain before the end.
    n_trials : int
        Networks to train at most.
    linear : bool
        Whether linear models are pruned too. Their weights do not stand in for hidden units
        and for one another as those of a network, and predictions suffer more.
    """

    stage: Stage
    tolerance: float = 2.0
    patience: int = 3
    n_trials: int = 12
    linear: bool = False


def removals(
    posterior: Posterior, prior: Prior, problem: Problem, *, kl_weight: float = 1.0, skip: int = 0
) -> list[Index]:
    """Sets of used weights to leave out one after the other, the most promising first.

    Parameters
    ----------
    posterior, prior
        Of the found network.
    problem : Problem
        The rows it was found with.
    kl_weight : float
        Weight of the KL in the objective.
    skip : int
        Sets to pass over before the first, because they were tried in vain.

    Returns
    -------
    list of arrays
        Positions in the flat vector of weights: a weight, or all used weights of a hidden unit,
        together with those that are on no path any more. Empty if nothing promises a gain, or
        if the curvature would be too much work.
    """
    net = posterior.architecture
    kept = posterior.used_weights()
    used = np.flatnonzero(kept)
    if problem.n_rows * net.n_outputs * len(used) ** 2 > MOST_WORK:
        return []
    quadratic = _Quadratic.around(posterior, prior, problem, used, kl_weight)
    tau, psi = net.by_block(prior.tau)[used], net.by_block(prior.psi)[used]
    worth = kl_weight * (np.log1p(-psi) - np.log(psi) + np.log(tau / posterior.sigma[used]))
    units = np.arange(net.n_units - net.n_outputs)[:, None]
    sources, targets = (ends[used] for ends in net.ends)
    of_unit = (targets == units) | (sources == units + net.n_covariates)
    found: list[Index] = []
    while kept.any():
        alive = kept[used]
        groups = [np.flatnonzero(alive & own) for own in of_unit]
        singles = np.where(alive, worth - quadratic.costs(len(used)), -np.inf)
        together = [worth[own].sum() - quadratic.cost(own) for own in groups]
        gains = np.concatenate([singles, np.where([len(own) > 1 for own in groups], together, 0)])
        choice = int(gains.argsort()[::-1][0 if found else min(skip, len(gains) - 1)])
        if not gains[choice] > 0:
            break
        chosen = np.array([choice]) if choice < len(used) else groups[choice - len(used)]
        kept[used[chosen]] = False
        kept = active_weights(net, kept)
        left_out = np.flatnonzero(alive & ~kept[used])
        quadratic.leave_out(left_out)
        found.append(used[left_out])
    return found


def curvature(posterior: Posterior, problem: Problem, used: Index) -> NDArray[np.float64]:
    """Generalised Gauss-Newton matrix of the used weights and all biases, at their means."""
    net, likelihood = posterior.architecture, families.likelihood(posterior.likelihood)
    weights, (sources, targets) = posterior.mean_weights(), net.ends
    n_parameters, row_roots = len(used) + net.n_units, np.sqrt(problem.row_weights)[:, None]
    total = np.zeros((n_parameters, n_parameters))
    for first in range(0, problem.n_rows, ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        x = np.asarray(problem.x[rows], dtype=float)
        z = preactivations(net, weights, posterior.mean_biases(), x)
        eta = z[:, net.units[-1]]
        if problem.offset is not None:
            eta = eta + problem.offset[rows]
        roots = likelihood.hessian_roots(eta, posterior.noise)
        flows = unit_flows(net, weights, z, roots * row_roots[rows])
        hidden = [f.value(z[:, u]) for f, u in zip(net.activations, net.units, strict=False)]
        sent = np.concatenate([x, *hidden], axis=1)
        by_weight = flows[..., targets[used]] * sent[:, sources[used]]
        jacobian = np.concatenate([by_weight, flows], axis=2).reshape(-1, n_parameters)
        total += jacobian.T @ jacobian
    return total


@dataclass
class _Quadratic:
    """The objective around its optimum, ``(theta - optimum)' H (theta - optimum) / 2``.

    Parameters that are left out are 0; the others have adapted.
    """

    optimum: NDArray[np.float64]
    inverse: NDArray[np.float64]

    @classmethod
    def around(
        cls, posterior: Posterior, prior: Prior, problem: Problem, used: Index, kl_weight: float
    ) -> _Quadratic:
        net = posterior.architecture
        tau = np.concatenate([net.by_block(prior.tau)[used], np.full(net.n_units, prior.bias_tau)])
        data = curvature(posterior, problem, used)
        diagonal = kl_weight / tau**2 + DAMPING * data.diagonal()
        optimum = np.concatenate([posterior.mu[used], posterior.mean_biases()])
        inverse = np.linalg.inv(data + np.diag(diagonal)).astype(float)
        return cls(optimum.astype(float), inverse)

    def costs(self, n_weights: int) -> Float:
        """Of leaving out each of the first parameters alone."""
        spread = np.maximum(self.inverse.diagonal()[:n_weights], np.finfo(float).tiny)
        return self.optimum[:n_weights] ** 2 / (2 * spread)

    def cost(self, which: Index) -> float:
        """Of leaving out these parameters together."""
        theta = self.optimum[which]
        return float(theta @ np.linalg.solve(self.inverse[np.ix_(which, which)], theta)) / 2

    def leave_out(self, which: Index) -> None:
        """Sets these parameters to 0 and lets the others adapt."""
        across = self.inverse[:, which]
        share = np.linalg.solve(self.inverse[np.ix_(which, which)], across.T)
        self.optimum = self.optimum - share.T @ self.optimum[which]
        self.inverse = self.inverse - across @ share
        self.optimum[which] = 0.0


def fixed_structure(posterior: Posterior, threshold: float = 0.5) -> Posterior:
    """The posterior with its used weights certainly in and all others certainly out."""
    used = posterior.used_weights(threshold)
    fixed = posterior.copy(lam=np.where(used, LARGEST_LAMBDA, -LARGEST_LAMBDA))
    if posterior.bias_lam is not None:
        kept = posterior.bias_alpha > threshold
        fixed.bias_lam = np.where(kept, LARGEST_LAMBDA, -LARGEST_LAMBDA)
    return fixed


def uses_hidden(posterior: Posterior) -> bool:
    """Whether a weight from a hidden unit is used."""
    used, blocks = posterior.used_weights(), posterior.architecture.blocks
    return any(used[block.weights].any() for block in blocks if block.source == "hidden")
