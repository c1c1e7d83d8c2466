"""The network to read, chosen from the draws.

Every weight has a price: what it must be worth in log predictive density. Chains with that price in
their prior, from the same starts, leave behind what is not worth it. Candidates are the median
probability models of those chains and of the posterior itself: the weights that more than half of
the draws use. Where most draws are linear, weights have the same meaning in all chains and the
shares are those of the whole posterior; hidden units have no identity across chains, and there each
chain has its own candidates. Each candidate's weights are sampled with its structure fixed, and the
one that predicts best, less the price of its weights, is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.chain_draws import ChainDraws
from islab.core.constraints import Limits
from islab.core.leave_one_out import leave_one_out
from islab.core.paths import active_weights
from islab.core.sampled import ReadingPrice
from islab.core.sparse import KeptDraws, SparseNetwork
from islab.learn.sample.chains import Effort, Sampler, Start, chain_seeds

Float = NDArray[np.floating]
Index = NDArray[np.intp]

CHAINS_TRIED = 2
FIXED = Effort(toggles=0, edges=0, units=0, largest_part=40)
TRIAL_WARM_UP, TRIAL_DRAWS = 30, 70
SEARCH = Effort(edges=8, units=4, parts=2)
SEARCH_WARM_UP, SEARCH_DRAWS = 80, 60


@dataclass(eq=False)
class Candidate:
    """Weights that might be read, and a chain that samples them with the structure fixed."""

    used: Index
    alpha: Float
    sampler: Sampler

    def elpd(self) -> Float:
        """Leave-one-out log density of each row."""
        return leave_one_out(self.sampler.draws().row_log_likelihood)[0]

    def network(self, architecture: Architecture, likelihood: str) -> SparseNetwork:
        """The network with the draws of its weights."""
        draws = self.sampler.draws()
        weights = draws.dense(np.arange(draws.n_draws), architecture.n_weights)[:, self.used]
        return SparseNetwork.from_draws(
            architecture,
            self.used,
            KeptDraws(weights, draws.biases, draws.noise),
            alpha=self.alpha,
            likelihood=likelihood,
            n_weights_initial=architecture.n_weights,
        )


def choose_network(
    architecture: Architecture,
    starts: Sequence[Start],
    chains: Sequence[ChainDraws],
    weights: Float,
    elpd: Float,
    make: Callable[..., Any],
    limits: Limits | None = None,
    *,
    price_of_weight: float,
    n_draws: int,
    seed: int,
    threshold: float = 0.5,
) -> tuple[Candidate, ReadingPrice]:
    """The network to read and what it loses against all draws.

    Parameters
    ----------
    architecture : Architecture
        All weights.
    starts : sequence of Start
        Of the chains.
    chains : sequence of ChainDraws
        With the log likelihood of the rows.
    weights : (chains,)
        Shares of the chains.
    elpd : (chains, rows)
        Leave-one-out log densities.
    make : callable
        Makes a chain of compiled code from ``start``, ``seed`` and ``price``, of each weight.
    limits : Limits, optional
        To which the network keeps, too.
    price_of_weight : float
        Log predictive density that a weight must be worth.
    n_draws : int
        Of the chosen network.
    seed : int
    threshold : float
        A weight is a candidate if its inclusion probability is larger.
    """
    search_seed, trial_seed = chain_seeds(seed, 2)
    searched = list(
        _searched(
            architecture, starts, chains, weights, make, price_of_weight, search_seed, threshold
        )
    )
    candidates = []
    for (used, alpha, draws), own in zip(
        searched, chain_seeds(trial_seed, len(searched)), strict=True
    ):
        start = _start(used, draws, architecture)
        if limits is not None:
            slots, values = limits.nearest(architecture, start.slots, start.weights)
            start = replace(start, slots=slots, weights=values)
            used, alpha = slots, _inclusion(draws, architecture.n_weights)[slots]
        chain = make(start=start, seed=own, price=0.0)
        sampler = Sampler(chain, architecture, FIXED).run(TRIAL_WARM_UP, TRIAL_DRAWS)
        candidates.append(Candidate(used, alpha, sampler))
    scores = [c.elpd().sum() - price_of_weight * len(c.used) for c in candidates]
    best = candidates[int(np.argmax(scores))]
    best.sampler.run(TRIAL_WARM_UP, n_draws)
    highest = elpd.max(axis=0)
    lost = highest + np.log(weights @ np.exp(elpd - highest)) - best.elpd()
    price = ReadingPrice(float(lost.sum()), float(lost.std() * np.sqrt(len(lost))), len(lost))
    return best, price


def _searched(
    architecture: Architecture,
    starts: Sequence[Start],
    chains: Sequence[ChainDraws],
    weights: Float,
    make: Callable[..., Any],
    price: float,
    seed: int,
    threshold: float,
) -> Iterator[tuple[Index, Float, ChainDraws]]:
    """Weights to read, their inclusion probabilities and the draws they come from."""
    order = np.argsort(-weights, kind="stable")[:CHAINS_TRIED]
    inclusion = np.array([_inclusion(chain, architecture.n_weights) for chain in chains])
    bent = [chain.bends_covariate(architecture).any(axis=1).mean() for chain in chains]
    # Shares of the chains sum to 1 but for rounding.
    pooled = np.minimum(weights @ inclusion, 1) if weights @ np.array(bent) < 0.5 else None
    seen = set()
    for number, own in zip(order, chain_seeds(seed, len(order)), strict=True):
        chain = make(start=starts[number], seed=own, price=price)
        small = Sampler(chain, architecture, SEARCH).run(SEARCH_WARM_UP, SEARCH_DRAWS).draws()
        shares = inclusion[number] if pooled is None else pooled
        priced = _inclusion(small, architecture.n_weights)
        for chosen_by, draws in ((shares, chains[number]), (priced, small)):
            used = np.flatnonzero(active_weights(architecture, chosen_by > threshold))
            if used.tobytes() not in seen:
                seen.add(used.tobytes())
                yield used, chosen_by[used], draws


def _inclusion(chain: ChainDraws, n_weights: int) -> Float:
    return np.bincount(chain.slots, minlength=n_weights) / chain.n_draws


def _start(used: Index, chain: ChainDraws, architecture: Architecture) -> Start:
    """Weights of the draw that is most like the structure; those it lacks have their mean."""
    wanted = np.zeros(architecture.n_weights, dtype=bool)
    wanted[used] = True
    owner = np.repeat(np.arange(chain.n_draws), chain.sizes)
    alike = 2 * np.bincount(owner, wanted[chain.slots], chain.n_draws) - chain.sizes
    best = int(alike.argmax())
    drawn = chain.dense(np.array([best]), architecture.n_weights)[0]
    total = np.bincount(chain.slots, chain.weights, architecture.n_weights)
    count = np.maximum(np.bincount(chain.slots, minlength=architecture.n_weights), 1)
    values = np.where(drawn != 0, drawn, total / count)[used]
    return Start(used, values, chain.biases[best], chain.tau2[best], chain.noise[best])
