"""What one chain has drawn: sparse networks, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.drawn import DrawnNetworks

Float = NDArray[np.floating]
Index = NDArray[np.intp]

LARGEST_DRIFT = 0.8  # between the halves of a chain, in standard deviations


@dataclass(frozen=True, eq=False)
class ChainDraws:
    """What one chain has drawn. The edges of all draws stand one after the other.

    Attributes
    ----------
    slots, weights : (edges of all draws,)
        Flat position in the architecture and value of each weight.
    ends : (draws,)
        Where the edges of each draw end.
    biases : (draws, units)
    noise : (draws, numbers)
        What the likelihood learned besides: noise variance of each output.
    tau2 : (draws, blocks)
        Slab variances.
    log_likelihood : (draws,)
        Of all training rows.
    row_log_likelihood : (draws, rows)
        Of each of them; without rows once the fit is done.
    moves : dict
        Accepted and proposed moves of each kind.
    """

    slots: Index
    weights: Float
    ends: Index
    biases: Float
    noise: Float
    tau2: Float
    log_likelihood: Float
    row_log_likelihood: Float
    moves: dict[str, tuple[int, int]]

    @property
    def n_draws(self) -> int:
        return len(self.ends)

    @property
    def sizes(self) -> Index:
        """Used weights of each draw."""
        return np.diff(self.ends, prepend=0)

    def settled(self) -> bool:
        """Whether both halves have the same log likelihood and size, to a part of their SD.

        Neighbouring draws are alike, so a test for equal means would refuse nearly every chain.
        """
        half = self.n_draws // 2
        traces = np.stack([self.log_likelihood, self.sizes])
        moved = np.abs(traces[:, :half].mean(axis=1) - traces[:, half:].mean(axis=1))
        return bool((moved <= LARGEST_DRIFT * traces.std(axis=1)).all())

    def take(self, draws: Index) -> ChainDraws:
        """Some of the draws."""
        at, sizes = self._edges_of(draws)
        return replace(
            self,
            slots=self.slots[at],
            weights=self.weights[at],
            ends=np.cumsum(sizes),
            biases=self.biases[draws],
            noise=self.noise[draws],
            tau2=self.tau2[draws],
            log_likelihood=self.log_likelihood[draws],
            row_log_likelihood=self.row_log_likelihood[draws],
        )

    def _edges_of(self, draws: Index) -> tuple[Index, Index]:
        """Positions of the edges of some draws, and how many each has."""
        sizes = self.sizes[draws]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(self.ends[draws] - sizes, sizes) + within, sizes

    def state(self, draw: int) -> dict[str, NDArray]:
        """Where a chain stood at a draw: slots, weights, bias, tau2, noise."""
        edges = slice(self.ends[draw] - self.sizes[draw], self.ends[draw])
        return {
            "slots": self.slots[edges],
            "weights": self.weights[edges],
            "bias": self.biases[draw],
            "tau2": self.tau2[draw],
            "noise": self.noise[draw],
        }

    def dense(self, draws: Index, n_weights: int) -> Float:
        """Flat weights of some draws, (draws, weights)."""
        at, sizes = self._edges_of(draws)
        rows = np.repeat(np.arange(len(draws)), sizes)
        flat = np.zeros((len(draws), n_weights))
        flat[rows, self.slots[at]] = self.weights[at]
        return flat

    def uses_covariate(self, architecture: Architecture) -> NDArray[np.bool_]:
        """Whether each draw uses each covariate, (draws, covariates)."""
        return self._from_covariate(architecture, np.ones(architecture.n_units, dtype=bool))

    def bends_covariate(self, architecture: Architecture) -> NDArray[np.bool_]:
        """Whether each covariate enters a hidden unit of each draw, (draws, covariates)."""
        hidden = np.arange(architecture.n_units) < architecture.n_units - architecture.n_outputs
        return self._from_covariate(architecture, hidden)

    def _from_covariate(
        self, architecture: Architecture, targets: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        sources, units = (ends[self.slots] for ends in architecture.ends)
        chosen = (sources < architecture.n_covariates) & targets[units]
        draws = np.repeat(np.arange(self.n_draws), self.sizes)
        found = np.zeros((self.n_draws, architecture.n_covariates), dtype=bool)
        found[draws[chosen], sources[chosen]] = True
        return found

    def pairs(self, architecture: Architecture) -> Float:
        """Share of draws in which two covariates meet in a hidden unit, (covariates, covariates).

        They meet if both reach the unit, at once or over units before it.
        """
        v, n_hidden = architecture.n_covariates, architecture.n_units - architecture.n_outputs
        total = np.zeros((v, v))
        for draws in np.array_split(np.arange(self.n_draws), max(1, self.n_draws // 50)):
            kept = self.dense(draws, architecture.n_weights) != 0
            reached = np.zeros((len(draws), architecture.n_units, v), dtype=bool)
            reached[:, : architecture.n_covariate_rows] = architecture.covariate_matrix(kept)
            for layer in range(1, architecture.n_layers - 1):
                wires = architecture.hidden_block(layer).view(kept)
                below = reached[:, architecture.units[layer - 1]]
                reached[:, architecture.units[layer]] |= np.matmul(wires, below)
            hidden = reached[:, :n_hidden].astype(np.float32)
            total += (np.matmul(hidden.swapaxes(1, 2), hidden) > 0).sum(axis=0)
        return total / self.n_draws

    def networks(self, architecture: Architecture, draws: Index | None = None) -> DrawnNetworks:
        """Some of the draws, or all, to predict and to explain with."""
        every = DrawnNetworks(architecture, self.slots, self.weights, self.ends, self.biases)
        return every if draws is None else every.take(draws)

    def predictor(self, architecture: Architecture, x: Float, draws: Index | None = None) -> Float:
        """Linear predictor of draws for standardised rows, (draws, rows, outputs)."""
        return self.networks(architecture, draws).predictor(x)
