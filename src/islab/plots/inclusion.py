"""How often and how surely each covariate enters each layer, as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from islab.core.sparse import SparseNetwork
from islab.explain.choices import Output
from islab.explain.global_ import explain_global
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
    explanation = explain_global(network, output=output)
    frame = explanation.variables if by_variable else explanation.covariates
    frame = frame[frame["count"] > 0].sort_values("count", ascending=False, kind="stable")
    hidden = max(len(frame) - top, 0)
    frame = frame.head(top)
    n_layers = network.architecture.n_layers
    counts = frame[[f"count_{layer}" for layer in range(n_layers)]].to_numpy()
    alpha = frame[[f"alpha_{layer}" for layer in range(n_layers)]].to_numpy(dtype=float)
    names = [shown(name) for name in frame.iloc[:, 0]]

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
