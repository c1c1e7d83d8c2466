"""A posterior whose structures come from some rows and whose weights come from all of them.

Chains have drawn structures given some rows. Those that are most frequent, and under which other
rows are most probable, get the posterior of their weights given ever more rows, and then all. They
are reweighted by what the other rows say: the ratio of their Laplace evidences given all rows and
given those that the chains had. Draws are then compared with the exact posterior density by
importance weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Float, Index
from islab.core.chain_draws import ChainDraws
from islab.core.drawn import DrawnNetworks
from islab.core.leave_one_out import leave_one_out, stacking_weights
from islab.core.mixing import bulk_size, rhat
from islab.core.sampled import (
    LARGEST_PARETO_K,
    AllRows,
    PredictionMixing,
    ReadingPrice,
    SampledPosterior,
)
from islab.core.sparse import KeptDraws, SparseNetwork
from islab.learn.engines.base import Problem
from islab.learn.scale.growing import Grown, sample_sizes
from islab.learn.scale.passes import ArrayRows, LogLikelihoods, Rows, rows_of
from islab.learn.scale.reading import readable
from islab.learn.scale.weights import Climb, Structures, climb, see_all

MOST_VISITED = 8  # structures of each chain
MOST_GIVEN_ALL = 3  # of them, those under which other rows are most probable
FIRST_PASSES = 4  # over the rows of the chains
SOME_PASSES = 3  # over some rows, which more rows will move anyway
MOST_PASSES, LAST_PASSES = 6, 4  # over all rows, and after edges were dropped
SMALLEST_SHARE = 1e-3
HOPELESS = 30.0  # nats of evidence behind the best of a chain
DRAWS_CHECKED = 60
ROWS_COMPARED, DRAWS_COMPARED = 4000, 100
ROWS_WATCHED = 50


@dataclass(frozen=True)
class Reading:
    """What is asked of the network to read.

    Parameters
    ----------
    price : float
        Log predictive density that each weight must be worth, given the rows of the chains.
    threshold : float
        It has weights that a larger share of the draws of a chain uses.
    """

    price: float
    threshold: float = 0.5


def posterior_of_all(
    grown: Grown,
    architecture: Architecture,
    likelihood: str,
    sample: Problem,
    rows: Rows,
    *,
    n_draws: int,
    reading: Reading,
    seed: int,
    df: float = 0.0,
    n_jobs: int | None = None,
) -> SampledPosterior:
    """The posterior given all rows, with structures that chains drew on some of them.

    Parameters
    ----------
    grown : Grown
        What chains drew, and the rows that they had.
    architecture : Architecture
    likelihood : str
    sample : Problem
        The rows of the chains and then others, which choose among structures, weigh the chains and
        price the readable network.
    rows : Rows
        All rows.
    n_draws : int
        Of each chain.
    reading : Reading
    seed : int
        Same seed, same draws.
    df : float
        Degrees of freedom of a Student-t slab; 0 for the Gaussian.
    n_jobs : int, optional
        Threads for passes over the sample.
    """
    rng = np.random.default_rng(seed)
    limits = sample.limits
    forced = np.zeros(0, np.intp) if limits is None else limits.forced(architecture)
    visits = [_most_visited(chain, MOST_VISITED, rng) for chain in grown.chains]
    start = Structures.of([each.chain for each in visits], architecture, likelihood, df)
    chosen = _chosen(start, visits, grown, sample, reading, forced, n_jobs)
    some_rows = [n for n in sample_sizes() if 2 * n <= rows.n_rows]
    levels = [ArrayRows(rows_of(sample, slice(0, n)), n_jobs) for n in some_rows]
    found = _without_unneeded(_given_all(chosen, [*levels, rows]), rows, forced)
    chains = [
        replace(_draws(found, np.flatnonzero(found.owner == number), n_draws, rng), moves=c.moves)
        for number, c in enumerate(grown.chains)
    ]
    read = _drawn(found, [len(found.shares) - 1], [n_draws], rng)
    some = rows_of(sample, slice(None, None, 1 + sample.n_rows // ROWS_COMPARED))
    by_draw = [_densities(architecture, likelihood, each, some) for each in (*chains, read)]
    weights, price = _weighed(np.array([_mean_density(each) for each in by_draw]))
    return SampledPosterior(
        architecture=architecture,
        likelihood=likelihood,
        chains=tuple(chains),
        chain_weights=weights,
        network=_network(architecture, likelihood, read, chosen.alpha),
        price=price,
        mixing=_mixing(architecture, chains, some, by_draw[:-1]),
        all_rows=AllRows(
            n_rows=rows.n_rows,
            n_sampled=grown.rows.n_rows,
            n_structures=len(found.shares) - 1,
            promised=max(each.found.promised for each in found.climbs),
            pareto_k=_checked(architecture, likelihood, chains, rows),
        ),
        n_weights_initial=architecture.n_weights,
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


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Structures that all rows shall give weights, the readable one at the end.

    Attributes
    ----------
    structures : Structures
        At their modes given the rows of the chains.
    prior : (structures,)
        Log shares of the draws, less the evidence of the rows that the chains had.
    owner : (structures,)
        The chain of each; the readable network counts as one more.
    alpha : (edges,)
        Inclusion probabilities of the readable network's weights.
    """

    structures: Structures
    prior: Float
    owner: Index
    alpha: Float


