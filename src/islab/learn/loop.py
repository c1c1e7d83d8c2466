"""The training loop: written once, run by any engine.

A stage is a declaration (:class:`~islab.learn.stage.Stage`); :func:`train` carries it out on an
engine in runs of steps between which it decides: new priors, dead units to drop, whether to stop,
what to record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from islab.core.equations import sigmoid
from islab.core.paths import active_weights
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.checkpoint import Checkpoint
from islab.learn.engines.base import Engine, Steps
from islab.learn.history import History
from islab.learn.shrink import sent_constants, split_by_layer
from islab.learn.stage import Stage

logger = logging.getLogger(__name__)

STEPS_AT_ONCE = 50
MOST_FAILURES = 6
ELBO_PASSES = 8
ORDERS_AT_ONCE = 16_384


class TrainingError(RuntimeError):
    """Training could not be brought to finite numbers."""


@dataclass(frozen=True)
class Trained:
    """The end of a stage.

    ``nll`` is expected under the posterior, ``elbo`` takes the divergence off as well, and
    ``objective`` is what the stage maximised: the same with its weight of the divergence.
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


@dataclass
class Progress:
    """Where a stage stands between two runs of steps; with the engine's state, all of it."""

    prior: Prior
    n_initial: NDArray[np.intp]  # weights of each block before anything was dropped
    dead_checks: NDArray[np.intp]  # for each unit, checks in a row that found it dead
    step: int = 0
    slow_down: float = 1.0
    failures: int = 0
    finished: bool = False
    history: History = field(default_factory=History)

    def to_arrays(self) -> dict[str, NDArray]:
        return {
            "tau": self.prior.tau,
            "psi": self.prior.psi,
            "n_initial": self.n_initial,
            "dead_checks": self.dead_checks,
            "step": np.array(self.step),
            "slow_down": np.array(self.slow_down),
            "failures": np.array(self.failures),
            "finished": np.array(self.finished),
            "history": self.history.to_array(),
        }

    def take(self, arrays: dict[str, NDArray]) -> None:
        self.prior = replace(self.prior, tau=arrays["tau"], psi=arrays["psi"])
        self.n_initial, self.dead_checks = arrays["n_initial"], arrays["dead_checks"]
        self.step, self.failures = int(arrays["step"]), int(arrays["failures"])
        self.slow_down, self.finished = float(arrays["slow_down"]), bool(arrays["finished"])
        self.history = History.from_array(arrays["history"])


def train(
    engine: Engine,
    stage: Stage,
    *,
    n_rows: int,
    seed: int,
    prior: Prior | None = None,
    n_initial: NDArray[np.intp] | None = None,
    checkpoint: Checkpoint | None = None,
    report: Callable[[int, dict[str, float]], None] | None = None,
) -> Trained:
    """Carries out a stage on an engine.

    Parameters
    ----------
    engine : Engine
        Holds the starting posterior and the data.
    n_rows : int
        Rows of the data.
    seed : int
        Decides the order of rows and the noise of the final ELBO.
    prior : Prior, optional
        Starts from this prior instead of the stage's ``tau`` and ``psi``.
    n_initial : (blocks,), optional
        Weights of each block before an earlier stage dropped units; they still count.
    checkpoint : Checkpoint, optional
        Written after every run of steps, and gone on from if it has been written before. A
        resumed stage ends in the same numbers as an uninterrupted one.
    report : callable, optional
        Called after every run with the steps taken and the latest record.
    """
    net = engine.architecture
    prior = prior or stage.prior(net)
    if n_initial is None:
        n_initial = np.array([block.size for block in net.blocks])
    progress = Progress(prior, n_initial, np.zeros(net.n_units, dtype=np.intp))
    if checkpoint is not None and (saved := checkpoint.read()):
        with checkpoint.readable():
            engine.restore(saved[0])
            progress.take(saved[1])
    _set_prior(engine, stage, progress.prior)
    good = (engine.state(), progress.to_arrays())
    interrupted = False
    try:
        while not progress.finished:
            taken = _advance(engine, stage, progress, n_rows, seed)
            if not taken:
                _back_out(engine, stage, progress, good)
                continue
            good = (engine.state(), progress.to_arrays())
            if checkpoint is not None:
                checkpoint.write(*good)
            if report is not None:
                report(taken, dict(zip(_RECORDED, _last(progress.history), strict=True)))
    except KeyboardInterrupt:
        interrupted = True
        engine.restore(good[0])
        progress.take(good[1])
        _set_prior(engine, stage, progress.prior)
    nll = engine.expected_nll(ELBO_PASSES, seed)
    kl = engine.kl() + _dropped_kl(engine, progress)
    return Trained(
        posterior=engine.posterior(),
        prior=progress.prior,
        nll=nll,
        elbo=-(nll + kl),
        objective=-(nll + stage.kl_weight * kl),
        history=progress.history,
        n_initial=progress.n_initial,
        interrupted=interrupted,
    )


_RECORDED = ("elbo", "used_weights")


def _last(history: History) -> list[float]:
    return [float(history.column(name)[-1]) for name in _RECORDED]


