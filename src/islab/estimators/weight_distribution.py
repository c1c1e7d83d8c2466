"""What a method of learning hands to an estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.learn.history import History

if TYPE_CHECKING:
    from islab.core.scale import Scale
    from islab.core.sparse import SparseNetwork

Float = NDArray[np.floating]


class WeightDistribution(Protocol):
    """A distribution over the weights of a network, and the small network to read in it.

    :class:`~islab.core.posterior.Posterior` and :class:`~islab.core.sampled.SampledPosterior` are
    two; every baseline has its own.

    Attributes
    ----------
    architecture : Architecture
    likelihood : str
    noise : (outputs,)
        Noise variance of Gaussian outputs, 1 for others.
    n_weights_initial : int
        Weights before training; densities refer to it.
    scale : Scale, optional
        Of the data; the estimator sets it.

    Notes
    -----
    Kinds whose arrays have one size for each weight or unit name them in a class attribute
    ``ARRAYS``, with the shape in words: "weights", "units", "outputs", "layers", "covariates", or
    "inputs" (those of all layers, one after the other).
    """

    architecture: Architecture
    likelihood: str
    n_weights_initial: int
    scale: Scale | None

    @property
    def noise(self) -> Float: ...

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Coherent draws of all weights (draws, weights) and biases (draws, units)."""

    def median(self) -> SparseNetwork:
        """The network to read: what is kept, on active paths."""


@dataclass(frozen=True, eq=False)
class Learned:
    """The result of learning.

    Attributes
    ----------
    weights : WeightDistribution
    history : History
    elbo, elbo_error : float, optional
        If the method has such a bound, and its Monte Carlo standard error if that is known.
    chosen : dict
        What "auto" stood for, by the parameter's name, where the method chose by held-out rows.
    interrupted : bool
        Whether the person ended training early and kept what there was.
    """

    weights: WeightDistribution
    history: History
    elbo: float | None = None
    chosen: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False
    elbo_error: float | None = None
