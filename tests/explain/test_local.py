"""Local explanations against the network's own predictions."""

import time

import numpy as np
import pandas as pd
import pytest

from islab.core.network import forward
from islab.core.outputs import output_number, output_numbers
from islab.explain import explain_local, summarise
from tests.explain.conftest import at_mean

LIKELIHOODS = [
    ("gaussian", 2),
    ("bernoulli", 1),
    ("categorical", 3),
    ("poisson", 1),
    ("negative_binomial", 1),
    ("student_t", 2),
    ("ordinal", 1),
    ("heteroscedastic", 2),
    ("zero_inflated_poisson", 1),
    ("zero_inflated_negative_binomial", 1),
]


def relative_error(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize(("likelihood", "n_outputs"), LIKELIHOODS)
@pytest.mark.parametrize("flow", [False, True])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity"])
def test_intercept_and_contributions_sum_to_the_predictor_in_every_draw(
    make_network, make_rows, likelihood, n_outputs, flow, activation
):
    network = make_network(n_outputs, activation, flow=flow, likelihood=likelihood)
    found = explain_local(network, make_rows(network), n_draws=50, random_state=0)
    total = found.draws_intercept + found.draws_contribution.sum(axis=2)
    assert relative_error(total, found.draws_predictor) < 1e-9


@pytest.mark.parametrize("flow", [False, True])
def test_links_are_the_predictors_of_the_same_draws(make_network, make_rows, flow):
    network = make_network(2, flow=flow)
    x = make_rows(network)
    found = explain_local(network, x, n_draws=50, random_state=3)
    weights, biases = network.draw(50, np.random.default_rng(3))
    eta = forward(network.architecture, weights, biases, network.standardise(x))
    expected = network.scale.y_center + network.scale.y_scale * eta
    assert relative_error(found.draws_predictor, expected) < 1e-12


def test_slopes_are_finite_differences_in_the_users_units(make_network, make_rows):
    network = make_network(2)
    x = make_rows(network)
    found = explain_local(network, x, draws=at_mean(network))
    for column in range(x.shape[1]):
        step = np.zeros(x.shape[1])
        step[column] = 1e-6
        change = (network.predictor(x + step) - network.predictor(x - step)) / 2e-6
        np.testing.assert_allclose(found.slope[:, column], change, rtol=1e-5, atol=1e-7)


def test_an_intercept_is_the_linear_pieces_value_at_zero(make_network, make_rows):
    network = make_network(activation="identity")
    found = explain_local(network, make_rows(network), draws=at_mean(network), kind="linear")
    at_zero = network.predictor(np.zeros((1, network.n_covariates)))
    np.testing.assert_allclose(found.intercept, np.repeat(at_zero, 6, axis=0), rtol=1e-9)


def test_linear_contributions_are_slope_times_value(make_network, make_rows):
    network = make_network()
    x = make_rows(network)
    found = explain_local(network, x, n_draws=20, random_state=0, kind="linear")
    expected = found.draws_slope * x[None, :, :, None]
    np.testing.assert_allclose(found.draws_contribution, expected, rtol=1e-12)


def test_contributions_from_the_center_are_those_of_standardised_covariates(
    make_network, make_rows
):
    network = make_network()
    x = make_rows(network)
    found = explain_local(network, x, n_draws=1, baseline="center", kind="linear")
    standardised = found.slope * network.scale.x_scale[:, None]
    z = ((x - network.scale.x_center) / network.scale.x_scale)[..., None]
    np.testing.assert_allclose(found.contribution, standardised * z, rtol=1e-9, atol=1e-12)


def test_another_baseline_leaves_slopes_and_sums_alone(make_network, make_rows):
    network = make_network()
    found = explain_local(network, make_rows(network), n_draws=20, random_state=0)
    moved = found.relative_to(np.arange(5.0))
    total = moved.draws_intercept + moved.draws_contribution.sum(axis=2)
    assert relative_error(total, found.draws_predictor) < 1e-9


def test_a_slope_at_value_zero_is_still_a_slope(make_network):
    network = make_network(activation="identity")
    found = explain_local(network, np.zeros((1, 5)), n_draws=5)
    assert np.abs(found.slope[:, network.covariates]).min() > 0


def test_unused_covariates_have_slope_zero(make_posterior):
    posterior = make_posterior()
    lam = np.full_like(posterior.lam, -5.0)
    posterior.architecture.blocks[2].view(lam)[0, 1] = 5.0  # covariate 1 into the output
    network = posterior.copy(lam=lam).median()
    found = explain_local(network, np.ones((2, 5)), n_draws=5)
    assert (found.draws_slope != 0).any(axis=(0, 1, 3)).tolist() == [False, True, *[False] * 3]


def test_draws_change_the_linear_region_too(make_network, make_rows):
    """The paper's remark: a draw changes which units are active, not only their weights."""
    network = make_network(activation="relu")
    x = make_rows(network)
    weights, biases = network.draw(200, np.random.default_rng(0))
    from islab.core.network import preactivations

    z = preactivations(network.architecture, weights, biases, network.standardise(x))
    hidden = slice(0, network.architecture.units[-1].start)
    assert len(np.unique(z[:, 0, hidden] > 0, axis=0)) > 1


@pytest.mark.parametrize(("likelihood", "n_outputs"), LIKELIHOODS)
def test_the_response_is_the_inverse_link(make_network, make_rows, likelihood, n_outputs):
    network = make_network(n_outputs, likelihood=likelihood)
    found = explain_local(network, make_rows(network), n_draws=20)
    inverse = {
        "gaussian": lambda eta: eta,
        "bernoulli": lambda eta: 1 / (1 + np.exp(-eta)),
        "categorical": lambda eta: np.exp(eta) / np.exp(eta).sum(axis=-1, keepdims=True),
        "student_t": lambda eta: eta,
        "heteroscedastic": lambda eta: eta,
        "poisson": np.exp,
        "negative_binomial": np.exp,
        "zero_inflated_poisson": lambda eta: np.exp(eta) / (1 + network.noise[-1]),
        "zero_inflated_negative_binomial": lambda eta: np.exp(eta) / (1 + network.noise[-1]),
        "ordinal": lambda eta: (
            1 + 1 / (1 + np.exp(-eta)) + 1 / (1 + np.exp(network.noise[0] - eta))
        ),
    }[likelihood]
    small = found.draws_predictor < 20
    np.testing.assert_allclose(
        found.draws_response[small], inverse(found.draws_predictor)[small], rtol=1e-9
    )


def test_against_a_reference_class_the_links_are_log_odds(make_network, make_rows):
    network = make_network(3, likelihood="categorical")
    found = explain_local(network, make_rows(network), n_draws=20, reference="class 1")
    odds = np.log(found.draws_response / found.draws_response[..., 1:2])
    np.testing.assert_allclose(found.draws_predictor, odds, rtol=1e-6, atol=1e-8)


def test_centred_slopes_sum_to_zero_over_classes(make_network, make_rows):
    network = make_network(3, likelihood="categorical")
    found = explain_local(network, make_rows(network), n_draws=20, reference="center")
    assert np.abs(found.draws_slope.sum(axis=-1)).max() < 1e-12 * np.abs(found.draws_slope).max()


def test_the_reference_class_keeps_its_probability(make_network, make_rows):
    network = make_network(3, likelihood="categorical")
    x = make_rows(network)
    plain = explain_local(network, x, n_draws=20, random_state=0)
    against = explain_local(
        network, x, n_draws=20, random_state=0, reference="class 2", output="class 2"
    )
    np.testing.assert_array_equal(against.draws_response[..., 0], plain.draws_response[..., 2])


def test_one_output_is_the_same_as_among_all(make_network, make_rows):
    network = make_network(3, likelihood="categorical")
    x = make_rows(network)
    every = explain_local(network, x, n_draws=20, random_state=0)
    one = explain_local(network, x, n_draws=20, random_state=0, output="class 2")
    np.testing.assert_allclose(one.draws_slope[..., 0], every.draws_slope[..., 2], rtol=1e-12)


def test_intervals_of_contributions_are_quantiles_of_their_draws(make_network, make_rows):
    network = make_network(2)
    found = explain_local(network, make_rows(network), n_draws=500, random_state=0, level=0.9)
    direct = summarise(found.draws_contribution[:, :, found.used], 0.9)
    np.testing.assert_allclose(found.contribution_summary.lower, direct.lower, atol=1e-9)
    np.testing.assert_allclose(found.contribution_summary.upper, direct.upper, atol=1e-9)


def test_monte_carlo_errors_are_the_spread_of_repeated_quantiles():
    rng = np.random.default_rng(0)
    summary = summarise(rng.standard_normal((400, 500)), 0.9)
    assert summary.upper_error.mean() == pytest.approx(summary.upper.std(), rel=0.15)


def test_one_hot_columns_add_up_under_their_variable(make_network, make_rows):
    network = make_network()
    found = explain_local(network, make_rows(network), n_draws=20)
    frame = found.to_frame("variables").set_index(["row", "variable"])
    expected = found.contribution[0, 2:4, 0].sum()
    assert frame.loc[(0, "colour"), "contribution"] == pytest.approx(expected)


def test_the_long_frame_agrees_with_the_arrays(make_network, make_rows):
    network = make_network(2)
    found = explain_local(network, make_rows(network), n_draws=20)
    frame = found.to_frame("covariates").set_index(["row", "output", "covariate"])
    name = network.scale.names[network.covariates[1]]
    line = frame.loc[(3, "class 1", name)]
    assert line["slope"] == found.slope[3, network.covariates[1], 1]
    assert line["contribution"] == found.contribution[3, network.covariates[1], 1]


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_curved_activations_are_refused(make_network, make_rows, activation):
    network = make_network(activation=activation)
    with pytest.raises(ValueError, match=r"approximate=True"):
        explain_local(network, make_rows(network))


def test_an_approximation_says_so(make_network, make_rows):
    network = make_network(activation="tanh")
    found = explain_local(network, make_rows(network), n_draws=5, approximate=True)
    assert not found.to_frame()["exact"].any()
    assert "approximate" in repr(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1.0}, "level=1.0"),
        ({"n_draws": 0}, "n_draws=0"),
        ({"output": "none"}, "output='none'"),
        ({"reference": "center"}, "reference='center'"),
        ({"baseline": "mean"}, "baseline='mean'"),
        ({"baseline": [1.0]}, "one value for each covariate"),
        ({"baseline": [np.nan] * 5}, "Got nan in the baseline"),
        ({"baseline": [np.inf] * 5}, "Got inf in the baseline"),
        ({"n_draws": 10**9}, "GB"),
    ],
)
def test_wrong_options_are_named(make_network, make_rows, options, message):
    network = make_network()
    with pytest.raises(ValueError, match=message):
        explain_local(network, make_rows(network), **options)


