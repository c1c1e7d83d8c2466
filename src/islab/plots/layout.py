"""Where the nodes of a path graph stand: columns by layer, few crossings, sizes in inches."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

import numpy as np

from islab.core import families
from islab.core.sparse import SparseNetwork
from islab.plots.style import LONGEST_NAME, on_one_line

ROW = 0.34
PILL = 0.24
GAP = 1.5
FONT = 9.0
SWEEPS = 8
WIDEST = 13.0
NARROWEST = 4.4  # holds the key
# Letters of the longest name, and the width of gaps, tried until a picture is not too wide.
TIGHTER = ((LONGEST_NAME, 1.0), (24, 0.8), (16, 0.6), (12, 0.45))

Key = tuple[int, str, int]


@dataclass(frozen=True)
class Node:
    """A box of the picture, centred at (x, y), in inches.

    ``number`` is a column of the data for a covariate, else a unit of the compact network.
    """

    kind: str
    number: int
    text: str
    x: float
    y: float
    width: float


@dataclass(frozen=True)
class Wire:
    """An edge of the picture: numbers of its nodes, and of the used weight it stands for.

    ``leave`` and ``arrive`` are how far above the middles of its nodes it starts and ends.
    """

    source: int
    target: int
    edge: int
    leave: float = 0.0
    arrive: float = 0.0


@dataclass(frozen=True)
class Column:
    """A column of the picture from ``left`` to ``right``: what feeds a layer, or the outputs."""

    title: str
    left: float
    right: float


@dataclass(frozen=True)
class Layout:
    """A picture of the given size in inches."""

    width: float
    height: float
    nodes: list[Node]
    wires: list[Wire]
    columns: list[Column]
    column_of: list[int]


def layered(network: SparseNetwork, edges: list[int], by_variable: bool = False) -> Layout:
    """Nodes of these used weights: covariates beside the hidden units of the layer they feed.

    A covariate stands once in each column in which it enters, or, on request, a variable with
    all its one-hot columns. Names are shortened where the picture would be too wide.
    """
    for length, tightness in TIGHTER:
        layout = _placed(network, edges, by_variable, length, tightness)
        if layout.width <= WIDEST:
            break
    return layout


def _placed(
    network: SparseNetwork, edges: list[int], by_variable: bool, length: int, tightness: float
) -> Layout:
    """The layout with names of at most so many letters and gaps of that part of their width."""
    names = network.scale.variables if by_variable else network.scale.names
    keys, wires = _keys_and_wires(network, edges, names)
    stages = sorted({stage for stage, _, _ in keys})
    column_of = [stages.index(stage) for stage, _, _ in keys]
    order = _few_crossings(keys, column_of, wires, len(stages))
    most = max(len(column) for column in order)
    height = max(most * ROW, 1.0)
    texts = [_text(network, key, names, length) for key in keys]
    widths = [_width(key[1], text) for key, text in zip(keys, texts, strict=True)]
    gap = tightness * (GAP + 0.9 * min(len(edges) / 120, 1))
    places, columns = {}, []
    left = 0.15
    for number, members in enumerate(order):
        right = left + max(widths[node] for node in members)
        columns.append(Column(_title(network, stages[number]), left, right))
        for node, y in zip(members, _spread(len(members), height), strict=True):
            middle = (left + right) / 2
            x = right - widths[node] / 2 if keys[node][1] == "covariate" else middle
            places[node] = (x, y)
        left = right + gap
    nodes = [
        Node(key[1], key[2], texts[index], *places[index], widths[index])
        for index, key in enumerate(keys)
    ]
    wires = _fanned(nodes, wires)
    width = max(columns[-1].right + 0.15, NARROWEST)
    return Layout(width, height, nodes, wires, columns, column_of)


def _keys_and_wires(
    network: SparseNetwork, edges: list[int], names: tuple[str, ...]
) -> tuple[list[Key], list[Wire]]:
    """Nodes as (stage, kind, number); the sources of layer l are at stage l, outputs last.

    Covariates of one name are one node, which has the number of the first.
    """
    sources, targets = network.edge_ends()
    layers, from_covariate = network.edge_layers(), network.from_covariate()
    last = network.architecture.n_layers
    numbers: dict[Key, int] = {}
    wires = []
    for edge in edges:
        layer = int(layers[edge])
        kind = "covariate" if from_covariate[edge] else "hidden"
        number = int(sources[edge])
        source = (layer, kind, names.index(names[number]) if from_covariate[edge] else number)
        target = (layer + 1, "output" if layer + 1 == last else "hidden", int(targets[edge]))
        ends = [numbers.setdefault(key, len(numbers)) for key in (source, target)]
        wires.append(Wire(ends[0], ends[1], edge))
    return list(numbers), wires


def _few_crossings(
    keys: list[Key], column_of: list[int], wires: list[Wire], n_columns: int
) -> list[list[int]]:
    """The nodes of each column from top to bottom, ordered by the mean place of their partners.

    Outputs stay in their own order.
    """
    order = [[n for n, c in enumerate(column_of) if c == column] for column in range(n_columns)]
    order[-1].sort(key=keys.__getitem__)
    place = np.zeros(len(column_of))
    partners: list[list[int]] = [[] for _ in column_of]
    for wire in wires:
        partners[wire.source].append(wire.target)
        partners[wire.target].append(wire.source)

    def settle(column: int) -> None:
        for index, node in enumerate(order[column]):
            place[node] = (index + 0.5) / len(order[column])

    for column in range(n_columns):
        settle(column)
    for sweep in range(SWEEPS):
        backward = sweep % 2 == 0
        step = 1 if backward else -1
        for column in range(n_columns - 1)[::-step]:
            towards = column + step
            if towards < 0:
                continue
            target = {}
            for node in order[column]:
                near = [place[other] for other in partners[node] if column_of[other] == towards]
                target[node] = float(np.mean(near)) if near else place[node]
            order[column].sort(key=target.__getitem__)
            settle(column)
    return order


def _fanned(nodes: list[Node], wires: list[Wire]) -> list[Wire]:
    """The wires of a node side by side, so that none hides another."""
    leave, arrive = np.zeros(len(wires)), np.zeros(len(wires))
    for offsets, own, other in ((leave, "source", "target"), (arrive, "target", "source")):
        for node in range(len(nodes)):
            mine = [i for i, wire in enumerate(wires) if getattr(wire, own) == node]
            mine.sort(key=lambda i: nodes[getattr(wires[i], other)].y)
            step = min(0.045, 0.16 / max(len(mine) - 1, 1))
            offsets[mine] = step * (np.arange(len(mine)) - (len(mine) - 1) / 2)
    return [
        replace(wire, leave=float(up), arrive=float(down))
        for wire, up, down in zip(wires, leave, arrive, strict=True)
    ]


def _spread(count: int, height: float) -> list[float]:
    """Heights of the nodes of a column, evenly over the picture but not too far apart."""
    step = min(height / count, 2.2 * ROW)
    top = height / 2 + step * (count - 1) / 2
    return [top - step * index for index in range(count)]


def _text(network: SparseNetwork, key: Key, names: tuple[str, ...], length: int) -> str:
    _, kind, number = key
    name = names[number] if kind == "covariate" else network.unit_names()[number]
    return on_one_line(name, length)


def _width(kind: str, text: str) -> float:
    """Room for the text: wide characters count double."""
    size = FONT if kind != "hidden" else FONT - 2
    letters = sum(2.0 if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in text)
    return letters * 0.60 * size / 72 + (0.22 if kind != "hidden" else 0.12)


def _title(network: SparseNetwork, stage: int) -> str:
    if stage == network.architecture.n_layers:
        return families.likelihood(network.likelihood).words.output
    return f"into layer {stage}"
