"""Group horseshoe: weights times a log-normal scale for each input, and which inputs it keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from islab.baselines.batched_networks import input_layers
from islab.baselines.kept_weights import lambda_of, rho_of
from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float, Mask
from islab.core.equations import slab_kl
from islab.core.network import forward
from islab.core.posterior import Posterior
from islab.learn.engines.base import Problem
from islab.learn.variational import ELBO_PASSES

if TYPE_CHECKING:
    from islab.core.scale import Scale
    from islab.core.sparse import SparseNetwork

Array = Any

MOST_CANDIDATES = 25
MOST_ROWS = 2000


def gamma_kl(mean: Array, variance: Array, *, scale: float) -> Array:
    """KL of a log-normal from a Gamma distribution of shape 1/2.

    Parameters
    ----------
    mean, variance : array
        Of the logarithm.
    scale : float
        Of the Gamma distribution.

    Notes
    -----
    ``-(m + log s2 + 1 + log 2) / 2 + log(t) / 2 + exp(m + s2 / 2) / t``.
    """
    xp = array_namespace(mean)
    entropy = mean + xp.log(variance) + 1 + float(np.log(2))
    return xp.exp(mean + variance / 2) / scale + 0.5 * float(np.log(scale)) - entropy / 2


def inverse_gamma_kl(mean: Array, variance: Array, *, scale: float) -> Array:
    """KL of a log-normal from an inverse Gamma distribution of shape 1/2.

    If ``x`` is inverse Gamma with a scale ``b``, ``1 / x`` is Gamma with the scale ``1 / b``, and
    KLs do not change when both are inverted.
    """
    return gamma_kl(-mean, variance, scale=1 / scale)


def factors_kl(log: Float, log_variance: Float, *, scale: float) -> Float:
    """KL of pairs of factors from the prior that makes roots of their products half-Cauchy.

    Parameters
    ----------
    log, log_variance : (..., 2, factors)
        Mean of each logarithm, and the logarithm of its variance.
    scale : float
        Of the half-Cauchy distribution.

    Returns
    -------
    (..., factors)

    Notes
    -----
    The first factor has a Gamma prior with the squared scale, the second an inverse Gamma prior.
    """
    variance = np.exp(log_variance)
    first = gamma_kl(log[..., 0, :], variance[..., 0, :], scale=scale**2)
    return first + inverse_gamma_kl(log[..., 1, :], variance[..., 1, :], scale=1.0)


def factors_kl_slopes(log: Float, log_variance: Float, *, scale: float) -> tuple[Float, Float]:
    """Derivatives of :func:`factors_kl` by both of its arrays."""
    sign, squared = (np.array(pair, dtype=log.dtype)[:, None] for pair in ((1, -1), (scale**2, 1)))
    variance = np.exp(log_variance)
    expected = np.exp(sign * log + variance / 2) / squared
    return sign * (expected - 0.5), (expected * variance - 1) / 2


def log_moments(log: Float, log_variance: Float) -> tuple[Float, Float]:
    """Mean and standard deviation of the logarithm of the root of each pair's product."""
    return log.sum(axis=-2) / 2, np.sqrt(np.exp(log_variance).sum(axis=-2)) / 2


