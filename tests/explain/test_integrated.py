"""Exact integrated gradients: complete, and equal to fine quadrature and to captum."""

import numpy as np
import pytest

from islab.explain import explain_local, integrated_gradients
from islab.explain.linear_pieces import linear_pieces


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity"])
@pytest.mark.parametrize("seed", range(4))
def test_attributions_are_complete(make_network, make_rows, activation, seed):
    network = make_network(2, activation, seed=seed)
    found = integrated_gradients(network, make_rows(network, 50), "center")
    np.testing.assert_allclose(
        found.attribution.sum(axis=1),
        found.predictor - found.baseline_predictor,
        rtol=1e-9,
        atol=1e-9,
    )


def test_attributions_are_the_limit_of_quadrature(make_network, make_rows):
    network = make_network(activation="relu")
    x, n_steps = make_rows(network, 4), 20_000
    start = network.scale.x_center
    middles = (np.arange(n_steps) + 0.5) / n_steps
    at_mean = network.mean_weights()[None], network.bias_mu[None]
    found = integrated_gradients(network, x)
    for row in range(len(x)):
        points = start + middles[:, None] * (x[row] - start)
        slope = linear_pieces(network, *at_mean, points, [0]).slope[0, :, :, 0].mean(axis=0)
        expected = slope * (x[row] - start)[network.covariates]
        np.testing.assert_allclose(
            found.attribution[row, network.covariates, 0], expected, atol=5e-3
        )


def test_the_way_crosses_several_pieces(make_network, make_rows):
    """Otherwise the other tests would not see a bend."""
    network = make_network(activation="relu")
    assert integrated_gradients(network, make_rows(network, 50)).n_pieces.max() > 2


def test_within_one_piece_attributions_are_contributions(make_network, make_rows):
    network = make_network(activation="relu")
    x = make_rows(network, 50)
    near = x[0] + 1e-9
    found = integrated_gradients(network, x[:1], near)
    local = explain_local(network, x[:1], n_draws=1, baseline=near)
    assert found.n_pieces.tolist() == [1]
    np.testing.assert_allclose(found.attribution, local.contribution, rtol=1e-9)


def test_attributions_are_captums_within_one_piece(make_network, make_rows):
    torch = pytest.importorskip("torch")
    attr = pytest.importorskip("captum.attr")
    from islab.export import to_torch

    network = make_network(2)
    x = make_rows(network, 3)
    baseline = x[0] + 1e-3 * network.scale.x_scale
    inside = x[:1]
    found = integrated_gradients(network, inside, baseline)
    assert found.n_pieces.tolist() == [1]
    explainer = attr.IntegratedGradients(to_torch(network).predictor)
    captum = explainer.attribute(
        torch.tensor(inside), baselines=torch.tensor(baseline[None]), target=1
    )
    np.testing.assert_allclose(found.attribution[..., 1], captum.numpy(), rtol=1e-9, atol=1e-14)


def test_the_baseline_itself_has_no_attribution(make_network):
    network = make_network()
    found = integrated_gradients(network, network.scale.x_center[None])
    assert not found.attribution.any()


def test_curved_activations_are_refused(make_network, make_rows):
    network = make_network(activation="tanh")
    with pytest.raises(ValueError, match="activation='tanh'"):
        integrated_gradients(network, make_rows(network))
