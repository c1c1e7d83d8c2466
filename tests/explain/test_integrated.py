"""Contributions along the way from a baseline: against quadrature, captum and what they mean."""

import numpy as np
import pytest

from islab.core.network import slopes
from islab.explain import explain_local, integrated_gradients
from tests.explain.conftest import at_mean


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity"])
@pytest.mark.parametrize("seed", range(4))
def test_contributions_lead_from_the_baseline_to_the_row(make_network, make_rows, activation, seed):
    network = make_network(2, activation, seed=seed)
    x = make_rows(network, 50)
    found = explain_local(network, x, n_draws=20, baseline="center", random_state=0)
    start = found.draws.predictor_at(network.scale.x_center)
    np.testing.assert_allclose(
        found.draws_contribution.sum(axis=2),
        found.draws_predictor - start[:, None],
        rtol=1e-9,
        atol=1e-9,
    )


def test_means_over_draws_add_up_to_the_mean_predictor(make_network, make_rows):
    network = make_network(2, "relu")
    found = explain_local(network, make_rows(network, 30), n_draws=40, random_state=0)
    total = found.intercept + found.variable_summary.mean.sum(axis=1)
    np.testing.assert_allclose(total, found.draws_predictor.mean(axis=0), rtol=1e-9, atol=1e-9)


def test_contributions_are_the_limit_of_quadrature(make_network, make_rows):
    network = make_network(activation="relu")
    x, n_steps = make_rows(network, 4), 20_000
    start = network.scale.x_center
    middles = (np.arange(n_steps) + 0.5) / n_steps
    draw = network.mean_weights(), network.bias_mu
    found = explain_local(network, x, draws=at_mean(network), baseline="center")
    for row in range(len(x)):
        points = network.standardise(start + middles[:, None] * (x[row] - start))
        slope = slopes(network.architecture, *draw, points)[1][:, 0].mean(axis=0)
        expected = network.scale.y_scale * slope * network.standardise(x[row : row + 1])[0]
        np.testing.assert_allclose(
            found.contribution[row, network.covariates, 0], expected, atol=5e-3
        )


def test_the_way_crosses_several_pieces(make_network, make_rows):
    """Otherwise the other tests would not see a bend."""
    network = make_network(activation="relu")
    x = make_rows(network, 50)
    whole = explain_local(network, x, n_draws=5, baseline="center", random_state=0)
    line = explain_local(network, x, n_draws=5, baseline="center", random_state=0, kind="linear")
    assert np.abs(whole.contribution - line.contribution).max() > 0.1


def test_within_one_piece_they_are_those_of_the_row_s_line(make_network, make_rows):
    network = make_network(activation="relu")
    x = make_rows(network, 50)
    near = x[0] + 1e-3 * network.scale.x_scale
    options = {"draws": at_mean(network), "baseline": near}
    whole = explain_local(network, x[:1], **options)
    line = explain_local(network, x[:1], kind="linear", **options)
    np.testing.assert_allclose(whole.contribution, line.contribution, rtol=1e-9)


def test_contributions_are_captums_within_one_piece(make_network, make_rows):
    torch = pytest.importorskip("torch")
    attr = pytest.importorskip("captum.attr")
    from islab.export import to_torch

    network = make_network(2)
    x = make_rows(network, 3)
    baseline = x[0] + 1e-3 * network.scale.x_scale
    inside = x[:1]
    found = explain_local(network, inside, baseline=baseline, draws=at_mean(network))
    explainer = attr.IntegratedGradients(to_torch(network).predictor)
    captum = explainer.attribute(
        torch.tensor(inside), baselines=torch.tensor(baseline[None]), target=1
    )
    np.testing.assert_allclose(found.contribution[..., 1], captum.numpy(), rtol=1e-9, atol=1e-14)


def test_the_baseline_itself_has_no_contributions(make_network):
    network = make_network()
    found = explain_local(network, network.scale.x_center[None], baseline="center", n_draws=5)
    assert not found.draws_contribution.any()


