"""The network to read, chosen from the draws.

Candidates are median probability models: the weights that more than half of the draws use, or a
larger share for smaller networks. Where most draws are linear, weights have the same meaning in all
chains and the shares are those of the whole posterior. Hidden units have no identity across chains;
there each chain has its own candidates. Each candidate's weights are sampled with its structure
fixed, and the one that predicts best, less a price for each weight, is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.leave_one_out import leave_one_out
from islab.core.paths import active_weights
from islab.core.sampled import ChainDraws, ReadingPrice
from islab.core.sparse import KeptDraws, SparseNetwork
from islab.learn.sample.chains import Effort, Sampler, Start, chain_seeds

Float = NDArray[np.floating]
Index = NDArray[np.intp]

SHARES = (0.5, 0.8, 0.95)
CHAINS_TRIED = 2
FIXED = Effort(toggles=0, edges=0, units=0)
TRIAL_WARM_UP, TRIAL_DRAWS = 40, 100


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
    chains: Sequence[ChainDraws],
    weights: Float,
    elpd: Float,
    make: Callable[..., Any],
    *,
    price_of_weight: float,
    n_draws: int,
    seed: int,
) -> tuple[Candidate, ReadingPrice]:
    """The network to read and what it loses against all draws.

    Parameters
    ----------
    architecture : Architecture
        All weights.
    chains : sequence of ChainDraws
        With the log likelihood of the rows.
    weights : (chains,)
        Shares of the chains.
    elpd : (chains, rows)
        Leave-one-out log densities.
    make : callable
        Makes a chain of compiled code from ``start`` and ``seed``.
    price_of_weight : float
        Log predictive density that a weight must be worth.
    n_draws : int
        Of the chosen network.
    seed : int
    """
    structures = list(_structures(architecture, chains, weights))
    candidates = []
    seeds = chain_seeds(seed, len(structures))
    for (used, alpha, draws), own in zip(structures, seeds, strict=True):
        chain = make(start=_start(used, draws, architecture), seed=own)
        sampler = Sampler(chain, architecture, FIXED).run(TRIAL_WARM_UP, TRIAL_DRAWS, 1)
        candidates.append(Candidate(used, alpha, sampler))
    scores = [c.elpd().sum() - price_of_weight * len(c.used) for c in candidates]
    best = candidates[int(np.argmax(scores))]
    best.sampler.run(TRIAL_WARM_UP, n_draws, 1)
    highest = elpd.max(axis=0)
    lost = highest + np.log(weights @ np.exp(elpd - highest)) - best.elpd()
    price = ReadingPrice(float(lost.sum()), float(lost.std() * np.sqrt(len(lost))), len(lost))
    return best, price


def _structures(
    architecture: Architecture, chains: Sequence[ChainDraws], weights: Float
) -> Iterator[tuple[Index, Float, ChainDraws]]:
    """Weights to read, their inclusion probabilities and the chain they come from."""
    inclusion = [_inclusion(chain, architecture.n_weights) for chain in chains]
    bent = [chain.bends_covariate(architecture).any(axis=1).mean() for chain in chains]
    order = np.argsort(-weights, kind="stable")[:CHAINS_TRIED]
    if weights @ np.array(bent) < 0.5:
        pooled = np.einsum("c,cw->w", weights, np.array(inclusion))
        sources = [(pooled, chains[order[0]])]
    else:
        sources = [(inclusion[k], chains[k]) for k in order]
    seen = set()
    for shares, chain in sources:
        for share in SHARES:
            kept = active_weights(architecture, shares > share)
            used = np.flatnonzero(kept)
            if used.tobytes() not in seen:
                seen.add(used.tobytes())
                yield used, shares[used], chain


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
