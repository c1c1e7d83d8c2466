"""The active paths as a graph: networkx, GraphML and DOT."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from islab.core.dependencies import needed
from islab.core.expressions import cells
from islab.core.names import printable
from islab.core.sparse import SparseNetwork
from islab.export.portable import readable
from islab.io.files import replacing


def to_networkx(source: Any) -> Any:
    """A ``networkx.DiGraph`` of the readable network: covariates, hidden units and outputs.

    Nodes are ``x3`` (column 3 of the data), ``h0.2`` and ``y0``, with ``kind`` (covariate, hidden
    or output), ``label`` (the user's name) and, for units, ``layer`` and ``bias``. Edges have
    ``layer``, ``alpha``, ``mean`` and ``sd``. Of an estimator, covariates also have ``columns``, a
    JSON list of the columns of the table that they follow from.

    Parameters
    ----------
    source : fitted estimator, or SparseNetwork
    """
    networkx = needed("networkx", "A networkx graph")
    network, content = readable(source)
    graph = networkx.DiGraph(likelihood=network.likelihood)
    for key, attributes in _nodes(network).items():
        graph.add_node(key, **attributes)
    for first, second, attributes in _edges(network):
        graph.add_edge(first, second, **attributes)
    if source is not network:
        places = {name: number for number, name in enumerate(network.scale.names)}
        for name, expression in content.covariates.items():
            columns = json.dumps([cell.column for cell in cells(expression)])
            graph.nodes[f"x{places[name]}"]["columns"] = columns
    return graph


def to_graphml(source: Any, path: str | Path | None = None) -> str:
    """The graph as GraphML, written to ``path`` if one is given."""
    networkx = needed("networkx", "GraphML")
    graph = to_networkx(source)
    for _, attributes in graph.nodes(data=True):
        attributes["label"] = printable(attributes["label"])
    text = "\n".join(networkx.generate_graphml(graph, named_key_ids=True)) + "\n"
    return _written(text, path)


def to_dot(source: Any, path: str | Path | None = None) -> str:
    """The graph in the DOT language of Graphviz, written to ``path`` if one is given."""
    network, _ = readable(source)
    styles = {
        "covariate": 'shape=box, style="rounded,filled", fillcolor="#e6edf5"',
        "hidden": 'shape=circle, style=filled, fillcolor="#f2f2f2"',
        "output": 'shape=box, style=filled, fillcolor="#22364d", fontcolor=white',
    }
    lines = ["digraph islab {", "  rankdir=LR;"]
    for key, node in _nodes(network).items():
        lines.append(f"  {_quoted(key)} [label={_quoted(node['label'])}, {styles[node['kind']]}];")
    for first, second, edge in _edges(network):
        colour = "#2c6fbb" if edge["mean"] >= 0 else "#d9722e"
        lines.append(
            f"  {_quoted(first)} -> {_quoted(second)} "
            f'[label="{edge["mean"]:.3g}", alpha={edge["alpha"]:.6g}, mean={edge["mean"]:.6g}, '
            f'sd={edge["sd"]:.6g}, color="{colour}"];'
        )
    return _written("\n".join([*lines, "}"]) + "\n", path)


def _nodes(network: SparseNetwork) -> dict[str, dict[str, Any]]:
    shape, scale = network.architecture, network.scale
    nodes: dict[str, dict[str, Any]] = {
        f"x{column}": {"kind": "covariate", "label": scale.names[column]}
        for column in network.covariates
    }
    keys, labels = _unit_keys(network), network.unit_names()
    for layer, numbers in enumerate(shape.units):
        kind = "output" if layer == shape.n_layers - 1 else "hidden"
        for unit in range(numbers.start, numbers.stop):
            nodes[keys[unit]] = {
                "kind": kind,
                "label": labels[unit],
                "layer": layer,
                "bias": float(network.bias_mu[unit]),
            }
    return nodes


def _edges(network: SparseNetwork) -> list[tuple[str, str, dict[str, Any]]]:
    sources, targets = network.edge_ends()
    keys, from_covariate = _unit_keys(network), network.from_covariate()
    layers, means, sds = network.edge_layers(), network.edge_means(), network.edge_sds()
    return [
        (
            f"x{sources[edge]}" if from_covariate[edge] else keys[sources[edge]],
            keys[targets[edge]],
            {
                "layer": int(layers[edge]),
                "alpha": float(network.alpha[edge]),
                "mean": float(means[edge]),
                "sd": float(sds[edge]),
            },
        )
        for edge in range(len(network.edges))
    ]


def _unit_keys(network: SparseNetwork) -> list[str]:
    """Keys that no name can clash with: the units' own names, and ``y0``, ... for outputs."""
    n_outputs = network.architecture.n_outputs
    return [*network.unit_names()[:-n_outputs], *(f"y{output}" for output in range(n_outputs))]


def _quoted(name: str) -> str:
    """A DOT string that stands for the name itself."""
    return '"' + printable(name).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        with replacing(path) as file:
            file.write(text.encode())
    return text
