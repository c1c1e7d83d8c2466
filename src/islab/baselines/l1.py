"""Input-skip networks with an L1 penalty: the frequentist counterpart (IS-ANN-L1 in the paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from islab.baselines.base import Plan, PointEstimator, require_squared_errors
from islab.baselines.cross_validation import (
    fold_weights,
    judged_rows,
    sparsest_near_best,
    useful_folds,
)
from islab.baselines.descent import LEAST_NOISE, Descent, PlainNetwork, first_guess
from islab.baselines.kept_weights import with_structure
from islab.core.arrays import Float
from islab.core.posterior import Posterior
from islab.estimators.base import Mask
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.parameter_checks import Rules, auto, one_of, positive
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.weight_distribution import Learned
from islab.learn.engines.base import ADAM_BETAS, Problem
from islab.learn.history import History, ProgressBar
from islab.learn.stage import Schedule

Start = Callable[[Plan, np.random.Generator], Float]

FEWEST_STRENGTHS, MOST_STRENGTHS, STEPS_PER_STRENGTH = 3, 14, 140
WEAKEST, STRONGEST = 2e-3, 0.5  # as shares of the strength that leaves nothing
LEAST_STRENGTH = 1e-6
ZERO = 0.005


@dataclass(frozen=True)
class Training:
    """How the network goes down its penalised loss."""

    start: Start = first_guess  # makes the weights and biases to begin with
    schedule: Schedule = field(default_factory=lambda: Schedule("cosine"))  # of the rate
    betas: tuple[float, float] = ADAM_BETAS  # how long Adam remembers gradients and squares
    biases_too: bool = False  # whether biases are penalised as well


OUR_WAY = Training()


def learn_l1(
    plan: Plan,
    strength: float | str = "auto",
    zeros: str = "proximal",
    training: Training = OUR_WAY,
) -> Learned:
    """Fits a network with an L1 penalty on its weights.

    ``strength`` and ``zeros`` are the ``penalty`` and ``zeros`` of :class:`L1SkipClassifier`. A
    linear network for Gaussian outputs is scikit-learn's Lasso.

    Notes
    -----
    ``auto`` fits a path of strengths from weak to strong, each started from the one before: a
    network that starts from zeros would stay there. All rows and five folds are fitted side by
    side; the strongest penalty that is about as good as the best on held-out rows stays (see
    :func:`sparsest_near_best`). Gaussian noise is the mean squared error on held-out rows, or,
    with a strength given, of the fit.
    """
    require_squared_errors(plan.likelihood, "an L1 penalty")
    problem, automatic = plan.problem, isinstance(strength, str)
    rng = np.random.default_rng(plan.seed)
    row_weight = fold_weights(problem, useful_folds(problem.n_rows) if automatic else 0, rng)
    strengths = strength_path(problem, plan.n_steps) if automatic else np.array([strength], float)
    guess = training.start(plan, rng)
    network = PlainNetwork(plan.architecture)
    descent = Descent(network, guess, plan, row_weight=row_weight, betas=training.betas)
    judged = judged_rows(row_weight)
    fits, predictors, history = [], [], History()
    with ProgressBar(plan.n_steps, enabled=plan.verbose) as bar:
        for n_steps, value in zip(_steps(plan.n_steps, len(strengths)), strengths, strict=True):
            theta = _fit(descent, n_steps, float(value), zeros, training)
            eta = network.predictor(theta, descent.x).astype(float)
            fits.append(theta[0].astype(float))
            predictors.append(eta[judged])
            _record(history, descent, fits[-1], eta[0], float(value))
            bar.report(n_steps, history.last())
    y, judges = problem.y[judged[1]], row_weight[0, judged[1]]
    losses = descent.likelihood.nll(y, np.array(predictors), np.ones(y.shape[1]))
    chosen = sparsest_near_best(losses, judges)
    noise = np.ones(y.shape[1])
    if descent.likelihood.learns_noise:
        error = np.average((y - predictors[chosen]) ** 2, axis=0, weights=judges)
        noise = np.maximum(error, LEAST_NOISE)
    return Learned(
        _point(plan, noise, fits[chosen]),
        history,
        chosen={"penalty": float(strengths[chosen])} if automatic else {},
    )


def strength_path(problem: Problem, n_steps: int) -> Float:
    """Strengths to try, as shares of the one that leaves only the constant model.

    That one is the steepest slope of the loss, by a weight from a covariate to an output, at the
    constant model. A path of few steps tries few strengths.
    """
    weight = problem.row_weights
    error = problem.y - np.average(problem.y, axis=0, weights=weight)
    slope = np.abs(problem.x.T @ (error * (weight / weight.sum())[:, None]))
    largest = max(float(slope.max(initial=0.0)), LEAST_STRENGTH)
    number = min(max(n_steps // STEPS_PER_STRENGTH, FEWEST_STRENGTHS), MOST_STRENGTHS)
    return np.geomspace(WEAKEST * largest, STRONGEST * largest, number)


def _steps(n_steps: int, n_strengths: int) -> list[int]:
    """Steps for each strength; the first has the furthest to go and takes as many as the rest."""
    if n_strengths == 1:
        return [n_steps]
    return [max(1, n_steps // 2)] + [max(1, n_steps // (2 * n_strengths))] * (n_strengths - 1)


def _fit(descent: Descent, n_steps: int, strength: float, zeros: str, training: Training) -> Float:
    """Goes on to this strength; the weights and biases there, with the zeros of weights."""
    weights = np.arange(descent.theta.shape[1]) < descent.plan.architecture.n_weights
    proximal = zeros == "proximal"
    by_parameter = np.float32(strength) * (weights | training.biases_too)
    descent.train(n_steps, training.schedule, strength=by_parameter, proximal=proximal)
    if proximal:
        return descent.theta.copy()
    return np.where(~weights | (np.abs(descent.theta) > ZERO), descent.theta, 0.0)


def _record(history: History, descent: Descent, theta: Float, eta: Float, strength: float) -> None:
    row_weight = descent.row_weight[0]
    weights = theta[: descent.plan.architecture.n_weights]
    nll = float(row_weight @ descent.likelihood.nll(descent.problem.y, eta, np.ones(1)))
    penalty = float(row_weight.sum() * strength * np.abs(weights).sum())
    descent.note(history, weights != 0, elbo=-(nll + penalty), nll=nll, kl=penalty, noise=1.0)


def _point(plan: Plan, noise: Float, theta: Float) -> Posterior:
    mu, bias_mu = np.split(theta, [plan.architecture.n_weights])
    return with_structure(
        plan.architecture,
        plan.likelihood,
        noise,
        mu=mu,
        sigma=np.zeros_like(mu),
        bias_mu=bias_mu,
        bias_sigma=np.zeros_like(bias_mu),
        kept=mu != 0,
    )


# -- estimators --------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class L1SkipEstimator(PointEstimator):
    """Parameters and learning of both L1 estimators."""

    penalty: Any = "auto"
    zeros: str = "proximal"
    n_draws: int = 1

    _rules: ClassVar[Rules] = {
        "penalty": (auto(positive), "'auto' or a positive number"),
        "zeros": (one_of("proximal", "threshold"), "'proximal' or 'threshold'"),
    }
    _input_skip = True
    _training: ClassVar[Training] = OUR_WAY

    def _learn_plan(self, plan: Plan, varies: Mask) -> Learned:
        return learn_l1(plan, self.penalty, self.zeros, self._training)


class L1SkipClassifier(L1SkipEstimator, NetworkClassifier):
    """Input-skip network with an L1 penalty on its weights (IS-ANN-L1 in the paper).

    Parameters
    ----------
    penalty : "auto" or float
        Factor on the absolute weights beside the mean negative log likelihood of a row; chosen
        by cross-validation if not given: ``max_epochs`` are then for all penalties together.
    zeros : {"proximal", "threshold"}
        How weights become zero: exactly, by a proximal step of the optimiser, or as in the paper,
        where weights up to 0.005 are dropped after training.
    {shared}

    Attributes
    ----------
    chosen_ : dict
        The penalty by cross-validation, if it was "auto".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = L1SkipClassifier(penalty=0.02, max_epochs=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """


class L1SkipRegressor(L1SkipEstimator, NetworkRegressor):
    """Input-skip network with an L1 penalty on its weights (IS-ANN-L1 in the paper).

    Parameters
    ----------
    penalty : "auto" or float
        Factor on the absolute weights beside half the mean squared error in standard deviations
        of the target; chosen by cross-validation if not given.
    {shared}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = L1SkipRegressor(penalty=0.05, max_epochs=100, random_state=0).fit(X, y)
    >>> model.n_used_weights_ < 100
    True
    """
