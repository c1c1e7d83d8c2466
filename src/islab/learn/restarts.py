"""Networks from several seeds, trained one after the other or side by side."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from joblib import delayed
from threadpoolctl import threadpool_limits

from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.history import ProgressBar, Together
from islab.learn.loop import TrainingError
from islab.learn.parallel import in_parallel
from islab.learn.session import Session
from islab.learn.variational import Trained


def networks(
    session: Session, linear: Trained | None, seeds: list[int], n_jobs: int | None, bar: ProgressBar
) -> dict[str, Trained]:
    """A network for each seed, by name; those that failed are left out."""
    runs: dict[str, Trained] = {}
    given_up: list[TrainingError] = []
    for number, run in enumerate(_restarts(session, linear, seeds, n_jobs, bar)):
        if isinstance(run, TrainingError):
            given_up.append(run)
        elif run is not None:
            runs[f"network {number}"] = run
    if given_up and not runs and linear is None:
        raise given_up[0]
    if given_up:
        warnings.warn(
            f"{len(given_up)} of {len(seeds)} networks failed to train and are left out. "
            f"{given_up[0]}",
            UserWarning,
            stacklevel=4,
        )
    return runs


def _restarts(
    session: Session, linear: Trained | None, seeds: list[int], n_jobs: int | None, bar: ProgressBar
) -> list[Trained | TrainingError | None]:
    """What each seed has come to; None for those that an interrupt left without a result."""
    session = session.before_flow
    style = session.engine.resolve().parallel
    shared = n_jobs in (None, 1) or style == "threads"
    together = Together(bar.report if shared else None)
    jobs = (
        delayed(_network)(session, linear, number, seed, together)
        for number, seed in enumerate(seeds)
    )
    runs: list[Trained | TrainingError | None] = []
    try:
        # Runs that share the machine must not each take all of it for their matrix products.
        with threadpool_limits(None if n_jobs in (None, 1) else 1, user_api="blas"):
            for run in in_parallel(jobs, n_jobs=n_jobs, prefer=style):
                runs.append(run)
                if isinstance(run, Trained) and run.interrupted:
                    break
    except KeyboardInterrupt:
        ended = together.stop()
        if not (session.keep_interrupted and any(isinstance(e, Trained) for e in ended.values())):
            raise
        runs = [ended.get(number) for number in range(len(seeds))]
    return runs


def _network(
    session: Session, linear: Trained | None, number: int, seed: int, together: Together
) -> Trained | TrainingError | None:
    """What training gave, or why it was given up; None if another thread was interrupted."""
    if together.stopped:
        return None
    together.started.append(number)
    ended: Trained | TrainingError | None = None
    try:
        ended = _trained(session, linear, number, seed, together)
    except KeyboardInterrupt:
        if not together.stopped:
            raise
    finally:
        together.ended[number] = ended
    return ended


def _trained(
    session: Session, linear: Trained | None, number: int, seed: int, report: Callable
) -> Trained | TrainingError:
    recipe = session.recipe
    start = session.start(recipe.hidden, recipe.initial, seed)
    stage = recipe.network
    prior = stage.prior(start.architecture)
    if linear is not None:
        prior = _continue_from(linear, start, prior)
    try:
        return session.train(start, stage, seed, report, f"network-{number}", prior)
    except TrainingError as error:
        return error


def _continue_from(linear: Trained, start: Posterior, prior: Prior) -> Prior:
    """Puts the linear model into the output layer of a network, with the prior of its weights."""
    net = start.architecture
    block = net.block(net.n_layers - 1, "covariate")
    found = linear.posterior
    output = net.units[-1]
    start.bias_mu[output], start.bias_rho[output] = found.bias_mu, found.bias_rho
    if start.bias_lam is not None:
        assert found.bias_lam is not None
        start.bias_lam[output] = np.maximum(found.bias_lam, 2.0)
    start.noise = found.noise.copy()
    if block is None:
        return prior
    start.mu[block.weights], start.rho[block.weights] = found.mu, found.rho
    start.lam[block.weights] = np.maximum(found.lam, 2.0)
    tau = prior.tau.copy()
    tau[net.blocks.index(block)] = linear.prior.tau[0]
    return replace(prior, tau=tau)
