"""Restarts that are kept: draws of every variational run, mixed so that they predict best together.

Where chains cannot serve, runs from several seeds find several networks. Each stands for its own
mode of the posterior; one of them alone is surer than it should be. They are weighted as chains
are, by the leave-one-out log densities of the rows (Yao, Vehtari, Simpson and Gelman, 2018), and
their draws are a sampled posterior like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float, Index
from islab.core.chain_draws import ChainDraws
from islab.core.compaction import places_in
from islab.core.convolution.network import forward
from islab.core.convolution.stacked import StackedImagePosterior
from islab.core.drawn import DrawnNetworks
from islab.core.folding import folded_draws
from islab.core.leave_one_out import leave_one_out, mixture_density, stacking_weights
from islab.core.posterior import Posterior
from islab.core.sampled import (
    LARGEST_PARETO_K,
    PredictionMixing,
    ReadingPrice,
    SampledPosterior,
)
from islab.learn.engines.base import ImageSource, Problem
from islab.learn.fit import Fit
from islab.learn.images import ImageFit
from islab.learn.scale.passes import rows_of

DRAWS, FEWEST_DRAWS = 900, 100  # of all runs, and of each of large networks
MOST_EDGES = 4_000_000  # of all draws
WORK = 1e9  # multiplications for the densities of rows
FEWEST_ROWS, MOST_ROWS = 500, 5000
NUMBERS_AT_ONCE = 2_000_000
IMAGES, IMAGE_DRAWS = 1000, 50


def stacked_posterior(
    problem: Problem, found: Fit, *, seed: int, threshold: float = 0.5
) -> SampledPosterior | None:
    """Draws of all runs of a fit, weighted by stacking; None if there is one run only.

    Parameters
    ----------
    problem : Problem
        What the runs learned from.
    found : Fit
    seed : int
        Same seed, same draws.
    threshold : float
        Of the inclusion probabilities in the network to read, that of the winner.
    """
    runs = _kept(found)
    if len(runs) < 2:
        return None
    net = _shared(runs)
    edges = max(float(np.sum(run.alpha)) for run in runs)
    fewest = min(FEWEST_DRAWS, DRAWS // len(runs))
    n_draws = int(np.clip(MOST_EDGES / (len(runs) * edges), fewest, DRAWS // len(runs)))
    rows = _some_rows(problem, edges * n_draws * len(runs))
    seeds = np.random.SeedSequence(seed).spawn(len(runs) + 1)
    chains = [
        _drawn(run, net, n_draws, np.random.default_rng(own), rows)
        for run, own in zip(runs, seeds[:-1], strict=True)
    ]
    network = found.posterior.median(threshold)
    drawn = network.sample_predictor(rows.x, n_draws, np.random.default_rng(seeds[-1]))
    read = _log_likelihood(rows, network.likelihood, drawn, network.noise)
    weights, price, unreliable = _weighed([chain.row_log_likelihood for chain in chains], read)
    return SampledPosterior(
        architecture=net,
        likelihood=network.likelihood,
        chains=tuple(_of_all_rows(chain, problem.n_rows) for chain in chains),
        chain_weights=weights,
        network=network,
        price=price,
        mixing=PredictionMixing(np.nan, np.nan, unreliable),
        stacked=True,
        n_weights_initial=found.posterior.n_weights_initial,
    )


def stacked_images(
    fits: Sequence[ImageFit], source: ImageSource, *, seed: int, threshold: float = 0.5
) -> StackedImagePosterior:
    """The posteriors of fits to the same images, weighted by stacking.

    Parameters
    ----------
    fits : sequence of ImageFit
    source : ImageSource
        What they learned from; some of its images are looked at.
    seed : int
        Same seed, same weights.
    threshold : float
        Of the inclusion probabilities in the network to read.
    """
    runs = tuple(found.posterior for found in fits)
    best = int(np.argmax([found.elbo for found in fits]))
    images, codes = source.some(IMAGES)
    network = runs[best].median(threshold)
    rng = np.random.default_rng(seed)
    densities = []
    for net, columns, drawn in (
        *((run.architecture, None, run.draw) for run in runs),
        (network.architecture, network.head.covariates, network.draw),
    ):
        draws = [
            forward(net, drawn(rng).astype(np.float32), images, columns).astype(float)
            for _ in range(IMAGE_DRAWS)
        ]
        densities.append(_density_of_classes(np.array(draws), codes, network.likelihood))
    shares, price, _ = _weighed(densities[:-1], densities[-1])
    return StackedImagePosterior(runs, shares, best, price)


def _density_of_classes(eta: Float, codes: Index, likelihood: str) -> Float:
    """Log probability of each image's class under each draw, (draws, images)."""
    family = families.likelihood(likelihood)
    assert isinstance(family, families.ClassLikelihood)
    n_classes = eta.shape[2] if family.one_hot else 2
    return -np.asarray(family.nll(family.class_targets(codes, n_classes), eta, np.ones(1)))


