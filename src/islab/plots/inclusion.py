"""How often each covariate enters each layer, with inclusion probabilities, as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.outputs import Output, output_number
from islab.core.sparse import SparseNetwork
from islab.plots.style import INK, MUTED, fresh_axes, heading, sequential, shown


def inclusion_map(
    network: SparseNetwork,
    *,
    output: Output | None = None,
    by_variable: bool = False,
    top: int = 40,
    ax: Any = None,
) -> Any:
    """Draws a line for each used covariate and a column for each layer.

    The colour is the mean inclusion probability of the covariate's weights into the layer, the
    number says how many they are.

    Parameters
    ----------
    network : SparseNetwork
    output : name or position, optional
        Count only paths to this output.
    by_variable : bool
        One line for each variable: its one-hot columns together.
    top : int
        Lines shown at most: those with the most weights.
    ax : matplotlib axes, optional
    """
    labels, counts, alpha = _entries(network, output, by_variable)
    hidden = max(len(labels) - top, 0)
    names = [shown(name) for name in labels[:top]]
    counts, alpha = counts[:top], alpha[:top]
    n_layers = network.architecture.n_layers

    longest = max((len(name) for name in names), default=0)
    ax = fresh_axes(ax, 2.2 + 0.75 * n_layers + 0.08 * longest, 1.3 + 0.27 * max(len(names), 1))
    image = ax.imshow(alpha, cmap=sequential(), vmin=0, vmax=1, aspect="auto")
    for line, layer in zip(*np.nonzero(counts), strict=True):
        ink = "white" if alpha[line, layer] > 0.6 else INK
        ax.text(layer, line, counts[line, layer], ha="center", va="center", color=ink, fontsize=8)
    ax.set_xticks(range(n_layers), [f"layer {layer}" for layer in range(n_layers)])
    ax.set_yticks(range(len(names)), names)
    ax.set_xticks(np.arange(n_layers + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.tick_params(which="both", length=0, labelsize=8.5, labelcolor=INK)
    ax.spines[:].set_visible(False)
    bar = ax.get_figure().colorbar(image, ax=ax, fraction=0.05, pad=0.03, aspect=30)
    bar.set_label("mean inclusion probability", color=INK, fontsize=8.5)
    bar.ax.tick_params(labelsize=8, labelcolor=INK, color=MUTED)
    bar.outline.set_visible(False)
    if hidden:
        ax.set_xlabel(f"and {hidden} more with fewer weights", color=MUTED, fontsize=8.5)
    heading(ax, "Weights that enter each layer")
    return ax


def _entries(
    network: SparseNetwork, output: Output | None, by_variable: bool
) -> tuple[list[str], NDArray[np.intp], NDArray[np.floating]]:
    """Names, counts and mean inclusion by layer of what enters, the most weights first."""
    chosen = network.from_covariate()
    if output is not None:
        chosen &= network.edges_of_output(output_number(network.scale.outputs, output))
    labels = network.scale.variables if by_variable else network.scale.names
    names = list(dict.fromkeys(labels))
    lines = np.array([names.index(label) for label in labels], dtype=np.intp)
    where = (lines[network.edge_ends()[0][chosen]], network.edge_layers()[chosen])
    counts = np.zeros((len(names), network.architecture.n_layers), dtype=np.intp)
    total = np.zeros(counts.shape)
    np.add.at(counts, where, 1)
    np.add.at(total, where, network.alpha[chosen])
    used = np.flatnonzero(counts.any(axis=1))
    used = used[np.argsort(-counts[used].sum(axis=1), kind="stable")]
    alpha = np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)
    return [names[line] for line in used], counts[used], alpha[used]
