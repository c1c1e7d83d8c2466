"""Posteriors of several runs on the same images, mixed so that they predict best together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from islab.core.arrays import Float
from islab.core.convolution.geometry import ImageArchitecture
from islab.core.convolution.network import Numbers
from islab.core.convolution.posterior import ImagePosterior, SparseImageNetwork
from islab.core.leave_one_out import words_of_stacking
from islab.core.sampled import ReadingPrice


@dataclass(frozen=True, eq=False)
class StackedImagePosterior:
    """Each draw comes from one of the runs; the network to read is that of the best.

    Attributes
    ----------
    runs : tuple of ImagePosterior
        Of one architecture.
    shares : (runs,)
        Of each run in the posterior; they sum to 1.
    best : int
        Number of the run that is read.
    price : ReadingPrice
        What its median network loses against all runs.
    """

    runs: tuple[ImagePosterior, ...]
    shares: Float
    best: int
    price: ReadingPrice

    @property
    def architecture(self) -> ImageArchitecture:
        return self.runs[0].architecture

    @property
    def likelihood(self) -> str:
        return self.runs[0].likelihood

    @property
    def stacking(self) -> str:
        """One line to print."""
        return words_of_stacking(self.shares)

    def of_draw(self, number: int, n_draws: int) -> ImagePosterior:
        """The run that one of so many draws comes from: runs follow one another by their shares."""
        place = (number + 0.5) / n_draws
        return self.runs[
            min(int(np.searchsorted(np.cumsum(self.shares), place)), len(self.runs) - 1)
        ]

    def draw(self, rng: np.random.Generator) -> Numbers:
        """One network, the same for all rows."""
        return self.runs[rng.choice(len(self.runs), p=self.shares)].draw(rng)

    def median(
        self, threshold: float = 0.5, outputs: Sequence[str] | None = None
    ) -> SparseImageNetwork:
        """The median network of the best run."""
        return self.runs[self.best].median(threshold, outputs)
