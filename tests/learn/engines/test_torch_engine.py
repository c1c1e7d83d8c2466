"""The torch engine: gradients, Adam, batches, dropping units, state."""

import numpy as np
import pytest
import torch

from islab.core import families
from islab.core.network import forward
from islab.core.priors import Prior
from islab.learn.engines import Problem, Steps
from islab.learn.engines.torch.dense import TorchEngine
from tests.learn.engines.problems import make_posterior, make_problem, make_steps

LIKELIHOODS = families.likelihoods()


def make_engine(rng, likelihood="gaussian", prior=None, weight=None, **architecture):
    problem = make_problem(rng, likelihood)
    if weight is not None:
        problem = Problem(problem.x, problem.y, weight)
    start = make_posterior(rng, problem, likelihood=likelihood, **architecture)
    engine = TorchEngine(start, problem, seed=1, dtype=torch.float64)
    net = start.architecture
    n_blocks = len(net.blocks)
    tau, psi = rng.uniform(0.5, 2, n_blocks), rng.uniform(0.1, 0.6, n_blocks)
    engine.set_prior(prior or Prior(tau, psi), np.ones(n_blocks))
    return engine


def loss(engine, theta, rows, eps, kl_weight):
    """The loss of a batch as a function of all parameters."""
    with torch.no_grad():
        engine.theta.copy_(theta)
    mean, variance, kl = engine.weights(engine.generator, value=True)
    eta = engine.forward(engine.x[rows], mean, variance, eps)
    return engine._nll(rows, eta).sum() + kl_weight * kl


def test_without_random_numbers_the_predictor_is_that_of_the_mean_weights():
    rng = np.random.default_rng(0)
    engine = make_engine(rng, activation=("tanh", "relu"))
    net, none = engine.architecture, torch.zeros(engine.architecture.n_units, 7)
    with torch.no_grad():
        mean, variance, _ = engine.weights(engine.generator)
        found = engine.forward(engine.x[:7], mean, variance, none.double()).numpy()
    weights, biases = (part.detach().numpy() for part in mean)
    expected = forward(net, weights, biases, engine.x[:7].numpy())
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("activation", [*families.activations(), ("tanh", "relu")])
@pytest.mark.parametrize("input_skip", [True, False])
def test_gradient_matches_finite_differences(likelihood, activation, input_skip):
    rng = np.random.default_rng(0)
    engine = make_engine(rng, likelihood, activation=activation, input_skip=input_skip)
    rows = torch.arange(7)
    eps = torch.as_tensor(rng.standard_normal((engine.architecture.n_units, 7)))
    theta = engine.theta.detach().clone()
    engine.theta.grad = None
    loss(engine, theta, rows, eps, 0.4).backward()
    gradient = engine.theta.grad.clone()
    for _ in range(5):
        direction = torch.as_tensor(rng.standard_normal(len(theta)))
        step = 1e-6
        up, down = (
            float(loss(engine, theta + sign * step * direction, rows, eps, 0.4).detach())
            for sign in (1, -1)
        )
        assert (up - down) / (2 * step) == pytest.approx(float(gradient @ direction), rel=1e-5)


def test_gradient_with_a_student_slab_matches_finite_differences():
    rng = np.random.default_rng(1)
    prior = Prior(np.full(5, 0.8), np.full(5, 0.3), df=4.0)
    engine = make_engine(rng, prior=prior)
    rows = torch.arange(7)
    eps = torch.as_tensor(rng.standard_normal((engine.architecture.n_units, 7)))
    theta = engine.theta.detach().clone()
    engine.theta.grad = None
    loss(engine, theta, rows, eps, 1.0).backward()
    gradient = engine.theta.grad.clone()
    direction = torch.as_tensor(rng.standard_normal(len(theta)))
    up, down = (
        float(loss(engine, theta + sign * 1e-6 * direction, rows, eps, 1.0).detach())
        for sign in (1, -1)
    )
    assert (up - down) / 2e-6 == pytest.approx(float(gradient @ direction), rel=1e-5)


def test_first_step_of_adam_is_the_rate_in_the_gradients_direction():
    rng = np.random.default_rng(2)
    engine = make_engine(rng)
    blocks = len(engine.architecture.blocks)
    factors = np.linspace(1, 3, blocks)
    engine.set_prior(Prior(np.ones(blocks), np.full(blocks, 0.2)), factors)
    before = engine.posterior()
    engine.run(make_steps(rng, 40, n_steps=1, rate=0.01, lambda_rate=0.05))
    after = engine.posterior()
    np.testing.assert_allclose(
        np.abs(after.mu - before.mu), 0.01 * engine.architecture.by_block(factors), rtol=1e-4
    )
    np.testing.assert_allclose(np.abs(after.rho - before.rho), 0.01, rtol=1e-3)
    np.testing.assert_allclose(np.abs(after.lam - before.lam), 0.05, rtol=1e-3)


