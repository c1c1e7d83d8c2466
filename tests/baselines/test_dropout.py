"""Dropout: gates, penalty, draws, and the network of mean weights."""

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

from islab.baselines.concrete import ConcreteDropout, drop_gate, dropout_penalty
from islab.core.architecture import Architecture
from islab.core.network import forward

NET = Architecture(3, (4, 2), 1, input_skip=False, activation="relu")
EVENLY = (np.arange(100_000) + 0.5) / 100_000


def some_dropout(net=NET, dropout=(0.1, 0.4, 0.6)):
    rng = np.random.default_rng(0)
    return ConcreteDropout(
        architecture=net,
        mu=rng.normal(size=net.n_weights),
        bias=rng.normal(size=net.n_units),
        dropout=np.array(dropout),
        likelihood="gaussian",
        noise=np.ones(1),
        n_weights_initial=net.n_weights,
    )


# -- gates and penalty ---------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
def test_gate_is_the_published_sigmoid(p):
    expected = expit((logit(p) + logit(EVENLY)) / 0.1)
    np.testing.assert_allclose(drop_gate(logit(p), EVENLY), expected, atol=1e-12)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
def test_gate_is_mostly_open_or_shut_with_the_dropout_probability(p):
    gate = drop_gate(logit(p), EVENLY)
    assert np.mean(gate > 0.5) == pytest.approx(p, abs=1e-4)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.8])
def test_mean_gate_is_nearly_the_dropout_probability(p):
    assert drop_gate(logit(p), EVENLY).mean() == pytest.approx(p, abs=0.01)


def test_gate_of_a_higher_probability_is_never_more_open():
    assert (drop_gate(logit(0.4), EVENLY) >= drop_gate(logit(0.3), EVENLY)).all()


def test_gate_and_penalty_have_the_gradients_of_finite_differences():
    u = torch.linspace(0.3, 0.7, 5, dtype=torch.float64)
    logit_p = torch.tensor(-0.2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: drop_gate(t, u), (logit_p,))
    square, p = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (3.0, 0.2))
    assert torch.autograd.gradcheck(
        lambda s, q: dropout_penalty(s, q, 7, length_scale=1.5), (square, p)
    )


def test_penalty_is_the_published_regulariser_times_the_rows():
    n_rows, length_scale, square, p, n_inputs = 50, 0.7, 3.0, 0.2, 6
    weight_regulariser, dropout_regulariser = length_scale**2 / (2 * n_rows), 1 / n_rows
    published = weight_regulariser * square / (1 - p) + dropout_regulariser * n_inputs * (
        p * np.log(p) + (1 - p) * np.log(1 - p)
    )
    ours = dropout_penalty(np.float64(square), np.float64(p), n_inputs, length_scale=length_scale)
    assert ours == pytest.approx(n_rows * published)


def test_penalty_differs_as_the_divergence_of_a_narrow_mixture_does():
    """The constant that is left out does not depend on weights or probabilities."""
    rng, n_weights, narrow, length_scale = np.random.default_rng(0), 5, 0.02, 0.8

    def divergence(weight, p):
        centre = np.full(n_weights, weight) / (1 - p)
        kept = rng.random((200_000, 1)) >= p
        draws = kept * centre + narrow * rng.standard_normal((len(kept), n_weights))
        near = [-0.5 * ((draws - c) ** 2).sum(axis=1) / narrow**2 for c in (0.0, centre)]
        log_q = np.logaddexp(np.log(p) + near[0], np.log1p(-p) + near[1])
        return np.mean(log_q + 0.5 * length_scale**2 * (draws**2).sum(axis=1))

    def penalty(weight, p):
        square = np.float64(n_weights * weight**2)
        return dropout_penalty(square, np.float64(p), 1, length_scale=length_scale)

    for one, other in (((0.5, 0.2), (0.9, 0.2)), ((0.5, 0.2), (0.5, 0.7))):
        expected = divergence(*one) - divergence(*other)
        assert penalty(*one) - penalty(*other) == pytest.approx(expected, abs=0.03)


def test_without_weights_the_penalty_asks_for_a_fair_coin():
    p = np.linspace(0.01, 0.99, 99)
    assert p[dropout_penalty(0.0, p, 3, length_scale=1.0).argmin()] == pytest.approx(0.5)


def test_weights_make_the_penalty_ask_for_less_dropout():
    p = np.linspace(0.01, 0.99, 99)
    assert p[dropout_penalty(5.0, p, 3, length_scale=1.0).argmin()] < 0.3


# -- the distribution ----------------------------------------------------------------------------


def test_mean_of_draws_is_mu():
    found = some_dropout()
    weights, _ = found.draw(40_000, np.random.default_rng(1))
    keep = found.keep_probability()
    error = np.abs(found.mu) * np.sqrt((1 - keep) / keep / len(weights))
    assert (np.abs(weights.mean(axis=0) - found.mu) < 4.5 * error).all()


def test_variance_of_draws_is_that_of_scaled_coins():
    found = some_dropout()
    weights, _ = found.draw(40_000, np.random.default_rng(2))
    p = 1 - found.keep_probability()
    np.testing.assert_allclose(weights.var(axis=0), found.mu**2 * p / (1 - p), rtol=0.06)


def test_weights_of_one_input_are_dropped_together():
    dropped = some_dropout().draw(200, np.random.default_rng(3))[0] == 0
    by_input = NET.blocks[0].view(dropped)  # (draws, targets, sources)
    assert (by_input == by_input[:, :1]).all()
    assert by_input.any()
    assert not by_input.all()


def test_biases_are_never_dropped():
    found = some_dropout()
    assert (found.draw(7, np.random.default_rng(4))[1] == found.bias).all()


def test_expected_weights_are_layer_sizes_times_the_probability_to_stay():
    expected = 0.9 * 3 * 4 + 0.6 * 4 * 2 + 0.4 * 2 * 1
    assert some_dropout().keep_probability().sum() == pytest.approx(expected)


def test_expected_weights_are_the_mean_number_of_weights_in_draws():
    found = some_dropout()
    counts = (found.draw(20_000, np.random.default_rng(5))[0] != 0).sum(axis=1)
    error = counts.std() / np.sqrt(len(counts))
    assert counts.mean() == pytest.approx(found.keep_probability().sum(), abs=4 * error)


def test_network_to_read_predicts_with_the_mean_weights():
    found, x = some_dropout(), np.random.default_rng(6).normal(size=(9, 3))
    expected = forward(NET, found.mu, found.bias, x)
    np.testing.assert_allclose(found.median().predictor(x), expected, rtol=1e-12)


def test_network_to_read_shows_the_probabilities_to_stay():
    frame = some_dropout().median().to_frame()
    shown = frame.groupby("layer")["alpha"].unique().tolist()
    np.testing.assert_allclose(np.concatenate(shown), [0.9, 0.6, 0.4])


def test_network_to_read_has_no_spread():
    network = some_dropout().median()
    assert (network.sigma == 0).all()
    assert (network.bias_sigma == 0).all()
