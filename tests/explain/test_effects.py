"""Effects against direct evaluation, shares of variance against analytic values."""

from dataclasses import replace

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.core.scale import Scale
from islab.explain import explain_global


def network_with(weights, architecture, scale=None, biases=None):
    """A readable network with these weights, nearly certain; zeros are left out."""
    flat = np.asarray(weights, dtype=float)
    posterior = Posterior.initialise(architecture, np.random.default_rng(0))
    posterior = posterior.copy(
        mu=flat,
        lam=np.where(flat != 0, 5.0, -5.0),
        rho=np.full(len(flat), -40.0),
        bias_mu=np.zeros(architecture.n_units) if biases is None else np.asarray(biases, float),
        bias_rho=np.full(architecture.n_units, -40.0),
    )
    return posterior.median(scale=scale)


@pytest.fixture
def bent():
    """max(0, x0) + 2 x1 + max(0, x1 + x2): x1 and x2 interact, x0 does not."""
    net = Architecture(3, (2,), 1, activation="relu")
    flat = np.zeros(net.n_weights)
    covariates = net.covariate_matrix(flat)
    covariates[0, 0] = 1.0
    covariates[1, [1, 2]] = 1.0
    covariates[2, 1] = 2.0
    net.hidden_block(1).view(flat)[...] = 1.0
    return network_with(flat, net)


def true(x):
    return np.maximum(0, x[:, 0]) + 2 * x[:, 1] + np.maximum(0, x[:, 1] + x[:, 2])


def test_average_effects_are_direct_evaluations(bent):
    x = np.random.default_rng(0).normal(size=(80, 3))
    effect = explain_global(bent, x, n_draws=3, random_state=0).effect("x1", "average")
    direct = []
    for value in effect.values:
        moved = x.copy()
        moved[:, 1] = value
        direct.append(true(moved).mean())
    found = effect.summary.mean[:, 0]
    np.testing.assert_allclose(found - found[0], np.array(direct) - direct[0], atol=1e-9)
    nearest = np.abs(x[:, [1]] - effect.values).argmin(axis=1)
    assert found[nearest].mean() == pytest.approx(0, abs=1e-9)


def test_points_lie_where_the_data_are(bent):
    x = np.random.default_rng(0).normal(size=(500, 3))
    values = explain_global(bent, x, n_draws=2).effect("x0").values
    assert np.isin(values, x[:, 0]).all()
    assert (values[0], values[-1]) == (x[:, 0].min(), x[:, 0].max())


def test_accumulated_effects_of_a_linear_model_are_its_lines_however_correlated():
    net = Architecture(2, (), 1)
    network = network_with([3.0, -1.0], net)
    x = np.random.default_rng(0).normal(size=(400, 1)) + 0.1 * np.random.default_rng(1).normal(
        size=(400, 2)
    )
    explanation = explain_global(network, x, n_draws=2, random_state=0)
    for column, slope in (("x0", 3.0), ("x1", -1.0)):
        effect = explanation.effect(column)
        assert effect.kind == "accumulated"
        found = effect.summary.mean[:, 0]
        expected = slope * (effect.values - effect.values[0])
        np.testing.assert_allclose(found - found[0], expected, atol=1e-8)


def test_accumulated_effects_do_not_leave_the_data():
    """max(0, x0 - x1 - 1) is 0 wherever two near copies lie, but not on average."""
    net = Architecture(2, (1,), 1, activation="relu")
    flat = np.zeros(net.n_weights)
    net.covariate_matrix(flat)[0] = [1.0, -1.0]
    net.hidden_block(1).view(flat)[...] = 1.0
    network = network_with(flat, net, biases=[-1.0, 0.0])
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=(400, 1)) + 0.05 * rng.normal(size=(400, 2))
    explanation = explain_global(network, x, n_draws=2, random_state=0)
    assert np.ptp(explanation.effect("x0").summary.mean) < 1e-9
    assert np.ptp(explanation.effect("x0", "average").summary.mean) > 0.5


