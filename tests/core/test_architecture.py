"""Weight counts, the layout of the flat vector, and dropping units, by brute force."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.network import forward

ACTIVATIONS = families.activations()


def architectures(activations=ACTIVATIONS):
    """Small networks, with and without skip, hidden layers, hidden units and covariates.

    Layers have one activation, or each its own.
    """
    name = st.sampled_from(activations)
    layers = st.lists(st.tuples(st.integers(0, 3), name), max_size=3)
    return st.builds(
        lambda layers, one, **others: Architecture(
            hidden=tuple(width for width, _ in layers),
            activation=one or tuple(own for _, own in layers) or activations[0],
            **others,
        ),
        layers=layers,
        one=st.one_of(name, name, st.none()),
        n_covariates=st.integers(0, 3),
        n_outputs=st.integers(1, 2),
        input_skip=st.booleans(),
    )


def test_layers_that_share_an_activation_have_one_name():
    assert Architecture(2, (3, 3), 1, activation=("tanh", "tanh")).activation == "tanh"


def test_each_hidden_layer_has_the_activation_of_its_place():
    net = Architecture(2, (3, 3), 1, activation=("tanh", "relu"))
    assert [own.name for own in net.activations] == ["tanh", "relu"]
    assert not net.piecewise_linear
    assert net.keep_units([np.zeros(3, bool), np.ones(3, bool)]).architecture.piecewise_linear


@pytest.mark.parametrize("names", [(), ("relu",), ("relu", "tanh", "relu")])
def test_other_than_one_activation_for_each_layer_is_refused(names):
    with pytest.raises(ValueError, match="one for each of 2 hidden layers"):
        Architecture(2, (3, 3), 1, activation=names)


def ends_of_weights(net, labels=None):
    """(layer, target, source kind, source) of each weight, in memory order, one by one.

    ``labels`` numbers the hidden units of each layer; the default is 0, 1, ...
    """
    labels = labels or [list(range(width)) for width in net.hidden]
    labels = [*labels, list(range(net.n_outputs))]
    ends = []
    for layer in range(net.n_layers if net.input_skip else 1):
        for target in labels[layer]:
            ends += [(layer, target, "covariate", column) for column in range(net.n_covariates)]
    for layer in range(1, net.n_layers):
        for target in labels[layer]:
            ends += [(layer, target, "hidden", source) for source in labels[layer - 1]]
    return ends


@pytest.mark.parametrize(
    ("n_covariates", "hidden", "n_outputs", "n_weights"),
    [
        (4, (20,) * 4, 1, 1544),
        (30, (50,) * 2, 1, 5580),
        (9, (200,) * 2, 1, 43809),
        (77, (100,) * 4, 8, 62216),
        (784, (600,) * 2, 10, 1314640),
    ],
)
def test_networks_of_the_paper_have_their_weight_counts(n_covariates, hidden, n_outputs, n_weights):
    assert Architecture(n_covariates, hidden, n_outputs).n_weights == n_weights


def test_linear_model_has_a_weight_for_each_covariate_and_output():
    assert Architecture(7, (), 3).n_weights == 21


def test_without_skip_the_covariates_enter_once():
    assert Architecture(7, (5, 4), 3, input_skip=False).n_weights == 7 * 5 + 5 * 4 + 4 * 3


@given(architectures())
def test_views_of_blocks_partition_the_flat_vector(net):
    numbers = np.arange(net.n_weights)
    in_order = [block.view(numbers).ravel() for block in net.blocks]
    np.testing.assert_array_equal(np.concatenate(in_order), numbers)


def test_writing_to_a_view_writes_to_the_flat_vector():
    net = Architecture(2, (3,), 1)
    flat = np.zeros((4, net.n_weights))
    net.hidden_block(1).view(flat)[...] = 1
    assert flat.sum() == 4 * 3


@given(architectures())
def test_covariate_matrix_stacks_the_covariate_blocks(net):
    flat = np.arange(2 * net.n_weights).reshape(2, net.n_weights)
    stacked = [block.view(flat) for block in net.blocks if block.source == "covariate"]
    np.testing.assert_array_equal(net.covariate_matrix(flat), np.concatenate(stacked, axis=1))


@given(architectures())
def test_torch_tensors_are_viewed_as_arrays_are(net):
    torch = pytest.importorskip("torch")
    flat = np.arange(2.0 * net.n_weights).reshape(2, net.n_weights)
    for block in net.blocks:
        tensor = block.view(torch.from_numpy(flat))
        np.testing.assert_array_equal(tensor.numpy(), block.view(flat))


@given(architectures())
def test_weight_index_lists_hidden_inputs_then_covariates(net):
    ends = ends_of_weights(net)
    for layer, width in enumerate(net.widths):
        n_hidden = net.hidden[layer - 1] if layer else 0
        sources = [("hidden", source) for source in range(n_hidden)]
        if net.input_skip or layer == 0:
            sources += [("covariate", column) for column in range(net.n_covariates)]
        expected = [(layer, target, *source) for target in range(width) for source in sources]
        index = net.weight_index(layer)
        assert index.shape == (width, net.n_inputs(layer)) == (width, len(sources))
        assert [ends[position] for position in index.ravel()] == expected


@given(architectures())
def test_inputs_are_counted_layer_after_layer(net):
    start = 0
    for layer in range(net.n_layers):
        for row in net.weight_index(layer):
            expected = np.arange(start, start + net.n_inputs(layer))
            np.testing.assert_array_equal(net.input_index[row], expected)
        start += net.n_inputs(layer)


@given(architectures())
def test_hidden_block_is_the_block_of_that_layer(net):
    for layer in range(1, net.n_layers):
        assert net.hidden_block(layer) == net.block(layer, "hidden")


def test_there_is_no_block_where_nothing_enters():
    net = Architecture(2, (3,), 1, input_skip=False)
    assert net.block(0, "hidden") is None
    assert net.block(1, "covariate") is None


@given(architectures())
def test_one_value_by_block_is_repeated_for_its_weights(net):
    layers = net.by_block([block.layer for block in net.blocks])
    assert layers.tolist() == [layer for layer, *_ in ends_of_weights(net)]


@given(architectures())
def test_units_partition_the_bias_vector(net):
    numbers = np.arange(net.n_units)
    np.testing.assert_array_equal(np.concatenate([numbers[units] for units in net.units]), numbers)


@given(architectures(), st.data())
def test_kept_weights_are_those_between_kept_units(net, data):
    masks = [data.draw(st.lists(st.booleans(), min_size=h, max_size=h)) for h in net.hidden]
    kept = net.keep_units([np.array(mask, dtype=bool) for mask in masks])
    labels = [[unit for unit, stays in enumerate(mask) if stays] for mask in masks]
    ends = ends_of_weights(net)
    assert [ends[w] for w in kept.weights] == ends_of_weights(kept.architecture, labels)


@given(architectures(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_dropping_units_equals_cutting_their_outgoing_weights(net, seed):
    rng = np.random.default_rng(seed)
    weights, biases = rng.normal(size=net.n_weights), rng.normal(size=net.n_units)
    x = rng.normal(size=(3, net.n_covariates))
    masks = [rng.random(width) < 0.5 for width in net.hidden]
    cut = weights.copy()
    for layer, mask in enumerate(masks, start=1):
        net.hidden_block(layer).view(cut)[:, ~mask] = 0
    kept = net.keep_units(masks)
    small = forward(kept.architecture, weights[kept.weights], biases[kept.units], x)
    np.testing.assert_allclose(small, forward(net, cut, biases, x), atol=1e-12)


def test_keeping_all_units_keeps_everything():
    net = Architecture(2, (3, 2), 1)
    kept = net.keep_units([np.ones(width, dtype=bool) for width in net.hidden])
    assert kept.architecture == net
    np.testing.assert_array_equal(kept.weights, np.arange(net.n_weights))
    np.testing.assert_array_equal(kept.units, np.arange(net.n_units))


@pytest.mark.parametrize("hidden", [20, (2.7,), "45"])
def test_widths_that_are_not_whole_numbers_are_named(hidden):
    with pytest.raises(ValueError, match=f"Got hidden={re.escape(repr(hidden))}, expected whole"):
        Architecture(1, hidden, 1)


def test_unknown_activation_is_named():
    with pytest.raises(ValueError, match="Got activation='gelu', expected one of relu"):
        Architecture(1, (), 1, activation="gelu")


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        ((-1, (), 1), "n_covariates=-1"),
        ((1, (2, -3), 1), r"hidden=\(2, -3\)"),
        ((1, (), 0), "n_outputs=0"),
    ],
)
def test_impossible_sizes_are_named(sizes, named):
    with pytest.raises(ValueError, match=named):
        Architecture(*sizes)
