"""Laplace-SpaM: a network whose priors are learned by marginal likelihood, then pruned.

Training alternates between fitting the weights under Gaussian priors and moving the priors'
precisions uphill on Laplace's approximation of the marginal likelihood. What the posterior loses
least by is pruned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from islab.baselines.base import Plan, PointEstimator, require_squared_errors
from islab.baselines.cross_validation import (
    fold_weights,
    judged_rows,
    sparsest_near_best,
    useful_folds,
)
from islab.baselines.descent import Descent, PlainNetwork, first_guess
from islab.baselines.kept_weights import with_structure
from islab.baselines.laplace import Laplace, approximate, in_last_layer, prior_groups, prune
from islab.core.arrays import Float
from islab.core.network import forward
from islab.core.posterior import Posterior
from islab.core.priors import BIAS_TAU
from islab.estimators.base import Mask
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.parameter_checks import Rules, auto, one_of, real
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.weight_distribution import Learned
from islab.learn.engines import Problem
from islab.learn.history import History, ProgressBar
from islab.learn.stage import Schedule

BURN_IN = 0.25  # share of the steps before priors are learned
MOST_UPDATES, STEPS_PER_UPDATE = 40, 10
ROWS_WHILE_TRAINING = 2_000
LAST_NOISE_STEPS = 20
KEPT_SHARES = np.geomspace(1.0, 0.005, 16)
SCALES = (1.0, 0.5, 0.25, 0.1)
DRAWS_TO_JUDGE = 30


def learn_spam(
    plan: Plan,
    sparsity: float | str = "auto",
    posterior_scale: float | str = "auto",
    prior: str = "weight",
) -> Learned:
    """Learns weights and priors, and prunes; parameters are those of :class:`SpaMClassifier`.

    Notes
    -----
    ``auto`` fits five folds beside the whole. The sparsest network that predicts held-out rows
    about as well as the best stays
    (see :func:`~islab.baselines.cross_validation.sparsest_near_best`). A
    diagonal posterior takes the errors of weights for independent, so that they add up in a deep
    network where they should cancel, and draws predict worse than their centre: of a few factors
    the one with which draws predict held-out rows best is taken.
    """
    require_squared_errors(plan.likelihood, "Laplace-SpaM")
    automatic = isinstance(sparsity, str) or isinstance(posterior_scale, str)
    folds = useful_folds(plan.problem.n_rows) if automatic else 0
    rng = np.random.default_rng(plan.seed)
    row_weight = fold_weights(plan.problem, folds, rng)
    network = PlainNetwork(plan.architecture)
    descent = Descent(network, first_guess(plan, rng), plan, row_weight=row_weight)
    learning = _Learning(descent, network, prior, np.random.default_rng(plan.seed))
    with ProgressBar(plan.n_steps, enabled=plan.verbose) as bar:
        learning.run(bar)
    found, chosen = learning.finish(), {}
    if isinstance(sparsity, str):
        chosen["sparsity"] = sparsity = learning.best_sparsity(found)
    if isinstance(posterior_scale, str):
        chosen["posterior_scale"] = posterior_scale = learning.best_scale(found, sparsity)
    posterior = learning.pruned(0, found[0], sparsity, posterior_scale)
    return Learned(posterior, learning.history, chosen=chosen)


class _Learning:
    """Replicas, their priors, and what happens to both."""

    def __init__(
        self, descent: Descent, network: PlainNetwork, prior: str, rng: np.random.Generator
    ) -> None:
        self.descent, self.network, self.rng, self.history = descent, network, rng, History()
        self.net = network.architecture
        self.groups = prior_groups(self.net, prior)
        n_replicas = len(descent.theta)
        first = np.repeat([1.0, BIAS_TAU**-2], [self.net.n_weights, self.net.n_units])
        self.prior_precision = np.tile(first, (n_replicas, 1))
        self.noise = np.ones((n_replicas, self.net.n_outputs))

    def run(self, bar: ProgressBar) -> None:
        """Weights alone at first, then weights and priors in turn."""
        n_steps = self.descent.plan.n_steps
        n_updates = min(max(n_steps // STEPS_PER_UPDATE, 1), MOST_UPDATES)
        ends = np.linspace(BURN_IN, 1, n_updates + 1) * n_steps
        taken = 0
        for end in np.unique(np.maximum(ends.astype(int), 1)):
            self._descend(taken / n_steps, int(end) - taken)
            self._update()
            bar.report(int(end) - taken, self.history.last())
            taken = int(end)

    def finish(self) -> list[Laplace]:
        """The posterior of every replica from all of its rows, with its noise."""
        found = []
        for replica in range(len(self.noise)):
            laplace = self._approximate(replica)
            if self.descent.likelihood.learns_noise:
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
            x, y = self.descent.problem.x[rows], self.descent.problem.y[rows]
            eta = forward(self.net, posterior.mu, posterior.bias_mu, x)
            return self.descent.likelihood.nll(y, eta, posterior.noise)

        losses = [self._held_out(nll, found, 1 - share, 0.0) for share in KEPT_SHARES]
        return float(1 - KEPT_SHARES[sparsest_near_best(np.array(losses), self._judged_weight())])

    def best_scale(self, found: list[Laplace], sparsity: float) -> float:
        """The factor with which draws predict held-out rows best."""

        def log_score(posterior: Posterior, rows: Mask) -> Float:
            x, y = self.descent.problem.x[rows], self.descent.problem.y[rows]
            draws = posterior.sample_predictor(x, DRAWS_TO_JUDGE, np.random.default_rng(0))
            return self.descent.likelihood.log_score(y, draws, posterior.noise)

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
            parts.append(loss(posterior, self.descent.row_weight[replica] == 0))
        return np.concatenate(parts)

    def _judged_weight(self) -> Float:
        row_weight = self.descent.row_weight
        return row_weight[0, judged_rows(row_weight)[1]]

    def pruned(self, replica: int, laplace: Laplace, sparsity: float, scale: float) -> Posterior:
        """Laplace's posterior without the weights that do least damage."""
        n_weights = self.net.n_weights
        sigma = scale * laplace.precision**-0.5
        return with_structure(
            self.net,
            self.descent.likelihood.name,
            self.noise[replica].copy(),
            mu=laplace.theta[:n_weights],
            sigma=sigma[:n_weights],
            bias_mu=laplace.theta[n_weights:],
            bias_sigma=sigma[n_weights:],
            kept=prune(self.net, laplace.damage[:n_weights], sparsity),
        )

    def _descend(self, first: float, n_steps: int) -> None:
        """Steps that begin at a share of the training."""
        whole, length = Schedule("cosine"), n_steps / self.descent.plan.n_steps
        self.network.precision = self.prior_precision.astype(np.float32)
        self.descent.noise[...] = self.noise
        self.descent.train(n_steps, lambda t: whole(first + t * length))

    def _update(self) -> None:
        """New priors and noise for every replica."""
        for replica in range(len(self.noise)):
            laplace = self._approximate(replica, ROWS_WHILE_TRAINING)
            self.prior_precision[replica] = laplace.better_prior(self.groups)
            if replica == 0:
                self._record(laplace)
            if self.descent.likelihood.learns_noise:
                n_rows = self._n_rows(replica)
                self.noise[replica] = laplace.better_noise(self.noise[replica], n_rows)

    def _approximate(self, replica: int, most_rows: int | None = None) -> Laplace:
        """From the replica's rows, or from some of them that stand for all."""
        problem, row_weight = self.descent.problem, self.descent.row_weight[replica]
        rows = np.flatnonzero(row_weight)
        if most_rows is not None and len(rows) > most_rows:
            rows = self.rng.choice(rows, most_rows, replace=False)
        weight = row_weight[rows] * (row_weight.sum() / row_weight[rows].sum())
        return approximate(
            self.net,
            self.descent.likelihood,
            self.descent.theta[replica].astype(float),
            self.prior_precision[replica],
            self.noise[replica],
            Problem(problem.x[rows], problem.y[rows], weight),
        )

    def _n_rows(self, replica: int) -> float:
        return float(self.descent.row_weight[replica].sum())

    def _record(self, laplace: Laplace) -> None:
        elbo, nll = laplace.log_marginal_likelihood, laplace.nll
        distinct = (laplace.damage[: self.net.n_weights] > 1) | in_last_layer(self.net)
        numbers = {"elbo": elbo, "nll": nll, "kl": -elbo - nll, "noise": self.noise[0].mean()}
        self.descent.note(self.history, distinct, **numbers)


# -- estimators --------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class SpaMEstimator(PointEstimator):
    """Parameters and learning of both SpaM estimators."""

    input_skip: bool = False
    sparsity: Any = "auto"
    posterior_scale: Any = "auto"
    prior: str = "weight"

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

    def _plan(self, problem: Problem, likelihood: str, seed: int) -> Plan:
        plan = super()._plan(problem, likelihood, seed)
        net = replace(plan.architecture, input_skip=bool(self.input_skip))
        return replace(plan, architecture=net)

    def _learn_plan(self, plan: Plan, varies: Mask) -> Learned:
        return learn_spam(plan, self.sparsity, self.posterior_scale, self.prior)


class SpaMClassifier(SpaMEstimator, NetworkClassifier):
    """Network with priors by marginal likelihood, pruned by posterior damage (Laplace-SpaM).

    Parameters
    ----------
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
    {shared}

    Attributes
    ----------
    chosen_ : dict
        The sparsity and posterior scale by cross-validation, as far as they were "auto".

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