def test_a_short_batch_carries_its_share_of_the_divergence():
    """Two half batches have the gradient of the whole: likelihood and divergence add up."""
    rng = np.random.default_rng(3)
    engine = make_engine(rng)
    eps = torch.as_tensor(rng.standard_normal((engine.architecture.n_units, 40)))
    theta = engine.theta.detach().clone()

    def gradient(rows):
        engine.theta.grad = None
        share = len(rows) / engine.n_rows
        loss(engine, theta, rows, eps[:, rows], share).backward()
        return engine.theta.grad.clone()

    rows = torch.arange(40)
    torch.testing.assert_close(gradient(rows[:33]) + gradient(rows[33:]), gradient(rows))


def test_a_weight_of_two_is_a_row_given_twice():
    rng = np.random.default_rng(4)
    weight = np.ones(40)
    weight[5] = 2.0
    engine = make_engine(rng, weight=weight)
    eta = torch.zeros(40, 2, dtype=torch.float64)
    rows = torch.arange(40)
    plain = engine.likelihood.nll(engine.y, eta, engine.noise)
    assert float(engine._nll(rows, eta).sum()) == pytest.approx(float(plain.sum() + plain[5]))


def test_noise_moves_towards_the_mean_squared_error_of_the_batch():
    rng = np.random.default_rng(5)
    engine = make_engine(rng)
    before = engine.noise.clone()
    rows = torch.arange(10)
    eta = torch.zeros(10, 2, dtype=torch.float64)
    engine._follow_noise(rows, eta)
    expected = 0.98 * before + 0.02 * engine.y[:10].square().mean(0)
    torch.testing.assert_close(engine.noise, expected)


def test_run_returns_the_mean_nll_of_its_rows():
    rng = np.random.default_rng(6)
    engine = make_engine(rng, "bernoulli")
    steps = make_steps(rng, 40, n_steps=1, batch=40, rate=0.0, lambda_rate=0.0)
    noise = np.zeros((40, engine.architecture.n_units))
    mean = engine.posterior()
    eta = forward(mean.architecture, mean.mean_weights(), mean.bias_mu, engine.x.numpy())
    y = engine.y.numpy()[steps.rows]
    expected = engine.likelihood.nll(y, eta[steps.rows], np.ones(2)).mean()
    assert engine.run(steps, noise) == pytest.approx(expected, rel=1e-10)


def test_dropping_units_keeps_everything_else():
    rng = np.random.default_rng(7)
    engine = make_engine(rng)
    engine.run(make_steps(rng, 40))
    before, state = engine.posterior(), engine.state()
    masks = [np.array([True, False, True, True, False]), np.array([True, True, False, True])]
    kept = before.architecture.keep_units(masks)
    shift = rng.standard_normal(before.architecture.n_units)
    engine.keep_units(masks, shift)
    after = engine.posterior()
    np.testing.assert_array_equal(after.mu, before.mu[kept.weights])
    np.testing.assert_allclose(after.bias_mu, (before.bias_mu + shift)[kept.units])
    n = before.architecture.n_weights
    moment = engine.state()["exp_avg"][: len(kept.weights)]
    np.testing.assert_array_equal(moment, state["exp_avg"][:n][kept.weights])
    assert after.n_weights_initial == n


def test_a_layer_without_units_still_passes_the_covariates_on():
    rng = np.random.default_rng(8)
    engine = make_engine(rng, hidden=(3, 0, 2))
    assert np.isfinite(engine.run(make_steps(rng, 40)))


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_restored_engine_goes_on_bit_for_bit(hidden):
    rng = np.random.default_rng(9)
    engine = make_engine(rng, hidden=hidden)
    first, second = make_steps(rng, 40), make_steps(rng, 40)
    engine.run(first)
    state = engine.state()
    nll = engine.run(second)
    end = engine.posterior()
    engine.restore(state)
    assert engine.run(second) == nll
    np.testing.assert_array_equal(engine.posterior().mu, end.mu)
    np.testing.assert_array_equal(engine.posterior().lam, end.lam)


def test_expected_nll_does_not_disturb_the_generator():
    rng = np.random.default_rng(10)
    engine = make_engine(rng)
    steps = make_steps(rng, 40)
    state = engine.state()
    plain = engine.run(steps)
    engine.restore(state)
    engine.expected_nll(2, seed=0)
    assert engine.run(steps) == plain


def test_one_row_batches_train():
    rng = np.random.default_rng(11)
    engine = make_engine(rng)
    ones = np.ones(4)
    steps = Steps(np.arange(4), np.ones(4, dtype=int), 0.01 * ones, 0.01 * ones, ones)
    assert np.isfinite(engine.run(steps))
