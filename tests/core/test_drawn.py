"""Draws of sparse networks against the same networks in numpy, and ways against bisection."""

import pickle
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.drawn import DrawnNetworks
from islab.core.families import Activation
from islab.core.native import compiled
from islab.core.network import forward, slopes
from tests.core.test_architecture import architectures

SETS = [] if compiled is None else compiled.instruction_sets()
HOW = ["numpy", *SETS]
SEEDS = st.integers(0, 2**32 - 1)
COMPILED = architectures().filter(lambda net: net.kernel is not None)
BENT = families.activations(piecewise_linear=True)


@contextmanager
def computing(how):
    """Without compiled code, or with its version for some kind of processor."""
    with pytest.MonkeyPatch.context() as patch:
        if how == "numpy":
            patch.setattr("islab.core.drawn.compiled", None)
        else:
            patch.setattr("islab.core.drawn.instructions", how)
        yield


def drawn(net, seed, n_draws=3, share=0.6):
    """Networks of which so many weights are used, and their flat weights."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(n_draws, net.n_weights))
    weights[rng.random(weights.shape) > share] = 0
    biases = rng.normal(size=(n_draws, net.n_units))
    return DrawnNetworks.from_dense(net, weights, biases), weights, biases


def rows_of(net, seed, n_rows=3):
    return np.random.default_rng(seed + 1).normal(size=(n_rows, net.n_covariates))


# -- predictors and slopes --------------------------------------------------------------------


@given(architectures(), SEEDS, st.sampled_from(HOW), st.sampled_from([0, 1, 5, 70]))
@settings(max_examples=200, deadline=None)
def test_predictors_are_those_of_the_dense_networks(net, seed, how, n_rows):
    networks, weights, biases = drawn(net, seed)
    x = rows_of(net, seed, n_rows)
    with computing(how):
        found = networks.predictor(x)
    np.testing.assert_allclose(found, forward(net, weights, biases, x), rtol=1e-12, atol=1e-12)


@given(architectures(), SEEDS, st.sampled_from(HOW), st.sampled_from([0, 1, 70]))
@settings(max_examples=150, deadline=None)
def test_slopes_are_those_of_the_dense_networks(net, seed, how, n_rows):
    networks, weights, biases = drawn(net, seed)
    x = rows_of(net, seed, n_rows)
    with computing(how):
        predictor, gradient = networks.slopes(x)
        used = networks.covariates
    expected = slopes(net, weights, biases, x)
    np.testing.assert_allclose(predictor, expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient, expected[1][..., used], rtol=1e-12, atol=1e-12)
    assert not np.delete(expected[1], used, axis=-1).any()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("activation", families.activations())
def test_networks_of_many_units_agree_too(activation, how):
    net = Architecture(30, (40, 30, 20), 3, activation=activation)
    networks, weights, biases = drawn(net, 0, n_draws=7, share=0.1)
    x = rows_of(net, 0, 131)
    with computing(how):
        found = networks.predictor(x)
    np.testing.assert_allclose(found, forward(net, weights, biases, x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("how", SETS)
@pytest.mark.parametrize("activation", families.activations())
def test_a_row_has_the_same_numbers_beside_any_others(activation, how):
    net = Architecture(4, (5, 5), 2, activation=activation)
    networks, _, _ = drawn(net, 1, n_draws=20)
    x = rows_of(net, 1, 100)
    with computing(how):
        whole = networks.predictor(x)
        for row in (0, 63, 64, 99):
            np.testing.assert_array_equal(networks.predictor(x[[row]]), whole[:, [row]])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("activation", families.activations())
def test_huge_and_missing_values_go_through_as_in_numpy(activation, how):
    net = Architecture(2, (3,), 1, activation=activation)
    networks, weights, biases = drawn(net, 2, share=1.0)
    x = np.array([[1e300, 1.0], [-1e300, 1.0], [np.nan, 0.0], [800.0, -800.0]])
    with computing(how), np.errstate(all="ignore"):
        found, expected = networks.predictor(x), forward(net, weights, biases, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.skipif(compiled is None, reason="there is no compiled module")
@pytest.mark.parametrize("activation", families.activations())
def test_every_activation_of_the_package_is_compiled(activation):
    assert families.activation(activation).kernel.name in compiled.activations()
    assert drawn(Architecture(2, (2,), 1, activation=activation), 0)[0].is_compiled


def test_units_that_lead_nowhere_use_no_covariate():
    net = Architecture(3, (2,), 1, activation="relu")
    weights = np.zeros((1, net.n_weights))
    net.covariate_matrix(weights)[0, 0, 0] = 1.0  # into a unit without a way out
    net.covariate_matrix(weights)[0, 1, 2] = 1.0
    net.hidden_block(1).view(weights)[0, 0, 1] = 1.0
    for how in HOW:
        with computing(how):
            networks = DrawnNetworks.from_dense(net, weights, np.zeros((1, 3)))
            assert networks.covariates.tolist() == [2]


def test_activations_without_a_compiled_version_are_computed_in_numpy():
    class Square(Activation):
        name = "square"
        javascript = "{ value: (z) => z * z, slope: (z) => 2 * z }"
        formula = latex = "{0} * {0}".format

        def expression(self, z):
            return z * z

        def torch(self, z):
            return z * z

        def value(self, z):
            return z * z

        def slope(self, z, value=None):
            return 2 * z

    families.register(Square())
    try:
        net = Architecture(3, (4, 2), 2, activation="square")
        networks, weights, biases = drawn(net, 3)
        x = rows_of(net, 3)
        assert not networks.is_compiled
        np.testing.assert_array_equal(networks.predictor(x), forward(net, weights, biases, x))
        expected = slopes(net, weights, biases, x)[1][..., networks.covariates]
        np.testing.assert_array_equal(networks.slopes(x)[1], expected)
    finally:
        families.unregister(Square())


# -- contributions ----------------------------------------------------------------------------


def mean_gradient(gradient, low=0.0, high=1.0, cells=64, least=1e-13):
    """Mean of a piecewise-constant function on [low, high], by halving cells that have a bend."""
    edges = np.linspace(low, high, cells + 1)
    total = 0.0
    while len(edges) > 1:
        left, right = edges[:-1], edges[1:]
        width = right - left
        inside = left[:, None] + width[:, None] * np.array([1e-6, 0.31, 0.5, 0.77, 1 - 1e-6])
        values = gradient(inside.ravel()).reshape(*inside.shape, -1)
        flat = (np.abs(values - values[:, :1]) < 1e-12).all(axis=(1, 2)) | (width < least)
        total = total + (width[flat, None] * values[flat, 2]).sum(axis=0)
        bent = ~flat
        halves = np.stack([left[bent], (left[bent] + right[bent]) / 2, right[bent]], axis=1)
        if not len(halves):
            break
        # Cells are worked on one by one from here: those with a bend are few.
        return total + sum(
            mean_gradient(gradient, *half, cells=2, least=least)
            for half in np.concatenate([halves[:, :2], halves[:, 1:]])
        )
    return total


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("activation", BENT)
@pytest.mark.parametrize("input_skip", [True, False])
@pytest.mark.parametrize("hidden", [(), (4,), (3, 3), (3, 2, 3)])
def test_contributions_are_the_integral_of_the_gradient(hidden, input_skip, activation, how):
    net = Architecture(3, hidden, 2, input_skip=input_skip, activation=activation)
    networks, weights, biases = drawn(net, 5, n_draws=2, share=0.8)
    start, end = rows_of(net, 6, 2), 2 * rows_of(net, 7, 2)
    with computing(how):
        found = networks.contributions(start, end)
        used = networks.covariates
    for draw in range(2):
        for row in range(2):
            way = end[row] - start[row]

            def gradient(t, draw=draw, row=row, way=way):
                points = start[row] + t[:, None] * way
                return slopes(net, weights[draw], biases[draw], points)[1].reshape(len(t), -1)

            mean = mean_gradient(gradient).reshape(2, 3)
            np.testing.assert_allclose(found[draw, row], (mean * way).T[used], atol=1e-9)


@given(architectures(BENT), SEEDS, st.sampled_from(HOW), st.sampled_from([0, 1, 3, 21]))
@settings(max_examples=150, deadline=None)
def test_contributions_add_up_to_the_way_of_the_predictor(net, seed, how, n_rows):
    networks, weights, biases = drawn(net, seed)
    start, end = rows_of(net, seed, 1), rows_of(net, seed + 1, n_rows)
    with computing(how):
        found = networks.contributions(start, end)
    difference = forward(net, weights, biases, end) - forward(net, weights, biases, start)
    np.testing.assert_allclose(found.sum(axis=2), difference, atol=1e-11)


@pytest.mark.parametrize("how", SETS)
def test_compiled_contributions_are_those_of_numpy(how):
    net = Architecture(6, (8, 6, 4), 2, activation="leaky_relu")
    networks, _, _ = drawn(net, 8, n_draws=15, share=0.5)
    start, end = rows_of(net, 9, 37), 3 * rows_of(net, 10, 37)
    with computing("numpy"):
        expected = drawn(net, 8, n_draws=15, share=0.5)[0].contributions(start, end)
    with computing(how):
        found = networks.contributions(start, end)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("how", HOW)
def test_ways_may_begin_and_turn_exactly_at_bends(how):
    # |x| from relu(x) + relu(-x), and a unit above whose bend lies where those have theirs.
    net = Architecture(1, (2, 1), 1, activation="relu")
    weights = np.zeros((1, net.n_weights))
    net.covariate_matrix(weights)[0, :2, 0] = 1.0, -1.0
    net.hidden_block(1).view(weights)[0] = 1.0
    net.hidden_block(2).view(weights)[0] = 1.0
    networks = DrawnNetworks.from_dense(net, weights, np.zeros((1, net.n_units)))
    end = np.array([[2.0], [-3.0], [0.0]])
    with computing(how):
        from_bend = networks.contributions(np.zeros((1, 1)), end)
        across = networks.contributions(np.array([[-1.0]]), end)
    np.testing.assert_allclose(from_bend[0, :, 0, 0], [2.0, 3.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(across[0, :, 0, 0], [1.0, 2.0, -1.0], atol=1e-12)


@pytest.mark.parametrize("how", HOW)
def test_contributions_of_curved_networks_nearly_add_up(how):
    net = Architecture(2, (3,), 1, activation="tanh")
    networks, _, _ = drawn(net, 4)
    end = rows_of(net, 4)
    with computing(how):
        found = networks.contributions(np.zeros((1, 2)), end)
        way = networks.predictor(end) - networks.predictor(np.zeros((1, 2)))
    np.testing.assert_allclose(found.sum(axis=2), way, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("infinite", [np.inf, -np.inf, np.nan])
def test_ways_to_infinity_come_to_an_end(infinite, how):
    networks, _, _ = drawn(Architecture(2, (5, 5), 1, activation="relu"), 4, share=1.0)
    end = np.array([[infinite, 1.0], [1.0, 2.0]])
    with computing(how), np.errstate(all="ignore"):
        found = networks.contributions(np.zeros((1, 2)), end)
    assert np.isfinite(found[:, 1]).all()


# -- how they are kept ------------------------------------------------------------------------


def test_dense_weights_come_back():
    networks, weights, biases = drawn(Architecture(3, (4,), 2), 11, n_draws=6)
    for found, expected in zip(networks.dense(), (weights, biases), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(networks[1:4].dense()[0], weights[1:4])
    np.testing.assert_array_equal(networks[:0].dense()[0], weights[:0])
    joined = DrawnNetworks.joined([networks[:2], networks[2:2], networks[2:]])
    np.testing.assert_array_equal(joined.dense()[0], weights)


def test_draws_that_are_no_neighbours_are_refused():
    networks, _, _ = drawn(Architecture(3, (4,), 2), 11, n_draws=6)
    with pytest.raises(ValueError, match="expected neighbours"):
        networks[::2]


def test_networks_survive_a_pickle():
    networks, _, _ = drawn(Architecture(3, (4,), 2), 12)
    x = rows_of(networks.architecture, 12)
    expected = networks.predictor(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(networks)).predictor(x), expected)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("shape", [(3, 4), (3,), (2, 3, 3)])
def test_rows_of_another_shape_are_refused(shape, how):
    networks, _, _ = drawn(Architecture(3, (4,), 2), 13)
    with computing(how):
        for call in (networks.predictor, networks.slopes):
            with pytest.raises(ValueError, match=r"Got rows of shape .*, expected \(rows, 3\)"):
                call(np.zeros(shape))


def test_starts_of_other_rows_are_refused():
    networks, _, _ = drawn(Architecture(3, (4,), 2), 13)
    with pytest.raises(ValueError, match="Got 2 starts for 3 rows"):
        networks.contributions(np.zeros((2, 3)), np.zeros((3, 3)))


@pytest.mark.skipif(compiled is None, reason="there is no compiled module")
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("slots", [0, 99], "outside"),
        ("slots", [0, -1], "outside"),
        ("slots", [0], "one weight for each edge"),
        ("ends", [2, 1], "rise"),
        ("ends", [1, 1], "must end with the edges"),
        ("biases", np.zeros((2, 3)), "biases must be"),
        ("activation", "other", "unknown activation"),
        ("instructions", "other", "unknown instructions"),
        ("hidden", [-1], "widths"),
    ],
)
def test_networks_that_do_not_fit_together_are_refused(name, value, message):
    given = {
        "covariates": 2,
        "hidden": [2],
        "outputs": 1,
        "input_skip": True,
        "activation": "relu",
        "constant": 0.0,
        "slots": [0, 3],
        "weights": [1.0, 2.0],
        "ends": [1, 2],
        "biases": np.zeros((2, 3 + (name == "biases"))),
        "instructions": "baseline",
    }
    if name == "biases":
        given["hidden"] = [3]
    compiled.Networks(**given)
    with pytest.raises(ValueError, match=message):
        compiled.Networks(**given | {name: value})


# -- sums over rows ---------------------------------------------------------------------------


@pytest.mark.skipif(compiled is None, reason="needs compiled code")
@given(COMPILED, SEEDS, st.sampled_from(SETS), st.sampled_from([0, 1, 70, 2100]))
@settings(max_examples=60, deadline=None)
def test_sums_are_those_of_the_jacobian(net, seed, how, n_rows):
    with computing(how):
        networks, weights, biases = drawn(net, seed, n_draws=2)
        x = rows_of(net, seed, n_rows)
        rng = np.random.default_rng(seed)
        residuals = rng.normal(size=(2, 2, n_rows, net.n_outputs))
        roots = rng.normal(size=(3, 2, n_rows, net.n_outputs))
        gradients, curvatures = networks.newton_sums(x, residuals, roots)
        parameters = networks.parameters
    at, square = 0, 0
    for draw, (edges, units) in enumerate(parameters):
        size = len(edges) + len(units)
        jacobian = dense_jacobian(net, weights[draw], biases[draw], x)
        own = np.concatenate([networks.slots[edges], net.n_weights + units])
        jacobian = jacobian[..., own]
        slope = np.einsum("rop,kro->kp", jacobian, residuals[:, draw])
        columns = np.einsum("rop,kro->krp", jacobian, roots[:, draw]).reshape(-1, size)
        np.testing.assert_allclose(gradients[:, at : at + size], slope, rtol=1e-9, atol=1e-9)
        found = curvatures[square : square + size**2].reshape(size, size)
        np.testing.assert_allclose(found, columns.T @ columns, rtol=1e-9, atol=1e-9)
        at, square = at + size, square + size**2
    assert (gradients.shape[1], len(curvatures)) == (at, square)


def dense_jacobian(net, weights, biases, x):
    """Derivatives of the outputs by all weights and biases, (rows, outputs, parameters)."""
    layers = zip(net.activations, net.hidden, strict=True)
    acts = [own for own, width in layers for _ in range(width)]
    sources, targets = net.ends
    n_hidden = net.n_units - net.n_outputs
    values = np.zeros((len(x), net.n_covariates + net.n_units))
    values[:, : net.n_covariates] = x
    sums = np.zeros((len(x), net.n_units))
    for unit in range(net.n_units):
        own = targets == unit
        sums[:, unit] = biases[unit] + values[:, sources[own]] @ weights[own]
        if unit < n_hidden:
            values[:, net.n_covariates + unit] = acts[unit].value(sums[:, unit])
    found = np.zeros((len(x), net.n_outputs, net.n_weights + net.n_units))
    for output in range(net.n_outputs):
        flow = np.zeros((len(x), net.n_units))
        flow[:, n_hidden + output] = 1
        for unit in reversed(range(n_hidden)):
            sent = sources == net.n_covariates + unit
            slope = acts[unit].slope(sums[:, unit], acts[unit].value(sums[:, unit]))
            flow[:, unit] = (flow[:, targets[sent]] @ weights[sent]) * slope
        found[:, output, : net.n_weights] = values[:, sources] * flow[:, targets]
        found[:, output, net.n_weights :] = flow
    return found
