"""Biases that are selected as weights are, beside formulas and an exact posterior."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

torch = pytest.importorskip("torch")

from islab.core.architecture import Architecture  # noqa: E402
from islab.core.equations import kl, moments, sigmoid, softplus  # noqa: E402
from islab.core.posterior import Initial, Posterior  # noqa: E402
from islab.core.priors import Prior  # noqa: E402
from islab.learn.engines import EngineChoice, Problem, Steps  # noqa: E402
from islab.learn.engines.base import LARGEST_LAMBDA  # noqa: E402
from islab.learn.engines.torch.dense import TorchEngine  # noqa: E402
from islab.learn.engines.torch.flow import FlowEngine  # noqa: E402
from islab.learn.prune import fixed_structure  # noqa: E402
from islab.learn.shrink import sent_constants  # noqa: E402
from islab.learn.stage import Stage  # noqa: E402
from islab.learn.variational import train  # noqa: E402

BIAS_TAU, BIAS_PSI = 1.5, 0.3


def make(kind=TorchEngine, hidden=(4, 3), seed=0, **options):
    rng = np.random.default_rng(seed)
    problem = Problem(rng.normal(size=(20, 3)), rng.normal(size=(20, 2)))
    net = Architecture(3, hidden, 2, activation="tanh")
    initial = Initial(covariate_inclusion=(-2, 2), biases_selected=True)
    start = Posterior.initialise(net, rng, initial)
    start = start.copy(bias_mu=rng.normal(size=net.n_units), bias_rho=rng.normal(size=net.n_units))
    engine = kind(start, problem, seed=1, dtype=torch.float64, **options)
    blocks = len(net.blocks)
    engine.set_prior(
        Prior(np.ones(blocks), np.full(blocks, 0.2), BIAS_TAU, bias_psi=BIAS_PSI), np.ones(blocks)
    )
    return engine, start


def steps(n_steps, rate=0.01):
    ones = np.ones(n_steps)
    rows = np.tile(np.arange(20), n_steps)
    return Steps(rows, np.full(n_steps, 20), rate * ones, rate * ones, ones)


def test_biases_have_the_moments_and_the_kl_of_weights():
    engine, start = make()
    mean, variance, value = engine.weights(engine.generator, value=True)
    sigma, alpha = softplus(start.bias_rho), sigmoid(start.bias_lam)
    expected = moments(start.bias_mu, sigma, alpha)
    np.testing.assert_allclose(mean[1].detach(), expected[0])
    np.testing.assert_allclose(variance[1].detach(), expected[1])
    own = kl(start.bias_mu, sigma, alpha, tau=BIAS_TAU, psi=BIAS_PSI).sum()
    weights = kl(start.mu, start.sigma, start.alpha, tau=1.0, psi=0.2).sum()
    assert value.item() == pytest.approx(own + weights)


def test_the_gradient_of_inclusion_matches_finite_differences():
    engine, _ = make()
    rows, eps = torch.arange(20), torch.randn(9, 20, dtype=torch.float64)

    def loss():
        mean, variance, value = engine.weights(engine.generator, value=True)
        eta = engine.forward(engine.x[rows], mean, variance, eps)
        return engine._nll(rows, eta).sum() + value

    loss().backward()
    gradient = engine.parts(engine.theta.grad)[5].clone()
    for unit in range(9):
        ends = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                engine.parts(engine.theta)[5][unit] += step
                ends.append(loss().item())
                engine.parts(engine.theta)[5][unit] -= step
        assert float(gradient[unit]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


@pytest.mark.parametrize("kind", [TorchEngine, FlowEngine])
def test_biases_that_are_certain_learn_as_without_selection(kind):
    options = {"flow_width": 8} if kind is FlowEngine else {}
    engine, start = make(kind, **options)
    plain = start.copy(bias_lam=None)
    sure = start.copy(bias_lam=np.full_like(start.bias_lam, LARGEST_LAMBDA))
    found = []
    for each in (plain, sure):
        problem = Problem(engine.x.numpy(), engine.y.numpy())
        own = kind(each, problem, seed=1, dtype=torch.float64, **options)
        prior = Prior(np.ones(5), np.full(5, 0.2), BIAS_TAU, bias_psi=BIAS_PSI)
        own.set_prior(prior, np.ones(5))
        own.run(steps(3))
        found.append(own.parameters())
    np.testing.assert_allclose(found[0].bias_mu, found[1].bias_mu, rtol=1e-9)
    np.testing.assert_allclose(found[0].mu, found[1].mu, rtol=1e-9)
    assert (found[1].bias_lam > LARGEST_LAMBDA - 0.1).all()


@pytest.mark.parametrize("needed", [0.0, 0.2, 2.0])
def test_inclusion_is_exact_where_the_posterior_factorises(needed):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((60, 1))
    x -= x.mean()
    noise = rng.standard_normal((60, 1))
    y = needed + x + noise - noise.mean()
    tau, variance = 1.0, 1.0
    with_bias, without = (
        multivariate_normal(np.zeros(60), tau**2 * x @ x.T + own**2 + variance * np.eye(60)).logpdf(
            y[:, 0]
        )
        for own in (BIAS_TAU, 0.0)
    )
    logit = np.log(BIAS_PSI / (1 - BIAS_PSI)) + with_bias - without
    start = Posterior.initialise(
        Architecture(1, (), 1), rng, Initial(biases_selected=True), "gaussian"
    )
    start.lam[:] = LARGEST_LAMBDA
    stage = Stage(
        n_steps=2000,
        batch_size=60,
        lambda_rate=0.1,
        psi=1 - 1e-9,
        bias_tau=BIAS_TAU,
        bias_psi=BIAS_PSI,
        kl_ramp=0.0,
        empirical_bayes=None,
        noise_rate=0.0,
        shrink=None,
    )
    engine = EngineChoice("torch").create(start, Problem(x, y), stage, 0)
    found = train(engine, stage, n_rows=60, seed=0).posterior
    assert found.bias_alpha[0] == pytest.approx(sigmoid(np.array([logit]))[0], abs=0.03)


def test_dropped_units_and_restored_states_keep_their_biases():
    engine, _ = make()
    engine.run(steps(2))
    before, state = engine.posterior(), engine.state()
    engine.run(steps(1))
    engine.restore(state)
    np.testing.assert_array_equal(engine.posterior().bias_lam, before.bias_lam)
    masks = [np.array([True, False, True, True]), np.ones(3, dtype=bool)]
    engine.keep_units(masks, np.zeros(9))
    np.testing.assert_array_equal(engine.posterior().bias_lam, np.delete(before.bias_lam, 1))


def test_what_a_dropped_unit_sends_is_the_mean_over_biases_in_and_out():
    engine, start = make(hidden=(1,))
    now = engine.parameters()
    dropped = np.array([True, False, False])
    found = sent_constants(start.architecture, now, dropped)
    biases = start.draw(200_000, np.random.default_rng(0))[1][:, 0]
    mean = start.mean_weights()[start.architecture.hidden_block(1).weights]
    error = 4 * np.abs(mean) * np.tanh(biases).std() / np.sqrt(200_000)
    assert (np.abs(found[1:] - mean * np.tanh(biases).mean()) <= error).all()


def test_a_fixed_structure_has_biases_for_certain():
    _, start = make()
    fixed = fixed_structure(start)
    np.testing.assert_array_equal(fixed.bias_alpha > 0.5, start.bias_alpha > 0.5)
    assert (np.abs(fixed.bias_lam) == LARGEST_LAMBDA).all()


def test_the_native_engine_refuses_and_auto_takes_torch():
    engine, start = make()
    problem = Problem(engine.x.numpy(), engine.y.numpy())
    stage = Stage(n_steps=1, batch_size=20, bias_psi=BIAS_PSI)
    with pytest.raises(ValueError, match="biases that are selected with the native engine"):
        EngineChoice("native").create(start, problem, stage, 0)
    chosen = EngineChoice().serving("gaussian", "tanh", biases_selected=True)
    assert chosen.name == "torch"


def test_an_impossible_prior_inclusion_is_named():
    with pytest.raises(ValueError, match=r"Got bias_psi=1\.0, expected a number between 0 and 1"):
        Prior.same(Architecture(1, (), 1), tau=1.0, psi=0.1, bias_psi=1.0)