def test_a_single_row_must_be_a_table(make_network):
    with pytest.raises(ValueError, match="reshape"):
        explain_local(make_network(), np.zeros(5))


def test_shares_of_the_variance_sum_to_one(make_network, make_rows):
    network = make_network(2)
    found = explain_local(network, make_rows(network), n_draws=100, random_state=0).drivers()
    total = found.intercept_share + found.share.sum(axis=1)
    np.testing.assert_allclose(total, 1, rtol=1e-9)


def test_shares_are_covariances_of_contributions_with_the_predictor(make_network, make_rows):
    network = make_network()
    x = make_rows(network)
    found = explain_local(network, x, n_draws=100, random_state=0, baseline="center")
    column = found.used[0]
    moments = np.cov(found.draws_contribution[:, 2, column, 0], found.draws_predictor[:, 2, 0])
    assert found.drivers().share[2, 0, 0] == pytest.approx(moments[0, 1] / moments[1, 1])


def test_the_intercept_share_is_its_own_covariance_with_the_predictor(make_network, make_rows):
    network = make_network()
    x = make_rows(network)
    found = explain_local(network, x, n_draws=100, random_state=0, baseline="center")
    moments = np.cov(found.draws_intercept[:, 2, 0], found.draws_predictor[:, 2, 0])
    assert found.drivers().intercept_share[2, 0] == pytest.approx(moments[0, 1] / moments[1, 1])


