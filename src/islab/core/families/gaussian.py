"""Real numbers with normal noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from islab.core.families.likelihood import Array, Float, Likelihood, Words, checked_levels
from islab.core.families.spelling import Kernel, OnnxGraph

NEWTON_STEPS = 50


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
        sd = np.sqrt(noise)
        return np.stack(
            [mixture_quantile(draws, sd, p) for p in checked_levels(levels).ravel().tolist()]
        )

    def formula(self, eta: str, every: Sequence[str]) -> str:
        return eta

    def latex(self, eta: str, every: Sequence[str]) -> str:
        return eta

    def onnx(self, graph: OnnxGraph, eta: str) -> str:
        return eta


def mixture_quantile(centres: Float, sd: Float, level: float) -> Float:
    """Quantile of an equal mixture of normals over the first axis; each may have its own ``sd``.

    Newton's steps from the quantile of a normal with the same moments, kept inside a bracket
    that shrinks: a step that would leave it goes to the middle.
    """
    from scipy.special import ndtr, ndtri

    reach = ndtri(level)
    ends = centres + reach * sd
    low, high = ends.min(axis=0), ends.max(axis=0)
    own = sd**2 if sd.ndim < centres.ndim else (sd**2).mean(axis=0)
    x = centres.mean(axis=0) + reach * np.sqrt(centres.var(axis=0) + own)
    for _ in range(NEWTON_STEPS):
        x = np.where((x >= low) & (x <= high), x, (low + high) / 2)
        score = (x - centres) / sd
        excess = ndtr(score).mean(axis=0) - level
        density = (np.exp(-0.5 * score * score) / sd).mean(axis=0) / np.sqrt(2 * np.pi)
        low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
        step = excess / np.maximum(density, np.finfo(float).tiny)
        x = x - step
        if (np.abs(step) <= 1e-10 * np.sqrt(own)).all():
            break
    return np.clip(x, low, high)
