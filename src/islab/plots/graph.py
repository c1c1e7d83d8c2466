"""The active paths of a network, drawn layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from islab.core.dependencies import needed
from islab.core.outputs import Output, output_number
from islab.core.sparse import SparseNetwork
from islab.plots.edge_signs import edge_signs
from islab.plots.inclusion import inclusion_map
from islab.plots.layout import FONT, PILL, Layout, Wire, layered
from islab.plots.style import INK, MUTED, NEGATIVE, PAPER, POSITIVE, fresh_axes, number, shown

MARGIN_TOP, MARGIN_BOTTOM = 0.75, 0.5
FEW_EDGES = 30
COLOURS = {1: POSITIVE, -1: NEGATIVE, 0: MUTED}
STEPS = np.linspace(0, 1, 40)


def path_graph(
    network: SparseNetwork,
    *,
    output: Output | None = None,
    by_variable: bool = False,
    label: str | None = "auto",
    max_edges: int = 200,
    ax: Any = None,
) -> Any:
    """Draws covariates where they enter, hidden units and outputs, and the weights between.

    Colours say whether more of what an edge carries raises or lowers the output; edges that do
    both, on different paths, are grey.

    Parameters
    ----------
    network : SparseNetwork
    output : name or position, optional
        Draw only the paths to this output.
    by_variable : bool
        One box for each variable: its one-hot columns together.
    label : {"auto", "mean", "alpha"}, optional
        What to write on the edges: the posterior mean or the inclusion probability of the
        weight; ``"auto"`` writes means if the edges are few, None nothing.
    max_edges : int
        With more edges than this the graph would not be readable: the axes then show how often
        each covariate enters each layer, and say so.
    ax : matplotlib axes, optional

    Returns
    -------
    axes
    """
    if label not in ("auto", "mean", "alpha", None):
        raise ValueError(f"Got label={label!r}, expected 'auto', 'mean', 'alpha' or None.")
    edges = np.arange(len(network.edges))
    paths, chosen = "", None
    if output is not None:
        chosen = output_number(network.scale.outputs, output)
        edges = np.flatnonzero(network.edges_of_output(chosen))
        paths = f" to {shown(network.scale.outputs[chosen])}"
    if len(edges) > max_edges:
        ax = inclusion_map(network, output=output, by_variable=by_variable, ax=ax)
        ax.set_title(
            f"{len(edges)} active edges{paths} are too many to draw one by one;\n"
            "how often each covariate enters each layer instead",
            loc="left",
            fontsize=10,
            color=INK,
        )
        return ax
    if not len(edges):
        return _empty(fresh_axes(ax, 5, 2), paths)
    if label == "auto":
        label = "mean" if len(edges) <= FEW_EDGES else None
    layout = layered(network, edges.tolist(), by_variable)
    height = layout.height + MARGIN_TOP + MARGIN_BOTTOM
    ax = fresh_axes(ax, layout.width, height)
    scale = _inches(ax, layout.width, height)
    signs = edge_signs(network, chosen)
    _draw_wires(ax, network, layout, label, signs, scale)
    _draw_nodes(ax, layout, scale)
    _draw_titles(ax, layout, paths, len(edges), scale)
    _draw_key(ax, network, layout, edges, signs, scale)
    return ax


def _empty(ax: Any, paths: str) -> Any:
    ax.set_axis_off()
    text = f"No active path{paths}: this network predicts the same for all rows."
    ax.text(0.5, 0.5, text, ha="center", va="center", color=INK, transform=ax.transAxes)
    return ax


def _inches(ax: Any, width: float, height: float) -> float:
    """Makes data units inches of the layout, and gives the factor for sizes of text."""
    ax.set(xlim=(0, width), ylim=(-MARGIN_BOTTOM, height - MARGIN_BOTTOM), aspect="equal")
    ax.set_axis_off()
    figure = ax.get_figure()
    box = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    return min(box.width / width, box.height / height, 1.0)


def _curve(layout: Layout, wire: Wire) -> tuple[np.ndarray, np.ndarray]:
    """Along the row of the source, an S through the gap, along the row of the target."""
    start, end = layout.nodes[wire.source], layout.nodes[wire.target]
    left = layout.columns[layout.column_of[wire.source]].right
    right = layout.columns[layout.column_of[wire.target]].left
    low, high = start.y + wire.leave, end.y + wire.arrive
    x = left + (right - left) * STEPS
    y = low + (high - low) * STEPS**2 * (3 - 2 * STEPS)
    # The ends run on under the nodes, whose corners are round.
    x = np.concatenate([[start.x + start.width / 4], x, [end.x - end.width / 4]])
    return x, np.concatenate([[low], y, [high]])


def _draw_wires(
    ax: Any,
    network: SparseNetwork,
    layout: Layout,
    label: str | None,
    signs: np.ndarray,
    scale: float,
) -> None:
    means = network.edge_means()
    largest = max(np.abs(means[[wire.edge for wire in layout.wires]]).max(), 1e-300)
    crowded = min(len(layout.wires) / 100, 1)
    taken: list[tuple[float, float]] = []
    for wire in sorted(layout.wires, key=lambda wire: abs(means[wire.edge])):
        mean = means[wire.edge]
        x, y = _curve(layout, wire)
        colour = COLOURS[int(signs[wire.edge])]
        width = (0.7 + (3.3 - 1.3 * crowded) * np.sqrt(abs(mean) / largest)) * scale
        ax.plot(
            x,
            y,
            color=colour,
            linewidth=width,
            alpha=0.9 - 0.35 * crowded,
            solid_capstyle="round",
            zorder=1,
        )
        if label is not None:
            value = mean if label == "mean" else network.alpha[wire.edge]
            text = number(value) if label == "mean" else f"{value:.2f}"
            place = _free_place(x, y, taken)
            taken.append(place)
            ax.text(
                *place,
                text,
                fontsize=(FONT - 2) * scale,
                color=colour,
                ha="center",
                va="center",
                zorder=3,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8 * scale, "alpha": 0.9},
            )


def _free_place(
    x: np.ndarray, y: np.ndarray, taken: list[tuple[float, float]]
) -> tuple[float, float]:
    """The point of a curve's middle that is farthest from the labels there are."""
    middle = range(8, len(x) - 8, 2)
    candidates = sorted(middle, key=lambda index: abs(index - len(x) / 2))
    best, best_room = candidates[0], -1.0
    for index in candidates:
        # A label is about three times as wide as it is high.
        room = min((np.hypot((x[index] - a) / 3, y[index] - b) for a, b in taken), default=9.0)
        if room > best_room + 1e-9:
            best, best_room = index, float(room)
        if room > 0.2:
            break
    return float(x[best]), float(y[best])


