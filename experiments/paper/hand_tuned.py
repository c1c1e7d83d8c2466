"""Estimators trained the paper's way: one stage, fixed priors, data as they come."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper.settings import Setting
from islab import ISLaBClassifier, ISLaBRegressor
from islab.baselines import L1SkipClassifier, L1SkipRegressor
from islab.baselines.base import Plan
from islab.baselines.l1 import Training
from islab.core.architecture import Architecture
from islab.core.equations import softplus
from islab.core.network import forward
from islab.core.posterior import Posterior
from islab.core.scale import Scale
from islab.estimators.base import Mask, NetworkEstimator
from islab.estimators.weight_distribution import Learned
from islab.learn.engines import Engine, EngineChoice, Problem
from islab.learn.recipe import Recipe, paper_recipe
from islab.learn.shrink import Shrink
from islab.learn.stage import Schedule
from islab.learn.variational import train
from islab.tables.columns import ColumnEncoder

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
    posterior : {"independent", "flow"}
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
        shrink=Shrink(start=setting.shrink_from),
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


class _AsTheyCome(NetworkEstimator):
    """Columns and targets go to the network as they are."""

    def _scale(
        self,
        columns: ColumnEncoder,
        covariates: Float,
        target: Float,
        outputs: tuple[str, ...],
        table_weight: Float | None,
        likelihood: str,
    ) -> Scale:
        plain = Scale.plain(len(columns.names), len(outputs))
        return replace(plain, names=columns.names, outputs=outputs, variables=columns.owners)


class _ByHand(_AsTheyCome):
    """Learns with a recipe's one stage."""

    posterior: str

    def __init__(
        self,
        *,
        recipe: Any = None,
        posterior: str = "independent",
        n_draws: int = 1000,
        random_state: Any = 0,
    ) -> None:
        super().__init__(posterior=posterior, n_draws=n_draws, random_state=random_state)
        self.recipe = recipe

    def _check_params(self) -> None:
        """The recipe has been checked where it was made."""

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        engine = make_engine(self.recipe, self.posterior, problem, likelihood, seed)
        n_weights = engine.architecture.n_weights
        found = train(engine, self.recipe.network, n_rows=problem.n_rows, seed=seed)
        posterior = found.posterior.copy(n_weights_initial=n_weights)
        if likelihood == "gaussian":
            # Its best value given the weights; the paper leaves noise out of its predictions.
            weights, biases = posterior.draw(NOISE_DRAWS, np.random.default_rng(seed))
            eta = forward(posterior.architecture, weights, biases, problem.x)
            posterior = posterior.copy(noise=((problem.y - eta) ** 2).mean(axis=(0, 1)))
        return Learned(posterior, found.history, elbo=float(found.elbo))


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
    posterior : {"independent", "flow"}
    n_draws : int
    random_state : int
    """


class HandTunedRegressor(_ByHand, ISLaBRegressor):
    """A regressor that follows a recipe to the letter; parameters are the classifier's."""


def common_start(plan: Plan, rng: np.random.Generator) -> Float:
    """Weights and biases as deep-learning frameworks start them, (weights + units,).

    Uniform within one over the root of a unit's inputs. A network of sigmoids starts with its
    deeper layers all but constant.
    """
    net = plan.architecture
    inputs = np.array([net.n_inputs(layer) for layer in range(net.n_layers)])
    of_weights = np.repeat([inputs[b.layer] for b in net.blocks], [b.size for b in net.blocks])
    of_units = np.repeat(inputs, net.widths)
    bound = 1 / np.sqrt(np.maximum(np.concatenate([of_weights, of_units]), 1))
    return bound * rng.uniform(-1, 1, len(bound))


def l1_training(setting: Setting) -> Training:
    """How the authors' scripts train L1 networks."""
    schedule = Schedule("step", milestones=setting.milestones, drop=setting.drop)
    return Training(common_start, schedule, betas=(0.9, 0.999), biases_too=True)


class HandTunedL1Classifier(_AsTheyCome, L1SkipClassifier):
    """The L1 network on columns as they are; parameters are its baseline's."""


class HandTunedL1Regressor(_AsTheyCome, L1SkipRegressor):
    """The same for numbers."""
