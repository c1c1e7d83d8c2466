"""How far a row can move along one covariate before a hidden unit bends."""

from __future__ import annotations

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Float, Index
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
    bends = [
        activation.bends or () for activation, units in layers for _ in range(z.shape[-1])[units]
    ]
    entering = architecture.covariate_matrix(weights)[:, :n_hidden]
    columns = np.flatnonzero(entering.any(axis=(0, 1)))
    slopes = _unit_slopes(architecture, weights, np.concatenate(bent, axis=-1), columns)
    for unit, slope in enumerate(slopes):
        own = np.flatnonzero(slope.any(axis=(0, 1)))
        places = columns[own]
        for bend in bends[unit]:
            # Where the slope is 0 this is infinite or undefined: the unit does not bend.
            with np.errstate(divide="ignore", invalid="ignore"):
                step = (bend - z[..., unit, None]) / slope[..., own]
            above[..., places] = np.minimum(above[..., places], np.where(step >= 0, step, np.inf))
            below[..., places] = np.minimum(below[..., places], np.where(step <= 0, -step, np.inf))
    return below, above


def _unit_slopes(
    architecture: Architecture, weights: Float, bent: Float, columns: Index
) -> list[Float]:
    """Slopes of what each hidden unit sums up by these covariates, (draws, rows, covariates)."""
    entering = architecture.covariate_matrix(weights)[..., columns]
    shape = (*bent.shape[:-1], len(columns))
    found = [
        np.broadcast_to(entering[:, None, unit], shape)
        if unit < architecture.n_covariate_rows
        else np.zeros(shape)
        for unit in range(bent.shape[-1])
    ]
    for layer in range(1, architecture.n_layers - 1):
        first_below = architecture.units[layer - 1].start
        wires = architecture.hidden_block(layer).view(weights)
        for unit, into in enumerate(np.moveaxis(wires, 1, 0), architecture.units[layer].start):
            for place in np.flatnonzero(into.any(axis=0)):
                below = first_below + place
                passed = into[:, place, None] * bent[..., below]
                found[unit] = found[unit] + passed[..., None] * found[below]
    return found
