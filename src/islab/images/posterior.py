"""The posterior of a convolutional network: one for the kernels of each layer, one for the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from islab.core.posterior import Initial, Posterior
from islab.images.geometry import ImageArchitecture
from islab.images.network import Numbers

if TYPE_CHECKING:
    from islab.images.sparse import SparseImageNetwork

Float = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class ImagePosterior:
    """Mean, spread and inclusion probability of every kernel weight and every weight of the head.

    Attributes
    ----------
    architecture : ImageArchitecture
    kernels : tuple of Posterior
        Of the dense layer on patches, for each convolution.
    head : Posterior
        Its covariates are the flattened features.
    """

    architecture: ImageArchitecture
    kernels: tuple[Posterior, ...]
    head: Posterior

    @classmethod
    def initialise(
        cls,
        architecture: ImageArchitecture,
        rng: np.random.Generator,
        initial: Initial | None = None,
        likelihood: str = "categorical",
    ) -> ImagePosterior:
        """A posterior to start training from."""
        kernels = tuple(
            Posterior.initialise(layer.dense, rng, initial) for layer in architecture.convolutions
        )
        head = Posterior.initialise(architecture.head, rng, initial, likelihood)
        return cls(architecture, kernels, head)

    @property
    def layers(self) -> tuple[Posterior, ...]:
        """Kernels of each convolution, then the head."""
        return (*self.kernels, self.head)

    @property
    def likelihood(self) -> str:
        return self.head.likelihood

    def draw(self, rng: np.random.Generator) -> Numbers:
        """One network, the same for all rows."""
        return Numbers.of([layer.draw(1, rng) for layer in self.layers])

    def median(
        self, threshold: float = 0.5, outputs: Sequence[str] | None = None
    ) -> SparseImageNetwork:
        """The small network of weights with ``alpha > threshold`` on active paths."""
        from islab.images.sparse import SparseImageNetwork

        return SparseImageNetwork.from_posterior(self, threshold, outputs)
