"""Whole fits: against the exact posterior, on the paper's simulated problems, by both engines."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from islab.core.priors import Prior
from islab.learn.engines import EngineChoice, Problem
from islab.learn.fit import fit
from islab.learn.recipe import default_recipe
from islab.learn.stage import Schedule, Stage
from tests.learn.simulated import accuracy, simulated, split

TORCH = EngineChoice("torch")


# -- the exact posterior -------------------------------------------------------------------


def exact_posterior(problem, tau, psi, bias_tau, noise):
    """Log evidence, inclusion probabilities and means, by enumerating all models."""
    x, y = problem.x, problem.y[:, 0]
    n, v = x.shape
    log_weights, means = [], []
    models = np.array(list(product([0, 1], repeat=v)), dtype=bool)
    for model in models:
        design = np.column_stack([np.ones(n), x[:, model]])
        scales = np.concatenate([[bias_tau], np.full(model.sum(), tau)]) ** 2
        covariance = noise * np.eye(n) + (design * scales) @ design.T
        _, log_det = np.linalg.slogdet(covariance)
        solved = np.linalg.solve(covariance, y)
        evidence = -0.5 * (n * np.log(2 * np.pi) + log_det + y @ solved)
        prior = model.sum() * np.log(psi) + (~model).sum() * np.log1p(-psi)
        mean = np.zeros(v)
        mean[model] = (scales[:, None] * design.T @ solved[:, None])[1:, 0]
        log_weights.append(evidence + prior)
        means.append(mean)
    log_weights = np.array(log_weights)
    total = np.logaddexp.reduce(log_weights)
    weights = np.exp(log_weights - total)
    return total, weights @ models, weights @ np.array(means)


def linear_problem(rho, v=6, n=150, noise=1.0):
    rng = np.random.default_rng(3)
    shared = rng.standard_normal((n, 1))
    x = np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.standard_normal((n, v))
    y = 0.8 * x[:, :1] - 0.6 * x[:, 1:2] + np.sqrt(noise) * rng.standard_normal((n, 1))
    return Problem(x, y)


LINEAR = Stage(
    n_steps=4000,
    batch_size=150,
    rate=0.05,
    schedule=Schedule("cosine", warm_up=0.02),
    kl_ramp=0.0,
    tau=1.0,
    psi=0.3,
    empirical_bayes=None,
    noise_rate=0.0,
    shrink=None,
)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_linear_model_agrees_with_the_exact_posterior(rho):
    problem = linear_problem(rho)
    recipe = replace(default_recipe(150, hidden=()), network=LINEAR)
    found = fit(problem, "gaussian", recipe, seed=0)
    evidence, inclusion, means = exact_posterior(problem, 1.0, 0.3, 2.5, 1.0)
    elbo = closed_form_elbo(found.posterior, problem, found.prior)
    assert evidence - 3 < elbo <= evidence
    np.testing.assert_allclose(found.posterior.alpha, inclusion, atol=0.25 if rho else 0.12)
    np.testing.assert_allclose(found.posterior.mean_weights(), means, atol=0.12)
    sure = np.abs(inclusion - 0.5) > 0.3
    assert ((found.posterior.alpha > 0.5) == (inclusion > 0.5))[sure].all()


def test_elbo_of_any_linear_posterior_is_below_the_evidence():
    """The bound itself, in closed form: no sampling involved."""
    problem = linear_problem(0.5)
    evidence, _, _ = exact_posterior(problem, 1.0, 0.3, 2.5, 1.0)
    rng = np.random.default_rng(0)
    recipe = replace(default_recipe(150, hidden=()), network=replace(LINEAR, n_steps=500))
    start = fit(problem, "gaussian", recipe, seed=1).posterior
    prior = Prior.same(start.architecture, tau=1.0, psi=0.3)
    for _ in range(50):
        q = start.copy()
        q.mu = q.mu + 0.1 * rng.standard_normal(len(q.mu))
        q.lam = q.lam + rng.standard_normal(len(q.lam))
        assert closed_form_elbo(q, problem, prior) <= evidence


def closed_form_elbo(q, problem, prior):
    from islab.core.equations import gaussian_kl, kl, moments

    mean, variance = moments(q.mu, q.sigma, q.alpha)
    fitted = problem.x @ mean + q.bias_mu
    spread = problem.x**2 @ variance + q.bias_sigma**2
    error = (problem.y[:, 0] - fitted) ** 2 + spread
    log_likelihood = -0.5 * (np.log(2 * np.pi) + error).sum()
    divergence = kl(q.mu, q.sigma, q.alpha, tau=prior.tau[0], psi=prior.psi[0]).sum()
    return log_likelihood - divergence - gaussian_kl(q.bias_mu, q.bias_sigma, tau=2.5).sum()


# -- the paper's simulated problems -----------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_linear_problem_ends_with_exactly_its_two_covariates(rho):
    problem, x, y = split(simulated("linear", rho, 6000), 4000)
    recipe = replace(default_recipe(4000), n_restarts=1)
    network = fit(problem, "bernoulli", recipe, seed=0).posterior.median()
    assert network.covariates.tolist() == [0, 1]
    assert (network.n_used_weights, network.max_depth) == (2, 1)
    assert accuracy(network, x, y) > 0.995


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_linear_problem_with_flows_ends_with_exactly_its_two_covariates(rho):
    problem, x, y = split(simulated("linear", rho, 6000), 4000)
    linear = replace(default_recipe(4000).linear, n_steps=2000, batch_size=256)
    recipe = replace(default_recipe(4000, hidden=()), network=linear)
    flow = EngineChoice("torch", "flow", options={"flow_width": 16})
    network = fit(problem, "bernoulli", recipe, seed=0, engine=flow).posterior.median()
    assert network.covariates.tolist() == [0, 1]
    assert (network.n_used_weights, network.max_depth) == (2, 1)
    assert accuracy(network, x, y) > 0.99


def test_linear_problem_stays_linear_beside_a_network_with_flows():
    problem, _, _ = split(simulated("linear", 0.0, 3000), 2000)
    recipe = default_recipe(2000, hidden=(4,))
    recipe = replace(recipe, network=replace(recipe.network, n_steps=300), n_restarts=1)
    flow = EngineChoice("auto", "flow", options={"flow_width": 16})
    found = fit(problem, "bernoulli", recipe, seed=0, engine=flow)
    network = found.posterior.median()
    assert set(found.elbos) == {"linear", "network 0"}
    assert network.covariates.tolist() == [0, 1]
    assert (network.n_used_weights, network.max_depth) == (2, 1)


def test_nonlinear_problem_selects_its_two_covariates():
    problem, x, y = split(simulated("nonlinear", 0.0, 20_000), 16_000)
    recipe = replace(default_recipe(16_000), n_restarts=1)
    network = fit(problem, "bernoulli", recipe, seed=0).posterior.median()
    assert network.covariates.tolist() == [0, 1]
    assert network.max_depth > 1
    assert accuracy(network, x, y) >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("posterior", ["independent", "flow"])
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_linear_problem_at_the_papers_size(posterior, rho):
    problem, x, y = split(simulated("linear", rho, 72_000), 64_000)
    recipe = replace(default_recipe(64_000), n_restarts=1)
    options = {"flow_width": 32} if posterior == "flow" else {}
    engine = EngineChoice("auto", posterior, options=options)
    network = fit(problem, "bernoulli", recipe, seed=0, engine=engine).posterior.median()
    assert network.covariates.tolist() == [0, 1]
    assert (network.n_used_weights, network.max_depth) == (2, 1)
    assert accuracy(network, x, y) > 0.998


@pytest.mark.slow
def test_nonlinear_problem_at_the_papers_size():
    problem, x, y = split(simulated("nonlinear", 0.0, 72_000), 64_000)
    network = fit(problem, "bernoulli", default_recipe(64_000), seed=0).posterior.median()
    assert network.covariates.tolist() == [0, 1]
    assert accuracy(network, x, y) >= 0.995


def test_native_and_torch_select_the_same_structure():
    problem, x, y = split(simulated("linear", 0.3, 3000), 2000)
    recipe = replace(default_recipe(2000, hidden=()))
    native, torch = (
        fit(problem, "bernoulli", recipe, seed=0, engine=engine).posterior.median()
        for engine in (EngineChoice("native"), TORCH)
    )
    assert native.covariates.tolist() == torch.covariates.tolist()
    assert abs(accuracy(native, x, y) - accuracy(torch, x, y)) < 0.003
