"""Counts that vary more than Poisson counts do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from islab.core.expressions import Expression, call, largest
from islab.core.families.likelihood import Array, Float, checked_levels
from islab.core.families.mixtures import count_quantiles
from islab.core.families.poisson import LARGEST_LOG_RATE, LEAST_RATE, Poisson
from islab.core.families.spelling import CountShares, Kernel

LEAST_DISPERSION, DISPERSION_STEP = 1e-4, 4.0


class NegativeBinomial(Poisson):
    """Counts with a log link and a learned dispersion, ``noise``.

    The variance is ``mean + dispersion * mean**2``: a Poisson count whose rate has a gamma
    distribution of mean 1 and variance ``dispersion`` as a factor. Rates are those of Poisson.
    """

    name = "negative_binomial"
    kernel = Kernel("negative_binomial", LARGEST_LOG_RATE)
    learns_noise = True
    noise_name = "dispersion"
    overdispersed = None
    # The incomplete beta function by its continued fraction, from the side where it converges.
    python_share = """def _share(value, mean, noise):
    b = math.floor(value) + 1
    if b < 1 or mean == 0:
        return float(b >= 1)
    a = 1 / noise
    x, y = a / (a + mean), mean / (a + mean)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y)
    swap = x > (a + 1) / (a + b + 2)
    p, q, z = (b, a, y) if swap else (a, b, x)
    c, d = 1.0, 1 / (1 - (p + q) * z / (p + 1))
    total, change, n = d, 0.0, 0
    while abs(change - 1) > 1e-15:
        n += 1
        even = n * (q - n) * z / ((p + 2 * n - 1) * (p + 2 * n))
        d = 1 / (1 + even * d)
        c = 1 + even / c
        total *= c * d
        odd = -(p + n) * (p + q + n) * z / ((p + 2 * n) * (p + 2 * n + 1))
        d = 1 / (1 + odd * d)
        c = 1 + odd / c
        change = c * d
        total *= change
    part = math.exp(front) * total / p
    return 1 - part if swap else part"""

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp, log_gamma = array_namespace(eta), _special(eta, "gammaln")
        size, log_rate = 1 / noise, _log_rate(eta)
        # (y + size) log(1 + dispersion rate) without overflow.
        grown = xp.log1p(noise * self.mean(eta))
        known = log_gamma(y + size) - log_gamma(size) - log_gamma(y + 1) + y * xp.log(noise)
        return xp.sum((y + size) * grown - y * log_rate - known, axis=-1)

    def nll_constant(self, y: Float) -> None:  # type: ignore[override]
        return None

    def gradient(self, y: Array, eta: Array, noise: Array) -> Array:
        rate, slope = self.mean(eta), _log_rate_slope(eta)
        return slope * (rate - y) / (1 + noise * rate)

    def variance(self, eta: Array, noise: Array) -> Array:
        rate = self.mean(eta)
        return rate + noise * rate * rate

    def variance_expression(self, mean: Expression, noise: tuple[Expression, ...]) -> Expression:
        return mean + noise[0] * mean * mean

    def count_shares(self, mean: Expression, noise: tuple[Expression, ...]) -> CountShares:
        size = 1.0 / noise[0]
        ratio = call("log", largest(mean, LEAST_RATE) / (size + mean))
        return CountShares(size * call("log", size / (size + mean)), ratio, size)

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        rate, slope = self.mean(eta), _log_rate_slope(eta)
        return np.eye(eta.shape[1])[:, None] * slope * np.sqrt(rate / (1 + noise * rate))

    def noise_terms(self, y: Array, eta: Array, noise: Array) -> Array:
        # A step down the gradient of the NLL by the logarithm of the dispersion.
        xp, digamma = array_namespace(eta), _special(eta, "digamma")
        rate, size = self.mean(eta), 1 / noise
        slope = digamma(y + size) - digamma(size) - xp.log1p(noise * rate)
        slope = size * (slope + (rate - y) / (size + rate))
        return noise * (1 - DISPERSION_STEP * slope) + LEAST_DISPERSION

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        size = np.broadcast_to(1 / np.asarray(noise, dtype=float), np.shape(eta))
        return np.asarray(rng.poisson(self.mean(eta) * rng.gamma(size) / size), dtype=float)

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        noise = np.asarray(noise, dtype=float)
        return count_quantiles(self.mean(draws), noise, checked_levels(levels).ravel(), _share)

    # The share of counts up to k is summed from 0, by the ratio of neighbouring terms.
    javascript = """{
  response: (eta) => eta.map((value) => {
    const capped = Math.min(value, LARGEST_LOG_RATE);
    return Math.exp(capped) * (1 + value - capped);
  }),
  /* Smallest count that a mixture of counts does not exceed with that share. */
  interval(rates, share, dispersion, last, parts = rates.map(() => 1)) {
    if (Math.max(...rates) > 1e4) return this.smooth(rates, share, dispersion, parts);
    const sizes = dispersion.map((each) => 1 / each);
    const terms = rates.map((rate, i) =>
      parts[i] * Math.exp(-sizes[i] * Math.log1p(dispersion[i] * rate)));
    const ratios = rates.map((rate, i) => rate / (sizes[i] + rate));
    let sum = average(terms, (term) => term);
    let k = 0;
    for (; sum < share && k < 1e7; k++) {
      for (let i = 0; i < terms.length; i++) terms[i] *= ratios[i] * (k + sizes[i]) / (k + 1);
      sum += average(terms, (term) => term);
    }
    return k;
  },
  /* Of large rates: a gamma variable by Wilson and Hilferty's normal of the cube root. */
  smooth(rates, share, dispersion, parts) {
    const below = (value) => average(rates, (rate, i) => {
      const shape = 1 / (dispersion[i] + 1 / rate);
      const root = Math.cbrt(Math.max(value, 0) / rate);
      return parts[i] * normalShare((root - 1 + 1 / (9 * shape)) * Math.sqrt(9 * shape));
    });
    const most = Math.max(...rates) * (2 + 80 * Math.max(...dispersion));
    return Math.round(bisected(below, share, 0, most));
  },
}""".replace("LARGEST_LOG_RATE", str(LARGEST_LOG_RATE))


def _share(count: Float, rate: Float, dispersion: Float) -> Float:
    from scipy.special import betainc

    size = 1 / dispersion
    return betainc(size, count + 1, size / (size + rate))


def _log_rate(eta: Array) -> Array:
    xp = array_namespace(eta)
    capped = xp.clip(eta, max=LARGEST_LOG_RATE)
    return capped + xp.log1p(eta - capped)


def _log_rate_slope(eta: Array) -> Array:
    xp = array_namespace(eta)
    return 1 / (1 + eta - xp.clip(eta, max=LARGEST_LOG_RATE))


def _special(like: Array, name: str) -> Callable[[Array], Array]:
    """A function of :mod:`scipy.special`, or torch's for tensors."""
    if "torch" in array_namespace(like).__name__:
        import torch

        return getattr(torch.special, name)
    from scipy import special

    return getattr(special, name)
