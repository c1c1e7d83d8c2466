"""The network written out: each unit as a short sum of its inputs, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from islab.core.sparse import SparseNetwork


@dataclass(frozen=True)
class Term:
    """One used weight, times a covariate (a column of the data) or a hidden unit."""

    weight: float
    covariate: bool
    source: int


@dataclass(frozen=True)
class Sum:
    """What one unit adds up."""

    layer: int  # the last layer is that of the outputs
    label: int  # number of the unit in its layer of the posterior, of the output for outputs
    constant: float
    terms: tuple[Term, ...]


def sums(network: SparseNetwork) -> list[Sum]:
    """The sum of each unit at the posterior mean, hidden units first, outputs last.

    The scaling of covariates is folded into weights and constants, that of y into the outputs'.
    """
    shape, scale = network.architecture, network.scale
    sources, targets = network.edge_ends()
    from_covariate = network.from_covariate()
    n_hidden = shape.n_units - shape.n_outputs
    factor = np.concatenate([np.ones(n_hidden), scale.y_scale])
    shift = np.concatenate([np.zeros(n_hidden), scale.y_center])
    weights = network.edge_means() * factor[targets]
    constants = shift + factor * network.bias_mu
    columns = sources[from_covariate]
    weights[from_covariate] /= scale.x_scale[columns]
    np.subtract.at(
        constants, targets[from_covariate], weights[from_covariate] * scale.x_center[columns]
    )
    layers = np.repeat(np.arange(shape.n_layers), shape.widths)
    labels = np.concatenate([network.unit_labels[:n_hidden], np.arange(shape.n_outputs)])
    return [
        Sum(
            layer=int(layers[unit]),
            label=int(labels[unit]),
            constant=float(constants[unit]),
            terms=tuple(
                Term(float(weights[edge]), bool(from_covariate[edge]), int(sources[edge]))
                for edge in np.flatnonzero(targets == unit)
            ),
        )
        for unit in range(shape.n_units)
    ]
