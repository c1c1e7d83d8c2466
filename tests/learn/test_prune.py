"""Pruning: the curvature, what leaving weights out costs, and what becomes of whole fits."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.network import forward
from islab.core.paths import active_weights
from islab.core.posterior import Initial, Posterior
from islab.core.priors import Prior
from islab.learn import fit as fitting
from islab.learn import prune as pruning
from islab.learn.engines import EngineChoice, Problem
from islab.learn.fit import fit
from islab.learn.prune import _Quadratic, curvature, removals
from islab.learn.recipe import default_recipe


def a_posterior(likelihood, *, hidden=(3, 2), activation="tanh", seed=0):
    outputs = 3 if likelihood == "categorical" else 1
    net = Architecture(4, hidden, outputs, activation=activation)
    rng = np.random.default_rng(seed)
    start = Posterior.initialise(net, rng, Initial(sigma=0.01), likelihood)
    start.lam[:] = np.where(rng.random(net.n_weights) < 0.7, 40.0, -40.0)
    start.noise[:] = 0.5 if likelihood == "gaussian" else 1.0
    return start


def rows(posterior, n_rows=30, weighted=False, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, 4))
    y = np.zeros((n_rows, posterior.architecture.n_outputs))
    return Problem(x, y, rng.uniform(0.5, 2, n_rows) if weighted else None)


def used_weights(posterior):
    return np.flatnonzero(active_weights(posterior.architecture, posterior.alpha > 0.5))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "likelihood", ["bernoulli", "categorical", "gaussian", "poisson", "negative_binomial"]
)
@pytest.mark.parametrize("activation", ["tanh", ("tanh", "sigmoid")])
def test_curvature_is_the_gauss_newton_matrix(likelihood, weighted, activation, monkeypatch):
    monkeypatch.setattr(pruning, "ROWS_AT_ONCE", 7)
    posterior = a_posterior(likelihood, activation=activation)
    net, used = posterior.architecture, used_weights(posterior)
    problem = rows(posterior, weighted=weighted)
    weights = posterior.mean_weights()

    def predictor(theta):
        own = weights.copy()
        own[used] = theta[: len(used)]
        return forward(net, own, theta[len(used) :], problem.x)

    theta = np.concatenate([weights[used], posterior.bias_mu])
    steps = 1e-6 * np.eye(len(theta))
    jacobian = np.stack([(predictor(theta + h) - predictor(theta - h)) / 2e-6 for h in steps])
    roots = families.likelihood(likelihood).hessian_roots(predictor(theta), posterior.noise)
    inner = np.einsum("cno,cnp->nop", roots, roots)
    row_weight = np.ones(30) if problem.sample_weight is None else problem.sample_weight
    expected = np.einsum("ino,nop,jnp,n->ij", jacobian, inner, jacobian, row_weight)
    np.testing.assert_allclose(curvature(posterior, problem, used), expected, atol=1e-6)


def a_regression(seed=0):
    """A linear model at its optimum, its objective, and the quadratic around it."""
    posterior = a_posterior("gaussian", hidden=())
    posterior.lam[:] = 40.0
    prior = Prior.same(posterior.architecture, tau=0.8, psi=0.2)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 4))
    y = x @ [1.0, 0.5, -0.3, 0.1] + rng.standard_normal(50)
    design, noise = np.column_stack([x, np.ones(50)]), 0.5
    precision = np.diag(1 / np.array([0.8, 0.8, 0.8, 0.8, prior.bias_tau]) ** 2)

    def best(kept):
        """Weights with some of them 0, and the negative log posterior there."""
        theta, some = np.zeros(5), np.flatnonzero(kept)
        hessian = design[:, some].T @ design[:, some] / noise + precision[np.ix_(some, some)]
        theta[some] = np.linalg.solve(hessian, design[:, some].T @ y / noise)
        error = y - design @ theta
        return theta, error @ error / (2 * noise) + theta @ precision @ theta / 2

    theta, _ = best(np.ones(5, dtype=bool))
    posterior.mu[:], posterior.bias_mu[:] = theta[:4], theta[4:]
    problem = Problem(x, y[:, None])
    quadratic = _Quadratic.around(posterior, prior, problem, np.arange(4), 1.0)
    return quadratic, best


def test_costs_are_those_of_fitting_anew_without_the_weights(monkeypatch):
    monkeypatch.setattr(pruning, "DAMPING", 0.0)
    quadratic, best = a_regression()
    everything = np.ones(5, dtype=bool)
    _, least = best(everything)
    for which in ([0], [3], [1, 2], [0, 1, 3]):
        kept = everything.copy()
        kept[which] = False
        assert quadratic.cost(np.array(which)) == pytest.approx(best(kept)[1] - least)
    singles = [quadratic.cost(np.array([k])) for k in range(4)]
    np.testing.assert_allclose(quadratic.costs(4), singles)


def test_the_others_adapt_when_weights_are_left_out(monkeypatch):
    monkeypatch.setattr(pruning, "DAMPING", 0.0)
    quadratic, best = a_regression()
    quadratic.leave_out(np.array([1]))
    theta, without_one = best(np.array([True, False, True, True, True]))
    np.testing.assert_allclose(quadratic.optimum, theta, atol=1e-10)
    _, without_two = best(np.array([True, False, True, False, True]))
    assert quadratic.cost(np.array([3])) == pytest.approx(without_two - without_one)


def test_one_of_two_equal_units_is_proposed_with_all_its_weights():
    net = Architecture(2, (2,), 1, activation="tanh")
    posterior = Posterior.initialise(net, np.random.default_rng(0), Initial(sigma=0.03))
    covariates = net.covariate_matrix(posterior.mu)
    covariates[:] = [[1.0, -0.5], [1.0, -0.5], [0.0, 0.0]]
    net.hidden_block(1).view(posterior.mu)[:] = 0.5
    posterior.bias_mu[:] = 0.0
    posterior.lam[:] = np.where(posterior.mu != 0, 40.0, -40.0)
    prior = Prior.same(net, tau=1.0, psi=0.1)
    problem = rows(posterior, 200)
    problem = Problem(problem.x[:, :2], problem.y)
    first = removals(posterior, prior, problem)[0]
    units = net.ends[1][first]
    assert len(first) == 3
    assert {int(unit) for unit in units[units < 2]} in ({0}, {1})
    second = removals(posterior, prior, problem, skip=1)[0]
    assert sorted(second.tolist()) != sorted(first.tolist())


def test_nothing_is_proposed_where_the_curvature_is_too_much_work(monkeypatch):
    posterior = a_posterior("gaussian")
    prior = Prior.same(posterior.architecture, tau=1.0, psi=0.1)
    problem = rows(posterior)
    posterior.mu *= 0.01
    assert removals(posterior, prior, problem)
    monkeypatch.setattr(pruning, "MOST_WORK", 1.0)
    assert removals(posterior, prior, problem) == []


# -- whole fits ----------------------------------------------------------------------------


def bent(n_rows=800, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, 1)) + 0.6 * rng.standard_normal((n_rows, 6))
    y = np.abs(x.mean(axis=1)) + 0.3 * x[:, 0] + 0.2 * rng.standard_normal(n_rows)
    return Problem(x, ((y - y.mean()) / y.std())[:, None])


def short(n_rows, sparsity="auto"):
    recipe = default_recipe(n_rows, sparsity=sparsity)
    network = replace(recipe.network, n_steps=1500)
    linear = replace(recipe.linear, n_steps=600)
    return replace(recipe, network=network, linear=linear, n_restarts=1)


def n_used(found):
    return found.posterior.median().n_used_weights


def test_pruning_raises_the_bound_with_fewer_weights_and_hardly_a_worse_fit():
    problem, recipe, total = bent(), short(800), 0
    for seed in range(5):
        whole = fit(problem, "gaussian", replace(recipe, prune=None), seed=seed)
        small = fit(problem, "gaussian", recipe, seed=seed)
        fewer = n_used(whole) - n_used(small)
        if fewer:
            assert small.objective > whole.objective
        assert fewer >= 0
        assert small.nll <= whole.nll + fewer * recipe.prune.tolerance
        assert small.posterior.n_weights_initial == whole.posterior.n_weights_initial
        assert (np.diff(small.history.column("step")) > 0).all()
        total += fewer
    assert total > 0


def correlated(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n_rows, 1))
    x = common + 0.3 * rng.standard_normal((n_rows, 8))
    y = x @ np.full(8, 0.3) + rng.standard_normal(n_rows)
    return Problem(x, ((y - y.mean()) / y.std())[:, None])


def test_linear_models_are_pruned_beyond_the_default_only():
    problem = correlated()
    auto, readable = default_recipe(300, hidden=()), default_recipe(300, hidden=(), sparsity=1.0)
    assert default_recipe(300, sparsity=0.5).prune is None
    assert not auto.prune.linear
    assert readable.prune.linear
    whole = fit(problem, "gaussian", replace(auto, prune=None), seed=0)
    kept = fit(problem, "gaussian", auto, seed=0)
    assert kept.elbo == whole.elbo
    eager = replace(auto, prune=replace(auto.prune, linear=True, tolerance=np.inf))
    assert n_used(fit(problem, "gaussian", eager, seed=0)) < n_used(kept)


def test_a_trial_that_is_interrupted_leaves_the_network_as_it_was(monkeypatch):
    problem, recipe = bent(), short(800)
    whole = fit(problem, "gaussian", replace(recipe, prune=None), seed=2)
    monkeypatch.setattr(fitting, "removals", lambda posterior, *_, **__: [used_weights(posterior)])
    create, count = EngineChoice.create, iter(range(100))

    def create_and_stop(self, start, problem, stage, seed):
        engine = create(self, start, problem, stage, seed)
        if next(count) == 2:

            def stop(steps):
                raise KeyboardInterrupt

            engine.run = stop
        return engine

    monkeypatch.setattr(EngineChoice, "create", create_and_stop)
    with pytest.warns(UserWarning, match="interrupted"):
        found = fit(problem, "gaussian", recipe, seed=2, keep_interrupted=True)
    assert found.interrupted
    assert found.elbo == whole.elbo


def test_diabetes_keeps_the_covariates_that_matter():
    x, y = load_diabetes(return_X_y=True)
    problem = Problem((x - x.mean(0)) / x.std(0), ((y - y.mean()) / y.std())[:, None])
    found = fit(problem, "gaussian", default_recipe(442, sparsity=1.0), seed=0)
    assert {2, 8} <= set(found.posterior.median().covariates.tolist())
