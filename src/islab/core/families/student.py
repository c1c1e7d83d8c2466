"""Real numbers with outliers."""

from __future__ import annotations

from math import lgamma, log, pi

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from islab.core.expressions import Expression, call
from islab.core.families.gaussian import Gaussian
from islab.core.families.likelihood import Array, Float, checked_levels
from islab.core.families.mixtures import Location, location_quantiles
from islab.core.families.spelling import Kernel, StandardNoise

DF = 4.0
LOG_CONSTANT = lgamma((DF + 1) / 2) - lgamma(DF / 2) - log(DF * pi) / 2
BIAS_STEPS, SMALLEST_NOISE = 50, 1e-12


def _standard_share(z: Expression) -> Expression:
    part = z / call("sqrt", 4.0 + z * z)
    return 0.5 + part * (3.0 - part * part) / 4.0


def _standard_density(z: Expression) -> Expression:
    grown = 1.0 + z * z / 4.0
    return 0.375 / (grown * grown * call("sqrt", grown))


def _standard_quantile(level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(DF, level))


class StudentT(Gaussian):
    """Real outputs with Student-t noise of 4 degrees of freedom.

    ``noise`` is the square of the learned scale; the variance of the noise is twice that. A row
    far from its mean pulls on the network less, not more, the farther it lies.
    """

    name = "student_t"
    with_outliers = None
    kernel = Kernel("student_t", DF)
    normal_noise = False
    noise_name = "noise scale"
    standard_noise = StandardNoise(_standard_share, _standard_density, _standard_quantile)
    python_share = """def _share(value, mean, noise):
    z = (value - mean) / math.sqrt(noise)
    part = z / math.sqrt(4 + z * z)
    return 0.5 + part * (3 - part * part) / 4"""
    # Quantiles beyond 1e4 scales from the outermost mean have levels below 1e-15.
    javascript = """{
  response: (eta) => eta.slice(),
  interval: (means, share, noise) => {
    const scale = noise.map(Math.sqrt);
    const one = (z) => {
      const part = z / Math.sqrt(4 + z * z);
      return 0.5 + (part * (3 - part * part)) / 4;
    };
    const below = (value) => average(means, (mean, draw) => one((value - mean) / scale[draw]));
    const reach = 1e4 * Math.max(...scale);
    return bisected(below, share, Math.min(...means) - reach, Math.max(...means) + reach);
  },
}"""

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        error = y - eta
        tail = (DF + 1) * xp.log1p(error * error / (DF * noise))
        return xp.sum(0.5 * (xp.log(noise) + tail) - LOG_CONSTANT, axis=-1)

    def gradient(self, y: Array, eta: Array, noise: Array) -> Array:
        error = eta - y
        return (DF + 1) * error / (DF * noise + error * error)

    def variance(self, eta: Array, noise: Array) -> Array:
        return DF / (DF - 2) * noise + 0 * eta

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        scale = np.sqrt((DF + 1) / ((DF + 3) * noise)) + 0 * eta
        return np.eye(eta.shape[1])[:, None] * scale

    def noise_terms(self, y: Array, eta: Array, noise: Array) -> Array:
        # A step of EM: rows count by how much their noise is like that of others.
        error = y - eta
        return (DF + 1) * error * error / (DF + error * error / noise)

    def variance_expression(self, mean: Expression, noise: tuple[Expression, ...]) -> Expression:
        return DF / (DF - 2) * noise[0]

    def initial_bias(self, y: Float) -> Float:
        # From the median, by least squares with weights that fall with the distance.
        centre = np.median(y, axis=0)
        noise = np.maximum(y.var(axis=0), np.finfo(float).tiny)
        for _ in range(BIAS_STEPS):
            noise = np.maximum(self.noise_terms(y, centre, noise).mean(axis=0), SMALLEST_NOISE)
            weight = 1 / (DF * noise + (y - centre) ** 2)
            centre = (weight * y).sum(axis=0) / weight.sum(axis=0)
        return centre

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        return eta + np.sqrt(noise) * rng.standard_t(DF, eta.shape)

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        return location_quantiles(
            Location("student_4", _quantile, _share, _density),
            draws,
            np.sqrt(noise),
            checked_levels(levels).ravel(),
        )


def _quantile(level: Float) -> Float:
    from scipy.special import stdtrit

    return stdtrit(DF, level)


def _share(z: Float) -> Float:
    """Distribution function of Student's t with 4 degrees of freedom."""
    part = z / np.sqrt(4 + z * z)
    return 0.5 + part * (3 - part * part) / 4


def _density(z: Float) -> Float:
    """Its derivative."""
    return 12 / (4 + z * z) ** 2.5
