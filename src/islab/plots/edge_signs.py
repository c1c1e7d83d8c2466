"""Whether more of what an edge carries raises or lowers the output it leads to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from islab.core.families import Activation
from islab.core.sparse import SparseNetwork


def edge_signs(network: SparseNetwork, output: int | None = None) -> NDArray[np.intp]:
    """1 for edges that raise every output they lead to, -1 for those that lower it, else 0.

    Along a path signs multiply, as long as activations rise. An edge with paths of both signs, or
    to outputs of which it raises some and lowers others, has no sign.

    Parameters
    ----------
    network : SparseNetwork
    output : int, optional
        Look at the paths to this output only.

    Returns
    -------
    (edges,)
        At the posterior mean of the weights.
    """
    net, weights = network.architecture, network.mean_weights()
    wanted = np.arange(net.n_outputs) == output if output is not None else np.ones(net.n_outputs)
    # Whether a unit has a path of positive and of negative sign to a wanted output.
    raises, lowers = np.zeros(net.n_units, dtype=bool), np.zeros(net.n_units, dtype=bool)
    raises[net.units[-1]] = wanted.astype(bool)
    for layer in reversed(range(1, net.n_layers)):
        wires = net.hidden_block(layer).view(weights)
        up, down = raises[net.units[layer]], lowers[net.units[layer]]
        here = net.units[layer - 1]
        raises[here] = ((wires > 0) & up[:, None] | (wires < 0) & down[:, None]).any(axis=0)
        lowers[here] = ((wires > 0) & down[:, None] | (wires < 0) & up[:, None]).any(axis=0)
        if not _rises(net.activations[layer - 1]):
            either = raises[here] | lowers[here]
            raises[here] = lowers[here] = either
    targets, own = network.edge_ends()[1], np.sign(network.edge_means())
    sign = raises[targets].astype(np.intp) - lowers[targets].astype(np.intp)
    return (sign * own).astype(np.intp)


def _rises(activation: Activation) -> bool:
    """Whether the function never falls, as far as can be seen on a grid."""
    return bool((activation.slope(np.linspace(-30, 30, 2001)) >= 0).all())