def _weighed(densities: list[Float], read: Float) -> tuple[Float, ReadingPrice, float]:
    """Shares of runs, what reading one network costs, and the share of unreliable rows.

    From log densities (draws, rows) of each run and of the network to read.
    """
    left_out = [leave_one_out(density) for density in densities]
    elpd = np.array([each[0] for each in left_out])
    unreliable = float(np.mean([(each[1] > LARGEST_PARETO_K).mean() for each in left_out]))
    weights = stacking_weights(elpd)
    lost = mixture_density(elpd, weights) - leave_one_out(read)[0]
    price = ReadingPrice(float(lost.sum()), float(lost.std() * np.sqrt(len(lost))), len(lost))
    return weights, price, unreliable


def _kept(found: Fit) -> list[Posterior]:
    """The runs, the winner with what later stages made of it."""
    runs = found.runs | {found.winner: found.posterior}
    # A linear model is part of a network only if covariates enter its output layer.
    return [
        run for run in runs.values() if run.architecture.input_skip or run.architecture.n_layers > 1
    ]


def _shared(runs: list[Posterior]) -> Architecture:
    """The smallest architecture of which all runs are a part."""
    widths = [run.architecture.hidden for run in runs]
    deepest = max(map(len, widths))
    aligned = [(0,) * (deepest - len(own)) + own for own in widths]
    hidden = tuple(max(layer) for layer in zip(*aligned, strict=True))
    return replace(runs[0].architecture, hidden=hidden)


def _some_rows(problem: Problem, cost: float) -> Problem:
    """Evenly spaced rows, as many as a cost of each allows."""
    most = int(np.clip(WORK / max(cost, 1), FEWEST_ROWS, MOST_ROWS))
    return rows_of(problem, slice(None, None, -(-problem.n_rows // most)))


def _drawn(
    run: Posterior, net: Architecture, n_draws: int, rng: np.random.Generator, rows: Problem
) -> ChainDraws:
    """Draws of a run as those of a chain: edges on active paths, in an architecture of all runs."""
    own = run.architecture
    slots, units = places_in(own, net)
    size = max(1, NUMBERS_AT_ONCE // own.n_weights)
    parts = []
    for first in range(0, n_draws, size):
        drawn = run.draw(min(size, n_draws - first), rng)
        parts.append(DrawnNetworks.from_dense(own, *folded_draws(own, *drawn)))
    networks = DrawnNetworks.joined(parts)
    biases = np.zeros((n_draws, net.n_units))
    biases[:, units] = networks.biases
    noise = np.tile(run.noise, (n_draws, 1)).astype(float)
    density = _log_likelihood(rows, run.likelihood, networks.predictor(rows.x), run.noise)
    return ChainDraws(
        slots=slots[networks.slots],
        weights=networks.weights,
        ends=networks.ends,
        biases=biases,
        noise=noise,
        tau2=np.ones((n_draws, len(net.blocks))),  # no chain, no slab
        log_likelihood=density.sum(axis=1),
        row_log_likelihood=density,
        moves={},
    )


def _of_all_rows(chain: ChainDraws, n_rows: int) -> ChainDraws:
    """Without the rows; the log likelihood of all of them, by that of some."""
    whole = chain.log_likelihood * n_rows / chain.row_log_likelihood.shape[1]
    return replace(chain, log_likelihood=whole, row_log_likelihood=np.zeros((chain.n_draws, 0)))


def _log_likelihood(rows: Problem, likelihood: str, drawn: Float, noise: Float) -> Float:
    """Weighted log density of each row under each draw, (draws, rows)."""
    eta = drawn if rows.offset is None else drawn + rows.offset
    density = -families.likelihood(likelihood).nll(rows.y, eta, noise)
    return np.asarray(density, dtype=float) * rows.row_weights
