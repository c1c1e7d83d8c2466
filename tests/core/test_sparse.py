"""The sparse network against the dense median network and enumerated paths."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from islab.core.architecture import Architecture
from islab.core.network import forward
from islab.core.paths import active_weights
from islab.core.posterior import Initial, Posterior
from islab.core.scale import Scale
from tests.core.test_architecture import architectures
from tests.core.test_paths import chains_to_output

EVEN = Initial("balanced", "balanced", means=(-2, 2), sigma=0.3, bias_sd=1.0)
N_DRAWS = 20_000


def posterior_of(net, seed, flow=False):
    """About half of the weights are kept, and every bias is away from zero."""
    rng = np.random.default_rng(seed)
    posterior = Posterior.initialise(net, rng, replace(EVEN, output_scale=(1.0, 1.0)))
    changes = {"bias_mu": rng.normal(size=net.n_units), "noise": rng.uniform(1, 2, net.n_outputs)}
    if flow:
        n_inputs = sum(net.n_inputs(layer) for layer in range(net.n_layers))
        changes["multipliers"] = rng.normal(1, 0.5, size=(4, n_inputs))
        changes["input_index"] = net.input_index
    return posterior.copy(**changes)


def wired(net, kept, seed=0, **changes):
    """A posterior that keeps exactly the flagged weights."""
    lam = np.where(kept, 3.0, -3.0)
    return posterior_of(net, seed).copy(lam=lam, **changes)


def rows(net, seed=0, n_rows=5):
    return np.random.default_rng(seed).normal(size=(n_rows, net.n_covariates))


def dense_predictor(posterior, x):
    """The median network without looking for paths."""
    weights = np.where(posterior.alpha > 0.5, posterior.mu * posterior.mean_multiplier(), 0)
    return forward(posterior.architecture, weights, posterior.bias_mu, x)


def dense_draws(posterior, x, n_draws, seed):
    rng = np.random.default_rng(seed)
    sure = posterior.copy(lam=np.where(posterior.alpha > 0.5, 50.0, -50.0))
    return sure.sample_predictor(x, n_draws, rng)


@st.composite
def posteriors(draw):
    seed, flow = draw(st.integers(0, 2**32 - 1)), draw(st.booleans())
    return posterior_of(draw(architectures()), seed, flow)


def odd_scale(net):
    rng = np.random.default_rng(1)
    return replace(
        Scale.plain(net.n_covariates, net.n_outputs),
        x_center=rng.normal(size=net.n_covariates),
        x_scale=rng.uniform(0.5, 3, net.n_covariates),
        y_center=rng.normal(size=net.n_outputs),
        y_scale=rng.uniform(0.5, 3, net.n_outputs),
    )


# -- predicting -------------------------------------------------------------------------


@given(posteriors())
@settings(max_examples=200, deadline=None)
def test_predictor_equals_the_dense_median_network(posterior):
    x = rows(posterior.architecture)
    np.testing.assert_allclose(
        posterior.median().predictor(x), dense_predictor(posterior, x), atol=1e-10
    )


def test_predictor_of_single_precision_posteriors_equals_the_dense_median_network():
    posterior = posterior_of(Architecture(6, (8, 8), 2), 0)
    names = ("mu", "rho", "lam", "bias_mu", "bias_rho", "noise")
    single = posterior.copy(**{name: getattr(posterior, name).astype(np.float32) for name in names})
    network, x = single.median(), rows(posterior.architecture)
    assert {network.mu.dtype, network.sigma.dtype, network.bias_mu.dtype} == {np.dtype(float)}
    np.testing.assert_allclose(network.predictor(x), dense_predictor(single, x), atol=1e-6)


@given(posteriors())
@settings(max_examples=50, deadline=None)
def test_predictor_speaks_the_units_of_the_user(posterior):
    net = posterior.architecture
    scale, x = odd_scale(net), rows(net)
    standard = posterior.median().predictor((x - scale.x_center) / scale.x_scale)
    found = posterior.median(scale=scale).predictor(x)
    np.testing.assert_allclose(found, scale.y_center + scale.y_scale * standard, atol=1e-10)


def test_noise_in_units_is_scaled_by_the_square():
    posterior = posterior_of(Architecture(2, (), 2), 0)
    scale = odd_scale(posterior.architecture)
    found = posterior.median(scale=scale).noise_in_units()
    np.testing.assert_allclose(found, posterior.noise * scale.y_scale**2)


def test_bias_only_units_are_folded_through_several_layers():
    net = Architecture(1, (1, 1), 1, activation="tanh")
    kept = np.zeros(net.n_weights, dtype=bool)
    kept[net.weight_index(1)[0, 0]] = True  # first to second hidden unit, both without covariate
    kept[net.weight_index(2)[0]] = True  # second hidden unit and covariate to output
    posterior = wired(net, kept)
    first, second, output = posterior.bias_mu
    to_second, to_output = posterior.layer(1).mu[0, 0], posterior.layer(2).mu[0, 0]
    network = posterior.median()
    expected = output + to_output * np.tanh(second + to_second * np.tanh(first))
    assert network.n_used_weights == 1
    np.testing.assert_allclose(network.bias_mu, [expected], rtol=1e-12)


def test_predictor_reads_only_used_columns():
    net = Architecture(3, (), 1)
    network = wired(net, np.array([False, True, False])).median()
    x = rows(net)
    unread = x.copy()
    unread[:, [0, 2]] = np.nan
    np.testing.assert_array_equal(network.predictor(unread), network.predictor(x))


# -- drawing ----------------------------------------------------------------------------


@pytest.mark.parametrize("flow", [False, True])
def test_draws_have_the_mean_and_spread_of_the_edges(flow):
    network = posterior_of(Architecture(3, (3,), 2), 0, flow).median()
    weights, biases = network.draw(N_DRAWS, np.random.default_rng(1))
    edges = weights[:, network.edges]
    error = 5 / np.sqrt(N_DRAWS)
    assert (abs(edges.mean(axis=0) - network.edge_means()) < error * network.edge_sds()).all()
    np.testing.assert_allclose(edges.std(axis=0), network.edge_sds(), rtol=0.04)
    assert (abs(biases.mean(axis=0) - network.bias_mu) < error * network.bias_sigma).all()
    np.testing.assert_allclose(biases.std(axis=0), network.bias_sigma, rtol=0.04)


def test_unused_weights_are_zero_in_every_draw():
    network = posterior_of(Architecture(3, (3,), 2), 0).median()
    weights, _ = network.draw(10, np.random.default_rng(0))
    unused = np.setdiff1d(np.arange(weights.shape[1]), network.edges)
    assert len(unused) > 0
    assert (weights[:, unused] == 0).all()


def test_spread_of_a_linear_model_is_analytic():
    net = Architecture(3, (), 1)
    posterior = wired(net, np.ones(3, dtype=bool))
    scale, x = odd_scale(net), rows(net)
    draws = posterior.median(scale=scale).sample_predictor(x, N_DRAWS, np.random.default_rng(2))
    z = (x - scale.x_center) / scale.x_scale
    variance = z**2 @ posterior.sigma**2 + posterior.bias_sigma**2
    expected = scale.y_scale * np.sqrt(variance)
    np.testing.assert_allclose(draws.std(axis=0)[:, 0], expected, rtol=0.04)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_draws_are_distributed_as_those_of_the_dense_median_network(activation):
    net = Architecture(2, (3, 2), 1, activation=activation)
    posterior = wired(net, np.ones(net.n_weights, dtype=bool))
    x = rows(net, n_rows=3)
    small = posterior.median().sample_predictor(x, N_DRAWS, np.random.default_rng(3))
    dense = dense_draws(posterior, x, N_DRAWS, seed=4)
    error = 5 * dense.std(axis=0) * np.sqrt(2 / N_DRAWS)
    assert (abs(small.mean(axis=0) - dense.mean(axis=0)) < error).all()
    np.testing.assert_allclose(small.std(axis=0), dense.std(axis=0), rtol=0.06)


def folded_chain(**changes):
    """Two hidden units that no covariate feeds, one after the other; linear throughout."""
    net = Architecture(1, (1, 1), 1, activation="identity")
    kept = np.zeros(net.n_weights, dtype=bool)
    kept[[net.weight_index(1)[0, 0], *net.weight_index(2)[0]]] = True
    rho = np.ones(net.n_weights)  # wide enough for products of spreads to matter
    return wired(
        net, kept, bias_mu=np.array([2.0, -1.0, 0.5]), rho=rho, bias_rho=rho[:3], **changes
    )


def test_folded_constants_keep_their_spread():
    posterior = folded_chain()
    dense = dense_draws(posterior, np.zeros((1, 1)), N_DRAWS, seed=5)
    network = posterior.median()
    assert len(network.bias_sigma) == 1
    assert network.bias_sigma[0] == pytest.approx(dense.std(), rel=0.04)


def test_folded_constants_keep_the_spread_of_a_flow():
    net = folded_chain().architecture
    n_inputs = sum(net.n_inputs(layer) for layer in range(net.n_layers))
    bank = np.random.default_rng(6).normal(1, 1, size=(500, n_inputs))
    posterior = folded_chain(multipliers=bank, input_index=net.input_index)
    dense = dense_draws(posterior, np.zeros((1, 1)), N_DRAWS, seed=7)
    assert posterior.median().bias_sigma[0] == pytest.approx(dense.std(), rel=0.1)


@pytest.mark.parametrize("flow", [False, True])
def test_a_draw_of_a_linear_network_is_one_linear_function(flow):
    net = Architecture(3, (3, 2), 2, activation="identity")
    network = posterior_of(net, 0, flow).median()
    x = rows(net, n_rows=2)
    points = np.stack([x[0], x[1], x[0] + x[1], np.zeros(3)])
    draws = network.sample_predictor(points, 20, np.random.default_rng(10))
    first, second, both, none = np.moveaxis(draws, 1, 0)
    np.testing.assert_allclose(both, first + second - none, atol=1e-11)
    assert first.std(axis=0).min() > 0.1


def test_a_draw_of_a_flow_uses_one_row_of_its_bank():
    net = Architecture(3, (), 1)
    posterior = posterior_of(net, 0, flow=True).copy(lam=np.full(3, 3.0), rho=np.full(3, -40.0))
    network = posterior.median()
    weights, _ = network.draw(60, np.random.default_rng(11))
    multiples = {tuple(np.round(row, 9)) for row in weights / network.mu}
    assert multiples == {tuple(np.round(row, 9)) for row in posterior.multipliers}


def test_edges_of_one_input_share_its_multipliers():
    net = Architecture(3, (), 4)
    posterior = posterior_of(net, 0, flow=True).copy(lam=np.full(12, 3.0))
    network = posterior.median()
    assert network.multipliers.shape == (len(posterior.multipliers), 3)
    np.testing.assert_array_equal(network.input_index, network.edge_ends()[0])
    np.testing.assert_allclose(network.edge_means(), posterior.mu * posterior.mean_multiplier())


@given(posteriors())
@settings(max_examples=30, deadline=None)
def test_draws_without_spread_are_the_predictor(posterior):
    net = posterior.architecture
    certain = posterior.copy(
        rho=np.full(net.n_weights, -60.0),
        bias_rho=np.full(net.n_units, -60.0),
        multipliers=None,
        input_index=None,
    )
    network, x = certain.median(), rows(net)
    draws = network.sample_predictor(x, 3, np.random.default_rng(0))
    expected = np.broadcast_to(network.predictor(x), draws.shape)
    np.testing.assert_allclose(draws, expected, atol=1e-10)


# -- reading ----------------------------------------------------------------------------


@given(posteriors())
@settings(max_examples=100, deadline=None)
def test_depth_of_a_covariate_weight_is_the_length_of_its_paths(posterior):
    net, network = posterior.architecture, posterior.median()
    every = {}
    for output in range(net.n_outputs):
        chains = chains_to_output(net, posterior.alpha > 0.5, output)
        depths = {chain[0]: len(chain) for chain in chains}
        assert sorted(network.depths(output).tolist()) == sorted(depths.values())
        every |= depths
    assert sorted(network.depths().tolist()) == sorted(every.values())
    assert network.max_depth == max(every.values(), default=0)
    assert network.average_depth == pytest.approx(np.mean([*every.values()] or [0]))


@given(posteriors())
@settings(max_examples=100, deadline=None)
def test_edges_of_an_output_are_the_weights_on_its_paths(posterior):
    net, network = posterior.architecture, posterior.median()
    every = set()
    for output in range(net.n_outputs):
        chains = chains_to_output(net, posterior.alpha > 0.5, output)
        on_path = {position for chain in chains for position in chain}
        found = network.alpha[network.edges_of_output(output)]
        assert sorted(found) == sorted(posterior.alpha[list(on_path)])
        every |= on_path
    assert network.n_used_weights == len(every)
    assert network.density == pytest.approx(len(every) / max(net.n_weights, 1))


@given(posteriors())
@settings(max_examples=100, deadline=None)
def test_covariate_table_counts_entries_and_averages_their_inclusion(posterior):
    net, network = posterior.architecture, posterior.median()
    active = active_weights(net, posterior.alpha > 0.5)
    counts = np.zeros((net.n_covariates, net.n_layers), dtype=int)
    inclusion = np.full(counts.shape, np.nan)
    for block in net.blocks:
        if block.source == "covariate":
            used, alpha = block.view(active), block.view(posterior.alpha)
            for column in range(net.n_covariates):
                counts[column, block.layer] = used[:, column].sum()
                if used[:, column].any():
                    inclusion[column, block.layer] = alpha[used[:, column], column].mean()
    np.testing.assert_array_equal(network.covariate_counts(), counts)
    np.testing.assert_allclose(network.covariate_inclusion(), inclusion)
    assert network.covariates.tolist() == np.flatnonzero(counts.sum(axis=1)).tolist()


@given(posteriors())
@settings(max_examples=50, deadline=None)
def test_covariate_depths_regroup_the_depths(posterior):
    network = posterior.median()
    by_covariate = network.covariate_depths()
    assert list(by_covariate) == network.covariates.tolist()
    counts = network.covariate_counts()
    for column, depths in by_covariate.items():
        layers = network.architecture.n_layers - depths
        assert np.bincount(layers, minlength=counts.shape[1]).tolist() == counts[column].tolist()


@given(posteriors())
@settings(max_examples=50, deadline=None)
def test_frame_names_the_ends_of_every_used_weight(posterior):
    net = posterior.architecture
    active = active_weights(net, posterior.alpha > 0.5)
    mean = posterior.mu * posterior.mean_multiplier()
    expected = []
    for layer in range(net.n_layers):
        n_hidden = net.hidden[layer - 1] if layer else 0
        for target, wires in enumerate(net.weight_index(layer)):
            to = f"y{target}" if layer == net.n_layers - 1 else f"h{layer}.{target}"
            for source, w in enumerate(wires):
                start = f"h{layer - 1}.{source}" if source < n_hidden else f"x{source - n_hidden}"
                if active[w]:
                    expected.append((layer, start, to, posterior.alpha[w], mean[w]))
    frame = posterior.median().to_frame()
    found = frame[["layer", "from", "to", "alpha", "mean"]].itertuples(index=False, name=None)
    assert sorted(found) == sorted(expected)


def test_density_refers_to_the_weights_before_training():
    net = Architecture(3, (), 1)
    network = wired(net, np.array([True, False, False]), n_weights_initial=50).median()
    assert network.density == 1 / 50


def test_network_in_words():
    net = Architecture(3, (2,), 1)
    kept = np.zeros(net.n_weights, dtype=bool)
    kept[net.weight_index(1)[0, 2]] = True
    text = "SparseNetwork(1 of 11 weights, 1 of 3 covariates, depth 1.00 (max 1))"
    assert repr(wired(net, kept).median()) == text


def test_default_names_count_from_zero():
    scale = Scale.plain(2, 1)
    assert (scale.names, scale.outputs, scale.variables) == (("x0", "x1"), ("y0",), ("x0", "x1"))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 2)])
def test_rows_of_the_wrong_shape_are_named(shape):
    network = posterior_of(Architecture(3, (2,), 1), 0).median()
    with pytest.raises(ValueError, match=r"Got x of shape .*, expected \(rows, 3\)"):
        network.predictor(np.ones(shape))


@pytest.mark.parametrize("output", [-1, 2])
def test_an_output_that_is_not_there_is_named(output):
    network = posterior_of(Architecture(3, (2,), 2), 0).median()
    with pytest.raises(ValueError, match=f"Got output={output}, expected 0 to 1"):
        network.depths(output)


@pytest.mark.parametrize(("name", "value"), [("mu", np.nan), ("mu", np.inf), ("lam", np.nan)])
def test_a_posterior_with_missing_weights_has_no_median_network(name, value):
    net = Architecture(3, (), 1)
    broken = posterior_of(net, 0).copy(**{name: np.array([value, 1.0, 1.0])})
    with pytest.raises(ValueError, match="missing or infinite weights"):
        broken.median()


# -- nothing left -----------------------------------------------------------------------


def empty_posterior(input_skip=True):
    """All hidden weights are kept and no covariate weight is, so every unit is constant."""
    net = Architecture(3, (4, 2), 2, input_skip=input_skip)
    source = net.by_block([block.source == "hidden" for block in net.blocks])
    return wired(net, source)


@pytest.mark.parametrize("input_skip", [True, False])
def test_without_active_path_no_weight_is_used(input_skip):
    network = empty_posterior(input_skip).median()
    assert network.n_used_weights == 0
    assert len(network.covariates) == 0
    assert (network.max_depth, network.average_depth) == (0, 0.0)
    assert network.to_frame().empty


@pytest.mark.parametrize("input_skip", [True, False])
def test_without_active_path_the_prediction_is_constant(input_skip):
    posterior = empty_posterior(input_skip)
    x = rows(posterior.architecture)
    found = posterior.median().predictor(x)
    assert (found == found[0]).all()
    np.testing.assert_allclose(found, dense_predictor(posterior, x), atol=1e-12)


def test_without_active_path_each_draw_is_constant():
    posterior = empty_posterior()
    draws = posterior.median().sample_predictor(
        rows(posterior.architecture), 50, np.random.default_rng(0)
    )
    assert draws.shape == (50, 5, 2)
    assert (draws == draws[:, :1]).all()
    assert draws.std(axis=0).min() > 0


def test_sparse_network_shares_no_memory_with_its_posterior():
    posterior = posterior_of(Architecture(2, (2,), 1), 0)
    network = posterior.median()
    for name in ("mu", "bias_mu", "noise"):
        assert not np.shares_memory(getattr(network, name), getattr(posterior, name))


def test_the_old_name_of_the_scale_still_works_with_a_warning():
    posterior = posterior_of(Architecture(2, (2,), 1), 0)
    network = posterior.median(scale=odd_scale(posterior.architecture))
    with pytest.warns(FutureWarning, match="units is now called scale"):
        assert network.units is network.scale


def test_the_class_of_the_scale_is_found_under_its_old_name_with_a_warning():
    from islab.core import sparse

    with pytest.warns(FutureWarning, match="Scale"):
        assert sparse.Units is Scale
