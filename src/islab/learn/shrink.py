"""Dropping hidden units that no longer take part, while training goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.arrays import Float, Mask
from islab.core.equations import moments, sigmoid, softplus
from islab.core.paths import fed_units, heard_units
from islab.learn.engines.base import Parameters

QUADRATURE_NODES = 9


@dataclass(frozen=True)
class Shrink:
    """When a hidden unit is dead and dropped.

    Parameters
    ----------
    threshold : float
        A unit lives if a path of weights with ``alpha > threshold`` leads from a covariate to it
        and on to an output. Disconnected weights drift back to the prior, so the test is about
        paths, not single weights.
    start : float
        Share of the stage before which nothing is dropped: early on, units revive.
    every : int
        Steps between checks.
    patience : int
        Checks in a row that must find a unit dead.
    """

    threshold: float = 0.01
    start: float = 0.4
    every: int = 200
    patience: int = 2

    def living(self, architecture: Architecture, lam: NDArray) -> Mask:
        """Units on a path, outputs included, (units,)."""
        kept = np.asarray(sigmoid(lam)) > self.threshold
        living = fed_units(architecture, kept) & heard_units(architecture, kept)
        living[architecture.units[-1]] = True
        return living


def split_by_layer(architecture: Architecture, units: Mask) -> list[Mask]:
    """A mask of units as one mask for each hidden layer."""
    return [units[layer] for layer in architecture.units[:-1]]


def sent_constants(architecture: Architecture, now: Parameters, dropped: Mask) -> Float:
    """What dropped units send to each unit's sum on average, to be added to its bias.

    A dropped unit is fed by its bias alone; the mean of its activation is taken over the bias,
    which may be out.
    """
    mean, _ = moments(now.mu, softplus(now.rho), sigmoid(now.lam))
    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
    bias_sd = softplus(now.bias_rho)
    shift = np.zeros(architecture.n_units)
    for layer in range(1, architecture.n_layers):
        below, here = architecture.units[layer - 1], architecture.units[layer]
        centre = now.bias_mu[below] + shift[below]
        activation = architecture.activations[layer - 1]
        values = activation.value(centre[:, None] + bias_sd[below, None] * nodes)
        expected = values @ (weights / weights.sum())
        if now.bias_lam is not None:
            included = sigmoid(now.bias_lam[below])
            expected = included * expected + (1 - included) * activation.value(shift[below])
        constant = np.where(dropped[below], expected, 0.0)
        shift[here] = architecture.hidden_block(layer).view(mean) @ constant
    return shift
