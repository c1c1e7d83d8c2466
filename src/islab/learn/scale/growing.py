"""How many rows chains need to find the structure: a sample that grows until more do not help.

Chains on twice the rows go on from where those before stood. Both sets of structures get their
weights from the same rows, and are compared by the log density of rows that neither has seen, so
that what is compared is structure alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Float
from islab.core.chain_draws import ChainDraws
from islab.core.drawn import DrawnNetworks
from islab.core.sparse import KeptDraws, SparseNetwork
from islab.learn.engines.base import Problem
from islab.learn.sample import SamplingPlan
from islab.learn.sample.chains import Start, sample_chains
from islab.learn.scale.passes import ArrayRows, LogLikelihoods, rows_of
from islab.learn.scale.weights import Structures, climb

FIRST_ROWS, MOST_ROWS, FRESH_ROWS = 5_000, 20_000, 5_000
SHORT_WARM_UP, SHORT_DRAWS = 30, 12
STRUCTURES_COMPARED = 3  # of each chain
PASSES = 3
SMALLEST_GAIN = 0.001  # nats a row


@dataclass(frozen=True, eq=False)
class Grown:
    """Rows that are enough, and networks from which chains on them start."""

    rows: Problem
    networks: list[SparseNetwork]


def grow(
    sample: Problem,
    likelihood: str,
    architecture: Architecture,
    networks: Sequence[SparseNetwork],
    plan: Callable[[Problem, list[SparseNetwork]], SamplingPlan],
    *,
    seed: int,
    n_jobs: int | None = None,
) -> Grown:
    """Finds how many of a sample's rows are enough for its structure.

    Parameters
    ----------
    sample : Problem
        Rows in a random order. The last ones are kept to compare.
    likelihood : str
    architecture : Architecture
        All weights that may be used.
    networks : sequence of SparseNetwork
        What variational runs found on the first rows.
    plan : callable
        How chains run on some rows.
    seed : int
    n_jobs : int, optional
        Chains to run at the same time.
    """
    n_fresh = min(FRESH_ROWS, sample.n_rows // 5)
    seen = rows_of(sample, slice(0, sample.n_rows - n_fresh))
    fresh = rows_of(sample, slice(sample.n_rows - n_fresh, None))
    best: Grown | None = None
    before: Float = np.zeros(n_fresh)
    for size in sizes(seen.n_rows):
        rows = rows_of(seen, slice(0, size))
        own_plan = plan(rows, list(networks))
        starts = [Start.at(network, architecture) for network in networks]
        chains = sample_chains(
            rows,
            likelihood,
            architecture,
            starts,
            seed=seed + size,
            n_draws=SHORT_DRAWS,
            n_warm_up=SHORT_WARM_UP,
            prior=own_plan.prior,
            n_jobs=n_jobs,
        )
        density = _structure_density(architecture, likelihood, chains, own_plan, seen, fresh)
        if best is not None and _no_better(density - before):
            return best
        networks = [_last_network(chain, architecture, likelihood) for chain in chains]
        best, before = Grown(rows, networks), density
    assert best is not None
    return best


def _no_better(gain: Float) -> bool:
    """Whether the gains (rows,) are on average less than their error."""
    return bool(gain.mean() <= max(SMALLEST_GAIN, gain.std() / np.sqrt(len(gain))))


def sizes(n_rows: int) -> list[int]:
    """Numbers of rows to try."""
    most = min(n_rows, MOST_ROWS)
    found = [FIRST_ROWS]
    while 2 * found[-1] <= most:
        found.append(2 * found[-1])
    return [min(each, most) for each in found]


def _structure_density(
    architecture: Architecture,
    likelihood: str,
    chains: Sequence[ChainDraws],
    plan: SamplingPlan,
    seen: Problem,
    fresh: Problem,
) -> Float:
    """Log density of fresh rows, averaged over structures whose weights all seen rows gave."""
    last = [chain.take(np.arange(-STRUCTURES_COMPARED, 0) + chain.n_draws) for chain in chains]
    structures = Structures(
        networks=DrawnNetworks.joined([chain.networks(architecture) for chain in last]),
        noise=np.concatenate([chain.noise for chain in last]),
        tau2=np.concatenate([chain.tau2 for chain in last]),
        likelihood=likelihood,
        df=plan.prior.df,
    )
    climbs = climb(structures, ArrayRows(seen), PASSES)
    found = structures.at([each.mode for each in climbs])
    density = LogLikelihoods(found.networks, found.noise, likelihood).by_row(fresh)
    largest = density.max(axis=0)
    return largest + np.log(np.exp(density - largest).mean(axis=0))


def _last_network(chain: ChainDraws, architecture: Architecture, likelihood: str) -> SparseNetwork:
    """Where a chain stands."""
    last = chain.take(np.array([chain.n_draws - 1]))
    order = np.argsort(last.slots)
    return SparseNetwork.from_draws(
        architecture,
        last.slots[order],
        KeptDraws(last.weights[order][None], last.biases, last.noise),
        alpha=np.ones(len(order)),
        likelihood=likelihood,
        n_weights_initial=architecture.n_weights,
    )


def shuffled(problem: Problem, n_rows: int, seed: int) -> Problem:
    """So many rows at most, in a random order."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(problem.n_rows, min(n_rows, problem.n_rows), replace=False)
    return replace(rows_of(problem, chosen), whole=None)
