"""Active paths against enumeration of every chain of kept weights."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from islab.core.architecture import Architecture
from islab.core.paths import active_weights, fed_units, heard_units
from tests.core.test_architecture import architectures


def chains_into(net, kept, layer, unit):
    """Every chain of kept weights from a covariate to a unit, as tuples of flat positions."""
    n_hidden = net.hidden[layer - 1] if layer else 0
    chains = []
    for source, position in enumerate(net.weight_index(layer)[unit].tolist()):
        if not kept[position]:
            continue
        if source < n_hidden:
            below = chains_into(net, kept, layer - 1, source)
            chains += [(*chain, position) for chain in below]
        else:
            chains.append((position,))
    return chains


def chains_to_output(net, kept, output):
    return chains_into(net, kept, net.n_layers - 1, output)


def reaches_output(net, kept, layer, unit):
    if layer == net.n_layers - 1:
        return True
    wires = net.weight_index(layer + 1)[:, unit]
    followed = [target for target, position in enumerate(wires) if kept[position]]
    return any(reaches_output(net, kept, layer + 1, target) for target in followed)


def on_chains(net, chains):
    mask = np.zeros(net.n_weights, dtype=bool)
    mask[[position for chain in chains for position in chain]] = True
    return mask


@st.composite
def wirings(draw):
    """A network and which of its weights are kept."""
    net = draw(architectures())
    share = draw(st.sampled_from([0.2, 0.5, 0.8]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return net, rng.random(net.n_weights) < share


@given(wirings())
@settings(max_examples=200, deadline=None)
def test_active_weights_are_those_on_some_chain(wiring):
    net, kept = wiring
    chains = [c for output in range(net.n_outputs) for c in chains_to_output(net, kept, output)]
    np.testing.assert_array_equal(active_weights(net, kept), on_chains(net, chains))


@given(wirings())
@settings(max_examples=100, deadline=None)
def test_active_weights_of_one_output_are_those_on_its_chains(wiring):
    net, kept = wiring
    for output in range(net.n_outputs):
        active = active_weights(net, kept, np.arange(net.n_outputs) == output)
        expected = on_chains(net, chains_to_output(net, kept, output))
        np.testing.assert_array_equal(active, expected)


@given(wirings())
@settings(max_examples=100, deadline=None)
def test_fed_units_end_some_chain(wiring):
    net, kept = wiring
    fed = fed_units(net, kept)
    for layer, units in enumerate(net.units):
        ends_chain = [bool(chains_into(net, kept, layer, u)) for u in range(net.widths[layer])]
        assert fed[units].tolist() == ends_chain


@given(wirings())
@settings(max_examples=100, deadline=None)
def test_heard_units_are_connected_to_an_output(wiring):
    net, kept = wiring
    heard = heard_units(net, kept)
    for layer, units in enumerate(net.units):
        assert heard[units].tolist() == [
            reaches_output(net, kept, layer, unit) for unit in range(net.widths[layer])
        ]


@given(wirings(), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_many_wirings_at_once_equal_one_by_one(wiring, seed):
    net, kept = wiring
    stack = np.stack([kept, np.random.default_rng(seed).random(net.n_weights) < 0.5])
    for function in (active_weights, fed_units, heard_units):
        one_by_one = [function(net, mask) for mask in stack]
        np.testing.assert_array_equal(function(net, stack), np.stack(one_by_one))


def test_finding_active_weights_leaves_the_mask_alone():
    net = Architecture(1, (1,), 1)
    kept = np.array([False, True, True])
    active_weights(net, kept)
    assert kept.tolist() == [False, True, True]


def test_without_skip_a_gap_cuts_every_path():
    net = Architecture(2, (2, 2), 1, input_skip=False)
    kept = np.ones(net.n_weights, dtype=bool)
    net.hidden_block(1).view(kept)[...] = False
    assert not active_weights(net, kept).any()


def test_with_skip_covariates_pass_a_layer_without_units():
    net = Architecture(2, (3, 0), 1)
    active = active_weights(net, np.ones(net.n_weights, dtype=bool))
    assert np.flatnonzero(active).tolist() == net.weight_index(2).ravel().tolist()