def test_uncorrelated_variables_are_averaged(bent):
    x = np.random.default_rng(0).normal(size=(200, 3))
    assert explain_global(bent, x, n_draws=2).effect("x1").kind == "average"


def test_bands_are_quantiles_of_draws(make_network, make_rows):
    network = make_network()
    found = explain_global(network, make_rows(network, 30), n_draws=50, random_state=0, level=0.8)
    effect = found.effect("age", "average")
    low, high = np.quantile(effect.draws, [0.1, 0.9], axis=0)
    np.testing.assert_allclose(effect.summary.lower, low)
    np.testing.assert_allclose(effect.summary.upper, high)
    frame = effect.to_frame()
    np.testing.assert_allclose(frame["effect_lower"], low.ravel())


def test_classes_are_counted_against_their_mean(make_network, make_rows):
    network = make_network(3, likelihood="categorical")
    effect = explain_global(network, make_rows(network, 30), n_draws=10).effect("age")
    np.testing.assert_allclose(effect.draws.sum(axis=-1), 0, atol=1e-9)


def test_an_unknown_variable_is_named(bent):
    with pytest.raises(ValueError, match="variable='x9'"):
        explain_global(bent, np.zeros((5, 3))).effect("x9")


# -- importance ------------------------------------------------------------------------------


def shares(explanation):
    return explanation.importance.to_frame().set_index("term")["share"]


def test_shares_of_a_linear_model_are_its_variances():
    """Rows of an orthogonal design: covariates are uncorrelated exactly."""
    x = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T * [1.0, 2.0, 5.0]
    network = network_with([3.0, -1.0, 0.2], Architecture(3, (), 1))
    variance = np.array([3.0, -2.0, 1.0]) ** 2
    found = shares(explain_global(network, x, n_draws=2))
    expected = dict(zip(["x0", "x1", "x2"], variance / variance.sum(), strict=True))
    assert found.to_dict() == pytest.approx(expected)


def test_shares_of_correlated_covariates_are_covariances_with_the_predictor():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2)) @ [[1.0, 0.7], [0.0, 0.5]]
    network = network_with([1.0, -0.4], Architecture(2, (), 1))
    predictor = x @ [1.0, -0.4]
    expected = [np.cov(x[:, k] * w, predictor, bias=True)[0, 1] for k, w in enumerate((1.0, -0.4))]
    found = shares(explain_global(network, x, n_draws=2))
    assert found[["x0", "x1"]].tolist() == pytest.approx((expected / predictor.var()).tolist())


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_shares_add_up_to_one_in_every_draw(make_network, make_rows, n_outputs):
    likelihood = "categorical" if n_outputs > 1 else "gaussian"
    network = make_network(n_outputs, "relu", likelihood=likelihood)
    importance = explain_global(network, make_rows(network, 60), n_draws=20).importance
    np.testing.assert_allclose(importance.draws.sum(axis=1), 1, rtol=1e-9)


def test_variables_that_share_no_unit_do_not_interact(bent):
    x = np.random.default_rng(0).normal(size=(100, 3))
    explanation = explain_global(bent, x, n_draws=3)
    pairs = explanation.interactions.to_frame()
    assert pairs[["first", "second"]].to_numpy().tolist() == [["x1", "x2"]]
    assert pairs["probability"].tolist() == [1.0]
    assert pairs["share"][0] > 0.001
    rest = shares(explanation).get("other interactions", 0.0)
    assert abs(rest) < 0.02


