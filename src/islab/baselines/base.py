"""Parameters that the baselines with hidden layers share, and the training that they mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar

import numpy as np

from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.estimators.base import Mask, NetworkEstimator
from islab.estimators.learnable_covariates import learnable, over_all_covariates
from islab.estimators.parameter_checks import Rules
from islab.estimators.settings import check_params, hidden_widths
from islab.estimators.weight_distribution import Learned
from islab.learn.engines import Problem

HIDDEN = (50, 50)
FEWEST_STEPS, MOST_STEPS, EPOCHS = 2_000, 10_000, 100
SMALLEST_BATCH, LARGEST_BATCH = 64, 512
SLOWEST, FASTEST, DISTANCE = 0.005, 0.05, 10.0


@dataclass(frozen=True)
class Plan:
    """Which network to train, and for how long.

    Attributes
    ----------
    architecture : Architecture
    batch_size, n_steps : int
    rate : float
        Adam's highest rate.
    """

    architecture: Architecture
    batch_size: int
    n_steps: int
    rate: float


class BaselineEstimator(NetworkEstimator):
    """Common parameters; a method adds its own ``__init__`` with them, and ``_learn_weights``.

    ``_learn_weights(problem, likelihood, varies, seed)`` returns a
    :class:`~islab.estimators.weight_distribution.Learned`;
    ``self._plan(problem)`` says what to train.
    ``weights_type`` is the distribution it learns, ``_rules`` the rules of its own parameters
    (see :mod:`islab.estimators.parameter_checks`),
    ``_rate`` its highest rate unless the user has set one.
    """

    hidden_layer_sizes: Any
    activation: str
    batch_size: Any
    learning_rate_init: Any
    max_epochs: Any
    verbose: bool

    _rules: ClassVar[Rules] = {}
    _rate: ClassVar[float] = 0.01
    _input_skip: ClassVar[bool] = False

    def _check_params(self) -> None:
        check_params(self.get_params(deep=False), self._rules)

    def _plan(self, problem: Problem) -> Plan:
        hidden: tuple[int, ...] = HIDDEN
        if not isinstance(self.hidden_layer_sizes, str):
            hidden = hidden_widths(self.hidden_layer_sizes)
        rows = problem.n_rows
        batch = min(rows, max(SMALLEST_BATCH, min(LARGEST_BATCH, rows // 4)))
        if self.batch_size != "auto":
            batch = min(int(self.batch_size), rows)
        steps_per_epoch = ceil(rows / batch)
        steps = min(max(EPOCHS * steps_per_epoch, FEWEST_STEPS), MOST_STEPS)
        if self.max_epochs != "auto":
            steps = int(self.max_epochs) * steps_per_epoch
        rate = self._rate if self.learning_rate_init == "auto" else float(self.learning_rate_init)
        activation = "relu" if self.activation == "auto" else self.activation
        network = Architecture(
            problem.x.shape[1], hidden, problem.y.shape[1], self._input_skip, activation
        )
        return Plan(network, batch, steps, rate)


class PointEstimator(BaselineEstimator):
    """A method adds ``_learn_point``, which learns a posterior of covariates that vary."""

    def _plan(self, problem: Problem) -> Plan:
        plan = super()._plan(problem)
        return plan if self.learning_rate_init != "auto" else replace(plan, rate=rate_for(plan))

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        n_weights = self._plan(problem).architecture.n_weights
        problem = replace(problem, x=problem.x[:, learnable(varies)])
        learned = self._learn_point(problem, likelihood, self._plan(problem), seed)
        assert isinstance(learned.weights, Posterior)
        return replace(learned, weights=over_all_covariates(learned.weights, varies, n_weights))

    def _learn_point(self, problem: Problem, likelihood: str, plan: Plan, seed: int) -> Learned:
        raise NotImplementedError


def rate_for(plan: Plan) -> float:
    """A rate that lets weights go as far in a short training as in a long one."""
    return float(np.clip(DISTANCE / plan.n_steps, SLOWEST, FASTEST))
