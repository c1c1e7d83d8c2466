"""What the outputs of a network mean: Bernoulli, categorical, Gaussian and Poisson.

A likelihood connects a linear predictor ``eta`` (rows, outputs) with a target ``y`` of the same
shape (one-hot for the categorical). ``noise`` is the variance of each Gaussian output, 1 for the
others. ``nll`` takes numpy arrays or torch tensors; the predictive functions are numpy only and
take draws of the predictor, (draws, rows, outputs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from islab.core.equations import sigmoid, softplus

Array = Any
Float = NDArray[np.floating]

LARGEST_LOG_RATE = 20.0
# Of larger counts the likelihood has no maximum, since rates go on as a straight line.
LARGEST_COUNT = float(np.exp(LARGEST_LOG_RATE))
NEWTON_STEPS = 50


@dataclass(frozen=True)
class Uncertainty:
    """Variance of a prediction, split by its origin; for classes, of each one's indicator.

    Attributes
    ----------
    aleatoric : (rows, outputs)
        What remains when the weights are known.
    epistemic : (rows, outputs)
        What comes from not knowing the weights.
    """

    aleatoric: Float
    epistemic: Float

    @property
    def total(self) -> Float:
        return self.aleatoric + self.epistemic


class Likelihood:
    """Canonical-link exponential family; subclasses fill in the formulas."""

    name: ClassVar[str]
    learns_noise: ClassVar[bool] = False

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        """Negative log likelihood of each row, (rows,)."""
        raise NotImplementedError

    def mean(self, eta: Array) -> Array:
        """Inverse link: expectation of y given the predictor."""
        raise NotImplementedError

    def gradient(self, y: Array, eta: Array, noise: Array) -> Array:
        """Derivative of :meth:`nll` by ``eta``, (rows, outputs)."""
        return (self.mean(eta) - y) / noise

    def variance(self, eta: Array, noise: Array) -> Array:
        """Variance of y given the predictor."""
        raise NotImplementedError

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        """Columns whose outer products sum to each row's Hessian of :meth:`nll` by ``eta``.

        Returns
        -------
        (columns, rows, outputs)
        """
        scale = np.sqrt(self.variance(eta, noise)) / noise
        return np.eye(eta.shape[1])[:, None] * scale

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        """One target for each predictor."""
        raise NotImplementedError

    def initial_bias(self, y: Float) -> Float:
        """Predictor of the constant model that fits best, (outputs,), for a start."""
        raise NotImplementedError

    def predictive_mean(self, draws: Float) -> Float:
        """Expectation of y averaged over draws, (rows, outputs)."""
        return self.mean(draws).mean(axis=0)

    def log_score(self, y: Float, draws: Float, noise: Float) -> Float:
        """Negative log of the predictive density averaged over draws, (rows,)."""
        log_density = -self.nll(y, draws, noise)
        largest = log_density.max(axis=0)
        return -(largest + np.log(np.exp(log_density - largest).mean(axis=0)))

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        """Quantiles of the predictive distribution, (levels, rows, outputs)."""
        raise NotImplementedError

    def uncertainty(self, draws: Float, noise: Float) -> Uncertainty:
        """Law of total variance over the draws."""
        return Uncertainty(
            aleatoric=self.variance(draws, noise).mean(axis=0),
            epistemic=self.mean(draws).var(axis=0),
        )


class Bernoulli(Likelihood):
    """Independent yes-or-no outputs with a logit link."""

    name = "bernoulli"

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        return xp.sum(softplus(eta) - y * eta, axis=-1)

    def mean(self, eta: Array) -> Array:
        return sigmoid(eta)

    def variance(self, eta: Array, noise: Array) -> Array:
        probability = sigmoid(eta)
        return probability * (1 - probability)

    def initial_bias(self, y: Float) -> Float:
        share = (y.sum(axis=0) + 0.5) / (len(y) + 1)
        return np.log(share) - np.log1p(-share)

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        return (rng.random(eta.shape) < sigmoid(eta)).astype(float)

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        level = _check_levels(levels).reshape(-1, 1, 1)
        return np.where(level > 1 - self.predictive_mean(draws), 1.0, 0.0)


class Categorical(Likelihood):
    """One of several classes, ``y`` one-hot, with a softmax link."""

    name = "categorical"

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        largest = xp.max(eta, axis=-1, keepdims=True)
        shifted = eta - largest
        return xp.log(xp.sum(xp.exp(shifted), axis=-1)) - xp.sum(y * shifted, axis=-1)

    def mean(self, eta: Array) -> Array:
        xp = array_namespace(eta)
        grown = xp.exp(eta - xp.max(eta, axis=-1, keepdims=True))
        return grown / xp.sum(grown, axis=-1, keepdims=True)

    def variance(self, eta: Array, noise: Array) -> Array:
        probability = self.mean(eta)
        return probability * (1 - probability)

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        p = self.mean(eta)
        diagonal = np.eye(eta.shape[1])[:, None] * np.sqrt(p)
        return diagonal - np.sqrt(p.T)[:, :, None] * p

    def initial_bias(self, y: Float) -> Float:
        log_share = np.log((y.sum(axis=0) + 0.5) / (len(y) + 0.5 * y.shape[1]))
        return log_share - log_share.mean()

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        chosen = (eta + rng.gumbel(size=eta.shape)).argmax(axis=-1)
        return np.eye(eta.shape[-1])[chosen]

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        raise ValueError(
            "Classes have no order, so they have no quantiles; use the class probabilities."
        )


class Gaussian(Likelihood):
    """Real outputs with a noise variance each, learned in training."""

    name = "gaussian"
    learns_noise = True

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        error = y - eta
        return 0.5 * xp.sum(xp.log(2 * np.pi * noise) + error * error / noise, axis=-1)

    def mean(self, eta: Array) -> Array:
        return eta

    def variance(self, eta: Array, noise: Array) -> Array:
        return noise + 0 * eta

    def initial_bias(self, y: Float) -> Float:
        return y.mean(axis=0)

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        return eta + np.sqrt(noise) * rng.standard_normal(eta.shape)

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        return _mixture_quantiles(draws, np.sqrt(noise), _check_levels(levels).ravel())


class Poisson(Likelihood):
    """Counts with a log link.

    Above a log rate of 20 the rate goes on as a straight line, so that one wild draw cannot
    overflow the training.
    """

    name = "poisson"

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        return xp.sum(self.mean(eta) - y * eta + _log_factorial(y), axis=-1)

    def mean(self, eta: Array) -> Array:
        xp = array_namespace(eta)
        capped = xp.clip(eta, max=LARGEST_LOG_RATE)
        return xp.exp(capped) * (1 + eta - capped)

    def gradient(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        return xp.exp(xp.clip(eta, max=LARGEST_LOG_RATE)) - y

    def variance(self, eta: Array, noise: Array) -> Array:
        return self.mean(eta)

    def initial_bias(self, y: Float) -> Float:
        return np.log(y.mean(axis=0) + 1 / (2 * len(y)))

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        return np.asarray(rng.poisson(self.mean(eta)), dtype=float)

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        from scipy.special import pdtr

        rate = self.mean(draws)
        levels = _check_levels(levels).reshape(-1, 1, 1)
        low = np.full((len(levels), *rate.shape[1:]), -1.0)
        largest = rate.max(axis=0)
        high = np.broadcast_to(np.ceil(10 + largest + 20 * np.sqrt(largest)), low.shape)
        for _ in range(64):
            middle = np.floor((low + high) / 2)
            going = (middle > low) & (middle < high)
            if not going.any():
                break
            below = np.stack([pdtr(m, rate).mean(axis=0) for m in middle]) < levels
            low = np.where(going & below, middle, low)
            high = np.where(going & ~below, middle, high)
        return high


LIKELIHOODS = {cls.name: cls() for cls in (Bernoulli, Categorical, Gaussian, Poisson)}


def get_likelihood(name: str) -> Likelihood:
    """The likelihood of that name."""
    if name not in LIKELIHOODS:
        raise ValueError(f"Got likelihood={name!r}, expected one of {', '.join(LIKELIHOODS)}.")
    return LIKELIHOODS[name]


def _check_levels(levels: ArrayLike) -> Float:
    levels = np.asarray(levels, dtype=float)
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(
            f"Got quantile levels {levels.tolist()}, expected numbers between 0 and 1."
        )
    return levels


def _log_factorial(y: Array) -> Array:
    xp = array_namespace(y)
    if "torch" in xp.__name__:
        import torch

        return torch.lgamma(y + 1)
    from scipy.special import gammaln

    return gammaln(y + 1)


def _mixture_quantiles(centres: Float, sd: Float, levels: Float) -> Float:
    """Quantiles of an equal mixture of normals over the first axis.

    Newton's steps from the quantile of a normal with the same moments, kept inside a bracket
    that shrinks: a step that would leave it goes to the middle.
    """
    return np.stack([_mixture_quantile(centres, sd, level) for level in levels])


def _mixture_quantile(centres: Float, sd: Float, level: float) -> Float:
    from scipy.special import ndtr, ndtri

    reach = ndtri(level)
    low, high = centres.min(axis=0) + reach * sd, centres.max(axis=0) + reach * sd
    x = centres.mean(axis=0) + reach * np.sqrt(centres.var(axis=0) + sd**2)
    for _ in range(NEWTON_STEPS):
        x = np.where((x >= low) & (x <= high), x, (low + high) / 2)
        score = (x - centres) / sd
        excess = ndtr(score).mean(axis=0) - level
        density = np.exp(-0.5 * score * score).mean(axis=0) / (np.sqrt(2 * np.pi) * sd)
        low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
        step = excess / np.maximum(density, np.finfo(float).tiny)
        x = x - step
        if (np.abs(step) <= 1e-10 * sd).all():
            break
    return np.clip(x, low, high)
