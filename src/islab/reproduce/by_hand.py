"""Estimators trained the paper's way: one stage, fixed priors, data as they come."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab import ISLaBClassifier, ISLaBRegressor
from islab.architecture import Architecture
from islab.columns import ColumnEncoder
from islab.engines import Engine, EngineChoice, Problem
from islab.equations import softplus
from islab.estimators.base import NetworkEstimator
from islab.estimators.draws import predictor_draws
from islab.estimators.table import column_names
from islab.posterior import Posterior
from islab.recipe import Recipe, paper_recipe
from islab.reproduce.settings import Setting
from islab.schedules import Schedule
from islab.sparse import Units
from islab.training import train

Float = NDArray[np.floating]

# How the authors' scripts start networks with flows, and linear models.
SMALL_MEANS = (-0.01, 0.01)
LINEAR_RHO, LINEAR_BIAS_TAU = -4.5, 1.0
NOISE = 0.5  # The paper minimises the plain sum of squares.
NOISE_DRAWS = 50


def recipe_of(
    setting: Setting,
    hidden: tuple[int, ...],
    posterior: str,
    n_rows: int,
    epochs: int | None = None,
) -> Recipe:
    """The recipe that a setting of the paper stands for.

    Parameters
    ----------
    setting : Setting
        Of a method with spike and slab.
    hidden : tuple of int
    posterior : {"lrt", "flow"}
    n_rows : int
        To learn from.
    epochs : int, optional
        Other than the setting's.
    """
    batch = ceil(n_rows / setting.batches)
    assert setting.tau is not None
    assert setting.psi is not None
    assert setting.covariates is not None
    recipe = paper_recipe(
        hidden=hidden,
        n_steps=(epochs or setting.epochs) * ceil(n_rows / batch),
        batch_size=batch,
        rate=setting.rate,
        tau=setting.tau,
        psi=setting.psi,
        covariate_inclusion=setting.covariates,
        hidden_inclusion=setting.hidden or (0.0, 0.0),
        lambda_rate=setting.lambda_rate or setting.rate,
        noise_rate=0.0,
        schedule=Schedule("step", milestones=setting.milestones, drop=setting.drop),
    )
    if not hidden:
        return _linear(recipe)
    if posterior == "flow":
        return replace(recipe, initial=replace(recipe.initial, means=SMALL_MEANS))
    return recipe


def _linear(recipe: Recipe) -> Recipe:
    """Linear models start with small means and wider spreads; their rate stays what it is."""
    sigma = float(softplus(np.float64(LINEAR_RHO)))
    return replace(
        recipe,
        initial=replace(recipe.initial, means=SMALL_MEANS, sigma=sigma),
        network=replace(recipe.network, bias_tau=LINEAR_BIAS_TAU, schedule=Schedule("constant")),
    )


class _ByHand(NetworkEstimator):
    """Learns with a recipe's one stage from columns as they are."""

    posterior: str

    def __init__(
        self,
        *,
        recipe: Any = None,
        posterior: str = "lrt",
        n_draws: int = 1000,
        random_state: Any = 0,
    ) -> None:
        super().__init__(posterior=posterior, n_draws=n_draws, random_state=random_state)
        self.recipe = recipe

    def _check_params(self) -> None:
        """The recipe has been checked where it was made."""

    def _learn(
        self,
        X: Any,
        target: Float,
        likelihood: str,
        outputs: tuple[str, ...],
        sample_weight: Float | None,
        table_weight: Float | None,
    ) -> None:
        columns, covariates = ColumnEncoder.learn(X, column_names(self))
        nothing, one = np.zeros(columns.center.shape), np.ones(columns.center.shape)
        columns = replace(columns, center=nothing, scale=one)
        units = Units(
            x_center=nothing,
            x_scale=one,
            y_center=np.zeros(target.shape[1]),
            y_scale=np.ones(target.shape[1]),
            names=columns.names,
            outputs=outputs,
            variables=columns.owners,
        )
        seed = int(np.random.RandomState(self.random_state).randint(np.iinfo(np.int32).max))
        problem = Problem(covariates, target)
        engine = make_engine(self.recipe, self.posterior, problem, likelihood, seed)
        found = train(engine, self.recipe.network, n_rows=problem.n_rows, seed=seed)
        n_weights = Architecture(len(one), self.recipe.hidden, target.shape[1]).n_weights
        posterior = found.posterior.copy(n_weights_initial=n_weights)
        if likelihood == "gaussian":
            # Its best value given the weights; the paper leaves noise out of its predictions.
            eta = predictor_draws(posterior, units, covariates, NOISE_DRAWS, seed)
            posterior = posterior.copy(noise=((target - eta) ** 2).mean(axis=(0, 1)))
        self.columns_, self.posterior_ = columns, posterior
        self.network_ = posterior.median(units=units)
        self.history_, self.elbo_, self.seed_ = found.history, float(found.elbo), seed
        self.chosen_ = {}


def make_engine(
    recipe: Recipe, posterior: str, problem: Problem, likelihood: str, seed: int
) -> Engine:
    """An engine that holds the start of the recipe's network and the data."""
    net = Architecture(
        problem.x.shape[1], recipe.hidden, problem.y.shape[1], activation=recipe.activation
    )
    rng = np.random.default_rng(seed)
    start = Posterior.initialise(net, rng, recipe.initial, likelihood)
    if likelihood == "gaussian":
        start.noise = np.full(problem.y.shape[1], NOISE)
    return EngineChoice(posterior=posterior).create(start, problem, recipe.network, seed)


class HandTunedClassifier(_ByHand, ISLaBClassifier):
    """A classifier that follows a recipe to the letter.

    Parameters
    ----------
    recipe : Recipe
        With one stage: see :func:`recipe_of`.
    posterior : {"lrt", "flow"}
    n_draws : int
    random_state : int
    """


class HandTunedRegressor(_ByHand, ISLaBRegressor):
    """A regressor that follows a recipe to the letter; parameters are the classifier's."""
