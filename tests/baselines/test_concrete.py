"""Concrete dropout: gates, penalty, draws, the mean network, and what is learned."""

import numpy as np
import pytest
import torch
from scipy.special import logit

from islab.architecture import Architecture
from islab.baselines.base import Plan
from islab.baselines.concrete import (
    LENGTH_SCALES,
    ConcreteDropout,
    ConcreteDropoutRegressor,
    Descent,
    DropoutNetwork,
    best_length_scale,
    descend,
    drop_gate,
    dropout_penalty,
    first_guess,
    learn_concrete,
)
from islab.engines import Problem
from islab.network import forward
from islab.training import Stage, TrainingError, make_steps

NET = Architecture(3, (4, 2), 1, input_skip=False, activation="relu")
LINEAR = Architecture(3, (), 1, input_skip=False)
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


def linear_problem(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    return Problem(x, x @ np.array([[0.8], [-0.6], [0.0]]) + 0.1 * rng.normal(size=(n_rows, 1)))


# -- gates and penalty --------------------------------------------------------------------


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
        kept = rng.random((400_000, 1)) >= p
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


# -- the distribution ---------------------------------------------------------------------


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
    assert some_dropout().n_expected_weights() == pytest.approx(expected)


def test_expected_weights_are_the_mean_number_of_weights_in_draws():
    found = some_dropout()
    counts = (found.draw(20_000, np.random.default_rng(5))[0] != 0).sum(axis=1)
    error = counts.std() / np.sqrt(len(counts))
    assert counts.mean() == pytest.approx(found.n_expected_weights(), abs=4 * error)


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


# -- training -----------------------------------------------------------------------------


def test_predictor_without_dropout_is_the_plain_network():
    guess = first_guess(NET, linear_problem(), "gaussian", seed=0)
    network = DropoutNetwork(guess, length_scale=1.0)
    with torch.no_grad():
        network.logit_p.fill_(-30.0)
        x = np.random.default_rng(1).normal(size=(8, 3))
        eta = network.predictor(torch.as_tensor(x, dtype=torch.float32), torch.Generator())
    np.testing.assert_allclose(eta, forward(NET, guess.mu, guess.bias_mu, x), atol=1e-5)


def test_penalty_of_a_network_is_the_sum_over_its_layers():
    guess = first_guess(NET, linear_problem(), "gaussian", seed=0)
    network = DropoutNetwork(guess, length_scale=1.5)
    expected = 0.0
    for layer, block in enumerate(NET.blocks):
        bias = guess.bias_mu[NET.units[layer]]
        square = (guess.mu[block.weights] ** 2).sum() + (bias**2).sum()
        expected += dropout_penalty(square, np.float64(0.1), block.n_sources, length_scale=1.5)
    assert float(network.penalty().detach()) == pytest.approx(expected, rel=1e-5)


QUICK_LINEAR = Plan(LINEAR, batch_size=100, n_steps=400, rate=0.03)


@pytest.fixture(scope="module")
def of_signal():
    problem = linear_problem()
    return learn_concrete(problem, "gaussian", QUICK_LINEAR, length_scale=0.1, seed=0).weights


def test_linear_signal_is_found(of_signal):
    np.testing.assert_allclose(of_signal.mu, [0.8, -0.6, 0.0], atol=0.05)


def test_noise_around_the_signal_is_found(of_signal):
    assert of_signal.noise[0] == pytest.approx(0.01, abs=0.01)


def test_clear_signal_is_hardly_dropped(of_signal):
    assert of_signal.dropout[0] < 0.05


def test_inputs_that_say_nothing_are_dropped_like_a_fair_coin():
    x, y = linear_problem().x, np.random.default_rng(3).normal(size=(200, 1))
    y -= x @ np.linalg.lstsq(x, y)[0]
    plan = Plan(LINEAR, batch_size=200, n_steps=400, rate=0.05)
    nothing = learn_concrete(Problem(x, y), "gaussian", plan, length_scale=3.0, seed=0)
    assert nothing.weights.dropout[0] == pytest.approx(0.5, abs=0.05)


def test_same_seed_gives_the_same_weights_whatever_was_drawn_before():
    plan = Plan(NET, batch_size=50, n_steps=20, rate=0.01)
    torch.manual_seed(1)
    one = learn_concrete(linear_problem(), "gaussian", plan, length_scale=1.0, seed=3).weights
    torch.manual_seed(2)
    two = learn_concrete(linear_problem(), "gaussian", plan, length_scale=1.0, seed=3).weights
    assert (one.mu == two.mu).all()


def test_weights_of_constant_covariates_are_zero_and_not_counted():
    problem = linear_problem()
    problem.x[:, 2] = 0.0
    plan = Plan(NET, batch_size=50, n_steps=20, rate=0.01)
    varies = np.array([True, True, False])
    found = learn_concrete(
        problem, "gaussian", plan, length_scale=1.0, varies=varies, seed=0
    ).weights
    assert (NET.covariate_matrix(found.mu)[:, 2] == 0).all()
    assert found.median().covariates.tolist() == [0, 1]


def test_history_has_the_objective_and_expected_weights():
    plan = Plan(NET, batch_size=50, n_steps=120, rate=0.01)
    learned = learn_concrete(linear_problem(), "gaussian", plan, length_scale=1.0, seed=0)
    assert learned.history.column("step").tolist() == [50, 100, 120]
    assert learned.history.column("nll")[-1] < learned.history.column("nll")[0]
    last = learned.history.column("used_weights")[-1]
    assert last == pytest.approx(learned.weights.n_expected_weights(), rel=1e-5)


def test_a_row_of_weight_two_counts_as_two_rows():
    problem = linear_problem(60)
    twice = Problem(np.tile(problem.x, (2, 1)), np.tile(problem.y, (2, 1)))
    weighted = Problem(problem.x, problem.y, np.full(60, 2.0))
    guess = first_guess(LINEAR, problem, "gaussian", seed=0)
    gradients = []
    for data in (twice, weighted):
        network = DropoutNetwork(guess, length_scale=1.0)
        with torch.no_grad():
            network.logit_p.fill_(-30.0)
        descent = Descent(network, data, "gaussian", seed=0)
        stage = Stage(n_steps=1, batch_size=data.n_rows)
        descent.take(make_steps(stage, 0, 1, data.n_rows, seed=0))
        gradients.append(network.weights.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-4)


class Exploding:
    """A network whose first losses are not finite."""

    architecture = LINEAR

    def __init__(self, n_bad):
        self.value = torch.zeros(1, requires_grad=True)
        self.parameters, self.n_bad, self.calls = [self.value], n_bad, 0

    def predictor(self, x, generator):
        self.calls += 1
        bad = self.calls <= self.n_bad
        return (self.value + (float("nan") if bad else 0.0)).expand(len(x), 1)

    def penalty(self):
        return self.value.sum() * 0

    def n_used(self):
        return 1.0


def test_a_loss_that_is_never_finite_is_an_error_with_a_remedy():
    plan = Plan(LINEAR, batch_size=200, n_steps=50, rate=0.1)
    with pytest.raises(TrainingError, match="smaller learning rate"):
        descend(Exploding(10_000), linear_problem(), "gaussian", plan, seed=0)


def test_after_a_loss_that_is_not_finite_training_goes_on_at_half_the_rate():
    plan = Plan(LINEAR, batch_size=200, n_steps=50, rate=0.1)
    rates = [
        descend(Exploding(n_bad), linear_problem(), "bernoulli", plan, seed=0)[1].column("rate")[-1]
        for n_bad in (0, 1)
    ]
    assert rates[1] == rates[0] / 2


def test_where_there_is_nothing_to_learn_the_longest_scale_is_chosen():
    rng = np.random.default_rng(0)
    nothing = Problem(rng.normal(size=(40, 10)), rng.normal(size=(40, 1)))
    plan = Plan(Architecture(10, (), 1, False), batch_size=40, n_steps=200, rate=0.05)
    assert best_length_scale(nothing, "gaussian", plan, seed=0) == max(LENGTH_SCALES)


def test_where_there_is_much_to_learn_the_longest_scale_is_not_chosen():
    plan = Plan(LINEAR, batch_size=60, n_steps=200, rate=0.05)
    assert best_length_scale(linear_problem(60), "gaussian", plan, seed=0) < max(LENGTH_SCALES)


# -- the face -----------------------------------------------------------------------------


def test_used_weights_are_the_expected_number_rounded():
    problem = linear_problem()
    model = ConcreteDropoutRegressor(
        hidden_layer_sizes=(4,), length_scale=1.0, max_epochs=10, n_draws=10, random_state=0
    ).fit(problem.x, problem.y[:, 0])
    expected = model.posterior_.n_expected_weights()
    assert model.n_expected_weights_ == pytest.approx(expected)
    assert model.n_used_weights_ == round(expected)


def test_length_scale_must_be_positive():
    with pytest.raises(ValueError, match="Got length_scale=0, expected 'auto' or a positive"):
        ConcreteDropoutRegressor(length_scale=0).fit(np.eye(8), np.arange(8.0))
