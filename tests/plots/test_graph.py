"""The path graph and the inclusion map show the network's weights, readably."""

from dataclasses import replace

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.plots import inclusion_map, path_graph
from tests.plots.networks import network_of, texts


def boxes_of_nodes(ax):
    ax.figure.canvas.draw()
    return [patch.get_window_extent() for patch in ax.patches]


@pytest.mark.parametrize("n_edges", [2, 20, 60, 200])
def test_no_two_nodes_of_a_path_graph_overlap(n_edges):
    network = network_of(n_edges, v=30, hidden=(8, 6), m=3)
    boxes = boxes_of_nodes(path_graph(network, max_edges=300))
    overlaps = [
        (i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i]) if a.overlaps(b)
    ]
    assert overlaps == []


def test_names_fit_into_their_nodes():
    ax = path_graph(network_of(20), label=None)
    ax.figure.canvas.draw()
    # Without labels on edges the first texts are those of the nodes, in the nodes' order.
    for text, box in zip(ax.texts, ax.patches, strict=False):
        assert text.get_window_extent().width <= box.get_window_extent().width


def test_a_path_graph_has_a_line_for_each_weight():
    network = network_of(20)
    ax = path_graph(network)
    key = 2
    assert len(ax.lines) == network.n_used_weights + key


def test_a_covariate_stands_in_each_layer_it_enters():
    network = network_of(40, v=4, name="covariate {}")
    ax = path_graph(network, label=None)
    entries = (network.covariate_counts() > 0).sum()
    assert sum(text in network.scale.names for text in texts(ax)) == entries


def test_one_class_at_a_time_draws_its_paths_only():
    network = network_of(60, m=3)
    ax = path_graph(network, output=1)
    assert len(ax.lines) == network.edges_of_output(1).sum() + 2


def test_edges_can_be_labelled_with_their_inclusion():
    network = network_of(2)
    assert f"{network.alpha[0]:.2f}" in texts(path_graph(network, label="alpha"))


def test_too_many_edges_become_a_matrix_that_says_so():
    network = network_of(60)
    ax = path_graph(network, max_edges=50)
    assert f"{network.n_used_weights} active edges" in ax.get_title(loc="left")
    assert len(ax.images) == 1


def test_a_network_without_paths_says_so():
    posterior = Posterior.initialise(Architecture(2, (2,), 1), np.random.default_rng(0))
    empty = posterior.copy(lam=np.full_like(posterior.lam, -5)).median()
    assert "No active path" in texts(path_graph(empty))[0]


def test_the_inclusion_map_shows_the_mean_inclusion():
    network = network_of(40, v=4)
    ax = inclusion_map(network)
    drawn = np.sort(np.asarray(ax.images[0].get_array(), dtype=float).ravel())
    expected = np.sort(network.covariate_inclusion()[network.covariates].ravel())
    np.testing.assert_allclose(drawn, expected)


def test_one_hot_columns_share_the_box_of_their_variable():
    network = network_of(30, v=4)
    scale = replace(network.scale, variables=("a", "a", "b", "b"))
    ax = path_graph(replace(network, scale=scale), label=None, by_variable=True)
    drawn = {text for text in texts(ax) if text in ("a", "b", *network.scale.names)}
    assert drawn == {"a", "b"}


def test_a_graph_by_variable_still_has_a_line_for_each_weight():
    network = network_of(30, v=4)
    scale = replace(network.scale, variables=("a", "a", "b", "b"))
    key = 2
    ax = path_graph(replace(network, scale=scale), by_variable=True)
    assert len(ax.lines) == network.n_used_weights + key
