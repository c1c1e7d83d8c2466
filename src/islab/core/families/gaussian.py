"""Real numbers with normal noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from islab.core.families.likelihood import Array, Float, Likelihood, Words, checked_levels
from islab.core.families.mixtures import Location, location_quantiles
from islab.core.families.spelling import Kernel, OnnxGraph


class Gaussian(Likelihood):
    """Real outputs with a noise variance each, learned in training."""

    name = "gaussian"
    target = "numbers"
    kernel = Kernel("gaussian")
    learns_noise = True
    normal_noise = True
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
    python = "return eta"
    # No quantile lies farther than 40 standard deviations from the outermost mean.
    javascript = """{
  response: (eta) => eta.slice(),
  interval: (means, share, noise) => {
    const sd = Math.sqrt(noise);
    const below = (value) =>
      means.reduce((sum, mean) => sum + normalShare((value - mean) / sd), 0) / means.length;
    return bisected(below, share, means[0] - 40 * sd, means[means.length - 1] + 40 * sd);
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

    def onnx(self, graph: OnnxGraph, eta: str) -> str:
        return eta


def _quantile(level: Float) -> Float:
    from scipy.special import ndtri

    return ndtri(level)


def _share(z: Float) -> Float:
    from scipy.special import ndtr

    return ndtr(z)


def _density(z: Float) -> Float:
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


NORMAL = Location("normal", _quantile, _share, _density)
