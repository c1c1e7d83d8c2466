"""The active paths as boxes and curves in pixels, with the words that hovering shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from islab.core.names import printable
from islab.core.sparse import SparseNetwork
from islab.plots.edge_signs import edge_signs
from islab.plots.layout import PILL, Layout, Node, Wire, layered
from islab.plots.style import number

if TYPE_CHECKING:
    import pandas as pd

PIXELS = 96
MOST_EDGES = 300
TITLE = 26
THIN, THICK = 1.0, 6.0
EFFECTS = {1: "positive", -1: "negative", 0: "both"}


@dataclass(frozen=True)
class Box:
    """A node: ``group`` is shared by all boxes of the same covariate."""

    kind: str
    group: str
    text: str
    tip: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Curve:
    """An edge between boxes, by their numbers; ``sign`` is its effect on the outputs."""

    source: int
    target: int
    path: str
    width: float
    sign: str
    tip: str


@dataclass(frozen=True)
class Graph:
    """The picture.

    ``titles`` are words over its columns with their places, ``key`` says what colours mean,
    ``unreached`` are the outputs that no path leads to.
    """

    width: float
    height: float
    boxes: list[Box]
    curves: list[Curve]
    titles: list[tuple[float, str]]
    key: list[tuple[str, str]]
    unreached: list[str]


def path_graph(network: SparseNetwork, covariates: pd.DataFrame) -> Graph | None:
    """The graph of a network of 1 to 300 used weights, None for others.

    Parameters
    ----------
    network : SparseNetwork
    covariates : DataFrame
        Table of the global explanation.
    """
    if not 0 < network.n_used_weights <= MOST_EDGES:
        return None
    layout = layered(network, list(range(network.n_used_weights)))
    height = layout.height * PIXELS + TITLE
    curves = _curves(network, layout, height)
    found = {curve.sign for curve in curves}
    return Graph(
        width=round(layout.width * PIXELS, 1),
        height=round(height, 1),
        boxes=[_box(network, node, height, covariates) for node in layout.nodes],
        curves=curves,
        key=[
            (sign, f"more of it {words}")
            for sign, words in _effect_words(network).items()
            if sign in found
        ],
        titles=[
            (round((column.left + column.right) / 2 * PIXELS, 1), column.title)
            for column in layout.columns
        ],
        unreached=[
            printable(name)
            for number_, name in enumerate(network.scale.outputs)
            if not network.edges_of_output(number_).any()
        ],
    )


def _box(network: SparseNetwork, node: Node, height: float, covariates: pd.DataFrame) -> Box:
    size = PILL * PIXELS
    names = network.scale.names if node.kind == "covariate" else network.unit_names()
    name = printable(names[node.number])
    if node.kind == "covariate":
        tip = _covariate_tip(name, covariates.iloc[node.number])
    else:
        kind = "hidden unit" if node.kind == "hidden" else "output"
        bias = network.bias_mu[node.number]
        tip = f"{kind} {name}\nbias {number(bias)}"
    return Box(
        kind=node.kind,
        group=f"{'x' if node.kind == 'covariate' else 'u'}{node.number}",
        text=node.text,
        tip=tip,
        x=round((node.x - node.width / 2) * PIXELS, 1),
        y=round(height - node.y * PIXELS - size / 2, 1),
        width=round(node.width * PIXELS, 1),
        height=round(size, 1),
    )


def _covariate_tip(name: str, line: pd.Series) -> str:
    count = int(line["count"])
    lines = [name, f"{count} used weight" + ("s" if count != 1 else "")]
    if np.isfinite(line["used_probability"]):
        lines.append(f"probability of being used {line['used_probability']:.2f}")
    low, high = int(line["min_depth"]), int(line["max_depth"])
    lines.append(f"depth {low}" if low == high else f"depth {low} to {high}")
    if np.isfinite(line["contribution"]):
        lines.append(f"mean size of contribution {number(line['contribution'])}")
    return "\n".join(lines)


def _curves(network: SparseNetwork, layout: Layout, height: float) -> list[Curve]:
    means, sds = network.edge_means(), network.edge_sds()
    signs, words = edge_signs(network), _effect_words(network)
    largest = max(float(np.abs(means).max()), 1e-300)
    frame = network.to_frame()
    curves = []
    for wire in sorted(layout.wires, key=lambda wire: abs(means[wire.edge])):
        edge = wire.edge
        ends = (
            f"{printable(frame['from'][edge])} \N{RIGHTWARDS ARROW} {printable(frame['to'][edge])}"
        )
        tip = (
            f"{ends}\nweight {number(means[edge])} \N{PLUS-MINUS SIGN} {number(sds[edge])}\n"
            f"inclusion probability {network.alpha[edge]:.2f}\nlayer {frame['layer'][edge]}\n"
            f"more of it {words[EFFECTS[int(signs[edge])]]}"
        )
        curves.append(
            Curve(
                source=wire.source,
                target=wire.target,
                path=_path(layout, wire, height),
                width=round(THIN + (THICK - THIN) * float(np.sqrt(abs(means[edge]) / largest)), 2),
                sign=EFFECTS[int(signs[edge])],
                tip=tip,
            )
        )
    return curves


def _effect_words(network: SparseNetwork) -> dict[str, str]:
    """What more of what an edge carries does to the output, by the edge's sign."""
    several = len(network.scale.outputs) > 1
    return {
        "positive": "raises the output",
        "negative": "lowers the output",
        "both": "raises some outputs and lowers others" if several else "raises or lowers it",
    }


def _path(layout: Layout, wire: Wire, height: float) -> str:
    """Along the row of the source, an S through the gap, along the row of the target."""
    start, end = layout.nodes[wire.source], layout.nodes[wire.target]
    left = layout.columns[layout.column_of[wire.source]].right
    right = layout.columns[layout.column_of[wire.target]].left
    third = (right - left) / 3
    xs = [start.x, left, left + third, right - third, right, end.x]
    a, b, c, d, e, f = (round(x * PIXELS, 1) for x in xs)
    low = round(height - (start.y + wire.leave) * PIXELS, 1)
    high = round(height - (end.y + wire.arrive) * PIXELS, 1)
    return f"M{a} {low}L{b} {low}C{c} {low} {d} {high} {e} {high}L{f} {high}"
