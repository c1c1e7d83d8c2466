"""The sampled posterior: draws of sparse networks from several chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.network import forward

Float = NDArray[np.floating]
Index = NDArray[np.intp]


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
    noise : (draws, outputs)
        Noise variance of Gaussian outputs.
    tau2 : (draws, blocks)
        Slab variances.
    row_log_likelihood : (draws, rows)
        Log likelihood of the training rows.
    moves : dict
        Accepted and proposed moves of each kind.
    """

    slots: Index
    weights: Float
    ends: Index
    biases: Float
    noise: Float
    tau2: Float
    row_log_likelihood: Float
    moves: dict[str, tuple[int, int]]

    @property
    def n_draws(self) -> int:
        return len(self.ends)

    @property
    def sizes(self) -> Index:
        """Used weights of each draw."""
        return np.diff(self.ends, prepend=0)

    def dense(self, draws: Index, n_weights: int) -> Float:
        """Flat weights of some draws, (draws, weights)."""
        sizes = self.sizes[draws]
        rows = np.repeat(np.arange(len(draws)), sizes)
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        at = np.repeat(self.ends[draws] - sizes, sizes) + within
        flat = np.zeros((len(draws), n_weights))
        flat[rows, self.slots[at]] = self.weights[at]
        return flat

    def uses_covariate(self, architecture: Architecture) -> NDArray[np.bool_]:
        """Whether each draw uses each covariate, (draws, covariates)."""
        sources = architecture.ends[0][self.slots]
        rows = np.repeat(np.arange(self.n_draws), self.sizes)
        used = np.zeros((self.n_draws, architecture.n_covariates), dtype=bool)
        covariate = sources < architecture.n_covariates
        used[rows[covariate], sources[covariate]] = True
        return used

    def predictor(self, architecture: Architecture, x: Float, draws: Index | None = None) -> Float:
        """Linear predictor of draws for standardised rows, (draws, rows, outputs)."""
        draws = np.arange(self.n_draws) if draws is None else draws
        parts = np.array_split(draws, max(1, len(draws) * architecture.n_weights // 2_000_000))
        return np.concatenate(
            [
                forward(
                    architecture, self.dense(part, architecture.n_weights), self.biases[part], x
                )
                for part in parts
            ]
        )
