"""What is left of an architecture if only some of its weights are used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.paths import fed_units, heard_units

Float = NDArray[np.floating]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Compacted:
    """What remains of an architecture, and where it stood there.

    Attributes
    ----------
    architecture : Architecture
    covariates, units : Index
        Of the whole architecture.
    unit_labels : (units,) int
        Numbers of the units in their layers.
    edges, weights : (edges,) int
        Flat positions of the used weights, here and in the whole architecture.
    order : (edges,) int
        For each edge its number among the used weights of the whole architecture.
    """

    architecture: Architecture
    covariates: Index
    units: Index
    unit_labels: Index
    edges: Index
    weights: Index
    order: Index


def compacted(full: Architecture, active: NDArray[np.bool_]) -> Compacted:
    """The architecture of the used covariates and units of active weights."""
    living = fed_units(full, active) & heard_units(full, active)
    living[full.units[-1]] = True
    remaining = full.keep_units([living[units] for units in full.units[:-1]])
    covariates = np.flatnonzero(full.covariate_matrix(active).any(axis=0))
    compact, positions = drop_covariates(remaining.architecture, covariates)
    weights = remaining.weights[positions]
    edges = np.flatnonzero(active[weights])
    labels = np.concatenate([np.arange(width) for width in full.widths])
    return Compacted(
        architecture=compact,
        covariates=covariates,
        units=remaining.units,
        unit_labels=labels[remaining.units],
        edges=edges,
        weights=weights[edges],
        order=np.searchsorted(np.flatnonzero(active), weights[edges]),
    )


@dataclass(frozen=True, eq=False)
class LivingDraws:
    """Some draws of a network, without the covariates and units that none of them uses.

    Attributes
    ----------
    architecture : Architecture
    covariates : Index
        Of the whole architecture.
    weights, biases : (draws, weights), (draws, units)
    """

    architecture: Architecture
    covariates: Index
    weights: Float
    biases: Float


def living_draws(architecture: Architecture, weights: Float, biases: Float) -> LivingDraws:
    """What is left of draws (draws, weights) and (draws, units). Units that no covariate feeds
    stay: what they send on moves the bends of later ones.
    """
    kept = (weights != 0).any(axis=0)
    heard = heard_units(architecture, kept)
    smaller = architecture.keep_units([heard[units] for units in architecture.units[:-1]])
    used = np.flatnonzero(smaller.architecture.covariate_matrix(kept[smaller.weights]).any(axis=0))
    compact, positions = drop_covariates(smaller.architecture, used)
    own = weights[:, smaller.weights[positions]]
    return LivingDraws(compact, used, own, biases[:, smaller.units])


def drop_covariates(architecture: Architecture, columns: Index) -> tuple[Architecture, Index]:
    """The architecture that reads only these columns, and its weights' old flat positions."""
    numbers = np.arange(architecture.n_weights)
    parts = [
        block.view(numbers)[:, columns] if block.source == "covariate" else block.view(numbers)
        for block in architecture.blocks
    ]
    compact = Architecture(
        n_covariates=len(columns),
        hidden=architecture.hidden,
        n_outputs=architecture.n_outputs,
        input_skip=architecture.input_skip,
        activation=architecture.activation,
    )
    return compact, np.concatenate([part.ravel() for part in parts])


def places_in(small: Architecture, large: Architecture) -> tuple[Index, Index]:
    """Where weights and units of a network stand in a larger one, first in each layer.

    A linear model is the output layer of any network whose outputs read covariates.
    """
    v = large.n_covariates
    above = large.units[-small.n_layers :]
    units = np.concatenate(
        [own.start + np.arange(width) for own, width in zip(above, small.widths, strict=True)]
    )
    slots = np.full((v + large.n_units, large.n_units), -1)
    slots[large.ends] = np.arange(large.n_weights)
    sources = np.concatenate([np.arange(v), v + units])
    return slots[sources[small.ends[0]], units[small.ends[1]]], units
