"""Where a posterior starts, what its draws are, and that copies stand alone."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from islab.core import network as module
from islab.core.architecture import Architecture
from islab.core.equations import moments
from islab.core.network import forward, portions
from islab.core.posterior import INCLUSION_BOUNDS, Initial, Posterior, inclusion_bounds
from islab.core.scale import Scale

WIDE = Architecture(20, (50, 40), 30)
SMALL = Architecture(2, (2,), 1)


def start(net=WIDE, seed=0, **initial):
    return Posterior.initialise(net, np.random.default_rng(seed), Initial(**initial))


def values_by_source(posterior, values):
    """Covariate and hidden entries of a flat vector."""
    source = [block.source == "covariate" for block in posterior.architecture.blocks]
    from_covariate = posterior.architecture.by_block(source)
    return values[from_covariate], values[~from_covariate]


def spread_posterior(net=SMALL, seed=1):
    """Inclusion, means and spreads that all differ."""
    initial = Initial("polarized_mild", "balanced", means=(-2, 2), sigma=0.5, bias_sd=1.0)
    return Posterior.initialise(net, np.random.default_rng(seed), initial)


def with_flow(posterior, seed=2, n_bank=5):
    net = posterior.architecture
    n_inputs = sum(net.n_inputs(layer) for layer in range(net.n_layers))
    bank = np.random.default_rng(seed).normal(1, 0.5, size=(n_bank, n_inputs))
    return posterior.copy(multipliers=bank, input_index=net.input_index)


@pytest.mark.parametrize(
    ("keyword", "low", "high"),
    [
        ("polarized", -10, 10),
        ("polarized_mild", -3, 3),
        ("polarized_sparse", -10, 5),
        ("polarized_dense", -5, 10),
        ("dense", 1.5, 2.5),
        ("sparse", -2.5, -1.5),
        ("balanced", -1, 1),
    ],
)
def test_inclusion_keyword_fills_its_bounds_evenly(keyword, low, high):
    lam = start(covariate_inclusion=keyword, hidden_inclusion=keyword).lam
    assert stats.kstest(lam, stats.uniform(low, high - low).cdf).pvalue > 1e-3


def test_every_inclusion_keyword_is_tested():
    assert len(INCLUSION_BOUNDS) == 7


def test_covariate_and_hidden_weights_start_separately():
    posterior = start(covariate_inclusion="dense", hidden_inclusion=(-7.0, -6.0))
    covariate, hidden = values_by_source(posterior, posterior.lam)
    assert ((covariate >= 1.5) & (covariate <= 2.5)).all()
    assert ((hidden >= -7) & (hidden <= -6)).all()


def test_equal_bounds_give_one_inclusion_probability():
    assert (start(covariate_inclusion=(2, 2), hidden_inclusion=(2, 2)).lam == 2).all()


@pytest.mark.parametrize(
    ("means", "variance"),
    [("he", lambda fan_in, _: 2 / fan_in), ("glorot", lambda fan_in, out: 2 / (fan_in + out))],
)
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_normal_means_have_the_variance_of_their_rule(means, variance, layer):
    mu = start(means=means, output_scale=(1.0, 1.0)).layer(layer).mu
    n_targets, n_inputs = mu.shape
    standard = mu.ravel() / np.sqrt(variance(n_inputs, n_targets))
    assert stats.kstest(standard, stats.norm.cdf).pvalue > 1e-3


def test_uniform_means_fill_their_bounds_evenly():
    mu = start(means=(-1.2, 1.2), output_scale=(1.0, 1.0)).mu
    assert stats.kstest(mu, stats.uniform(-1.2, 2.4).cdf).pvalue > 1e-3


def test_output_scale_shrinks_the_means_of_the_output_layer_alone():
    plain, scaled = (start(output_scale=scale).layers for scale in ((1, 1), (0.1, 0.3)))
    n_hidden = WIDE.hidden[-1]
    np.testing.assert_allclose(scaled[2].mu[:, :n_hidden], 0.3 * plain[2].mu[:, :n_hidden])
    np.testing.assert_allclose(scaled[2].mu[:, n_hidden:], 0.1 * plain[2].mu[:, n_hidden:])
    for layer in (0, 1):
        np.testing.assert_array_equal(scaled[layer].mu, plain[layer].mu)


def test_linear_model_ignores_the_output_scale():
    net = Architecture(20, (), 1)
    np.testing.assert_array_equal(start(net, output_scale=(0, 0)).mu, start(net).mu)


def test_without_jitter_every_weight_has_the_same_sigma():
    posterior = start(sigma=0.05, sigma_jitter=0.0)
    np.testing.assert_allclose(posterior.sigma, 0.05, rtol=1e-12)
    np.testing.assert_allclose(posterior.bias_sigma, 0.05, rtol=1e-12)


def test_jitter_is_the_spread_of_rho():
    rho = start(sigma_jitter=0.2).rho
    assert rho.std() == pytest.approx(0.2, rel=0.05)


def test_output_biases_start_at_zero_and_hidden_ones_do_not():
    posterior = start(bias_sd=0.1)
    assert (posterior.layer(2).bias_mu == 0).all()
    assert posterior.layer(0).bias_mu.std() == pytest.approx(0.1, rel=0.3)


def test_every_output_starts_with_unit_noise():
    assert start().noise.tolist() == [1.0] * 30


def test_the_generator_decides_the_start():
    first, again, other = start(seed=1).mu, start(seed=1).mu, start(seed=2).mu
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


@pytest.mark.parametrize("net", [Architecture(0, (), 1), Architecture(0, (0,), 1)])
def test_network_without_weights_predicts_its_bias(net):
    posterior = start(net).copy(bias_mu=np.full(net.n_units, 3.0))
    draws = posterior.sample_predictor(np.empty((4, 0)), 400, np.random.default_rng(0))
    assert draws.shape == (400, 4, 1)
    assert draws.mean() == pytest.approx(3.0, abs=0.02)


def test_unknown_inclusion_is_named():
    with pytest.raises(ValueError, match="Got inclusion='thick', expected one of polarized"):
        start(hidden_inclusion="thick")


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (np.nan, 0.0), (-np.inf, 0.0)])
def test_impossible_inclusion_bounds_are_named(bounds):
    with pytest.raises(ValueError, match=f"Got inclusion bounds \\({bounds[0]}, 0.0\\)"):
        inclusion_bounds(bounds)


def test_unknown_means_are_named():
    with pytest.raises(ValueError, match="Got means='xavier', expected 'he', 'glorot'"):
        start(means="xavier")


def test_impossible_bounds_of_the_means_are_named():
    with pytest.raises(ValueError, match=r"Got means=\(1, -1\)"):
        start(means=(1, -1))


@pytest.mark.parametrize("sigma", [0.0, -1.0])
def test_impossible_sigma_is_named(sigma):
    with pytest.raises(ValueError, match=f"Got sigma={sigma}"):
        start(sigma=sigma)


def test_unknown_likelihood_is_named_at_the_start():
    with pytest.raises(ValueError, match="Got likelihood='gamma'"):
        Posterior.initialise(SMALL, np.random.default_rng(0), likelihood="gamma")


def test_no_draws_are_too_few():
    with pytest.raises(ValueError, match="Got n_draws=0, expected at least 1"):
        start(SMALL).sample_predictor(np.ones((1, 2)), 0, np.random.default_rng(0))


def test_layers_hold_the_flat_vectors_in_the_order_of_the_paper():
    posterior = spread_posterior()
    hidden_to_output = SMALL.hidden_block(1).view(posterior.mu)
    covariate_to_output = SMALL.block(1, "covariate").view(posterior.mu)
    expected = np.concatenate([hidden_to_output, covariate_to_output], axis=1)
    np.testing.assert_array_equal(posterior.layer(1).mu, expected)


def test_layers_are_copies():
    posterior = spread_posterior()
    layer = posterior.layer(0)
    for array in (layer.mu, layer.sigma, layer.alpha, layer.bias_mu, layer.bias_sigma):
        array[...] = 99
    assert not (posterior.mu == 99).any()
    assert not (posterior.bias_mu == 99).any()


@pytest.mark.parametrize("flow", [False, True])
def test_weights_of_draws_average_to_the_posterior_mean(flow):
    posterior = with_flow(spread_posterior()) if flow else spread_posterior()
    weights, biases = posterior.draw(40_000, np.random.default_rng(3))
    error = weights.std(axis=0) / 200
    assert (abs(weights.mean(axis=0) - posterior.mean_weights()) < 5 * error).all()
    assert (abs(biases.mean(axis=0) - posterior.bias_mu) < 5 * posterior.bias_sigma / 200).all()


def test_weights_of_draws_have_the_variance_of_the_moments():
    posterior = spread_posterior()
    weights, biases = posterior.draw(40_000, np.random.default_rng(4))
    _, variance = moments(posterior.mu, posterior.sigma, posterior.alpha)
    np.testing.assert_allclose(weights.var(axis=0), variance, rtol=0.06)
    np.testing.assert_allclose(biases.std(axis=0), posterior.bias_sigma, rtol=0.03)


@pytest.mark.parametrize("flow", [False, True])
def test_included_weights_of_draws_have_the_slab_variance(flow):
    posterior = with_flow(spread_posterior()) if flow else spread_posterior()
    sure = posterior.copy(lam=np.full(SMALL.n_weights, 40.0))
    weights, _ = sure.draw(40_000, np.random.default_rng(12))
    np.testing.assert_allclose(weights.var(axis=0), posterior.slab_variance(), rtol=0.06)


def test_weights_of_draws_are_zero_as_often_as_they_are_excluded():
    posterior = spread_posterior()
    weights, _ = posterior.draw(40_000, np.random.default_rng(5))
    included = (weights != 0).mean(axis=0)
    assert (abs(included - posterior.alpha) < 5 * np.sqrt(0.25 / 40_000)).all()


def test_weights_that_leave_one_input_share_its_multiplier():
    posterior = with_flow(spread_posterior())
    sure = posterior.copy(lam=np.full(SMALL.n_weights, 40.0), rho=np.full(SMALL.n_weights, -40.0))
    weights, _ = sure.draw(50, np.random.default_rng(6))
    by_weight = sure.multipliers[:, SMALL.input_index]
    distance = abs((weights / sure.mu)[:, None] - by_weight).max(axis=-1)  # (draws, bank)
    np.testing.assert_allclose(distance.min(axis=1), 0, atol=1e-9)
    assert len(set(distance.argmin(axis=1))) == 5


def test_a_draw_of_a_linear_network_is_one_linear_function():
    net = Architecture(3, (4, 2), 2, activation="identity")
    x = np.random.default_rng(7).normal(size=(2, 3))
    rows = np.stack([x[0], x[1], x[0] + x[1], np.zeros(3)])
    first, second, both, none = np.moveaxis(
        spread_posterior(net).sample_predictor(rows, 20, np.random.default_rng(8)), 1, 0
    )
    np.testing.assert_allclose(both, first + second - none, atol=1e-12)
    assert first.std(axis=0).min() > 0.1


def test_predictor_of_draws_is_forward_through_the_draws():
    posterior, x = spread_posterior(), np.array([[1.0, -2.0], [0.5, 0.0]])
    draws = posterior.sample_predictor(x, 6, np.random.default_rng(9))
    expected = forward(SMALL, *posterior.draw(6, np.random.default_rng(9)), x)
    np.testing.assert_array_equal(draws, expected)


def test_draws_in_portions_are_as_many_and_as_spread(monkeypatch):
    posterior, x = spread_posterior(), np.ones((1, 2))
    whole = posterior.sample_predictor(x, 4000, np.random.default_rng(10))
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 3000)
    parts = posterior.sample_predictor(x, 4000, np.random.default_rng(11))
    assert parts.shape == whole.shape
    assert stats.ks_2samp(parts.ravel(), whole.ravel()).pvalue > 1e-3


@pytest.mark.parametrize(("total", "cost"), [(1, 10**9), (7, 0), (100, 3_000_000), (10, 2 * 10**7)])
def test_portions_add_up_and_fit(total, cost):
    sizes = list(portions(total, cost))
    assert sum(sizes) == total
    assert max(sizes) == 1 or max(sizes) * cost <= module.NUMBERS_AT_ONCE


def test_copy_shares_no_memory():
    original = with_flow(spread_posterior())
    copied = original.copy()
    names = [name for name, value in vars(original).items() if isinstance(value, np.ndarray)]
    assert len(names) == 8
    for name in names:
        np.testing.assert_array_equal(getattr(copied, name), getattr(original, name))
        assert not np.shares_memory(getattr(copied, name), getattr(original, name))


def test_copy_takes_changes_and_keeps_the_rest():
    original = start().copy(n_weights_initial=12345, likelihood="poisson")
    copied = original.copy(noise=np.full(30, 2.0))
    assert (copied.n_weights_initial, copied.likelihood) == (12345, "poisson")
    assert copied.noise.tolist() == [2.0] * 30


def test_weights_before_training_are_all_weights_by_default():
    assert start().n_weights_initial == WIDE.n_weights


def test_median_keeps_what_exceeds_the_threshold():
    net = Architecture(3, (), 1)
    posterior = start(net).copy(
        lam=np.log(np.array([0.3, 0.5, 0.7]) / (1 - np.array([0.3, 0.5, 0.7])))
    )
    assert posterior.median().covariates.tolist() == [2]
    assert posterior.median(threshold=0.2).covariates.tolist() == [0, 1, 2]


def test_a_posterior_with_a_scale_reads_and_predicts_on_the_scale_of_the_data():
    posterior = spread_posterior(Architecture(2, (3,), 1))
    plain = Scale.plain(2, 1)
    scale = replace(
        plain,
        x_center=np.array([100.0, -5.0]),
        x_scale=np.array([20.0, 0.1]),
        y_center=np.array([7.0]),
        y_scale=np.array([3.0]),
    )
    x = np.random.default_rng(1).normal(size=(6, 2))
    standard = posterior.sample_predictor(x, 5, np.random.default_rng(2))
    scaled = replace(posterior, scale=scale)
    rows = scale.x_center + scale.x_scale * x
    found = scaled.sample_predictor(rows, 5, np.random.default_rng(2))
    np.testing.assert_allclose(found, 7 + 3 * standard)


def test_the_median_network_shares_the_scale_of_its_posterior():
    posterior = spread_posterior(Architecture(2, (3,), 1))
    scaled = replace(posterior, scale=Scale.plain(2, 1))
    assert scaled.median().scale is scaled.scale
