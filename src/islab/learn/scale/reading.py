"""The network to read, of structures whose weights sums over rows have given.

Every weight has a price: what it must be worth in log predictive density. Of the best structure of
each chain, weights that at most half of its draws use are left out, and then those that are not
worth their price: the Gaussian at the mode tells what leaving out each would cost, the others
adapted. What is left is climbed anew and looked at again. Of all networks on the way, the one with
the highest log predictive density (log likelihood less the number of parameters, as in the AIC),
less the price of its weights, is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from islab.core.arrays import Float, Index
from islab.core.chain_draws import ChainDraws
from islab.learn.scale.passes import Rows
from islab.learn.scale.weights import Climb, Structures, climb

ROUNDS, PASSES = 5, 4


class Candidate(NamedTuple):
    """A network that might be read, at its mode given the rows of the chains."""

    score: float
    structures: Structures  # one
    chain: int


def readable(
    structures: Structures,
    climbs: Sequence[Climb],
    owner: Index,
    chains: Sequence[ChainDraws],
    rows: Rows,
    *,
    price: float,
    threshold: float,
    forced: Index,
) -> tuple[Structures, Float]:
    """The network to read at its mode, and the inclusion probabilities of its edges.

    Parameters
    ----------
    structures, climbs
        Drawn by chains, and the modes of their weights.
    owner : (structures,)
        The chain of each.
    chains : sequence of ChainDraws
    rows : Rows
        Those of the chains.
    price : float
        Log predictive density that a weight must be worth.
    threshold : float
        Weights that no larger share of the draws uses are left out.
    forced : array of int
        Slots that are in every network.
    """
    evidence = np.array([each.evidence for each in climbs])
    shares = [_inclusion(chain, structures.networks.architecture.n_weights) for chain in chains]
    candidates: list[Candidate] = []
    for number, share in enumerate(shares):
        own = np.flatnonzero(owner == number)
        best = int(own[evidence[own].argmax()])
        start = structures.take(np.array([best])).at([climbs[best].mode])
        used = share.copy()
        used[forced] = 1.0
        often = start.without([used[start.slots(0)] <= threshold])
        for score, smaller in _ever_smaller(often, rows, price, forced):
            candidates.append(Candidate(score, smaller, number))
    found = max(candidates, key=lambda each: each.score)
    return found.structures, shares[found.chain][np.sort(found.structures.networks.slots)]


def _ever_smaller(
    structure: Structures, rows: Rows, price: float, forced: Index
) -> Iterator[tuple[float, Structures]]:
    """A structure at its mode, then without the weights that are not worth their price."""
    for _ in range(ROUNDS):
        (found,) = climb(structure, rows, PASSES)
        worth = found.log_likelihood - len(found.found.sizes)
        yield worth - price * len(found.tau2), structure.at([found.mode])
        log_odds = structure.log_odds_of_fewer(0, forced) + price
        out, theta = found.unneeded(log_odds)
        if not out.any():
            return
        structure = structure.at([theta]).without([out])


def _inclusion(chain: ChainDraws, n_weights: int) -> Float:
    return np.bincount(chain.slots, minlength=n_weights) / chain.n_draws