def test_a_row_that_differs_in_one_variable_contributes_the_whole_difference(make_network):
    network = make_network(activation="relu")
    start = network.scale.x_center.copy()
    start[2:4] = [1.0, 0.0]
    row = start.copy()
    row[2:4] = [0.0, 1.0]
    found = explain_local(network, row[None], baseline=start, n_draws=30, random_state=0)
    frame = found.to_frame().set_index("variable")
    switch = found.draws_predictor[:, 0, 0] - found.draws.predictor_at(start)[:, 0]
    assert frame.loc["colour", "contribution"] == pytest.approx(switch.mean(), abs=1e-9)
    assert frame.loc["colour", "contribution_sd"] == pytest.approx(switch.std(), abs=1e-9)
    assert (frame.drop("colour")["contribution"] == 0).all()


@pytest.mark.parametrize("block", [1, 7, 10**7])
def test_rows_in_blocks_give_the_same_numbers(make_network, make_rows, monkeypatch, block):
    network = make_network(2)
    x = make_rows(network, 20)
    expected = explain_local(network, x, n_draws=10, random_state=0).to_frame("covariates")
    monkeypatch.setattr("islab.explain.local_explanation.NUMBERS_AT_ONCE", block)
    monkeypatch.setattr("islab.explain.drawn.NUMBERS_AT_ONCE", block)
    monkeypatch.setattr("islab.core.integration.NUMBERS_AT_ONCE", block)
    found = explain_local(network, x, n_draws=10, random_state=0).to_frame("covariates")
    numbers = found.select_dtypes("number")
    np.testing.assert_allclose(numbers, expected[numbers.columns], rtol=1e-9, atol=1e-12)


def test_slopes_hold_as_far_as_the_reach_and_no_further(make_network, make_rows):
    network = make_network(activation="relu")
    x = make_rows(network, 10)
    found = explain_local(network, x, draws=at_mean(network))
    for ends, sign in zip(found.reach, (-1, 1), strict=True):
        for place, column in enumerate(network.covariates):
            far = np.isfinite(ends[:, place])
            reach = np.where(far, ends[:, place], 1e3)
            slope = found.slope[:, column, 0]
            for share, same in ((0.999, True), (1.001, False)):
                moved = x.copy()
                moved[:, column] += sign * share * reach
                beyond = explain_local(network, moved, draws=at_mean(network)).slope[:, column, 0]
                agrees = np.abs(beyond - slope) < 1e-9
                assert agrees.all() if same else agrees[~far].all()
    assert np.isfinite(found.reach).any()


@pytest.mark.parametrize("activation", ["relu", ("identity", "relu")])
def test_the_region_ends_where_some_slope_changes(make_network, make_rows, activation):
    network = make_network(activation=activation)
    x = make_rows(network, 10)
    found = explain_local(network, x, draws=at_mean(network))
    above = found.reach[1]
    row, place = np.argwhere(np.isfinite(above))[0]
    moved = x[[row]].copy()
    moved[:, network.covariates[place]] += 1.001 * above[row, place]
    z = network.standardise(np.concatenate([x[[row]], moved]))
    from islab.core.network import preactivations

    sums = preactivations(network.architecture, network.mean_weights(), network.bias_mu, z)
    layers = zip(network.architecture.activations, network.architecture.units, strict=False)
    hidden = np.concatenate([own.slope(sums[:, units]) for own, units in layers], axis=1)
    assert (hidden[0] != hidden[1]).sum() == 1


def test_curved_networks_are_explained_approximately_if_asked(make_network, make_rows):
    network = make_network(activation="tanh")
    with pytest.raises(ValueError, match="activation='tanh'"):
        explain_local(network, make_rows(network))
    found = explain_local(network, make_rows(network), approximate=True, n_draws=10, random_state=0)
    total = found.intercept + found.contribution.sum(axis=1)
    assert not found.exact
    np.testing.assert_allclose(total, found.predictor, rtol=0.01)


def test_the_old_name_gives_contributions_with_a_warning(make_network, make_rows):
    network = make_network()
    x = make_rows(network)
    with pytest.warns(FutureWarning, match="now explain_local"):
        old = integrated_gradients(network, x)
    new = explain_local(network, x, baseline="center", draws=at_mean(network))
    with pytest.warns(FutureWarning, match="attribution is now called contribution"):
        np.testing.assert_array_equal(old.attribution, new.contribution)
