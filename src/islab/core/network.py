"""Forward and backward through networks whose weights are known numbers.

``weights`` is (..., weights) and ``biases`` (..., units) in the flat order of an
:class:`~islab.core.architecture.Architecture`; leading axes are draws. Everything is numpy and runs
over all draws and rows at once. Draws that use few of their weights are faster as
:class:`~islab.core.drawn.DrawnNetworks`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Float

NUMBERS_IN_CACHE = 250_000
NUMBERS_AT_ONCE = 400_000


def preactivations(architecture: Architecture, weights: Float, biases: Float, x: Float) -> Float:
    """What every unit sums up, (..., rows, units); the last ``n_outputs`` are the predictor.

    Rows are (rows, covariates), or (draws, rows, covariates) if each draw has its own.
    """
    lead = np.broadcast_shapes(weights.shape[:-1], biases.shape[:-1])
    z = np.empty((*lead, x.shape[-2], architecture.n_units))
    z[...] = biases[..., None, :]
    activations, covariates = architecture.activations, architecture.covariate_matrix(weights)
    z[..., : architecture.n_covariate_rows] += x @ np.swapaxes(covariates, -1, -2)
    for layer in range(1, architecture.n_layers):
        block = architecture.hidden_block(layer)
        if block.size:
            hidden = activations[layer - 1].value(z[..., architecture.units[layer - 1]])
            z[..., architecture.units[layer]] += hidden @ np.swapaxes(block.view(weights), -1, -2)
    return z


def forward(architecture: Architecture, weights: Float, biases: Float, x: Float) -> Float:
    """The linear predictor of a network (rows, outputs), or of draws (draws, rows, outputs).

    Draws of a network pass few at a time, so that what their units sum up stays in the caches.
    """
    outputs = architecture.units[-1]
    if weights.ndim == 1:
        return preactivations(architecture, weights, biases, x)[..., outputs]
    biases = np.broadcast_to(biases, (len(weights), architecture.n_units))
    at_once = max(1, NUMBERS_IN_CACHE // max(1, len(x) * architecture.n_units))
    eta = np.empty((len(weights), len(x), architecture.n_outputs))
    for first in range(0, len(weights), at_once):
        few = slice(first, first + at_once)
        eta[few] = preactivations(architecture, weights[few], biases[few], x)[..., outputs]
    return eta


def slopes(
    architecture: Architecture, weights: Float, biases: Float, x: Float
) -> tuple[Float, Float]:
    """The predictor (..., rows, outputs) and its gradient (..., rows, outputs, covariates).

    With a piecewise-linear activation the gradient is the exact slope of the linear piece that
    contains the row.
    """
    z = preactivations(architecture, weights, biases, x)
    covariates = architecture.covariate_matrix(weights)
    outputs = architecture.units[-1]
    lead = z.shape[:-1]
    flow = np.broadcast_to(
        np.eye(architecture.n_outputs), (*lead, architecture.n_outputs, architecture.n_outputs)
    )
    gradient = np.zeros((*lead, architecture.n_outputs, architecture.n_covariates))
    activations = architecture.activations
    for layer in reversed(range(architecture.n_layers)):
        units = architecture.units[layer]
        if architecture.input_skip or layer == 0:
            gradient += flow @ covariates[..., None, units, :]
        if layer:
            block = architecture.hidden_block(layer)
            slope = activations[layer - 1].slope(z[..., architecture.units[layer - 1]])
            flow = (flow @ block.view(weights)[..., None, :, :]) * slope[..., None, :]
    return z[..., outputs], gradient


def unit_flows(architecture: Architecture, weights: Float, z: Float, flow: Float) -> Float:
    """Derivatives by every unit's sum, (columns, rows, units), from those by the predictor.

    Parameters
    ----------
    weights : (weights,)
    z : (rows, units)
        What the units sum up, see :func:`preactivations`.
    flow : (columns, rows, outputs)
    """
    flows = np.empty((*flow.shape[:-1], architecture.n_units))
    flows[..., architecture.units[-1]] = flow
    activations = architecture.activations
    for layer in reversed(range(1, architecture.n_layers)):
        wires, below = architecture.hidden_block(layer).view(weights), architecture.units[layer - 1]
        slope = activations[layer - 1].slope(z[:, below])
        flows[..., below] = flows[..., architecture.units[layer]] @ wires * slope
    return flows


def portions(total: int, cost: int) -> Iterator[int]:
    """Splits a number of draws so that each portion fits in memory."""
    if total < 1:
        raise ValueError(f"Got n_draws={total}, expected at least 1.")
    size = max(1, min(total, NUMBERS_AT_ONCE // max(cost, 1)))
    while total > 0:
        yield min(size, total)
        total -= size
