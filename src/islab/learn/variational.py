"""Spike-and-slab posteriors in the loop: priors follow the data, dead units are dropped."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.equations import sigmoid
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.checkpoint import Checkpoint
from islab.learn.engines.base import DenseEngine, Engine, State, Steps
from islab.learn.history import History
from islab.learn.loop import Report, run_stage
from islab.learn.shrink import sent_constants, split_by_layer
from islab.learn.stage import Stage

logger = logging.getLogger(__name__)

# Passes over the data, and draws of a flow, for the final ELBO: as many as cost little.
ELBO_PASSES, MOST_PASSES, WORK = 8, 256, 2e7
FEWEST_DRAWS, MOST_DRAWS = 64, 1000
NORMAL = 10  # what a random number costs, in multiplications


class Judged(Protocol):
    """Has an objective and the error of it."""

    @property
    def objective(self) -> float: ...
    @property
    def error(self) -> float: ...


@dataclass(frozen=True)
class Trained:
    """The end of a stage.

    ``nll`` is expected under the posterior, ``elbo`` takes the KL off as well, and
    ``objective`` is what the stage maximised: the same with its weight of the KL. ``error`` is the
    Monte Carlo standard error of both.
    ``n_initial`` are the weights of each block before anything was dropped.
    """

    posterior: Posterior
    prior: Prior
    nll: float
    elbo: float
    objective: float
    history: History
    n_initial: NDArray[np.intp]
    interrupted: bool = False
    error: float = 0.0

    def is_clearly_above(self, other: Judged) -> bool:
        """Whether the objective is higher by more than the error of the difference."""
        return self.objective - other.objective > np.hypot(self.error, other.error)


def train(
    engine: DenseEngine,
    stage: Stage,
    *,
    n_rows: int,
    seed: int,
    prior: Prior | None = None,
    n_initial: NDArray[np.intp] | None = None,
    checkpoint: Checkpoint | None = None,
    report: Report | None = None,
    keep_interrupted: bool = False,
) -> Trained:
    """Carries out a stage on an engine.

    Parameters
    ----------
    engine : DenseEngine
        Holds the starting posterior and the data.
    n_rows : int
        Rows of the data.
    seed : int
        Decides the order of rows and the random numbers of the final ELBO.
    prior : Prior, optional
        Starts from this prior instead of the stage's ``tau`` and ``psi``.
    n_initial : (blocks,), optional
        Weights of each block before an earlier stage dropped units; they still count.
    checkpoint, report, keep_interrupted : optional
        See :func:`~islab.learn.loop.run_stage`.
    """
    learner = SpikeAndSlab(engine, stage, prior, n_initial)
    progress = run_stage(
        learner,
        stage,
        n_rows=n_rows,
        seed=seed,
        checkpoint=checkpoint,
        report=report,
        keep_interrupted=keep_interrupted,
    )
    kl, kl_error = learner.expected_kl()
    if kl_error:
        nll, nll_error = expected_nll(engine, n_rows, seed)
    else:
        nll = engine.expected_nll(ELBO_PASSES, seed)
        nll_error = _passes(engine, ELBO_PASSES, seed).std(ddof=1) / np.sqrt(ELBO_PASSES)
    return Trained(
        posterior=engine.posterior(),
        prior=learner.prior,
        nll=nll,
        elbo=-(nll + kl),
        objective=-(nll + stage.kl_weight * kl),
        history=progress.history,
        n_initial=learner.n_initial,
        interrupted=progress.interrupted,
        error=float(np.hypot(nll_error, kl_error)),
    )


def expected_nll(engine: DenseEngine, n_rows: int, seed: int) -> tuple[float, float]:
    """NLL of all rows from as many passes as cost little, and its Monte Carlo standard error."""
    net = engine.architecture
    work = max(1, n_rows * (net.n_weights + NORMAL * net.n_units))
    passes = int(np.clip(WORK // work, ELBO_PASSES, MOST_PASSES))
    return _mean_and_error(_passes(engine, passes, seed))


def _passes(engine: DenseEngine, passes: int, seed: int) -> Float:
    """NLL of all rows in each of several passes."""
    seeds = np.random.SeedSequence(seed).generate_state(passes).tolist()
    return np.array([engine.expected_nll(1, each) for each in seeds])


def _mean_and_error(draws: Float) -> tuple[float, float]:
    error = draws.std(ddof=1) / np.sqrt(len(draws)) if len(draws) > 1 else 0.0
    return float(draws.mean()), float(error)


class SpikeAndSlab:
    """An engine with its prior: what the loop trains.

    Parameters
    ----------
    engine : Engine
    stage : Stage
        How priors are learned, and when units are dropped.
    prior : Prior, optional
        The stage's if not given.
    n_initial : (blocks,), optional
        Weights of each block before anything was dropped; those of the engine if not given.
    """

    def __init__(
        self,
        engine: Engine,
        stage: Stage,
        prior: Prior | None = None,
        n_initial: NDArray[np.intp] | None = None,
    ) -> None:
        net = engine.architecture
        self.engine, self.stage = engine, stage
        self.n_initial = _sizes(engine) if n_initial is None else n_initial
        # For each unit, the checks in a row that found it dead.
        self.dead_checks = np.zeros(net.n_units, dtype=np.intp)
        self._set_prior(stage.prior(net) if prior is None else prior)

    def run(self, steps: Steps) -> float:
        return self.engine.run(steps)

    def kl(self) -> float:
        """KL of all weights, those that were dropped included."""
        return self.engine.kl() + self.prior.excluded_kl(self.n_initial - _sizes(self.engine))

    def expected_kl(self) -> tuple[float, float]:
        """The same, where a flow makes it random from many draws, and its standard error."""
        engine = cast(DenseEngine, self.engine)
        work = max(1, engine.architecture.n_weights)
        draws = engine.kl_draws(int(np.clip(WORK // work, FEWEST_DRAWS, MOST_DRAWS)))
        mean, error = _mean_and_error(draws)
        return mean + self.prior.excluded_kl(self.n_initial - _sizes(engine)), error

    def adapt(self, before: int, step: int) -> bool:
        """Learns the priors and drops dead units; True once only the linear part is left."""
        stage, share = self.stage, step / self.stage.n_steps
        if stage.empirical_bayes is not None:
            net, now = self.engine.architecture, self.engine.parameters()
            learned = stage.empirical_bayes.update(
                self.prior, net, now.mu, now.rho, now.lam, self.n_initial, share
            )
            self._set_prior(learned)
        if stage.shrink is not None and share >= stage.shrink.start:
            every = stage.shrink.every
            if step // every > before // every:
                self._drop_dead_units(step)
        hidden = self.engine.architecture.hidden
        return stage.linear_ends and len(hidden) > 0 and not any(hidden)

    def record(self) -> dict[str, float]:
        now = self.engine.parameters()
        kept = np.asarray(sigmoid(now.lam)) > 0.5
        return {
            "density": kept.sum() / max(self.n_initial.sum(), 1),
            "used_weights": self.engine.n_used_weights(kept),
            "hidden_units": sum(self.engine.architecture.hidden),
            "noise": now.noise.mean(),
        }

    def state(self) -> State:
        own = {
            "tau": self.prior.tau,
            "psi": self.prior.psi,
            "n_initial": self.n_initial,
            "dead_checks": self.dead_checks,
        }
        return self.engine.state() | own

    def restore(self, state: State) -> None:
        self.engine.restore(state)
        self.n_initial, self.dead_checks = state["n_initial"], state["dead_checks"]
        self._set_prior(replace(self.prior, tau=state["tau"], psi=state["psi"]))

    def _set_prior(self, prior: Prior) -> None:
        self.prior = prior
        stretched = self.stage.scale_mu_step
        step = np.maximum(1.0, prior.tau) if stretched else np.ones_like(prior.tau)
        self.engine.set_prior(prior, step)

    def _drop_dead_units(self, step: int) -> None:
        assert self.stage.shrink is not None
        engine = cast(DenseEngine, self.engine)
        net, now = engine.architecture, engine.parameters()
        living = self.stage.shrink.living(net, now.lam)
        self.dead_checks = np.where(living, 0, self.dead_checks + 1)
        dropped = self.dead_checks >= self.stage.shrink.patience
        if dropped.any():
            shift = sent_constants(net, now, dropped)
            engine.keep_units(split_by_layer(net, ~dropped), shift)
            self._set_prior(self.prior)
            self.dead_checks = self.dead_checks[~dropped]
            logger.debug("step %d: dropped %d units", step, dropped.sum())


def _sizes(engine: Engine) -> NDArray[np.intp]:
    """Weights of each block."""
    return np.array([block.size for block in engine.architecture.blocks])
