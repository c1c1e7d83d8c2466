"""From the networks that training found to a posterior of drawn networks.

Chains start at those networks and run until they look settled or the plan's rounds are over. They
are pooled with weights that make them predict best together, and one network is chosen to be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.chain_draws import ChainDraws
from islab.core.constraints import Limits
from islab.core.leave_one_out import leave_one_out, stacking_weights
from islab.core.mixing import bulk_size, of_one_length, rhat
from islab.core.sampled import PredictionMixing, SampledPosterior
from islab.core.sparse import SparseNetwork
from islab.learn.checkpoint import Checkpoint, close, own_folder
from islab.learn.engines.base import Problem
from islab.learn.sample.chains import (
    ChainPrior,
    Effort,
    Sampler,
    Start,
    chain_seeds,
    make_chain,
    run_side_by_side,
)
from islab.learn.sample.progress import SamplingBar
from islab.learn.sample.readable import choose_network

Float = NDArray[np.floating]

FEWEST_DRAWS = 20
LARGEST_K = 0.7
ROWS_WATCHED = 50


@dataclass(frozen=True)
class SamplingPlan:
    """How long chains run, and what is asked of the network to read.

    Parameters
    ----------
    n_warm_up, n_draws : int
        Steps before the first draw, and draws of each chain.
    most_draws : int
        Of a chain whose first draws do not suffice; of more every second is kept.
    most_steps : int
        Such chains run on for at most so many steps.
    settling_steps : int
        The same of chains whose draws still moved away from the start.
    weight_price : float
        Log predictive density that a weight of the readable network must be worth, in units of
        half the logarithm of the number of rows (that of the Bayesian information criterion).
    threshold : float
        Weights with a larger inclusion probability are those it is chosen from.
    prior : ChainPrior
    effort : Effort
    """

    n_warm_up: int = 100
    n_draws: int = 250
    most_draws: int = 0
    most_steps: int = 0
    settling_steps: int = 0
    weight_price: float = 1.0
    threshold: float = 0.5
    prior: ChainPrior = field(default_factory=ChainPrior)
    effort: Effort = field(default_factory=Effort)


def sample_posterior(
    problem: Problem,
    likelihood: str,
    architecture: Architecture,
    networks: Sequence[SparseNetwork],
    plan: SamplingPlan,
    *,
    seed: int,
    n_jobs: int | None = None,
    verbose: bool = False,
    checkpoint: str | Path | None = None,
    keep_interrupted: bool = False,
) -> tuple[SampledPosterior, bool]:
    """The sampled posterior, and whether it was interrupted.

    Parameters
    ----------
    problem : Problem
        Data on the scale the network shall see.
    likelihood : str
    architecture : Architecture
        All weights that may be used.
    networks : sequence of SparseNetwork
        Where the chains start.
    plan : SamplingPlan
    seed : int
        Same seed, same draws, for any number of jobs.
    n_jobs : int, optional
        Chains to run at the same time, in threads.
    verbose : bool
        Show a progress bar.
    checkpoint : path, optional
        Folder in which the chains keep their states: a later call with the same arguments goes on
        from there. Each call has a folder of its own in it, which is removed when it is done.
    keep_interrupted : bool
        Whether KeyboardInterrupt ends sampling with the draws so far, if there are enough.
    """
    seeds = chain_seeds(seed, len(networks) + 1)
    limits = problem.limits
    starts = [Start.at(network, architecture) for network in networks]
    if limits is not None:
        starts = [_within(limits, start, architecture) for start in starts]
    owner, folder = "", None
    if checkpoint is not None:
        owner = _owner(problem, (likelihood, architecture, plan, seed), starts)
        folder = own_folder(checkpoint, owner)
    samplers = []
    for number, start in enumerate(starts):
        chain = make_chain(problem, likelihood, architecture, start, seeds[number], plan.prior)
        kept = None if folder is None else Checkpoint(folder / f"chain-{number}.npz", owner)
        samplers.append(Sampler(chain, architecture, plan.effort, kept))
    interrupted = False
    longest = max(plan.n_warm_up + plan.n_draws, plan.most_steps, plan.settling_steps)
    n_steps = len(samplers) * longest
    with SamplingBar(n_steps, enabled=verbose) as bar:
        try:
            run_side_by_side(
                samplers,
                plan.n_warm_up,
                plan.n_draws,
                plan.most_draws,
                plan.most_steps,
                plan.settling_steps,
                n_jobs=n_jobs,
                report=bar.report,
            )
        except KeyboardInterrupt:
            if not keep_interrupted or all(s.n_draws < FEWEST_DRAWS for s in samplers):
                raise
            bar.stopped = interrupted = True
            while any(sampler.running for sampler in samplers):
                sleep(0.01)
    close(folder, interrupted)
    drawn = [k for k, sampler in enumerate(samplers) if sampler.n_draws >= FEWEST_DRAWS]
    chains = tuple(samplers[k].draws() for k in drawn)
    left_out = [leave_one_out(_evenly(chain.row_log_likelihood, plan.n_draws)) for chain in chains]
    elpd = np.array([each[0] for each in left_out])
    unreliable = np.mean([(each[1] > LARGEST_K).mean() for each in left_out])
    weights = stacking_weights(elpd)

    def make(start: Start, seed: int, price: float) -> Any:
        prior = replace(plan.prior, price=price)
        return make_chain(problem, likelihood, architecture, start, seed, prior)

    best, price = choose_network(
        architecture,
        [starts[k] for k in drawn],
        chains,
        weights,
        elpd,
        make,
        limits,
        price_of_weight=plan.weight_price * np.log(max(problem.n_rows, 2)) / 2,
        n_draws=plan.n_draws,
        seed=seeds[-1],
        threshold=plan.threshold,
    )
    found = SampledPosterior(
        architecture=architecture,
        likelihood=likelihood,
        chains=tuple(_without_rows(chain) for chain in chains),
        chain_weights=weights,
        network=best.network(architecture, likelihood),
        price=price,
        mixing=_prediction_mixing(architecture, problem, chains, float(unreliable)),
        n_weights_initial=architecture.n_weights,
    )
    return found, interrupted


def _within(limits: Limits, start: Start, architecture: Architecture) -> Start:
    """The start, or as much of it as keeps to the limits."""
    slots, weights = limits.nearest(architecture, start.slots, start.weights)
    return replace(start, slots=slots, weights=weights)


def _owner(problem: Problem, settings: tuple, starts: Sequence[Start]) -> str:
    """What stands for the data, the settings and the starts of chains."""
    owner = sha256(repr(settings).encode())
    arrays: list[NDArray] = [problem.x, problem.y, problem.row_weights]
    if problem.offset is not None:
        arrays.append(problem.offset)
    if problem.groups is not None:
        arrays.append(problem.groups)
    if problem.limits is not None:
        arrays += problem.limits.arrays
    for start in starts:
        arrays += [start.slots, start.weights, start.bias, start.tau2, start.noise]
    for array in arrays:
        owner.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return owner.hexdigest()


def _prediction_mixing(
    architecture: Architecture,
    problem: Problem,
    chains: Sequence[ChainDraws],
    unreliable: float,
) -> PredictionMixing:
    """R-hat and effective draws of the predictor of some training rows."""
    rows = problem.x[:: 1 + problem.n_rows // ROWS_WATCHED]
    drawn = [chain.predictor(architecture, rows).reshape(chain.n_draws, -1) for chain in chains]
    values = of_one_length(drawn)
    return PredictionMixing(float(rhat(values).max()), float(bulk_size(values).min()), unreliable)


def _evenly(values: Float, most: int) -> Float:
    """At most so many of the values, evenly spaced."""
    return values[:: -(-len(values) // most)]


def _without_rows(chain: ChainDraws) -> ChainDraws:
    return replace(chain, row_log_likelihood=np.zeros((chain.n_draws, 0)))
