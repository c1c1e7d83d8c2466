"""How far a row can move along one covariate before a hidden unit bends."""

from __future__ import annotations

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Float
from islab.core.network import preactivations


def linear_reach(
    architecture: Architecture, weights: Float, biases: Float, x: Float
) -> tuple[Float, Float]:
    """Distances below and above each row, along each covariate, to the nearest bend.

    Parameters
    ----------
    weights, biases : (draws, weights), (draws, units)
    x : (rows, covariates)
        Standardised, as the distances.

    Returns
    -------
    below, above : (draws, rows, covariates)
        Infinite where nothing bends; 0 everywhere for a curved network.

    Notes
    -----
    Within the linear region of a row every hidden unit sums up a linear function of the
    covariates. Along covariate j a unit with sum z and slope g by it meets its bend at b after
    (b - z) / g; the region ends at the first of them.
    """
    n_hidden = sum(architecture.hidden)
    shape = (len(weights), len(x), architecture.n_covariates)
    if not architecture.piecewise_linear:
        return np.zeros(shape), np.zeros(shape)
    below, above = np.full(shape, np.inf), np.full(shape, np.inf)
    layers = list(zip(architecture.activations, architecture.units, strict=False))
    if not any(activation.bends for activation, _ in layers):
        return below, above
    z = preactivations(architecture, weights, biases, x)[..., :n_hidden]
    bent = [activation.slope(z[..., units]) for activation, units in layers]
    slopes = _unit_slopes(architecture, weights, np.concatenate(bent, axis=-1))
    for activation, units in layers:
        slope = slopes[..., units, :]
        for bend in (activation.bends or ()) if slope.size else ():
            gap = np.broadcast_to((bend - z[..., units])[..., None], slope.shape)
            step = np.divide(gap, slope, out=np.full(slope.shape, np.inf), where=slope != 0)
            np.minimum(above, np.where(step >= 0, step, np.inf).min(axis=2), out=above)
            np.minimum(below, np.where(step <= 0, -step, np.inf).min(axis=2), out=below)
    return below, above


def _unit_slopes(architecture: Architecture, weights: Float, bent: Float) -> Float:
    """Slopes of what the hidden units sum up, (draws, rows, hidden units, covariates)."""
    covariates = architecture.covariate_matrix(weights)
    n_hidden = bent.shape[-1]
    found = np.zeros((*bent.shape, architecture.n_covariates))
    rows = min(n_hidden, architecture.n_covariate_rows)
    found[:, :, :rows] = covariates[:, None, :rows]
    for layer in range(1, architecture.n_layers - 1):
        below, here = architecture.units[layer - 1], architecture.units[layer]
        wires = architecture.hidden_block(layer).view(weights)[:, None]
        found[:, :, here] += wires @ (bent[..., below, None] * found[:, :, below])
    return found
