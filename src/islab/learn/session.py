"""What all stages of a fit share: data, recipe, engine, where they start and what trains them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Initial, Posterior
from islab.core.priors import Prior
from islab.learn.checkpoint import Checkpoint
from islab.learn.engines import EngineChoice, Problem
from islab.learn.engines.base import LARGEST_LAMBDA
from islab.learn.recipe import Recipe
from islab.learn.stage import Stage
from islab.learn.variational import Trained, train

# For a noise variance that is found after the weights.
NOISE_DRAWS, NOISE_ROWS = 50, 20_000


@dataclass(frozen=True)
class Session:
    """The parts that all stages of a fit share."""

    problem: Problem
    likelihood: str
    recipe: Recipe
    engine: EngineChoice
    folder: Path | None
    keep_interrupted: bool = False

    @property
    def flow_joins(self) -> bool:
        """Whether a flow comes in after the choice of a network."""
        return self.engine.posterior == "flow" and self.recipe.flow is not None

    @property
    def before_flow(self) -> Session:
        """What learns up to there: independent weights, if a flow is to come in."""
        return self.independent() if self.flow_joins else self

    def independent(self) -> Session:
        """The same with independent weights, which learn far faster."""
        return replace(self, engine=self.engine.with_independent_weights())

    @property
    def n_weights(self) -> int:
        """Weights of the network before training."""
        return self._architecture(self.recipe.hidden).n_weights

    def _architecture(self, hidden: tuple[int, ...]) -> Architecture:
        return Architecture(
            n_covariates=self.problem.x.shape[1],
            hidden=hidden,
            n_outputs=self.problem.y.shape[1],
            input_skip=self.recipe.input_skip,
            activation=self.recipe.activation,
        )

    def start(self, hidden: tuple[int, ...], initial: Initial, seed: int) -> Posterior:
        """Where training of a network with these layers starts."""
        rng = np.random.default_rng(seed)
        start = Posterior.initialise(self._architecture(hidden), rng, initial, self.likelihood)
        likelihood = families.likelihood(self.likelihood)
        bias = self.problem.initial_bias(likelihood)
        start.bias_mu[start.architecture.units[-1]] = bias
        start.noise = likelihood.start_noise(self.problem.y)
        if self.recipe.noise is not None and likelihood.scales_target:
            start.noise = np.full_like(start.noise, self.recipe.noise)
        limits = self.problem.limits
        if limits is not None:
            start.lam[limits.forbidden(start.architecture)] = -LARGEST_LAMBDA
            start.lam[limits.forced(start.architecture)] = LARGEST_LAMBDA
        return start

    def train(
        self,
        start: Posterior,
        stage: Stage,
        seed: int,
        report: Callable | None,
        name: str,
        prior: Prior | None = None,
        n_initial: NDArray[np.intp] | None = None,
    ) -> Trained:
        """A stage carried out from a start."""
        engine = self.engine.create(start, self.problem, stage, seed)
        return train(
            engine,
            stage,
            n_rows=self.problem.n_rows,
            seed=seed,
            prior=prior,
            n_initial=n_initial,
            report=report,
            checkpoint=self._checkpoint(name, stage, seed),
            keep_interrupted=self.keep_interrupted,
        )

    def with_noise(self, posterior: Posterior, seed: int) -> Posterior:
        """The posterior with the best noise given its weights."""
        problem = self.problem
        rows = slice(None, None, 1 + problem.n_rows // NOISE_ROWS)
        rng = np.random.default_rng(seed)
        eta = posterior.sample_predictor(problem.x[rows], NOISE_DRAWS, rng)
        if problem.offset is not None:
            eta = eta + problem.offset[rows]
        weight = np.broadcast_to(problem.row_weights[rows, None], eta.shape[1:])
        error = ((problem.y[rows] - eta) ** 2).mean(axis=0)
        return posterior.copy(noise=np.average(error, axis=0, weights=weight))

    def _checkpoint(self, name: str, stage: Stage, seed: int) -> Checkpoint | None:
        if self.folder is None:
            return None
        return Checkpoint(self.folder / f"{name}.npz", self.owner(repr((stage, seed))))

    def owner(self, part: str) -> str:
        """What stands for the data, the settings and a part of the fit."""
        settings = (self.likelihood, self.recipe, self.engine, part)
        owner = sha256(repr(settings).encode())
        data: list[NDArray | None] = [self.problem.x, self.problem.y, self.problem.row_weights]
        data.append(self.problem.offset)
        if (limits := self.problem.limits) is not None:
            data += limits.arrays
        for array in (each for each in data if each is not None):
            owner.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return owner.hexdigest()
