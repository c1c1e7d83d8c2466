"""Graph exports hold the network's edges, whatever the names."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from islab.export import to_dot, to_graphml, to_networkx

networkx = pytest.importorskip("networkx")


def test_the_graph_has_an_edge_for_each_used_weight(make_network):
    network = make_network()
    graph = to_networkx(network)
    means = [edge["mean"] for _, _, edge in graph.edges(data=True)]
    assert sorted(means) == sorted(network.edge_means())


def test_every_node_is_on_a_path_from_a_covariate_to_an_output(make_network):
    graph = to_networkx(make_network())
    kinds = networkx.get_node_attributes(graph, "kind")
    for node, kind in kinds.items():
        assert kind == "covariate" or graph.in_degree(node)
        assert kind == "output" or graph.out_degree(node)


def test_labels_are_the_users_names(make_network):
    network = make_network()
    graph = to_networkx(network)
    for column in network.covariates:
        assert graph.nodes[f"x{column}"]["label"] == network.scale.names[column]


def test_a_covariate_named_like_a_unit_stays_apart(make_network):
    from dataclasses import replace

    network = make_network()
    names = tuple(f"h0.{k}" for k in range(network.n_covariates))
    renamed = replace(network, scale=replace(network.scale, names=names))
    assert len(to_networkx(renamed)) == len(to_networkx(network))


def test_graphml_comes_back_as_the_same_graph(make_network, tmp_path):
    network = make_network()
    to_graphml(network, tmp_path / "network.graphml")
    back, graph = networkx.read_graphml(tmp_path / "network.graphml"), to_networkx(network)
    assert set(back.edges) == set(graph.edges)
    for edge in graph.edges:
        np.testing.assert_allclose(back.edges[edge]["alpha"], graph.edges[edge]["alpha"])


def test_graphml_is_well_formed_with_hostile_names(make_network):
    text = to_graphml(make_network("categorical"))
    ElementTree.fromstring(text)
    assert "<script>" not in text


def test_dot_strings_end_where_they_should(make_network):
    """Outside its quoted strings DOT holds nothing of the names."""
    network = make_network("categorical")
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', "S", to_dot(network))
    line = re.compile(
        r"digraph islab \{|  rankdir=LR;|  S \[[\w=,S ]+\];|  S -> S \[[\w=,S .+-]+\];|\}"
    )
    wrong = [each for each in outside.splitlines() if not line.fullmatch(each)]
    assert wrong == []


def test_dot_has_an_edge_for_each_used_weight(make_network, tmp_path):
    network = make_network()
    text = to_dot(network, tmp_path / "network.dot")
    assert len(re.findall(r"^  \S+ -> ", text, flags=re.MULTILINE)) == network.n_used_weights
    assert (tmp_path / "network.dot").read_text(encoding="utf-8") == text


def test_a_missing_package_says_what_to_install(make_network, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ModuleNotFoundError, match="pip install networkx"):
        to_networkx(make_network())
