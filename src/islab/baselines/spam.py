"""Laplace-SpaM: a network whose priors are learned by marginal likelihood, then pruned.

Training alternates between fitting the weights under Gaussian priors and moving the priors'
precisions uphill on Laplace's approximation of the marginal likelihood, with the diagonal of the
generalised Gauss-Newton matrix (GGN) as curvature. What the posterior loses least by is pruned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from islab.architecture import Architecture
from islab.baselines.base import BaselineEstimator, Plan
from islab.baselines.l1 import (
    LEAST_NOISE,
    Replicas,
    rate_for,
    sparsest_near_best,
    useful_folds,
    with_structure,
)
from islab.engines import Problem
from islab.estimators.base import Mask
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.learned import Learned
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.rules import Rules, auto, one_of, real
from islab.estimators.unused import learnable, over_all_covariates
from islab.history import History
from islab.likelihoods import Likelihood
from islab.network import activate, activation_slope, forward, preactivations
from islab.paths import active_weights
from islab.posterior import Posterior
from islab.priors import BIAS_TAU
from islab.progress import ProgressBar
from islab.schedules import Schedule

Float = NDArray[np.floating]

BURN_IN = 0.25  # share of the steps before priors are learned
N_UPDATES = 40
# The weakest prior has a standard deviation of 1: data that say nothing about a weight would
# otherwise leave it without any prior, and its draws without bounds.
LEAST_PRECISION, LARGEST_PRECISION = 1.0, 1e6
ROWS_WHILE_TRAINING, ROWS_AT_ONCE = 2_000, 1_000
LAST_NOISE_STEPS = 20
KEPT_SHARES = np.geomspace(1.0, 0.005, 16)
SCALES = (1.0, 0.5, 0.25, 0.1)
DRAWS_TO_JUDGE = 30


# -- Laplace's approximation -------------------------------------------------------------------


def hessian_roots(likelihood: Likelihood, eta: Float, noise: Float) -> Float:
    """Columns whose outer products sum to each row's Hessian of the NLL by ``eta``.

    Returns
    -------
    (columns, rows, outputs)
    """
    if likelihood.name == "categorical":
        p = likelihood.mean(eta)
        diagonal = np.eye(eta.shape[1])[:, None] * np.sqrt(p)
        return diagonal - np.sqrt(p.T)[:, :, None] * p
    scale = np.sqrt(likelihood.variance(eta, noise)) / noise
    return np.eye(eta.shape[1])[:, None] * scale


def ggn_diagonal(net: Architecture, theta: Float, x: Float, roots: Float) -> Float:
    """Diagonal of the GGN of weights and biases, by column of the roots.

    Parameters
    ----------
    theta : (weights + units,)
    x : (rows, covariates)
    roots : (columns, rows, outputs)

    Returns
    -------
    (columns, weights + units)
        Their sum over columns is the diagonal.

    Notes
    -----
    A weight's derivative is what flows back to its target times what its source sends, so that
    the sum of squares over rows is one product of squared matrices for each layer.
    """
    weights = theta[: net.n_weights]
    z = preactivations(net, weights, theta[net.n_weights :], x)
    found = np.zeros((len(roots), len(theta)))
    by_weight, by_bias = np.split(found, [net.n_weights], axis=1)
    flow = roots
    for layer in reversed(range(net.n_layers)):
        units = net.units[layer]
        squared = np.swapaxes(flow**2, 1, 2)  # (columns, units, rows)
        by_bias[:, units] = squared.sum(axis=2)
        if net.input_skip or layer == 0:
            net.covariate_matrix(by_weight)[:, units] = squared @ x**2
        if layer:
            block, below = net.hidden_block(layer), z[:, net.units[layer - 1]]
            block.view(by_weight)[...] = squared @ activate(net.activation, below) ** 2
            flow = (flow @ block.view(weights)) * activation_slope(net.activation, below)
    return found


@dataclass(frozen=True, eq=False)
class Laplace:
    """A Gaussian posterior with a diagonal precision around fitted weights and biases.

    Attributes
    ----------
    theta : (weights + units,)
    prior_precision : (weights + units,)
    curvature : (columns, weights + units)
        See :func:`ggn_diagonal`; for Gaussian outputs there is a column for each.
    nll, error : float, (outputs,)
        Of all rows, and the sums of squared errors.
    """

    theta: Float
    prior_precision: Float
    curvature: Float
    nll: float
    error: Float

    @property
    def precision(self) -> Float:
        """Of the posterior."""
        return self.curvature.sum(axis=0) + self.prior_precision

    @property
    def damage(self) -> Float:
        """Optimal posterior damage: what the log posterior loses, twice, without each weight."""
        return self.precision * self.theta**2

    @property
    def log_marginal_likelihood(self) -> float:
        """``-NLL - 1/2 sum(delta theta**2 - log delta + log(curvature + delta))``."""
        delta = self.prior_precision
        ratio = np.log(self.precision) - np.log(delta)
        return -self.nll - 0.5 * float((delta * self.theta**2 + ratio).sum())

    def better_prior(self, groups: NDArray[np.intp]) -> Float:
        """Prior precisions with a higher marginal likelihood for these weights.

        Parameters
        ----------
        groups : (weights,)
            Number of the precision that each weight shares; biases keep theirs.

        Notes
        -----
        The optimum of a group satisfies ``delta = sum gamma / sum theta**2`` with
        ``gamma = curvature / (curvature + delta)``. As a map of ``log delta`` the right-hand side
        falls with a slope between -1 and 0, so half a step towards it stays on the same side of
        the optimum: the marginal likelihood never falls.
        """
        n_weights = len(groups)
        theta, delta = self.theta[:n_weights], self.prior_precision[:n_weights]
        gamma = 1 - delta / self.precision[:n_weights]
        tiny = np.finfo(float).tiny
        determined = np.maximum(np.bincount(groups, gamma), tiny)
        optimum = determined / np.maximum(np.bincount(groups, theta**2), tiny)
        moved = np.sqrt(delta * optimum[groups])
        bounded = np.clip(moved, LEAST_PRECISION, LARGEST_PRECISION)
        return np.concatenate([bounded, self.prior_precision[n_weights:]])

    def better_noise(self, noise: Float, n_rows: float) -> Float:
        """Noise variances with a higher marginal likelihood, by a step of EM.

        ``(squared error + noise * gamma) / rows``, gamma being the number of parameters that
        each output's data determine.
        """
        gamma = (self.curvature / self.precision).sum(axis=1)
        return np.maximum((self.error + noise * gamma) / n_rows, LEAST_NOISE)


def approximate(
    net: Architecture,
    likelihood: Likelihood,
    theta: Float,
    prior_precision: Float,
    noise: Float,
    problem: Problem,
) -> Laplace:
    """Laplace's approximation at these weights and biases."""
    weights, biases = np.split(theta, [net.n_weights])
    nll, error, curvature = 0.0, np.zeros(net.n_outputs), np.zeros(())
    for first in range(0, problem.n_rows, ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        x, y = problem.x[part], problem.y[part]
        weight = np.ones(len(x)) if problem.sample_weight is None else problem.sample_weight[part]
        eta = forward(net, weights, biases, x)
        roots = hessian_roots(likelihood, eta, noise) * np.sqrt(weight)[:, None]
        nll += float(weight @ likelihood.nll(y, eta, noise))
        error += weight @ (y - eta) ** 2
        curvature = curvature + ggn_diagonal(net, theta, x, roots)
    return Laplace(theta, prior_precision, curvature, nll, error)


def prune(net: Architecture, damage: Float, sparsity: float) -> Mask:
    """Weights to keep: all of the last layer, and the others that would do most damage.

    Parameters
    ----------
    damage : (weights,)
    sparsity : float
        Share of the weights before the last layer that is pruned, rounded down: below 1 at
        least one weight stays.
    """
    last = in_last_layer(net)
    order = np.flatnonzero(~last)[np.argsort(damage[~last], kind="stable")]
    kept = np.ones(net.n_weights, dtype=bool)
    kept[order[: int(sparsity * len(order) + 1e-9)]] = False
    return kept


def in_last_layer(net: Architecture) -> Mask:
    """Which weights lead to an output."""
    return net.by_block([block.layer for block in net.blocks]) == net.n_layers - 1


# -- learning ----------------------------------------------------------------------------------


def learn_spam(
    problem: Problem,
    likelihood: str,
    plan: Plan,
    *,
    sparsity: float | str = "auto",
    posterior_scale: float | str = "auto",
    prior: str = "weight",
    seed: int,
    verbose: bool = False,
) -> Learned:
    """Learns weights and priors, and prunes.

    Parameters
    ----------
    problem : Problem
    likelihood : str
    plan : Plan
    sparsity : "auto" or float
        Share of the weights before the last layer to prune.
    posterior_scale : "auto" or float
        Factor on the standard deviations of the posterior; 1 is Laplace's own.
    prior : {"weight", "layer", "network"}
        What has a prior precision of its own.
    seed : int
    verbose : bool

    Notes
    -----
    ``auto`` fits five folds beside the whole. The sparsest network that predicts held-out rows
    about as well as the best stays (see :func:`~islab.baselines.l1.sparsest_near_best`). A
    diagonal posterior takes the errors of weights for independent, so that they add up in a deep
    network where they should cancel, and draws predict worse than their centre: of a few factors
    the one with which draws predict held-out rows best is taken.
    """
    automatic = isinstance(sparsity, str) or isinstance(posterior_scale, str)
    n_folds = useful_folds(problem.n_rows) if automatic else 0
    learning = _Learning(
        Replicas(problem, likelihood, plan, n_folds, seed), prior, np.random.default_rng(seed)
    )
    with ProgressBar(plan.n_steps, enabled=verbose) as bar:
        learning.run(bar)
    found = learning.finish()
    if isinstance(sparsity, str):
        sparsity = learning.best_sparsity(found)
    if isinstance(posterior_scale, str):
        posterior_scale = learning.best_scale(found, sparsity)
    posterior = learning.pruned(0, found[0], sparsity, posterior_scale)
    return Learned(posterior, learning.history)


class _Learning:
    """Replicas, their priors, and what happens to both."""

    def __init__(self, replicas: Replicas, prior: str, rng: np.random.Generator) -> None:
        self.replicas, self.rng, self.history = replicas, rng, History()
        self.net = replicas.plan.architecture
        self.groups = prior_groups(self.net, prior)
        n_replicas = len(replicas.row_weight)
        first = np.repeat([1.0, BIAS_TAU**-2], [self.net.n_weights, self.net.n_units])
        self.prior_precision = np.tile(first, (n_replicas, 1))
        self.noise = np.ones((n_replicas, self.net.n_outputs))

    def run(self, bar: ProgressBar) -> None:
        """Weights alone at first, then weights and priors in turn."""
        n_steps = self.replicas.plan.n_steps
        ends = np.linspace(BURN_IN, 1, min(N_UPDATES, n_steps) + 1) * n_steps
        taken = 0
        for end in np.unique(np.maximum(ends.astype(int), 1)):
            self._descend(taken / n_steps, int(end) - taken)
            self._update()
            bar.report(int(end) - taken, self._last())
            taken = int(end)

    def finish(self) -> list[Laplace]:
        """The posterior of every replica from all of its rows, with its noise."""
        found = []
        for replica in range(len(self.noise)):
            laplace = self._approximate(replica)
            if self.replicas.likelihood.learns_noise:
                for _ in range(LAST_NOISE_STEPS):
                    noise = laplace.better_noise(self.noise[replica], self._n_rows(replica))
                    scale = self.noise[replica] / noise
                    laplace = replace(laplace, curvature=laplace.curvature * scale[:, None])
                    self.noise[replica] = noise
            found.append(laplace)
        return found

    def best_sparsity(self, found: list[Laplace]) -> float:
        """The largest sparsity at which held-out rows are predicted about as well as at best."""

        def nll(posterior: Posterior, rows: Mask) -> Float:
            x, y = self.replicas.problem.x[rows], self.replicas.problem.y[rows]
            eta = forward(self.net, posterior.mu, posterior.bias_mu, x)
            return self.replicas.likelihood.nll(y, eta, posterior.noise)

        losses = [self._held_out(nll, found, 1 - share, 0.0) for share in KEPT_SHARES]
        return float(1 - KEPT_SHARES[sparsest_near_best(np.array(losses), self._judged_weight())])

    def best_scale(self, found: list[Laplace], sparsity: float) -> float:
        """The factor with which draws predict held-out rows best."""

        def log_score(posterior: Posterior, rows: Mask) -> Float:
            x, y = self.replicas.problem.x[rows], self.replicas.problem.y[rows]
            draws = posterior.sample_predictor(x, DRAWS_TO_JUDGE, np.random.default_rng(0))
            return self.replicas.likelihood.log_score(y, draws, posterior.noise)

        losses = [self._held_out(log_score, found, sparsity, scale) for scale in SCALES]
        return SCALES[int((np.array(losses) @ self._judged_weight()).argmin())]

    def _held_out(
        self,
        loss: Callable[[Posterior, Mask], Float],
        found: list[Laplace],
        sparsity: float,
        scale: float,
    ) -> Float:
        """The loss of all rows that some replica has left out."""
        parts = []
        for replica in range(1, len(found)):
            posterior = self.pruned(replica, found[replica], sparsity, scale)
            parts.append(loss(posterior, self.replicas.row_weight[replica] == 0))
        return np.concatenate(parts)

    def _judged_weight(self) -> Float:
        return self.replicas.row_weight[0][self.replicas.judged[1]]

    def pruned(self, replica: int, laplace: Laplace, sparsity: float, scale: float) -> Posterior:
        """Laplace's posterior without the weights that do least damage."""
        n_weights = self.net.n_weights
        sigma = scale * laplace.precision**-0.5
        return with_structure(
            self.net,
            self.replicas.likelihood.name,
            self.noise[replica].copy(),
            mu=laplace.theta[:n_weights],
            sigma=sigma[:n_weights],
            bias_mu=laplace.theta[n_weights:],
            bias_sigma=sigma[n_weights:],
            kept=prune(self.net, laplace.damage[:n_weights], sparsity),
        )

    def _descend(self, first: float, n_steps: int) -> None:
        """Steps that begin at a share of the training."""
        replicas, whole = self.replicas, Schedule("cosine")
        share = self.prior_precision / replicas.row_weight.sum(axis=1, keepdims=True)
        replicas.noise = replicas.tensor(self.noise)
        length = n_steps / replicas.plan.n_steps
        replicas.run(n_steps, lambda t: whole(first + t * length), precision=replicas.tensor(share))

    def _update(self) -> None:
        """New priors and noise for every replica."""
        for replica in range(len(self.noise)):
            laplace = self._approximate(replica, ROWS_WHILE_TRAINING)
            self.prior_precision[replica] = laplace.better_prior(self.groups)
            if replica == 0:
                self._record(laplace)
            if self.replicas.likelihood.learns_noise:
                n_rows = self._n_rows(replica)
                self.noise[replica] = laplace.better_noise(self.noise[replica], n_rows)

    def _approximate(self, replica: int, most_rows: int | None = None) -> Laplace:
        """From the replica's rows, or from some of them that stand for all."""
        problem, row_weight = self.replicas.problem, self.replicas.row_weight[replica]
        rows = np.flatnonzero(row_weight)
        if most_rows is not None and len(rows) > most_rows:
            rows = self.rng.choice(rows, most_rows, replace=False)
        weight = row_weight[rows] * (row_weight.sum() / row_weight[rows].sum())
        return approximate(
            self.net,
            self.replicas.likelihood,
            self.replicas.theta[replica].double().numpy(),
            self.prior_precision[replica],
            self.noise[replica],
            Problem(problem.x[rows], problem.y[rows], weight),
        )

    def _n_rows(self, replica: int) -> float:
        return float(self.replicas.row_weight[replica].sum())

    def _record(self, laplace: Laplace) -> None:
        plan, log_marginal = self.replicas.plan, laplace.log_marginal_likelihood
        distinct = (laplace.damage[: self.net.n_weights] > 1) | in_last_layer(self.net)
        self.history.add(
            step=self.replicas.n_steps_taken,
            elbo=log_marginal,
            nll=laplace.nll,
            kl=-log_marginal - laplace.nll,
            density=distinct.sum() / max(self.net.n_weights, 1),
            used_weights=active_weights(self.net, distinct).sum(),
            hidden_units=sum(self.net.hidden),
            noise=self.noise[0].mean(),
            rate=plan.rate * self.replicas.slow_down,
        )

    def _last(self) -> dict[str, float]:
        return {name: self.history.column(name)[-1] for name in ("elbo", "used_weights")}


def prior_groups(net: Architecture, prior: str) -> NDArray[np.intp]:
    """Number of the prior precision that each weight shares."""
    if prior == "weight":
        return np.arange(net.n_weights)
    if prior == "layer":
        return net.by_block([block.layer for block in net.blocks])
    return np.zeros(net.n_weights, dtype=np.intp)


# -- estimators --------------------------------------------------------------------------------


class SpaMEstimator(BaselineEstimator):
    """Parameters and learning of both SpaM estimators."""

    _rules: ClassVar[Rules] = {
        "sparsity": (
            auto(lambda value: real(value) and 0 <= value < 1),
            "'auto' or the share of weights to prune, from 0 to below 1",
        ),
        "posterior_scale": (
            auto(lambda value: real(value) and 0 <= value < np.inf),
            "'auto' or a number from 0 (no spread) over 1 (Laplace's)",
        ),
        "prior": (one_of("weight", "layer", "network"), "'weight', 'layer' or 'network'"),
    }

    def __init__(
        self,
        *,
        hidden_layer_sizes: Any = "auto",
        activation: str = "auto",
        input_skip: bool = False,
        sparsity: Any = "auto",
        posterior_scale: Any = "auto",
        prior: str = "weight",
        batch_size: Any = "auto",
        learning_rate_init: Any = "auto",
        max_epochs: Any = "auto",
        n_draws: int = 1000,
        missing: str = "impute",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.input_skip = input_skip
        self.sparsity = sparsity
        self.posterior_scale = posterior_scale
        self.prior = prior
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_epochs = max_epochs
        self.n_draws = n_draws
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _plan(self, problem: Problem) -> Plan:
        plan = super()._plan(problem)
        net = replace(plan.architecture, input_skip=bool(self.input_skip))
        rate = rate_for(plan) if self.learning_rate_init == "auto" else plan.rate
        return replace(plan, architecture=net, rate=rate)

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        n_weights = self._plan(problem).architecture.n_weights
        problem = replace(problem, x=problem.x[:, learnable(varies)])
        learned = learn_spam(
            problem,
            likelihood,
            self._plan(problem),
            sparsity=self.sparsity,
            posterior_scale=self.posterior_scale,
            prior=self.prior,
            seed=seed,
            verbose=self.verbose,
        )
        assert isinstance(learned.weights, Posterior)
        return replace(learned, weights=over_all_covariates(learned.weights, varies, n_weights))


class SpaMClassifier(SpaMEstimator, NetworkClassifier):
    """Network with priors by marginal likelihood, pruned by posterior damage (Laplace-SpaM).

    Parameters
    ----------
    hidden_layer_sizes : "auto" or tuple of int
        Widths of the hidden layers.
    activation : "auto", "leaky_relu", "relu", "identity", "sigmoid" or "tanh"
    input_skip : bool
        Whether covariates enter every layer. The last layer is not pruned, so that with the skip
        every covariate is used.
    sparsity : "auto" or float
        Share of the weights before the last layer to prune; chosen by cross-validation if not
        given.
    posterior_scale : "auto" or float
        Factor on the posterior's standard deviations. Draws of a diagonal Laplace posterior, 1,
        often predict worse than its centre, 0; chosen by cross-validation if not given.
    prior : {"weight", "layer", "network"}
        What has a prior precision of its own.
    batch_size : "auto" or int
    learning_rate_init : "auto" or float
        Adam's highest rate.
    max_epochs : "auto" or int
    n_draws : int
        Draws of the posterior behind each prediction.
    missing : {"impute", "error"}
    random_state : int, RandomState instance or None
    verbose : bool

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SpaMClassifier(sparsity=0.9, max_epochs=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """


class SpaMRegressor(SpaMEstimator, NetworkRegressor):
    """Network with priors by marginal likelihood, pruned by posterior damage (Laplace-SpaM).

    Parameters are those of :class:`SpaMClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SpaMRegressor(sparsity=0.9, max_epochs=100, random_state=0).fit(X, y)
    >>> model.n_used_weights_ < 0.2 * model.network_.n_weights_initial
    True
    """
