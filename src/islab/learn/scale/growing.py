"""How many rows chains need to find the structure: a sample that grows until more do not help.

Variational runs, whose steps cost the same whatever the number of rows, have found networks on all
rows that chains may see; chains begin on as many as networks of that size need. Those on twice the
rows go on from where the ones before stood, and where there are no more rows chains go on as long
as they gain. Structures of all rounds get their weights from the same rows, and are compared by the
log density of rows that none has seen, so that what is compared is structure alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float
from islab.core.chain_draws import ChainDraws
from islab.core.drawn import DrawnNetworks
from islab.core.sparse import SparseNetwork
from islab.learn.checkpoint import Checkpoint, close, own_folder
from islab.learn.engines.base import Problem
from islab.learn.sample import ChainPrior, Effort
from islab.learn.sample.chains import (
    Sampler,
    Start,
    chain_seeds,
    make_chain,
    run_side_by_side,
)
from islab.learn.sample.progress import SamplingBar
from islab.learn.scale.passes import ArrayRows, LogLikelihoods, rows_of
from islab.learn.scale.weights import Structures, climb

FEWEST_ROWS, MOST_ROWS, FRESH_ROWS = 2_500, 20_000, 5_000
ROWS_OF_A_WEIGHT = 200
MORE = 8  # times as many rows choose among structures, before all do
STEPS, MORE_STEPS = (40, 20), (40, 16)  # of warm-up and then draws, on the first rows and later
STRUCTURES_COMPARED = 3  # of each chain
PASSES = 3
SMALLEST_GAIN = 0.001  # nats a row, by a round
MUCH_GAIN, MOST_ROUNDS = 0.005, 40  # by the first round, of numbers on a scale of their own
ROUNDS_COMPARED = 2  # a single one may gain by chance, or not


@dataclass(frozen=True, eq=False)
class Grown:
    """Rows that are enough, and what chains drew on them.

    Attributes
    ----------
    rows : Problem
    chains : list of ChainDraws
    interrupted : bool
        Whether the user ended it before the draws said that the rows are enough.
    """

    rows: Problem
    chains: list[ChainDraws]
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class Growth:
    """Chains on more and more rows of a sample.

    Attributes
    ----------
    seen : Problem
        Rows in a random order, on which variational runs found networks.
    fresh : Problem
        Rows to compare on.
    likelihood : str
    architecture : Architecture
        All weights that may be used.
    prior : ChainPrior
    seed : int
    n_jobs : int, optional
        Chains to run at the same time.
    checkpoint : path, optional
        Folder in which the chains keep their states.
    keep_interrupted : bool
        Whether KeyboardInterrupt ends it with the draws on fewer rows, if there are any.
    """

    seen: Problem
    fresh: Problem
    likelihood: str
    architecture: Architecture
    prior: ChainPrior
    seed: int
    n_jobs: int | None = None
    verbose: bool = False
    checkpoint: str | Path | None = None
    keep_interrupted: bool = False

    def run(self, networks: Sequence[SparseNetwork]) -> Grown:
        """Draws on as many rows as are enough, from what variational runs found."""
        starts = [Start.at(network, self.architecture) for network in networks]
        folder = self._folder(starts)
        best: Grown | None = None
        densities: list[Float] = []
        most = min(self.seen.n_rows, MOST_ROWS)
        size = first_size(most, max(len(start.slots) for start in starts))
        with SamplingBar(len(starts) * MOST_ROUNDS * sum(STEPS), enabled=self.verbose) as bar:
            for number in range(MOST_ROUNDS):
                rows = rows_of(self.seen, slice(0, size))
                try:
                    if not densities:
                        densities.append(self._structure_density(self._at(starts)))
                    chains = self._chains(rows, starts, number, folder, bar)
                    densities.append(self._structure_density(self._last(chains)))
                except KeyboardInterrupt:
                    if best is None or not self.keep_interrupted:
                        raise
                    best = replace(best, interrupted=True)
                    break
                if best is None or densities[-1].mean() >= max(d.mean() for d in densities[1:]):
                    best = Grown(rows, chains)
                if self._enough(densities, can_grow=2 * size <= most):
                    break
                size = min(2 * size, most)
                starts = [Start(**chain.state(chain.n_draws - 1)) for chain in chains]
        assert best is not None
        close(folder, best.interrupted)
        return best

    def _enough(self, densities: Sequence[Float], *, can_grow: bool) -> bool:
        """Whether further rounds would gain little, as the log densities of fresh rows tell.

        The first is that of the networks that chains started from. Where these were good already
        and there are not twice as many rows, one round is enough.
        """
        if len(densities) == 2:
            much = MUCH_GAIN
            if not families.likelihood(self.likelihood).scales_target:
                much = SMALLEST_GAIN  # classes and counts have few nats a row to gain
            return not can_grow and bool((densities[1] - densities[0]).mean() <= much)
        gain = densities[-1] - densities[max(1, len(densities) - 1 - ROUNDS_COMPARED)]
        error = gain.std() / np.sqrt(len(gain))
        return bool(gain.mean() <= max(ROUNDS_COMPARED * SMALLEST_GAIN, error))

    def _chains(
        self,
        rows: Problem,
        starts: Sequence[Start],
        number: int,
        folder: Path | None,
        bar: SamplingBar,
    ) -> list[ChainDraws]:
        samplers = []
        seeds = chain_seeds(self.seed + number, len(starts))
        for chain_number, (start, seed) in enumerate(zip(starts, seeds, strict=True)):
            chain = make_chain(rows, self.likelihood, self.architecture, start, seed, self.prior)
            kept = None
            if folder is not None:
                kept = Checkpoint(folder / f"{number}-{chain_number}.npz", folder.name)
            samplers.append(Sampler(chain, self.architecture, Effort(), kept))
        steps = MORE_STEPS if number else STEPS
        run_side_by_side(samplers, *steps, n_jobs=self.n_jobs, report=bar.report)
        return [sampler.draws() for sampler in samplers]

    def _folder(self, starts: Sequence[Start]) -> Path | None:
        """Of this growth, which a call with the same sample, settings and starts finds again."""
        if self.checkpoint is None:
            return None
        settings = (self.likelihood, self.architecture, self.prior, self.seed)
        owner = sha256(repr(settings).encode())
        for array in (self.seen.x, self.seen.y, self.seen.row_weights, self.seen.offset):
            owner.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        for start in starts:
            owner.update(start.weights.tobytes() + start.slots.tobytes())
        return own_folder(self.checkpoint, owner.hexdigest())

    def _at(self, starts: Sequence[Start]) -> Structures:
        """The structures that chains start from."""
        networks = DrawnNetworks(
            self.architecture,
            np.concatenate([start.slots for start in starts]),
            np.concatenate([start.weights for start in starts]),
            np.cumsum([len(start.slots) for start in starts]),
            np.array([start.bias for start in starts]),
        )
        noise, tau2 = (np.array([getattr(s, name) for s in starts]) for name in ("noise", "tau2"))
        return Structures(networks, noise, tau2, self.likelihood, self.prior.df)

    def _last(self, chains: Sequence[ChainDraws]) -> Structures:
        """The structures that chains drew last."""
        last = [chain.take(np.arange(-STRUCTURES_COMPARED, 0) + chain.n_draws) for chain in chains]
        return Structures.of(last, self.architecture, self.likelihood, self.prior.df)

    def _structure_density(self, structures: Structures) -> Float:
        """Log density of fresh rows, averaged over structures whose weights all seen rows gave."""
        climbs = climb(structures, ArrayRows(self.seen, self.n_jobs), PASSES)
        found = structures.at([each.mode for each in climbs])
        density = LogLikelihoods(found.networks, found.noise, self.likelihood).by_row(self.fresh)
        largest = density.max(axis=0)
        return largest + np.log(np.exp(density - largest).mean(axis=0))


def sample_sizes() -> tuple[int, int]:
    """Rows of a sample that growth may see, and those that then choose among structures."""
    return MOST_ROWS + FRESH_ROWS, MORE * (MOST_ROWS + FRESH_ROWS)


def first_size(most: int, n_weights: int) -> int:
    """Rows on which chains begin, from networks of so many weights."""
    return min(max(FEWEST_ROWS, ROWS_OF_A_WEIGHT * n_weights), most)


def set_apart(sample: Problem) -> tuple[Problem, Problem]:
    """Rows for growth to see, and those to compare on."""
    n_rows = min(sample.n_rows, MOST_ROWS + FRESH_ROWS)
    n_seen = n_rows - min(FRESH_ROWS, n_rows // 5)
    return rows_of(sample, slice(0, n_seen)), rows_of(sample, slice(n_seen, n_rows))


def shuffled(problem: Problem, n_rows: int, seed: int) -> Problem:
    """So many rows at most, in a random order."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(problem.n_rows, min(n_rows, problem.n_rows), replace=False)
    return replace(rows_of(problem, chosen), whole=None)
