"""Laplace's approximation of a network's posterior, and what it says about priors and pruning.

The curvature is the diagonal of the generalised Gauss-Newton matrix (GGN).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.baselines.descent import LEAST_NOISE
from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float, Mask
from islab.core.network import forward, preactivations, unit_flows
from islab.learn.engines.base import Problem

# The weakest prior has a standard deviation of 1: data that say nothing about a weight would
# otherwise leave it without any prior, and its draws without bounds.
LEAST_PRECISION, LARGEST_PRECISION = 1.0, 1e6
ROWS_AT_ONCE = 1_000


def ggn_diagonal(net: Architecture, theta: Float, x: Float, roots: Float) -> Float:
    """Diagonal of the GGN of weights and biases, by column of the roots.

    Parameters
    ----------
    theta : (weights + units,)
    x : (rows, covariates)
    roots : (columns, rows, outputs)

    Returns
    -------
    (columns, weights + units)
        Their sum over columns is the diagonal.

    Notes
    -----
    A weight's derivative is what flows back to its target times what its source sends, so that
    the sum of squares over rows is one product of squared matrices for each layer.
    """
    weights = theta[: net.n_weights]
    z = preactivations(net, weights, theta[net.n_weights :], x)
    found = np.zeros((len(roots), len(theta)))
    by_weight, by_bias = np.split(found, [net.n_weights], axis=1)
    squared = np.swapaxes(unit_flows(net, weights, z, roots) ** 2, 1, 2)  # (columns, units, rows)
    by_bias[...] = squared.sum(axis=2)
    net.covariate_matrix(by_weight)[...] = squared[:, : net.n_covariate_rows] @ x**2
    for layer in range(1, net.n_layers):
        sent = net.activations[layer - 1].value(z[:, net.units[layer - 1]])
        net.hidden_block(layer).view(by_weight)[...] = squared[:, net.units[layer]] @ sent**2
    return found


@dataclass(frozen=True, eq=False)
class Laplace:
    """A Gaussian posterior with a diagonal precision around fitted weights and biases."""

    theta: Float  # (weights + units,)
    prior_precision: Float  # (weights + units,)
    curvature: Float  # (columns, weights + units), see :func:`ggn_diagonal`
    nll: float  # of all rows
    error: Float  # (outputs,), sums of squared errors

    @property
    def precision(self) -> Float:
        """Of the posterior."""
        return self.curvature.sum(axis=0) + self.prior_precision

    @property
    def damage(self) -> Float:
        """Optimal posterior damage: what the log posterior loses, twice, without each weight."""
        return self.precision * self.theta**2

    @property
    def log_marginal_likelihood(self) -> float:
        """``-NLL - 1/2 sum(delta theta**2 - log delta + log(curvature + delta))``."""
        delta = self.prior_precision
        ratio = np.log(self.precision) - np.log(delta)
        return -self.nll - 0.5 * float((delta * self.theta**2 + ratio).sum())

    def better_prior(self, groups: NDArray[np.intp]) -> Float:
        """Prior precisions with a higher marginal likelihood for these weights.

        Parameters
        ----------
        groups : (weights,)
            Number of the precision that each weight shares; biases keep theirs.

        Notes
        -----
        The optimum of a group satisfies ``delta = sum gamma / sum theta**2`` with
        ``gamma = curvature / (curvature + delta)``. As a map of ``log delta`` the right-hand side
        falls with a slope between -1 and 0, so half a step towards it stays on the same side of
        the optimum: the marginal likelihood never falls.
        """
        n_weights = len(groups)
        theta, delta = self.theta[:n_weights], self.prior_precision[:n_weights]
        gamma = 1 - delta / self.precision[:n_weights]
        tiny = np.finfo(float).tiny
        determined = np.maximum(np.bincount(groups, gamma), tiny)
        optimum = determined / np.maximum(np.bincount(groups, theta**2), tiny)
        moved = np.sqrt(delta * optimum[groups])
        bounded = np.clip(moved, LEAST_PRECISION, LARGEST_PRECISION)
        return np.concatenate([bounded, self.prior_precision[n_weights:]])

    def better_noise(self, noise: Float, n_rows: float) -> Float:
        """Noise variances with a higher marginal likelihood, by a step of EM.

        ``(squared error + noise * gamma) / rows``, gamma being the number of parameters that
        each output's data determine.
        """
        gamma = (self.curvature / self.precision).sum(axis=1)
        return np.maximum((self.error + noise * gamma) / n_rows, LEAST_NOISE)


def approximate(
    net: Architecture,
    likelihood: families.Likelihood,
    theta: Float,
    prior_precision: Float,
    noise: Float,
    problem: Problem,
) -> Laplace:
    """Laplace's approximation at these weights and biases."""
    weights, biases = np.split(theta, [net.n_weights])
    nll, error, curvature = 0.0, np.zeros(net.n_outputs), np.zeros(())
    for first in range(0, problem.n_rows, ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        x, y = problem.x[part], problem.y[part]
        weight = problem.row_weights[part]
        eta = forward(net, weights, biases, x)
        roots = likelihood.hessian_roots(eta, noise) * np.sqrt(weight)[:, None]
        nll += float(weight @ likelihood.nll(y, eta, noise))
        error += weight @ (y - eta) ** 2
        curvature = curvature + ggn_diagonal(net, theta, x, roots)
    return Laplace(theta, prior_precision, curvature, nll, error)


def prune(net: Architecture, damage: Float, sparsity: float) -> Mask:
    """Weights to keep: all of the last layer, and the others that would do most damage.

    Parameters
    ----------
    damage : (weights,)
    sparsity : float
        Share of the weights before the last layer that is pruned, rounded down: below 1 at
        least one weight stays.
    """
    last = in_last_layer(net)
    order = np.flatnonzero(~last)[np.argsort(damage[~last], kind="stable")]
    kept = np.ones(net.n_weights, dtype=bool)
    kept[order[: int(sparsity * len(order) + 1e-9)]] = False
    return kept


def in_last_layer(net: Architecture) -> Mask:
    """Which weights lead to an output."""
    return net.by_block([block.layer for block in net.blocks]) == net.n_layers - 1


def prior_groups(net: Architecture, prior: str) -> NDArray[np.intp]:
    """Number of the prior precision that each weight shares."""
    if prior == "weight":
        return np.arange(net.n_weights)
    if prior == "layer":
        return net.by_block([block.layer for block in net.blocks])
    return np.zeros(net.n_weights, dtype=np.intp)
