"""Flows that start along the directions that the curvature tells, beside exact posteriors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.core.priors import Prior
from islab.learn.engines import EngineChoice, Problem
from islab.learn.engines.base import LARGEST_LAMBDA
from islab.learn.fit import fit
from islab.learn.recipe import default_recipe
from islab.learn.stage import Stage
from islab.learn.tie import tie
from islab.learn.variational import expected_nll, train

N_ROWS, TAU, BIAS_TAU = 200, 1.0, 2.5
OTHERS = {"lambda_rate": 0.0, "kl_ramp": 0.0, "empirical_bayes": None, "noise_rate": 0.0}


class Linear:
    """A linear Gaussian model with equally correlated covariates, all of its weights in."""

    def __init__(self, n_covariates: int, correlation: float) -> None:
        rng = np.random.default_rng(0)
        own = np.eye(n_covariates)
        root = np.linalg.cholesky(correlation + (1 - correlation) * own)
        x = rng.standard_normal((N_ROWS, n_covariates)) @ root.T
        y = x.sum(axis=1) + rng.standard_normal(N_ROWS)
        wide = np.hstack([x, np.ones((N_ROWS, 1))])
        variances = np.array([TAU**2] * n_covariates + [BIAS_TAU**2])
        covariance = wide * variances @ wide.T + np.eye(N_ROWS)
        self.evidence = multivariate_normal(np.zeros(N_ROWS), covariance).logpdf(y)
        precision = wide.T @ wide + np.diag(1 / variances)
        self.exact = np.linalg.inv(precision)[:n_covariates, :n_covariates]
        self.problem = Problem(x, y[:, None])
        net = Architecture(n_covariates, (), 1)
        start = Posterior.initialise(net, rng, Initial(), "gaussian")
        start.noise, start.lam[:] = np.ones(1), LARGEST_LAMBDA
        self.prior = Prior.same(net, tau=TAU, psi=1 - 1e-12, df=None, bias_tau=BIAS_TAU)
        stage = Stage(n_steps=2000, batch_size=N_ROWS, shrink=None, **OTHERS)
        self.independent = self._train("independent", start, stage)

    def flow(self, n_steps: int = 100, **options):
        """What a flow from the curvature ends with."""
        self.tied = tie(self.independent.posterior, self.prior, self.problem)
        stage = Stage(n_steps=n_steps, batch_size=N_ROWS, rate=0.001, shrink=None, **OTHERS)
        options = self.tied.options(EngineChoice(posterior="flow", options=options))
        return self._train("flow", self.tied.posterior, stage, options)

    def _train(self, posterior, start, stage, options=()):
        choice = EngineChoice(posterior=posterior, options=dict(options))
        engine = choice.create(start, self.problem, stage, 0)
        found = train(engine, stage, n_rows=N_ROWS, seed=0, prior=self.prior)
        if posterior == "flow":
            return found
        nll, error = expected_nll(engine, N_ROWS, 0)
        bound = found.elbo + found.nll - nll
        return replace(found, nll=nll, elbo=bound, objective=bound, error=error)


def slopes(posterior, n_draws=20_000):
    return posterior.draw(n_draws, np.random.default_rng(0))[0]


@pytest.fixture(scope="module")
def two():
    return Linear(2, 0.95)


def test_two_collinear_slopes_have_the_exact_posterior(two):
    found = np.cov(slopes(two.flow().posterior).T)
    exact = two.exact
    correlation = found[0, 1] / np.sqrt(found[0, 0] * found[1, 1])
    assert correlation == pytest.approx(exact[0, 1] / np.sqrt(exact[0, 0] * exact[1, 1]), abs=0.03)
    assert np.sqrt(found.diagonal()) == pytest.approx(np.sqrt(exact.diagonal()), rel=0.1)
    independent = slopes(two.independent.posterior)
    assert (independent.std(axis=0) < 0.5 * np.sqrt(exact.diagonal())).all()


@pytest.mark.parametrize(
    ("n_covariates", "correlation", "flow"),
    [(2, 0.95, "iaf"), (2, 0.95, "rnvp"), (3, 0.9, "iaf"), (4, 0.95, "iaf")],
)
def test_the_bound_rises_on_collinear_data_and_stays_below_the_evidence(
    n_covariates, correlation, flow
):
    model = Linear(n_covariates, correlation)
    found = model.flow(flow=flow)
    assert found.is_clearly_above(model.independent)
    assert found.elbo < model.evidence + 3 * found.error
    assert model.independent.elbo < model.evidence + 3 * model.independent.error


def test_the_gain_is_what_was_promised(two):
    found = two.flow(n_steps=1)
    noise = 3 * np.hypot(found.error, two.independent.error)
    assert found.elbo - two.independent.elbo == pytest.approx(two.tied.gain, abs=noise + 0.2)
    # With one direction it is all that independent weights lack.
    precision = np.linalg.inv(two.exact)
    lacking = (np.log(precision.diagonal()).sum() - np.linalg.slogdet(precision)[1]) / 2
    assert two.tied.gain == pytest.approx(lacking, abs=0.02)


def lacking_with(precision, n_directions):
    """KL of the best N(mu, S + U U') from the posterior, S diagonal, U of so many columns."""
    size, log_det = len(precision), np.linalg.slogdet(precision)[1]

    def divergence(flat):
        along = flat[size:].reshape(size, n_directions)
        covariance = np.diag(np.exp(flat[:size])) + along @ along.T
        spread = np.trace(precision @ covariance) - size
        return (spread - np.linalg.slogdet(covariance)[1] - log_det) / 2

    rng, variances = np.random.default_rng(0), -np.log(precision.diagonal())
    starts = (
        np.concatenate([variances, 0.3 * rng.standard_normal(size * n_directions)])
        for _ in range(8)
    )
    return min(minimize(divergence, start, method="L-BFGS-B").fun for start in starts)


@pytest.mark.parametrize(("n_covariates", "correlation"), [(3, 0.9), (4, 0.95)])
def test_no_other_direction_gains_more(n_covariates, correlation):
    model = Linear(n_covariates, correlation)
    precision = np.linalg.inv(model.exact)
    independent = (np.log(precision.diagonal()).sum() - np.linalg.slogdet(precision)[1]) / 2
    tied = tie(model.independent.posterior, model.prior, model.problem)
    best = independent - lacking_with(precision, 1)
    assert tied.gain == pytest.approx(best, abs=0.06)
    # What remains takes as many directions as the data leave free.
    assert independent - tied.gain > 0.5
    assert lacking_with(precision, n_covariates - 1) == pytest.approx(0, abs=1e-3)


def test_the_error_of_the_bound_is_that_of_repetitions(two):
    two.flow(n_steps=1)
    stage = Stage(n_steps=1, batch_size=N_ROWS, rate=0.0, shrink=None, **OTHERS)
    choice = EngineChoice(posterior="flow")
    choice = EngineChoice(posterior="flow", options=two.tied.options(choice))
    found = []
    for seed in range(12):
        engine = choice.create(two.tied.posterior, two.problem, stage, seed)
        found.append(train(engine, stage, n_rows=N_ROWS, seed=seed, prior=two.prior))
    spread = np.std([each.elbo for each in found], ddof=1)
    # Twelve repetitions know their spread to a fifth.
    assert spread == pytest.approx(np.mean([each.error for each in found]), rel=0.6)


def test_independent_covariates_are_not_tied():
    model = Linear(2, 0.0)
    tied = tie(model.independent.posterior, model.prior, model.problem)
    assert tied.gain < 0.02


def test_both_engines_start_with_the_same_flow(two):
    pytest.importorskip("torch")
    two.flow(n_steps=1)
    stage = Stage(n_steps=1, batch_size=N_ROWS, shrink=None, **OTHERS)
    covariances = []
    for name in ("native", "torch"):
        choice = EngineChoice(name, posterior="flow")
        choice = EngineChoice(name, posterior="flow", options=two.tied.options(choice))
        engine = choice.create(two.tied.posterior, two.problem, stage, 0)
        engine.set_prior(two.prior, np.ones(1))
        covariances.append(np.cov(slopes(engine.posterior()).T))
    assert covariances[0] == pytest.approx(covariances[1], rel=0.15)


def test_a_flow_that_does_not_raise_the_bound_is_left_out():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((150, 3))
    problem = Problem(x, x[:, :1] + 0.5 * rng.standard_normal((150, 1)))
    recipe = default_recipe(150, 3, hidden=())
    one, other = (
        fit(problem, "gaussian", recipe, seed=0, engine=EngineChoice(posterior=kind))
        for kind in ("flow", "independent")
    )
    assert one.posterior.multipliers is None
    assert abs(one.elbo - other.elbo) < 4 * other.error
    assert one.error < other.error


def test_a_flow_joins_where_the_covariates_are_collinear():
    model = Linear(2, 0.95)
    recipe = default_recipe(N_ROWS, 2, hidden=())
    found, before = (
        fit(model.problem, "gaussian", recipe, seed=0, engine=EngineChoice(posterior=kind))
        for kind in ("flow", "independent")
    )
    assert found.posterior.multipliers is not None
    assert found.error < before.error
    drawn = slopes(found.posterior)
    assert np.corrcoef(drawn.T)[0, 1] < -0.8