def product_moments(mu: Array, sigma: Array, log_mean: Array, log_sd: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of ``z * w``, log-normal times normal.

    Notes
    -----
    ``E[z] = exp(m + s2 / 2)`` and ``E[z**2] = exp(2 m + 2 s2)``, so that
    ``Var = E[z]**2 (exp(s2) sigma**2 + (exp(s2) - 1) mu**2)``.
    """
    xp = array_namespace(mu)
    variance = log_sd**2
    scale = xp.exp(log_mean + variance / 2)
    spread = xp.exp(variance) * sigma**2 + xp.expm1(variance) * mu**2
    return scale * mu, scale * xp.sqrt(spread)


@dataclass(eq=False)
class Horseshoe:
    """Normal weights times a log-normal scale for each input of each layer.

    A weight is ``w = z * v`` with ``v ~ N(mu, sigma**2)``; ``log z`` is the sum of a normal
    variable of the layer and one of the input. An input is kept where ``s2_z - m_z`` is below
    the threshold, ``m_z`` and ``s2_z`` being mean and variance of ``log z``: where the mode of
    ``z`` is above ``exp(-threshold)``.

    Attributes
    ----------
    architecture : Architecture
    mu, sigma : (weights,)
        Of the weights before scaling; 0 for covariates without any variation.
    bias_mu, bias_sigma : (units,)
    layer_mean, layer_sd : (layers,)
        Of the layers' part of the logarithmic scales.
    input_mean, input_sd : (inputs,)
        Of the inputs' part; inputs of all layers, one layer after the other.
    threshold : (layers,)
    likelihood : str
    noise : (outputs,)
    n_weights_initial : int
    scale : Scale, optional
        Of the data.
    """

    ARRAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "mu": ("weights",),
        "sigma": ("weights",),
        "bias_mu": ("units",),
        "bias_sigma": ("units",),
        "layer_mean": ("layers",),
        "layer_sd": ("layers",),
        "input_mean": ("inputs",),
        "input_sd": ("inputs",),
        "threshold": ("layers",),
        "noise": ("noise",),
    }

    architecture: Architecture
    mu: Float
    sigma: Float
    bias_mu: Float
    bias_sigma: Float
    layer_mean: Float
    layer_sd: Float
    input_mean: Float
    input_sd: Float
    threshold: Float
    likelihood: str
    noise: Float
    n_weights_initial: int
    scale: Scale | None = None

    def by_input(self, values: NDArray) -> NDArray:
        """Values of layers, one for each of their inputs, (..., inputs)."""
        return values[..., input_layers(self.architecture)]

    @property
    def log_mean(self) -> Float:
        """Mean ``m_z`` of each input's logarithmic scale."""
        return self.input_mean + self.by_input(self.layer_mean)

    @property
    def log_sd(self) -> Float:
        """Standard deviation ``s_z`` of each input's logarithmic scale."""
        return np.hypot(self.input_sd, self.by_input(self.layer_sd))

    def shrinkage(self) -> Float:
        """How far each input is shrunk, ``s2_z - m_z``, (inputs,): minus the log of z's mode."""
        return self.log_sd**2 - self.log_mean

    def kept(self) -> Mask:
        """Inputs of all layers that are shrunk less than the threshold, (inputs,)."""
        return self.shrinkage() < self.by_input(self.threshold)

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Float, Float]:
        """Coherent draws: the weights of an input share its scale, those of a layer its."""

        def normal(mean: Float, sd: Float) -> Float:
            return mean + sd * rng.standard_normal((n_draws, len(mean)))

        layer = normal(self.layer_mean, self.layer_sd)
        log_scale = normal(self.input_mean, self.input_sd) + self.by_input(layer)
        scale = np.exp(log_scale)[:, self.architecture.input_index]
        return scale * normal(self.mu, self.sigma), normal(self.bias_mu, self.bias_sigma)

    def median(self) -> SparseNetwork:
        """The network of kept inputs; means and standard deviations are those of the products."""
        from islab.core.sparse import SparseNetwork

        return SparseNetwork.from_posterior(self.pruned(), scale=self.scale)

    def pruned(self) -> Posterior:
        """Independent normal weights with the same moments; kept ones are certainly in."""
        net = self.architecture
        index = net.input_index
        mean, sd = product_moments(self.mu, self.sigma, self.log_mean[index], self.log_sd[index])
        kept = self.kept()[index] & (self.sigma > 0)
        return Posterior(
            architecture=net,
            mu=mean,
            rho=rho_of(sd),
            lam=lambda_of(kept),
            bias_mu=self.bias_mu,
            bias_rho=rho_of(self.bias_sigma),
            likelihood=self.likelihood,
            noise=self.noise,
            n_weights_initial=self.n_weights_initial,
        )


# -- which inputs to keep ------------------------------------------------------------------


def best_thresholds(
    found: Horseshoe, problem: Problem, scale_kl: Float, rng: np.random.Generator
) -> Float:
    """The threshold of each layer whose pruned network has the highest ELBO.

    A pruned input costs no KL, and what it had explained is lost. Layers are pruned one
    after the other, the last one first, and each keeps at least one input. Candidates lie halfway
    between inputs that are next to each other in shrinkage.

    Parameters
    ----------
    found : Horseshoe
    problem : Problem
        The training data.
    scale_kl : (inputs,)
        KL of each input's own scale.
    rng : Generator

    Returns
    -------
    thresholds : (layers,)
    """
    net, index = found.architecture, found.architecture.input_index
    used = found.sigma > 0
    cost = np.where(used, slab_kl(found.mu, np.where(used, found.sigma, 1.0), tau=1.0), 0.0)
    kl = scale_kl + np.bincount(index, weights=cost, minlength=len(scale_kl))
    weights, biases = found.draw(ELBO_PASSES, rng)
    rows = rng.permutation(problem.n_rows)[:MOST_ROWS]

    def loss(thresholds: Float) -> float:
        kept = replace(found, threshold=thresholds).kept()
        return _nll(found, problem, rows, weights * kept[index], biases) + float(kl[kept].sum())

    layer_of = found.by_input(np.arange(net.n_layers))
    best = np.full(net.n_layers, np.inf)
    for layer in reversed(range(net.n_layers)):
        trials = np.tile(best, (MOST_CANDIDATES, 1))
        trials[:, layer] = _between(found.shrinkage()[layer_of == layer])
        best = min(trials, key=loss)
    return best


def _between(shrinkage: Float) -> Float:
    """Thresholds that keep from one to all of these inputs, (candidates,)."""
    order = np.sort(shrinkage)
    middles = np.append((order[1:] + order[:-1]) / 2, order[-1] + 1)
    return middles[np.linspace(0, len(middles) - 1, MOST_CANDIDATES).round().astype(int)]


def expected_nll(found: Horseshoe, problem: Problem, rng: np.random.Generator) -> float:
    """Negative log likelihood of all rows, averaged over draws of the whole network."""
    rows = rng.permutation(problem.n_rows)[:MOST_ROWS]
    return _nll(found, problem, rows, *found.draw(ELBO_PASSES, rng))


def _nll(
    found: Horseshoe, problem: Problem, rows: NDArray[np.intp], weights: Float, biases: Float
) -> float:
    """Of all rows under known weights (draws, weights), estimated from some of the rows."""
    eta = forward(found.architecture, weights, biases, problem.x[rows])
    nll = families.likelihood(found.likelihood).nll(problem.y[rows], eta, found.noise).mean(axis=0)
    return float((problem.row_weights[rows] * nll).mean()) * problem.n_rows