def test_drivers_are_counted_from_the_baseline_of_the_explanation(make_network, make_rows):
    network = make_network()
    found = explain_local(network, make_rows(network), n_draws=50, random_state=0)
    np.testing.assert_array_equal(found.drivers().share, found.drivers("center").share)
    moved = found.relative_to("zero").drivers()
    np.testing.assert_array_equal(found.drivers("zero").share, moved.share)
    assert np.abs(moved.share - found.drivers().share).max() > 0.01


def test_noise_stands_apart_from_the_shares(make_network, make_rows):
    network = make_network()
    frame = explain_local(network, make_rows(network), n_draws=50).drivers().to_frame()
    noise = frame[frame["source"] == "(noise)"]
    assert noise["share"].isna().all()
    np.testing.assert_allclose(noise["variance"], network.noise_in_units()[0])


def test_a_thousand_rows_and_draws_take_less_than_two_seconds(make_posterior):
    posterior = make_posterior()
    order = np.argsort(np.random.default_rng(0).random(len(posterior.lam)))
    network = next(
        network
        for size in range(10, len(order))
        if (
            network := posterior.copy(lam=np.where(order < size, 3.0, -3.0)).median()
        ).n_used_weights
        >= 20
    )
    x = np.random.default_rng(1).normal(size=(1000, 5))
    start = time.process_time()
    explain_local(network, x, n_draws=1000, random_state=0).to_frame()
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("names", "output", "position"),
    [
        (("1", "3", "7"), 1, 0),
        (("1", "3", "7"), 7, 2),
        (("1", "3", "7"), np.int64(3), 1),
        (("1", "3", "7"), "3", 1),
        (("False", "True"), True, 1),
        (("low", "high"), 1, 1),
        (("low", "high"), -1, 1),
        (("0.5", "1.5"), 1.5, 1),
    ],
)
def test_outputs_go_by_their_names_before_their_positions(names, output, position):
    assert output_number(names, output) == position
    assert output_numbers(names, [output]) == [position]


