"""Parameters that the baselines with hidden layers share, and the training that they mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import cleandoc
from math import ceil
from typing import Any, ClassVar

import numpy as np

from islab.core import families
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

SHARED_PARAMETERS = """\
hidden_layer_sizes : "auto" or tuple of int
    Widths of the hidden layers; ``()`` for a linear model.
activation : "auto", "leaky_relu", "relu", "identity", "sigmoid" or "tanh"
batch_size : "auto" or int
learning_rate_init : "auto" or float
    Adam's highest rate.
max_epochs : "auto" or int
    Passes over the data.
n_draws : int
    Draws of the network behind each prediction.
missing : {"impute", "error"}
random_state : int, RandomState instance or None
verbose : bool
    Show a progress bar."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What to learn from, which network to train, and for how long."""

    problem: Problem  # data on the scale the network shall see
    likelihood: str
    architecture: Architecture
    batch_size: int
    n_steps: int
    rate: float  # Adam's highest rate
    seed: int = 0
    verbose: bool = False  # show a progress bar


@dataclass(kw_only=True, eq=False, repr=False)
class BaselineEstimator(NetworkEstimator):
    """Common parameters; a method adds its own as further fields, and ``_learn_plan``.

    ``_learn_plan(plan, varies)`` returns a
    :class:`~islab.estimators.weight_distribution.Learned`.
    ``weights_type`` is the distribution it learns, ``_rules`` the rules of its own parameters
    (see :mod:`islab.estimators.parameter_checks`),
    ``_rate`` its highest rate unless the user has set one. Its documentation has the common
    parameters where it says ``{shared}``.
    """

    hidden_layer_sizes: Any = "auto"
    activation: str = "auto"
    batch_size: Any = "auto"
    learning_rate_init: Any = "auto"
    max_epochs: Any = "auto"
    n_draws: int = 1000
    missing: str = "impute"
    random_state: Any = None
    verbose: bool = False

    _rules: ClassVar[Rules] = {}
    _rate: ClassVar[float] = 0.01
    _input_skip: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = cleandoc(cls.__doc__ or "").replace("{shared}", SHARED_PARAMETERS)

    def _check_params(self) -> None:
        check_params(self.get_params(deep=False), self._rules)

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        return self._learn_plan(self._plan(problem, likelihood, seed), varies)

    def _learn_plan(self, plan: Plan, varies: Mask) -> Learned:
        raise NotImplementedError

    def _plan(self, problem: Problem, likelihood: str, seed: int) -> Plan:
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
        return Plan(problem, likelihood, network, batch, steps, rate, seed, self.verbose)


def require_squared_errors(likelihood: str, method: str) -> None:
    """Refuses likelihoods whose learned noise is no variance of the errors."""
    family = families.likelihood(likelihood)
    if family.learns_noise and not family.normal_noise:
        raise ValueError(
            f"Got likelihood={likelihood!r} for {method}, which takes the mean squared error for "
            "the noise, expected 'gaussian' or a likelihood without noise; try ISLaBRegressor."
        )


class PointEstimator(BaselineEstimator):
    """A method whose ``_learn_plan`` learns a posterior of covariates that vary."""

    def _plan(self, problem: Problem, likelihood: str, seed: int) -> Plan:
        plan = super()._plan(problem, likelihood, seed)
        if self.learning_rate_init != "auto":
            return plan
        # Weights shall go as far in a short training as in a long one.
        return replace(plan, rate=float(np.clip(DISTANCE / plan.n_steps, SLOWEST, FASTEST)))

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        n_weights = self._plan(problem, likelihood, seed).architecture.n_weights
        problem = replace(problem, x=problem.x[:, learnable(varies)])
        learned = super()._learn_weights(problem, likelihood, varies, seed)
        assert isinstance(learned.weights, Posterior)
        return replace(learned, weights=over_all_covariates(learned.weights, varies, n_weights))
