"""The tables of a global explanation against the network's own counts and enumeration."""

from itertools import product

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.paths import active_weights
from islab.core.posterior import Posterior
from islab.core.scale import Scale
from islab.explain import explain_global, explain_local


def test_edges_are_those_of_the_network(make_network):
    network = make_network()
    edges = explain_global(network).edges
    np.testing.assert_array_equal(edges["mean"], network.edge_means())


def test_edges_name_the_outputs_they_lead_to(make_network):
    network = make_network(3, likelihood="categorical")
    edges = explain_global(network).edges
    for number, name in enumerate(network.scale.outputs):
        reaches = [name in outputs for outputs in edges["outputs"]]
        assert reaches == network.edges_of_output(number).tolist()


def test_one_output_tells_of_its_own_edges_only(make_network):
    network = make_network(3, likelihood="categorical")
    edges = explain_global(network, output="class 1").edges
    assert len(edges) == network.edges_of_output(1).sum() < network.n_used_weights


def test_counts_by_layer_are_the_networks(make_network):
    network = make_network()
    frame = explain_global(network).covariates
    counts = frame[["count_0", "count_1", "count_2"]].to_numpy()
    np.testing.assert_array_equal(counts, network.covariate_counts())


def test_inclusion_by_layer_is_the_networks(make_network):
    network = make_network()
    frame = explain_global(network).covariates
    alpha = frame[["alpha_0", "alpha_1", "alpha_2"]].to_numpy()
    np.testing.assert_allclose(alpha, network.covariate_inclusion())


def test_depths_of_a_covariate_are_those_of_its_entries(make_network):
    network = make_network()
    frame = explain_global(network).covariates
    for column, depths in network.covariate_depths().items():
        line = frame.loc[column]
        assert (line["min_depth"], line["max_depth"]) == (depths.min(), depths.max())
        assert line["mean_depth"] == pytest.approx(depths.mean())


def test_one_hot_columns_are_one_variable(make_network):
    network = make_network()
    explanation = explain_global(network)
    by_covariate = explanation.covariates.groupby("variable", sort=False)["count"].sum()
    variables = explanation.variables.set_index("variable")["count"]
    assert variables.to_dict() == by_covariate.to_dict()
    assert list(variables.index) == ["age", "weight", "colour", "height"]


def test_the_network_table_has_a_line_for_all_and_each_class(make_network):
    network = make_network(3, likelihood="categorical")
    frame = explain_global(network).network.set_index("output")
    assert frame.loc["(all)", "used_weights"] == network.n_used_weights
    assert frame.loc["(all)", "mean_depth"] == pytest.approx(network.average_depth)
    assert frame.loc["class 2", "used_weights"] == network.edges_of_output(2).sum()


def test_contributions_are_mean_sizes_of_local_ones(make_network, make_rows):
    network = make_network(2)
    x = make_rows(network)
    frame = explain_global(network, x, random_state=0).covariates
    local = explain_local(network, x, n_draws=200, random_state=0).contribution
    np.testing.assert_allclose(frame["contribution"], np.abs(local).mean(axis=(0, 2)))


def test_contributions_of_a_variable_add_up_before_they_are_sized(make_network, make_rows):
    network = make_network(2)
    x = make_rows(network)
    frame = explain_global(network, x, random_state=0).variables.set_index("variable")
    local = explain_local(network, x, n_draws=200, random_state=0).contribution
    expected = np.abs(local[:, 2:4].sum(axis=1)).mean()
    assert frame.loc["colour", "contribution"] == pytest.approx(expected)


def test_contributions_are_the_same_however_many_rows_are_taken_at_once(
    make_network, make_rows, monkeypatch
):
    network = make_network(2)
    x = make_rows(network, 7)
    whole = explain_global(network, x, random_state=0).covariates["contribution"]
    monkeypatch.setattr("islab.explain.effects.NUMBERS_AT_ONCE", 20)
    parts = explain_global(network, x, random_state=0).covariates["contribution"]
    np.testing.assert_allclose(parts, whole)


@pytest.mark.parametrize(("activation", "exact"), [("leaky_relu", True), ("tanh", False)])
def test_contributions_of_a_curved_network_are_called_approximate(
    make_network, make_rows, activation, exact
):
    network = make_network(activation=activation)
    explanation = explain_global(network, make_rows(network))
    assert explanation.exact is exact
    assert ("approximate" in repr(explanation)) is not exact


def test_used_probability_is_that_of_enumerated_structures():
    net = Architecture(n_covariates=2, hidden=(1,), n_outputs=1)
    posterior = Posterior.initialise(net, np.random.default_rng(0))
    posterior = posterior.copy(lam=np.array([0.5, -0.5, 0.2, -1.0, 1.0]))
    exact = np.zeros(2)
    for kept in product([False, True], repeat=net.n_weights):
        chosen = np.array(kept)
        chance = np.where(chosen, posterior.alpha, 1 - posterior.alpha).prod()
        exact += chance * net.covariate_matrix(active_weights(net, chosen)).any(axis=0)
    found = explain_global(
        posterior.median(), posterior=posterior, n_draws=20_000, random_state=0
    ).covariates["used_probability"]
    np.testing.assert_allclose(found, exact, atol=4 * 0.5 / np.sqrt(20_000))


def test_a_variable_is_used_if_any_of_its_columns_is():
    net = Architecture(n_covariates=2, hidden=(), n_outputs=1)
    posterior = Posterior.initialise(net, np.random.default_rng(0))
    posterior = posterior.copy(lam=np.array([0.0, 0.0]))
    zero, one = np.zeros(2), np.ones(2)
    scale = Scale(zero, one, zero[:1], one[:1], ("a_1", "a_2"), ("y",), ("a", "a"))
    frame = explain_global(
        posterior.median(scale=scale), posterior=posterior, n_draws=20_000, random_state=0
    ).variables
    assert frame["used_probability"].tolist() == pytest.approx([0.75], abs=0.015)


def test_an_empty_network_has_empty_tables(make_posterior):
    posterior = make_posterior()
    network = posterior.copy(lam=np.full_like(posterior.lam, -5.0)).median()
    explanation = explain_global(network, np.ones((2, 5)))
    assert len(explanation.edges) == 0
    assert explanation.covariates["contribution"].tolist() == [0.0] * 5


def test_an_unknown_table_is_named(make_network):
    with pytest.raises(ValueError, match="table='edge'"):
        explain_global(make_network()).to_frame("edge")