def _advance(engine: Engine, stage: Stage, progress: Progress, n_rows: int, seed: int) -> int:
    """One run of steps and the decisions after it; 0 if the run ended in non-finite numbers."""
    size = min(STEPS_AT_ONCE, stage.n_steps - progress.step)
    nll = engine.run(make_steps(stage, progress.step, size, n_rows, seed, progress.slow_down))
    kl = engine.kl() + _dropped_kl(engine, progress)
    if not (np.isfinite(nll) and np.isfinite(kl)):
        return 0
    progress.step += size
    progress.failures = 0
    share = progress.step / stage.n_steps
    if stage.empirical_bayes is not None:
        now = engine.parameters()
        progress.prior = stage.empirical_bayes.update(
            progress.prior, engine.architecture, now.mu, now.rho, now.lam, progress.n_initial, share
        )
        _set_prior(engine, stage, progress.prior)
    if stage.shrink is not None and share >= stage.shrink.start:
        previous = progress.step - size
        if progress.step // stage.shrink.every > previous // stage.shrink.every:
            _drop_dead_units(engine, stage, progress)
    _record(engine, stage, progress, nll * n_rows, kl)
    plateau = stage.plateau
    stopped = (
        plateau is not None
        and share >= max(plateau.start, stage.kl_ramp)
        and plateau.reached(_after_ramp(stage, progress.history))
    )
    hidden = engine.architecture.hidden
    linear = stage.linear_ends and len(hidden) > 0 and not any(hidden)
    progress.finished = progress.step >= stage.n_steps or stopped or linear
    return size


def _after_ramp(stage: Stage, history: History) -> NDArray[np.float64]:
    """ELBOs recorded after the divergence had its full weight."""
    return history.column("elbo")[history.column("step") >= stage.kl_ramp * stage.n_steps]


def make_steps(
    stage: Stage, first: int, size: int, n_rows: int, seed: int, slow_down: float = 1.0
) -> Steps:
    """The steps ``first`` to ``first + size`` of a stage, a function of the seed alone.

    Each epoch visits all rows in an order of its own; its last batch may be short.
    """
    batch = min(stage.batch_size, n_rows)
    numbers = np.arange(first, first + size)
    epochs, place = np.divmod(numbers, -(-n_rows // batch))
    sizes = np.minimum(batch, n_rows - place * batch)
    parts = []
    for epoch in range(epochs[0], epochs[-1] + 1):
        order = epoch_order(seed, epoch, n_rows)
        inside = place[epochs == epoch]
        parts.append(order[inside[0] * batch : (inside[-1] + 1) * batch])
    share = numbers / stage.n_steps
    factor = stage.schedule(share) * slow_down
    ramp = np.minimum(1.0, share / stage.kl_ramp) if stage.kl_ramp else np.ones(size)
    return Steps(
        rows=np.concatenate(parts),
        sizes=sizes,
        rate=stage.rate * factor,
        lambda_rate=stage.lambda_rate * factor,
        kl_weight=stage.kl_weight * ramp,
    )


def epoch_order(seed: int, epoch: int, n_rows: int) -> NDArray[np.intp]:
    """The order of rows in an epoch."""
    at_once = max(1, ORDERS_AT_ONCE // n_rows)
    return _orders(seed, epoch // at_once, at_once, n_rows)[epoch % at_once]


@lru_cache(maxsize=8)
def _orders(seed: int, number: int, at_once: int, n_rows: int) -> NDArray[np.intp]:
    """The orders of several epochs, drawn together because making a generator takes longer."""
    rows = np.tile(np.arange(n_rows), (at_once, 1))
    orders = np.random.default_rng([seed, number]).permuted(rows, axis=1)
    orders.flags.writeable = False
    return orders


def _set_prior(engine: Engine, stage: Stage, prior: Prior) -> None:
    step = np.maximum(1.0, prior.tau) if stage.scale_mu_step else np.ones_like(prior.tau)
    engine.set_prior(prior, step)


def _dropped_kl(engine: Engine, progress: Progress) -> float:
    left = np.array([block.size for block in engine.architecture.blocks])
    return progress.prior.excluded_kl(progress.n_initial - left)


def _drop_dead_units(engine: Engine, stage: Stage, progress: Progress) -> None:
    assert stage.shrink is not None
    net, now = engine.architecture, engine.parameters()
    living = stage.shrink.living(net, now.lam)
    progress.dead_checks = np.where(living, 0, progress.dead_checks + 1)
    dropped = progress.dead_checks >= stage.shrink.patience
    if dropped.any():
        shift = sent_constants(net, now, dropped)
        engine.keep_units(split_by_layer(net, ~dropped), shift)
        _set_prior(engine, stage, progress.prior)
        progress.dead_checks = progress.dead_checks[~dropped]
        logger.debug("step %d: dropped %d units", progress.step, dropped.sum())


def _record(engine: Engine, stage: Stage, progress: Progress, nll: float, kl: float) -> None:
    now, net = engine.parameters(), engine.architecture
    kept = np.asarray(sigmoid(now.lam)) > 0.5
    progress.history.add(
        step=progress.step,
        elbo=-(nll + kl),
        nll=nll,
        kl=kl,
        density=kept.sum() / max(progress.n_initial.sum(), 1),
        used_weights=active_weights(net, kept).sum(),
        hidden_units=sum(net.hidden),
        noise=now.noise.mean(),
        rate=stage.rate * float(stage.schedule(progress.step / stage.n_steps)) * progress.slow_down,
    )


def _back_out(
    engine: Engine, stage: Stage, progress: Progress, good: tuple[dict, dict[str, NDArray]]
) -> None:
    """Returns to the last finite state with half the learning rate, a few times at most."""
    failures, slow_down = progress.failures + 1, progress.slow_down / 2
    if failures > MOST_FAILURES:
        raise TrainingError(
            f"The loss was not finite {failures} times in a row, the last time at a learning rate "
            f"of {stage.rate * slow_down * 2:.2g}; look for extreme values in the data, "
            "standardise them, or try a smaller learning rate."
        )
    engine.restore(good[0])
    progress.take(good[1])
    progress.failures, progress.slow_down = failures, slow_down
    _set_prior(engine, stage, progress.prior)
    logger.warning(
        "non-finite loss after step %d: went back and halved the learning rate", progress.step
    )