def test_of_many_pairs_that_meet_the_strongest_are_told():
    """All of eight covariates meet in one weak unit, the last two in a strong one as well."""
    net = Architecture(8, (2,), 1, activation="relu")
    flat = np.zeros(net.n_weights)
    covariates = net.covariate_matrix(flat)
    covariates[0] = 0.02
    covariates[1, [6, 7]] = [1.0, -1.0]
    net.hidden_block(1).view(flat)[...] = 1.0
    x = np.random.default_rng(0).normal(size=(120, 8))
    pairs = explain_global(network_with(flat, net), x, n_draws=3).interactions.to_frame()
    assert len(pairs) == 15
    assert pairs[["first", "second"]].iloc[0].tolist() == ["x6", "x7"]
    assert pairs["share"][0] > 5 * pairs["share"][1:].abs().max()


def test_the_share_of_a_bent_main_effect_is_that_of_direct_evaluation(bent):
    """Between points of a number its averaged effect is taken as linear: nearly so."""
    x = np.random.default_rng(0).normal(size=(100, 3))
    found = shares(explain_global(bent, x, n_draws=3))
    moved = np.repeat(x[:, None], len(x), axis=1)
    moved[..., [0, 2]] = x[None][..., [0, 2]]
    main = true(moved.reshape(-1, 3)).reshape(len(x), -1).mean(axis=1)
    expected = np.cov(main, true(x), bias=True)[0, 1] / true(x).var()
    assert found["x1"] == pytest.approx(expected, rel=0.005)


def test_without_meetings_main_effects_are_everything():
    """max(0, x0) - max(0, x1): bent, but additive."""
    net = Architecture(2, (2,), 1, activation="relu")
    flat = np.zeros(net.n_weights)
    net.covariate_matrix(flat)[:2] = np.eye(2)
    net.hidden_block(1).view(flat)[...] = [[1.0, -1.0]]
    x = np.random.default_rng(0).normal(size=(100, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    explanation = explain_global(network_with(flat, net), x, n_draws=3)
    assert explanation.interactions.to_frame().empty
    assert sorted(shares(explanation).index) == ["x0", "x1"]
    np.testing.assert_allclose(explanation.importance.draws.sum(axis=1), 1, rtol=1e-9)


def test_the_share_of_a_pure_interaction_is_nearly_all():
    """|x0 + x1| - |x0 - x1| of symmetric covariates has no main effects."""
    net = Architecture(2, (4,), 1, activation="relu")
    flat = np.zeros(net.n_weights)
    net.covariate_matrix(flat)[:4] = [[1, 1], [-1, -1], [1, -1], [-1, 1]]
    net.hidden_block(1).view(flat)[...] = [[1.0, 1.0, -1.0, -1.0]]
    side = np.linspace(-2, 2, 12)
    x = np.array(np.meshgrid(side, side)).reshape(2, -1).T
    x = x[np.random.default_rng(0).permutation(len(x))]
    found = shares(explain_global(network_with(flat, net), x, n_draws=2))
    assert found["x0 x x1"] == pytest.approx(1, abs=0.1)
    assert abs(found["x0"]) < 0.1


def test_one_hot_columns_are_one_term(make_network, make_rows):
    network = make_network()
    importance = explain_global(network, make_rows(network, 40), n_draws=5).importance
    assert ("colour",) in importance.terms


def test_units_do_not_matter_for_shares_over_several_targets(make_network, make_rows):
    network = make_network(2)
    x = make_rows(network, 40)
    larger = replace(network.scale, y_scale=network.scale.y_scale * [1.0, 1000.0])
    first = explain_global(network, x, n_draws=5, random_state=0).importance
    second = explain_global(replace(network, scale=larger), x, n_draws=5, random_state=0).importance
    np.testing.assert_allclose(first.draws, second.draws, rtol=1e-6, atol=1e-9)


def test_a_network_that_uses_nothing_has_no_terms():
    network = network_with([0.0, 0.0], Architecture(2, (), 1), scale=Scale.plain(2, 1))
    explanation = explain_global(network, np.ones((5, 2)), n_draws=2)
    assert explanation.importance.to_frame().empty
    assert explanation.interactions.to_frame().empty
