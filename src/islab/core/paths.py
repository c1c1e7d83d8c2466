"""Active paths: which kept weights lie on a chain from a covariate to an output."""

from __future__ import annotations

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Mask


def fed_units(architecture: Architecture, kept: Mask) -> Mask:
    """Units that some covariate reaches over kept weights, (..., units).

    Parameters
    ----------
    kept : (..., weights) bool
    """
    fed = np.zeros((*kept.shape[:-1], architecture.n_units), dtype=bool)
    fed[..., : architecture.n_covariate_rows] = architecture.covariate_matrix(kept).any(axis=-1)
    for layer in range(1, architecture.n_layers):
        wires = architecture.hidden_block(layer).view(kept)
        below = fed[..., architecture.units[layer - 1]]
        fed[..., architecture.units[layer]] |= (wires & below[..., None, :]).any(axis=-1)
    return fed


def heard_units(architecture: Architecture, kept: Mask, outputs: Mask | None = None) -> Mask:
    """Units that reach one of the outputs (all, or those in a mask) over kept weights."""
    heard = np.zeros((*kept.shape[:-1], architecture.n_units), dtype=bool)
    heard[..., architecture.units[-1]] = True if outputs is None else outputs
    for layer in reversed(range(1, architecture.n_layers)):
        wires = architecture.hidden_block(layer).view(kept)
        above = heard[..., architecture.units[layer]]
        heard[..., architecture.units[layer - 1]] = (wires & above[..., :, None]).any(axis=-2)
    return heard


def active_weights(architecture: Architecture, kept: Mask, outputs: Mask | None = None) -> Mask:
    """Kept weights on an active path, (..., weights).

    Examples
    --------
    A hidden unit that no covariate feeds carries only its bias, so its weight is not used:

    >>> import numpy as np
    >>> net = Architecture(n_covariates=1, hidden=(1,), n_outputs=1)
    >>> active_weights(net, np.array([False, True, True]))  # x->h, x->y, h->y
    array([False,  True, False])
    """
    fed = fed_units(architecture, kept)
    heard = heard_units(architecture, kept, outputs)
    active = kept.copy()
    for block in architecture.blocks:
        wires = block.view(active)
        wires &= heard[..., architecture.units[block.layer], None]
        if block.source == "hidden":
            wires &= fed[..., None, architecture.units[block.layer - 1]]
    return active
