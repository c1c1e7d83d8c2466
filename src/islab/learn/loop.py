"""The training loop: written once, for everything that learns step by step.

A stage is a declaration (:class:`~islab.learn.stage.Stage`). :func:`run_stage` carries it out on a
:class:`Learner` in runs of steps, between which the learner may change itself and the loop records,
keeps what is good, backs out of numbers that are not finite, and decides whether to stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from islab.learn.checkpoint import Checkpoint
from islab.learn.engines.base import State, Steps
from islab.learn.history import History
from islab.learn.stage import Stage

logger = logging.getLogger(__name__)

Report = Callable[[int, dict[str, float]], None]

STEPS_AT_ONCE = 50
MOST_FAILURES = 6
ORDERS_AT_ONCE = 16_384


class TrainingError(RuntimeError):
    """Training could not be brought to finite numbers."""


class Learner(Protocol):
    """What the loop trains."""

    def run(self, steps: Steps) -> float:
        """Takes the steps; returns the mean NLL of their rows, non-finite if one failed."""

    def kl(self) -> float:
        """What the present parameters cost beside the NLL of all rows."""

    def adapt(self, before: int, step: int) -> bool:
        """Changes between two runs of steps, by the steps taken before the last run and now.

        Returns whether nothing is left to learn.
        """

    def record(self) -> dict[str, float] | None:
        """``density``, ``used_weights``, ``hidden_units`` and ``noise``; None keeps no history."""

    def state(self) -> State:
        """Everything that the next step depends on."""

    def restore(self, state: State) -> None: ...


@dataclass
class Progress:
    """Where a stage stands between two runs of steps; with the learner's state, all of it."""

    step: int = 0
    slow_down: float = 1.0
    failures: int = 0
    finished: bool = False
    history: History = field(default_factory=History)
    interrupted: bool = False

    def to_arrays(self) -> dict[str, NDArray]:
        return {
            "step": np.array(self.step),
            "slow_down": np.array(self.slow_down),
            "failures": np.array(self.failures),
            "finished": np.array(self.finished),
            "history": self.history.to_array(),
        }

    def take(self, arrays: dict[str, NDArray]) -> None:
        self.step, self.failures = int(arrays["step"]), int(arrays["failures"])
        self.slow_down, self.finished = float(arrays["slow_down"]), bool(arrays["finished"])
        self.history = History.from_array(arrays["history"])


def run_stage(
    learner: Learner,
    stage: Stage,
    *,
    n_rows: int,
    seed: int,
    shuffle: bool = True,
    checkpoint: Checkpoint | None = None,
    report: Report | None = None,
    keep_interrupted: bool = False,
) -> Progress:
    """Carries out a stage on a learner.

    Parameters
    ----------
    learner : Learner
        Holds the data and where to start.
    n_rows : int
        Rows of the data.
    seed : int
        Decides the order of rows.
    shuffle : bool
        False for a learner that makes batches of its own.
    checkpoint : Checkpoint, optional
        Written after every run of steps, and gone on from if it has been written before. A
        resumed stage ends in the same numbers as an uninterrupted one.
    report : callable, optional
        Called after every run with the steps taken and the latest record.
    keep_interrupted : bool
        Whether KeyboardInterrupt ends the stage early, with the last good state and a mark,
        instead of being raised.
    """
    progress = Progress()
    if checkpoint is not None and (saved := checkpoint.read()):
        with checkpoint.readable():
            learner.restore(saved[0])
            progress.take(saved[1])
    good = (learner.state(), progress.to_arrays())
    try:
        while not progress.finished:
            taken = _advance(learner, stage, progress, n_rows, seed, shuffle)
            if not taken:
                _back_out(learner, stage, progress, good)
                continue
            good = (learner.state(), progress.to_arrays())
            if checkpoint is not None:
                checkpoint.write(*good)
            if report is not None and len(progress.history):
                report(taken, progress.history.last())
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        learner.restore(good[0])
        progress.take(good[1])
        progress.interrupted = True
    return progress