def _draw_nodes(ax: Any, layout: Layout, scale: float) -> None:
    patches = needed("matplotlib.patches", "A plot", "islab-bnn[plots]")
    looks = {
        "covariate": (PAPER, INK, INK),
        "hidden": ("white", MUTED, MUTED),
        "output": (INK, INK, "white"),
    }
    for node in layout.nodes:
        face, edge, ink = looks[node.kind]
        height = PILL if node.kind != "hidden" else PILL - 0.04
        rounding = height / 2 if node.kind != "output" else 0.05
        ax.add_patch(
            patches.FancyBboxPatch(
                (node.x - node.width / 2, node.y - height / 2),
                node.width,
                height,
                boxstyle=patches.BoxStyle.Round(pad=0, rounding_size=rounding),
                facecolor=face,
                edgecolor=edge,
                linewidth=0.8 * scale,
                zorder=4,
            )
        )
        ax.text(
            node.x,
            node.y,
            shown(node.text),
            fontsize=(FONT if node.kind != "hidden" else FONT - 2) * scale,
            color=ink,
            ha="center",
            va="center_baseline",
            zorder=5,
        )


def _draw_titles(ax: Any, layout: Layout, paths: str, n_edges: int, scale: float) -> None:
    for column in layout.columns:
        ax.text(
            (column.left + column.right) / 2,
            layout.height + 0.08,
            column.title,
            fontsize=(FONT - 1) * scale,
            color=MUTED,
            ha="center",
            va="bottom",
        )
    ax.text(
        0.05,
        layout.height + 0.5,
        f"Active paths{paths}: {n_edges} weight" + ("s" if n_edges != 1 else ""),
        fontsize=(FONT + 2) * scale,
        color=INK,
        va="center",
    )


def _draw_key(
    ax: Any,
    network: SparseNetwork,
    layout: Layout,
    edges: np.ndarray,
    signs: np.ndarray,
    scale: float,
) -> None:
    """Says what colours mean: the effect on the output, not the sign of the weight."""
    size = np.abs(network.edge_means()[edges])
    x, y = 0.08, -0.3
    width = (FONT - 1) * 0.6 / 72
    words = {1: "more of it raises the output", -1: "lowers it", 0: "does both"}
    for sign in (1, -1, 0):
        if sign == 0 and (signs[edges] != 0).all():
            continue
        text = words[sign]
        ax.plot([x, x + 0.25], [y, y], color=COLOURS[sign], linewidth=2.5 * scale)
        ax.text(x + 0.32, y, text, fontsize=(FONT - 1) * scale, color=MUTED, va="center")
        x += 0.5 + len(text) * width
    text = f"width: |weight|, up to {number(size.max())}"
    if x + len(text) * width < layout.width:
        ax.text(x + 0.05, y, text, fontsize=(FONT - 1) * scale, color=MUTED, va="center")
