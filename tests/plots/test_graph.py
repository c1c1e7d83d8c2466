"""The path graph and the inclusion map show the network's weights, readably."""

from dataclasses import replace

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.network import forward
from islab.core.posterior import Posterior
from islab.plots import inclusion_map, path_graph
from islab.plots.edge_signs import edge_signs
from islab.plots.style import NEGATIVE
from tests.plots.networks import network_of, texts


def lines_of_key(ax):
    """Colours are explained for as many kinds of edges as there are."""
    return sum(
        text in ("more of it raises the output", "lowers it", "does both") for text in texts(ax)
    )


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
    assert len(ax.lines) == network.n_used_weights + lines_of_key(ax)


def test_a_covariate_stands_in_each_layer_it_enters():
    network = network_of(40, v=4, name="covariate {}")
    ax = path_graph(network, label=None)
    entries = (network.covariate_counts() > 0).sum()
    assert sum(text in network.scale.names for text in texts(ax)) == entries


def test_one_class_at_a_time_draws_its_paths_only():
    network = network_of(60, m=3)
    ax = path_graph(network, output=1)
    assert len(ax.lines) == network.edges_of_output(1).sum() + lines_of_key(ax)


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
    ax = path_graph(replace(network, scale=scale), by_variable=True)
    assert len(ax.lines) == network.n_used_weights + lines_of_key(ax)


@pytest.mark.parametrize("m", [1, 3])
def test_signs_of_edges_are_those_of_the_outputs_derivatives(m):
    """With a smooth rising activation the derivative by an edge's source has the edge's sign."""
    network = network_of(40, v=6, hidden=(4, 3), m=m)
    shape = replace(network.architecture, activation="tanh")
    network = replace(network, architecture=shape, bias_mu=0 * network.bias_mu)
    signs = edge_signs(network)
    assert {-1, 1} <= set(signs.tolist()) <= {-1, 0, 1}
    x = np.random.default_rng(0).normal(size=(20, len(network.covariates)))
    weights, step = network.mean_weights(), 1e-6
    for number, edge in enumerate(network.edges):
        heard = [k for k in range(m) if network.edges_of_output(k)[number]]
        # What the edge carries is raised by raising the bias of its target along with its weight.
        bias = network.bias_mu.copy()
        bias[network.edge_ends()[1][number]] += step * np.sign(weights[edge])
        moved = forward(shape, weights, bias, x) - forward(shape, weights, network.bias_mu, x)
        if signs[number]:
            assert (np.sign(moved[:, heard]) == signs[number]).all()


def test_an_edge_into_a_unit_that_lowers_the_output_lowers_it():
    net = Architecture(1, (1,), 1)
    posterior = Posterior.initialise(net, np.random.default_rng(0))
    posterior = posterior.copy(mu=np.array([2.0, 0.0, -1.0]), lam=np.array([5.0, -5.0, 5.0]))
    network = posterior.median()
    assert edge_signs(network).tolist() == [-1, -1]
    ax = path_graph(network, label=None)
    colours = {line.get_color() for line in ax.lines[:2]}
    assert colours == {NEGATIVE}


def test_an_edge_with_paths_of_both_signs_is_grey():
    net = Architecture(1, (1, 2), 1)
    flat = np.zeros(net.n_weights)
    net.covariate_matrix(flat)[0, 0] = 1.0
    net.hidden_block(1).view(flat)[...] = 1.0
    net.hidden_block(2).view(flat)[...] = [[1.0, -1.0]]
    posterior = Posterior.initialise(net, np.random.default_rng(0))
    network = posterior.copy(mu=flat, lam=np.where(flat != 0, 5.0, -5.0)).median()
    assert sorted(edge_signs(network).tolist()) == [-1, -1, 0, 1, 1]
    assert "does both" in texts(path_graph(network))


@pytest.mark.parametrize("hidden", [(5, 4, 4, 3), (3,)])
def test_wide_graphs_fit_a_page_and_no_node_is_cut(hidden):
    ax = path_graph(network_of(60, hidden=hidden))
    ax.figure.canvas.draw()
    width, height = ax.figure.get_size_inches()
    assert width <= 13
    for box in boxes_of_nodes(ax):
        corners = ax.figure.dpi_scale_trans.inverted().transform(box.get_points())
        assert (corners >= 0).all()
        assert (corners <= [width, height]).all()