def _advance(
    learner: Learner, stage: Stage, progress: Progress, n_rows: int, seed: int, shuffle: bool
) -> int:
    """One run of steps and the decisions after it; 0 if the run ended in non-finite numbers."""
    before, size = progress.step, min(STEPS_AT_ONCE, stage.n_steps - progress.step)
    slow_down = progress.slow_down
    nll = learner.run(make_steps(stage, before, size, n_rows, seed, slow_down, shuffle))
    kl = learner.kl()
    if not (np.isfinite(nll) and np.isfinite(kl)):
        return 0
    progress.step += size
    progress.failures = 0
    complete = learner.adapt(before, progress.step)
    _record(learner, stage, progress, nll * n_rows, kl)
    stopped = _on_plateau(stage, progress)
    progress.finished = progress.step >= stage.n_steps or stopped or complete
    return size


def _on_plateau(stage: Stage, progress: Progress) -> bool:
    """Whether the ELBO has stopped rising since the KL has had its full weight."""
    plateau, history = stage.plateau, progress.history
    share = progress.step / stage.n_steps
    if plateau is None or share < max(plateau.start, stage.kl_ramp):
        return False
    recorded = history.column("step") >= stage.kl_ramp * stage.n_steps
    return plateau.reached(history.column("elbo")[recorded])


def _record(learner: Learner, stage: Stage, progress: Progress, nll: float, kl: float) -> None:
    found = learner.record()
    if found is None:
        return
    rate = stage.rate * float(stage.schedule(progress.step / stage.n_steps)) * progress.slow_down
    progress.history.add(step=progress.step, elbo=-(nll + kl), nll=nll, kl=kl, rate=rate, **found)


def _back_out(
    learner: Learner, stage: Stage, progress: Progress, good: tuple[State, State]
) -> None:
    """Returns to the last finite state with half the learning rate, a few times at most."""
    failures, slow_down = progress.failures + 1, progress.slow_down / 2
    if failures > MOST_FAILURES:
        raise TrainingError(
            f"The loss was not finite {failures} times in a row, the last time at a learning rate "
            f"of {stage.rate * slow_down * 2:.2g}; look for extreme values in the data, "
            "standardise them, or try a smaller learning rate."
        )
    learner.restore(good[0])
    progress.take(good[1])
    progress.failures, progress.slow_down = failures, slow_down
    logger.warning(
        "non-finite loss after step %d: went back and halved the learning rate", progress.step
    )


def make_steps(
    stage: Stage,
    first: int,
    size: int,
    n_rows: int,
    seed: int,
    slow_down: float = 1.0,
    shuffle: bool = True,
) -> Steps:
    """The steps ``first`` to ``first + size`` of a stage, a function of the seed alone.

    Each epoch visits all rows in an order of its own; its last batch may be short. Without
    ``shuffle`` the steps name no rows.
    """
    numbers = np.arange(first, first + size)
    rows, sizes = np.zeros(0, dtype=np.intp), np.full(size, stage.batch_size)
    if shuffle:
        rows, sizes = _rows_of(numbers, min(stage.batch_size, n_rows), n_rows, seed)
    share = numbers / stage.n_steps
    factor = stage.schedule(share) * slow_down
    ramp = np.minimum(1.0, share / stage.kl_ramp) if stage.kl_ramp else np.ones(size)
    return Steps(
        rows=rows,
        sizes=sizes,
        rate=stage.rate * factor,
        lambda_rate=stage.lambda_rate * factor,
        kl_weight=stage.kl_weight * ramp,
        first=first,
    )


def _rows_of(
    numbers: NDArray[np.intp], batch: int, n_rows: int, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of consecutive steps, one after the other, and how many each step has."""
    epochs, place = np.divmod(numbers, -(-n_rows // batch))
    parts = []
    for epoch in range(epochs[0], epochs[-1] + 1):
        inside = place[epochs == epoch]
        order = epoch_order(seed, epoch, n_rows)
        parts.append(order[inside[0] * batch : (inside[-1] + 1) * batch])
    return np.concatenate(parts), np.minimum(batch, n_rows - place * batch)


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
