"""Real numbers with normal noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from islab.core.expressions import Expression, Let, call, exp, greater, polynomial, where
from islab.core.families.likelihood import Array, Float, Likelihood, Words, checked_levels
from islab.core.families.mixtures import Location, location_quantiles
from islab.core.families.spelling import Kernel, StandardNoise

# Hart's rational function: the normal tail is exp(-z^2/2) times the one by the other.
TAIL_ABOVE = (
    *(3.52624965998911e-2, 0.700383064443688, 6.37396220353165, 33.912866078383),
    *(112.079291497871, 221.213596169931, 220.206867912376),
)
TAIL_BELOW = (
    *(8.83883476483184e-2, 1.75566716318264, 16.064177579207, 86.7807322029461),
    *(296.564248779674, 637.333633378831, 793.826512519948, 440.413735824752),
)


def normal_share(z: Expression) -> Expression:
    """Distribution function of a standard normal variable, exact to 1e-14."""
    distance = call("abs", z)
    tail = exp(-0.5 * z * z) * polynomial(distance, TAIL_ABOVE) / polynomial(distance, TAIL_BELOW)
    return where(greater(z, 0.0), 1.0 - tail, tail)


def normal_density(z: Expression) -> Expression:
    """Density of a standard normal variable."""
    return exp(-0.5 * z * z) * float(1 / np.sqrt(2 * np.pi))


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(level))


class Gaussian(Likelihood):
    """Real outputs with a noise variance each, learned in training."""

    name = "gaussian"
    target = "numbers"
    kernel = Kernel("gaussian")
    learns_noise = True
    normal_noise = True
    with_outliers: ClassVar[str | None] = "student_t"
    scales_target = True
    words = Words(
        predictor=None,
        ratio=None,
        response="expected value",
        prediction="its expectation",
        symbol="E",
        predicts="{} as a number",
        linear_model="linear",
    )
    standard_noise = StandardNoise(normal_share, normal_density, _normal_quantile)
    python_share = """def _share(value, mean, noise):
    return 0.5 * math.erfc((mean - value) / math.sqrt(2 * noise))"""
    # No quantile lies farther than 40 standard deviations from the outermost mean.
    javascript = """{
  response: (eta) => eta.slice(),
  interval: (means, share, noise) => {
    const sd = noise.map(Math.sqrt);
    const below = (value) =>
      average(means, (mean, draw) => normalShare((value - mean) / sd[draw]));
    const reach = 40 * Math.max(...sd);
    return bisected(below, share, Math.min(...means) - reach, Math.max(...means) + reach);
  },
}"""

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
        return location_quantiles(NORMAL, draws, np.sqrt(noise), checked_levels(levels).ravel())

    def formula(self, eta: str, every: Sequence[str]) -> str:
        return eta

    def latex(self, eta: str, every: Sequence[str]) -> str:
        return eta

    def expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        return list(eta)

    def variance_expression(self, mean: Expression, noise: tuple[Expression, ...]) -> Expression:
        return noise[0]


def _quantile(level: Float) -> Float:
    from scipy.special import ndtri

    return ndtri(level)


def _share(z: Float) -> Float:
    from scipy.special import ndtr

    return ndtr(z)


def _density(z: Float) -> Float:
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


NORMAL = Location("normal", _quantile, _share, _density)
