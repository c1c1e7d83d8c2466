"""Networks whose inputs are dropped at random: gates, penalty, and the distribution of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from islab.baselines.batched_networks import input_layers
from islab.baselines.kept_weights import NO_SPREAD
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior

if TYPE_CHECKING:
    from islab.core.scale import Scale
    from islab.core.sparse import SparseNetwork

Array = Any
Float = NDArray[np.floating]

TEMPERATURE = 0.1


def drop_gate(logit_p: Array, u: Array) -> Array:
    """Nearly 1 where an input is dropped, nearly 0 where it stays; differentiable by ``p``.

    Parameters
    ----------
    logit_p : array
        Of the dropout probability.
    u : array
        Uniform random numbers between 0 and 1.

    Notes
    -----
    ``sigmoid((logit p + logit u) / temperature)``. A temperature of 1/10 makes its exponential
    the tenth power of a ratio, which takes multiplications only.

    Examples
    --------
    >>> import numpy as np
    >>> drop_gate(np.zeros(3), np.array([0.01, 0.5, 0.99])).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    xp = array_namespace(u)
    ratio = (1 / u - 1) * xp.exp(-logit_p)
    fifth = ratio * ratio * ratio * ratio * ratio
    return 1 / (1 + fifth * fifth)


def dropout_penalty(square: Array, p: Array, n_inputs: Array, *, length_scale: Array) -> Array:
    """KL of each layer from its prior, up to a constant.

    Parameters
    ----------
    square : array
        Sum of a layer's squared weights and biases.
    p, n_inputs : array
        Its dropout probability and number of inputs.
    length_scale : float or array
        One over the prior's standard deviation of a weight.

    Notes
    -----
    ``length_scale**2 / 2 * square / (1 - p) + inputs * (p log p + (1 - p) log(1 - p))``: Gal,
    Hron and Kendall (2017) with weights on the scale of their means, that is, multiplied by
    ``1 - p`` when they stay.
    """
    xp = array_namespace(p)
    entropy = p * xp.log(p) + (1 - p) * xp.log1p(-p)
    return 0.5 * length_scale**2 * square / (1 - p) + n_inputs * entropy


@dataclass(eq=False)
class ConcreteDropout:
    """A network whose inputs are dropped, layer by layer, with probabilities of their own.

    A draw is ``w = mu * keep / (1 - p)`` with ``keep ~ Bernoulli(1 - p)`` for each input of each
    layer, so that ``mu`` is the mean. Training relaxes ``keep`` to a concrete distribution.

    Attributes
    ----------
    architecture : Architecture
    mu : (weights,)
        Weights of covariates without any variation are 0.
    bias : (units,)
    dropout : (layers,)
        Probability ``p`` that an input of the layer is dropped.
    likelihood : str
    noise : (outputs,)
    n_weights_initial : int
    scale : Scale, optional
        Of the data.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "mu": ("weights",),
        "bias": ("units",),
        "dropout": ("layers",),
        "noise": ("outputs",),
    }

    architecture: Architecture
    mu: Float
    bias: Float
    dropout: Float
    likelihood: str
    noise: Float
    n_weights_initial: int
    scale: Scale | None = None

    def keep_probability(self) -> Float:
        """Probability that each weight is not dropped, (weights,)."""
        kept = self.architecture.by_block(1 - self.dropout[: len(self.architecture.blocks)])
        return np.where(self.mu != 0, kept, 0.0)

    def n_expected_weights(self) -> float:
        """Expected number of weights that are not dropped, ``sum (1 - p_l) * in_l * out_l``."""
        return float(self.keep_probability().sum())

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Coherent draws: one set of dropped inputs for all rows."""
        net = self.architecture
        p = self.dropout[input_layers(net)]
        kept = (rng.random((n_draws, len(p))) >= p) / (1 - p)
        return self.mu * kept[:, net.input_index], np.tile(self.bias, (n_draws, 1))

    def median(self) -> SparseNetwork:
        """The network of mean weights.

        One probability for all inputs of a layer singles out no weight, so all stay, each with
        its probability of not being dropped as ``alpha``.
        """
        from islab.core.sparse import SparseNetwork

        with np.errstate(divide="ignore"):
            lam = np.log(self.keep_probability()) - np.log(self.architecture.by_block(self.dropout))
        posterior = Posterior(
            architecture=self.architecture,
            mu=self.mu,
            rho=np.full_like(self.mu, NO_SPREAD),
            lam=lam,
            bias_mu=self.bias,
            bias_rho=np.full_like(self.bias, NO_SPREAD),
            likelihood=self.likelihood,
            noise=self.noise,
            n_weights_initial=self.n_weights_initial,
        )
        return SparseNetwork.from_posterior(posterior, threshold=0.0, scale=self.scale)
