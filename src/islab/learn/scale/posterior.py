"""A posterior whose structures come from some rows and whose weights come from all of them.

Chains have drawn structures given some rows. Every distinct one, or the most frequent if there are
many, gets the posterior of its weights given all rows. Structures are reweighted by what the other
rows say: the ratio of their Laplace evidences given all rows and given those that the chains had.
Draws are then compared with the exact posterior density by importance weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from islab.core.arrays import Float, Index, Mask
from islab.core.chain_draws import ChainDraws
from islab.core.drawn import DrawnNetworks
from islab.core.leave_one_out import leave_one_out, stacking_weights
from islab.core.mixing import bulk_size, rhat
from islab.core.sampled import AllRows, PredictionMixing, ReadingPrice, SampledPosterior
from islab.core.sparse import KeptDraws, SparseNetwork
from islab.learn.engines.base import Problem
from islab.learn.sample.chains import Start
from islab.learn.scale.passes import ArrayRows, LogLikelihoods, Rows, rows_of
from islab.learn.scale.weights import Climb, Structures, climb, see_all

MOST_STRUCTURES = 24  # of all chains
MOST_GIVEN_ALL = 3  # structures of each chain, the best given the sample
MOST_PASSES, LAST_PASSES = 6, 4  # over all rows, and after edges were dropped
SMALLEST_SHARE = 1e-3
HOPELESS = 30.0  # nats of evidence behind the best of a chain
DRAWS_CHECKED = 60
ROWS_COMPARED, DRAWS_COMPARED = 4000, 100
ROWS_WATCHED = 50


def posterior_of_all(
    sampled: SampledPosterior,
    sampled_on: Problem,
    sample: Problem,
    rows: Rows,
    *,
    seed: int,
    df: float = 0.0,
    n_jobs: int | None = None,
) -> SampledPosterior:
    """The posterior given all rows, with the structures of one that was drawn on some of them.

    Parameters
    ----------
    sampled : SampledPosterior
        Drawn by chains.
    sampled_on : Problem
        The rows that the chains had.
    sample : Problem
        More rows, of which some are used to weigh the chains and to price the readable network.
    rows : Rows
        All rows.
    seed : int
        Same seed, same draws.
    df : float
        Degrees of freedom of a Student-t slab; 0 for the Gaussian.
    n_jobs : int, optional
        Threads for passes over the rows of the chains.
    """
    rng = np.random.default_rng(seed)
    most = max(1, MOST_STRUCTURES // len(sampled.chains))
    visits = [_most_visited(chain, most, rng) for chain in sampled.chains]
    read = Start.at(sampled.median(), sampled.architecture)
    structures = _joined(sampled, visits, read, df)
    before = climb(structures, ArrayRows(sampled_on, n_jobs))
    owner = np.repeat(np.arange(len(visits) + 1), [*map(len, visits), 1])
    shares = np.concatenate([*(visit.shares for visit in visits), [1.0]])
    prior = np.log(shares) - np.array([each.evidence for each in before])
    structures = structures.at([each.mode for each in before])
    nearer = climb(structures, ArrayRows(sample, n_jobs))
    kept = _best(np.array([each.evidence for each in nearer]) + prior, owner)
    structures = structures.at([each.mode for each in nearer]).take(kept)
    found = _given_all(structures, rows, prior[kept], owner[kept])
    found = _without_unneeded(found, rows)

    chains = [
        _draws(found, np.flatnonzero(found.owner == number), chain, rng)
        for number, chain in enumerate(sampled.chains)
    ]
    network_draws = _drawn(found, [len(found.shares) - 1], [sampled.chains[0].n_draws], rng)
    some = rows_of(sample, slice(None, None, 1 + sample.n_rows // ROWS_COMPARED))
    density = np.array([_mean_density(sampled, each, some) for each in chains])
    weights = stacking_weights(density)
    largest = density.max(axis=0)
    mixed = largest + np.log(weights @ np.exp(density - largest))
    lost = mixed - _mean_density(sampled, network_draws, some)
    return replace(
        sampled,
        chains=tuple(chains),
        chain_weights=weights,
        network=_network(sampled, read, network_draws),
        price=ReadingPrice(
            float(lost.sum()), float(lost.std() * np.sqrt(some.n_rows)), some.n_rows
        ),
        mixing=_mixing(sampled, chains, some),
        all_rows=AllRows(
            n_rows=rows.n_rows,
            n_sampled=sampled_on.n_rows,
            n_structures=len(found.shares) - 1,
            promised=max(each.found.promised for each in found.climbs),
            pareto_k=_checked(sampled, chains, rows),
        ),
    )


# -- structures -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Visits:
    """The structures that a chain visited most: a draw of each, and shares of the draws."""

    chain: ChainDraws
    shares: Float

    def __len__(self) -> int:
        return len(self.shares)


def _most_visited(chain: ChainDraws, most: int, rng: np.random.Generator) -> _Visits:
    """At most so many structures, each with its most probable draw; ties are broken by chance."""
    places: dict[bytes, list[int]] = {}
    for number, own in enumerate(np.split(chain.slots, chain.ends[:-1])):
        places.setdefault(np.sort(own).tobytes(), []).append(number)
    visited = list(places.values())
    counts = np.array([len(draws) for draws in visited])
    order = np.lexsort([rng.random(len(counts)), -counts])[:most]
    best = [max(visited[k], key=lambda draw: chain.log_likelihood[draw]) for k in order]
    return _Visits(chain.take(np.array(best)), counts[order] / counts[order].sum())


def _joined(
    sampled: SampledPosterior, visits: Sequence[_Visits], read: Start, df: float
) -> Structures:
    """The structures of all chains, and the readable one at the end."""
    net = sampled.architecture
    last = DrawnNetworks(
        net, read.slots, read.weights, np.array([len(read.slots)]), read.bias[None]
    )
    return Structures(
        networks=DrawnNetworks.joined([*(v.chain.networks(net) for v in visits), last]),
        noise=np.concatenate([*(v.chain.noise for v in visits), read.noise[None]]),
        tau2=np.concatenate([*(v.chain.tau2 for v in visits), read.tau2[None]]),
        likelihood=sampled.likelihood,
        df=df,
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """Structures given all rows.

    Attributes
    ----------
    structures : Structures
    climbs : list of Climb
    owner : (structures,)
        The chain of each; the readable network counts as one more.
    shares : (structures,)
        Of each in its chain.
    """

    structures: Structures
    climbs: list[Climb]
    owner: Index
    shares: Float


def _best(scores: Float, owner: Index) -> Index:
    """The structures of each chain that score best, rising."""
    kept: list[int] = []
    for chain in np.unique(owner):
        own = np.flatnonzero(owner == chain)
        kept.extend(own[np.argsort(-scores[own], kind="stable")[:MOST_GIVEN_ALL]].tolist())
    return np.sort(np.array(kept, dtype=np.intp))


def _given_all(structures: Structures, rows: Rows, prior: Float, owner: Index) -> _Found:
    """Modes given all rows; structures that fall far behind the best of their chain are left."""
    climbs = structures.climbs()
    kept = list(range(len(climbs)))
    for _ in range(MOST_PASSES):
        left = [k for k in kept if not climbs[k].done]
        if not left:
            break
        see_all(structures, rows, climbs, left)
        kept = _hopeful(climbs, prior, owner, kept)
    log_shares = np.full(len(climbs), -np.inf)
    log_shares[kept] = [climbs[k].evidence + prior[k] for k in kept]
    found = np.zeros(len(climbs))
    for chain in np.unique(owner):
        own = owner == chain
        found[own] = np.exp(log_shares[own] - log_shares[own].max())
        found[own] /= found[own].sum()
    return _Found(structures, climbs, owner, found)


def _without_unneeded(found: _Found, rows: Rows) -> _Found:
    """Without the edges that all rows show to be more probably 0, where fewer rows did not."""
    used = np.flatnonzero(found.shares > SMALLEST_SHARE)
    structures = found.structures.take(used)
    out: list[Mask] = []
    theta: list[Float] = []
    for number, k in enumerate(used):
        edges, own = found.climbs[k].unneeded(structures.log_odds_of_fewer(number))
        if k == len(found.climbs) - 1:  # the readable network was chosen for its size already
            edges, own = np.zeros_like(edges), found.climbs[k].mode
        out.append(edges)
        theta.append(own)
    smaller = structures.at(theta).without(out)
    climbs = climb(smaller, rows, LAST_PASSES)
    return _Found(smaller, climbs, found.owner[used], found.shares[used])


def _hopeful(
    climbs: Sequence[Climb], prior: Float, chains: Index, kept: Sequence[int]
) -> list[int]:
    """Structures that may still matter: near the best, or not yet near their mode."""
    sure = np.array([climbs[k].evidence + prior[k] for k in kept])
    hoped = np.array([2 * climbs[k].found.promised for k in kept])
    own = chains[np.array(kept)]
    best = {chain: sure[own == chain].max() for chain in np.unique(own)}
    behind = np.array([best[chain] for chain in own]) - sure
    return [k for k, far, more in zip(kept, behind, hoped, strict=True) if far - more < HOPELESS]


# -- draws ------------------------------------------------------------------------------------


def _allotted(shares: Float, n_draws: int) -> list[int]:
    """How many draws each structure has."""
    ends = np.floor(np.cumsum(shares) / shares.sum() * n_draws + 0.5)
    return np.diff(ends, prepend=0).astype(int).tolist()


def _draws(found: _Found, own: Index, chain: ChainDraws, rng: np.random.Generator) -> ChainDraws:
    """As many draws as a chain had, of its structures, in a random order."""
    counts = _allotted(found.shares[own], chain.n_draws)
    drawn = _drawn(found, own.tolist(), counts, rng)
    return replace(drawn, moves=chain.moves).take(rng.permutation(chain.n_draws))


def _drawn(
    found: _Found, numbers: Sequence[int], counts: Sequence[int], rng: np.random.Generator
) -> ChainDraws:
    """Draws of the weights of some structures, so many of each."""
    theta: list[Float] = []
    values: list[Float] = []
    for number, count in zip(numbers, counts, strict=True):
        own, log_likelihood = found.climbs[number].draws(count, rng)
        theta.extend(own)
        values.append(log_likelihood)
    at = found.structures.take(np.repeat(numbers, counts)).at(theta)
    return ChainDraws(
        slots=at.networks.slots,
        weights=at.networks.weights,
        ends=at.networks.ends,
        biases=at.networks.biases,
        noise=at.noise,
        tau2=at.tau2,
        log_likelihood=np.concatenate(values),
        row_log_likelihood=np.zeros((len(at), 0)),
        moves={},
    )


def _network(sampled: SampledPosterior, read: Start, drawn: ChainDraws) -> SparseNetwork:
    """The readable network with the draws of its weights."""
    before, order = sampled.median(), np.argsort(read.slots)
    weights = drawn.weights.reshape(drawn.n_draws, -1)  # their slots rise
    return SparseNetwork.from_draws(
        sampled.architecture,
        read.slots[order],
        KeptDraws(weights, drawn.biases, drawn.noise),
        alpha=before.alpha[order],
        likelihood=sampled.likelihood,
        n_weights_initial=before.n_weights_initial,
    )


# -- what is said of them ---------------------------------------------------------------------


def _some_draws(chain: ChainDraws, most: int) -> ChainDraws:
    """Evenly spaced draws."""
    return chain.take(np.linspace(0, chain.n_draws - 1, min(chain.n_draws, most)).astype(np.intp))


def _mean_density(sampled: SampledPosterior, chain: ChainDraws, rows: Problem) -> Float:
    """Log density of each row, averaged over draws."""
    some = _some_draws(chain, DRAWS_COMPARED)
    networks = some.networks(sampled.architecture)
    found = LogLikelihoods(networks, some.noise, sampled.likelihood).by_row(rows)
    largest = found.max(axis=0)
    return largest + np.log(np.exp(found - largest).mean(axis=0))


def _mixing(
    sampled: SampledPosterior, chains: Sequence[ChainDraws], rows: Problem
) -> PredictionMixing:
    """How well chains agree in the predictor of some rows."""
    x = rows.x[:: 1 + rows.n_rows // ROWS_WATCHED]
    n_draws = min(chain.n_draws for chain in chains)
    drawn = [chain.predictor(sampled.architecture, x)[:n_draws] for chain in chains]
    values = np.array(drawn).reshape(len(chains), n_draws, -1)
    unreliable = sampled.mixing.pareto_k
    return PredictionMixing(float(rhat(values).max()), float(bulk_size(values).min()), unreliable)


def _checked(sampled: SampledPosterior, chains: Sequence[ChainDraws], rows: Rows) -> float:
    """Pareto k of the importance weights of draws: exact against quadratic log likelihood."""
    some = [_some_draws(chain, -(-DRAWS_CHECKED // len(chains))) for chain in chains]
    networks = DrawnNetworks.joined([each.networks(sampled.architecture) for each in some])
    noise = np.concatenate([each.noise for each in some])
    exact = rows.total(LogLikelihoods(networks, noise, sampled.likelihood))
    log_weights = exact - np.concatenate([each.log_likelihood for each in some])
    return float(leave_one_out(-log_weights[:, None])[1][0])
