"""What the baselines share that learn one set of weights before any spread around it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from islab.baselines.base import BaselineEstimator, Plan
from islab.core.posterior import Posterior
from islab.estimators.base import Mask
from islab.estimators.learned import Learned
from islab.estimators.unused import learnable, over_all_covariates
from islab.learn.engines import Problem

SLOWEST, FASTEST, DISTANCE = 0.005, 0.05, 10.0


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