def _chosen(
    structures: Structures,
    visits: Sequence[_Visits],
    grown: Grown,
    sample: Problem,
    reading: Reading,
    forced: Index,
    n_jobs: int | None,
) -> _Chosen:
    """Of each chain the structures under which rows that it did not see are most probable."""
    owner = np.repeat(np.arange(len(visits)), [len(each) for each in visits])
    rows = ArrayRows(grown.rows, n_jobs)
    climbs = climb(structures, rows, FIRST_PASSES)
    read, alpha = readable(
        structures,
        climbs,
        owner,
        grown.chains,
        rows,
        price=reading.price,
        threshold=reading.threshold,
        forced=forced,
    )
    shares = np.concatenate([each.shares for each in visits])
    prior = np.log(shares) - np.array([each.evidence for each in climbs])
    found = structures.at([each.mode for each in climbs])
    others = ArrayRows(rows_of(sample, slice(grown.rows.n_rows, sample_sizes()[0])), n_jobs)
    density = others.total(LogLikelihoods(found.networks, found.noise, found.likelihood))
    kept = _best(density, owner)
    return _Chosen(
        structures=Structures.joined([found.take(kept), read]),
        prior=np.append(prior[kept], 0.0),
        owner=np.append(owner[kept], len(visits)),
        alpha=alpha,
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


def _given_all(chosen: _Chosen, levels: Sequence[Rows]) -> _Found:
    """Modes given ever more rows; structures that fall far behind the best of their chain go."""
    structures, prior, owner = chosen.structures, chosen.prior, chosen.owner
    for rows in levels:
        climbs = structures.climbs()
        kept = list(range(len(climbs)))
        for _ in range(MOST_PASSES if rows is levels[-1] else SOME_PASSES):
            left = [k for k in kept if not climbs[k].done]
            if not left:
                break
            see_all(structures, rows, climbs, left)
            kept = _hopeful(climbs, prior, owner, kept)
        climbs = [climbs[k] for k in kept]
        structures = structures.take(np.array(kept)).at([each.mode for each in climbs])
        prior, owner = prior[kept], owner[kept]
    log_shares = prior + [each.evidence for each in climbs]
    shares = np.zeros(len(climbs))
    for chain in np.unique(owner):
        own = owner == chain
        shares[own] = np.exp(log_shares[own] - log_shares[own].max())
        shares[own] /= shares[own].sum()
    return _Found(structures, climbs, owner, shares)


def _without_unneeded(found: _Found, rows: Rows, forced: Index) -> _Found:
    """Without the edges that all rows show to be more probably 0, where fewer rows did not.

    The Gaussian at the mode says which. Where units bend it may be wrong: a network that is less
    probable without them keeps them.
    """
    used = np.flatnonzero(found.shares > SMALLEST_SHARE)
    climbs = [found.climbs[k] for k in used]
    structures = found.structures.take(used).at([each.mode for each in climbs])
    parts = [structures.take(np.array([number])) for number in range(len(used))]
    smaller: dict[int, Structures] = {}
    prior: dict[int, float] = {}  # log odds of the smaller networks
    for number, k in enumerate(used):
        if k == len(found.climbs) - 1:  # the readable network was chosen for its size already
            continue
        odds = structures.log_odds_of_fewer(number, forced)
        edges, own = climbs[number].unneeded(odds)
        if edges.any():
            smaller[number] = parts[number].at([own]).without([edges])
            prior[number] = float(odds[edges].sum())
    if smaller:
        new = climb(Structures.joined(list(smaller.values())), rows, LAST_PASSES)
        for number, own_climb in zip(smaller, new, strict=True):
            if own_climb.evidence + prior[number] >= climbs[number].evidence:
                climbs[number], parts[number] = own_climb, smaller[number].at([own_climb.mode])
    return _Found(Structures.joined(parts), climbs, found.owner[used], found.shares[used])


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


def _draws(found: _Found, own: Index, n_draws: int, rng: np.random.Generator) -> ChainDraws:
    """Draws of some structures by their shares, in a random order."""
    counts = _allotted(found.shares[own], n_draws)
    return _drawn(found, own.tolist(), counts, rng).take(rng.permutation(n_draws))


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


def _network(
    architecture: Architecture, likelihood: str, read: ChainDraws, alpha: Float
) -> SparseNetwork:
    """The readable network with the draws of its weights."""
    weights = read.weights.reshape(read.n_draws, -1)
    return SparseNetwork.from_draws(
        architecture,
        read.slots[: weights.shape[1]],  # the same in each draw, and rising
        KeptDraws(weights, read.biases, read.noise),
        alpha=alpha,
        likelihood=likelihood,
        n_weights_initial=architecture.n_weights,
    )


# -- what is said of them ---------------------------------------------------------------------


def _some_draws(chain: ChainDraws, most: int) -> ChainDraws:
    """Evenly spaced draws."""
    return chain.take(np.linspace(0, chain.n_draws - 1, min(chain.n_draws, most)).astype(np.intp))


def _densities(
    architecture: Architecture, likelihood: str, chain: ChainDraws, rows: Problem
) -> Float:
    """Log density of rows under some of the draws, (draws, rows)."""
    some = _some_draws(chain, DRAWS_COMPARED)
    return LogLikelihoods(some.networks(architecture), some.noise, likelihood).by_row(rows)


def _mean_density(by_draw: Float) -> Float:
    """Log density of each row, averaged over draws."""
    largest = by_draw.max(axis=0)
    return largest + np.log(np.exp(by_draw - largest).mean(axis=0))


def _weighed(densities: Float) -> tuple[Float, ReadingPrice]:
    """Shares of the chains, and what the readable network loses: its density is the last."""
    *chains, read = densities
    weights, largest = stacking_weights(np.array(chains)), np.max(chains, axis=0)
    lost = largest + np.log(weights @ np.exp(chains - largest)) - read
    n_rows = len(lost)
    return weights, ReadingPrice(float(lost.sum()), float(lost.std() * np.sqrt(n_rows)), n_rows)


def _mixing(
    architecture: Architecture,
    chains: Sequence[ChainDraws],
    rows: Problem,
    densities: Sequence[Float],
) -> PredictionMixing:
    """How well chains agree in the predictor of some rows; rows that are told by few draws."""
    x = rows.x[:: 1 + rows.n_rows // ROWS_WATCHED]
    drawn = [chain.predictor(architecture, x) for chain in chains]
    values = np.array(drawn).reshape(len(chains), chains[0].n_draws, -1)
    unreliable = np.mean([(leave_one_out(each)[1] > LARGEST_PARETO_K).mean() for each in densities])
    return PredictionMixing(float(rhat(values).max()), float(bulk_size(values).min()), unreliable)


def _checked(
    architecture: Architecture, likelihood: str, chains: Sequence[ChainDraws], rows: Rows
) -> float:
    """Pareto k of the importance weights of draws: exact against quadratic log likelihood."""
    some = [_some_draws(chain, -(-DRAWS_CHECKED // len(chains))) for chain in chains]
    networks = DrawnNetworks.joined([each.networks(architecture) for each in some])
    noise = np.concatenate([each.noise for each in some])
    exact = rows.total(LogLikelihoods(networks, noise, likelihood))
    log_weights = exact - np.concatenate([each.log_likelihood for each in some])
    return float(leave_one_out(-log_weights[:, None])[1][0])