@pytest.mark.parametrize(
    ("names", "output"), [(("1", "3"), 0), (("1",), 0), (("low", "high"), 2), (("a", "b"), True)]
)
def test_outputs_that_are_not_there_are_refused(names, output):
    with pytest.raises(ValueError, match=f"Got output={output}, expected one of '{names[0]}'"):
        output_numbers(names, output)


def test_a_frame_as_baseline_is_refused_where_its_columns_are_not_known(make_network):
    explanation = explain_local(make_network(), np.ones((1, 5)), random_state=0)
    with pytest.raises(ValueError, match=r"data frame as baseline.*model.explain_local"):
        explanation.relative_to(pd.DataFrame(np.ones((1, 5))))


def test_the_baseline_has_the_network_s_own_value_and_rows_on_its_line_share_it(make_network):
    network = make_network(3, likelihood="categorical")
    center = network.scale.x_center
    rows = np.stack([center, center * (1 + 1e-9), center + 40 * network.scale.x_scale])
    found = explain_local(
        network,
        rows,
        output=[2, 0],
        reference="center",
        baseline="center",
        kind="linear",
        draws=at_mean(network),
    )
    scores = network.predictor(center[None])[0]
    np.testing.assert_allclose(found.baseline_predictor, (scores - scores.mean())[[2, 0]])
    np.testing.assert_allclose(found.intercept[:2], [found.baseline_predictor] * 2)
    np.testing.assert_array_equal(found.bends[:2], False)
    gap = np.abs(found.intercept[2] - found.baseline_predictor)
    np.testing.assert_array_equal(found.bends[2], gap > 1e-6)
    assert found.bends[2].any()


@pytest.mark.parametrize(("activation", "kind"), [("identity", "linear"), ("relu", "integrated")])
def test_what_follows_the_network_bends_nowhere(make_network, activation, kind):
    network = make_network(activation=activation)
    rows = np.random.default_rng(0).normal(0, 100, (50, 5))
    found = explain_local(network, rows, n_draws=2, baseline="center", kind=kind)
    assert not found.bends.any()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("link", "predictor"),
        ("draws_link", "draws_predictor"),
        ("baseline_link", "baseline_predictor"),
    ],
)
def test_old_names_of_the_predictor_are_understood_with_a_warning(
    make_network, make_rows, old, new
):
    network = make_network()
    found = explain_local(network, make_rows(network), n_draws=5, random_state=0)
    with pytest.warns(FutureWarning, match=f"{old} is now called {new}"):
        np.testing.assert_array_equal(getattr(found, old), getattr(found, new))


def test_the_old_spelling_of_center_is_understood_with_a_warning(make_network, make_rows):
    network = make_network(3, likelihood="categorical")
    rows = make_rows(network)
    with pytest.warns(FutureWarning, match="'centred' is now called 'center'"):
        old = explain_local(network, rows, n_draws=2, random_state=0, reference="centred")
    new = explain_local(network, rows, n_draws=2, random_state=0, reference="center")
    np.testing.assert_array_equal(old.slope, new.slope)
