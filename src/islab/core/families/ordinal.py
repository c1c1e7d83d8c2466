"""One of several classes that have an order."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from islab.core import expressions
from islab.core.equations import sigmoid, softplus
from islab.core.expressions import Expression, Let
from islab.core.families.likelihood import (
    Array,
    ClassLikelihood,
    Float,
    Words,
    checked_levels,
)
from islab.core.families.spelling import Kernel

GAP_STEP = 1.0
BETWEEN = " < "


class Ordinal(ClassLikelihood):
    """Ordered classes by cumulative logits: one predictor, and thresholds that cut its scale.

    ``y`` is the number of the class, its level, from 1 to K. The log odds of a level above j are
    the predictor minus threshold j. The first threshold is 0, since the predictor has a bias;
    ``noise`` are the K - 2 gaps between neighbouring thresholds. Where they are needed for the
    mean or a spelling, :meth:`given` makes them known.
    """

    name = "ordinal"
    kernel = Kernel("ordinal")
    ordered = True
    learns_noise = True
    noise_name = "gaps between thresholds"
    support = (1.0, np.inf)
    words = Words(
        predictor="log odds of a higher class",
        ratio="odds ratio",
        response="expected level",
        prediction="the probability of each class, from the lowest to the highest",
        symbol="E",
        predicts="the level of {}, counted from 1",
        linear_model="cumulative logistic",
    )
    javascript = """{
  response: (eta, gaps) => {
    const thresholds = [0];
    for (const gap of gaps) thresholds.push(thresholds[thresholds.length - 1] + gap);
    return eta.map((value) =>
      thresholds.reduce((sum, cut) => sum + 1 / (1 + Math.exp(cut - value)), 1));
  },
}"""
    gaps: Array = None

    def given(self, noise: Array) -> Ordinal:
        known = copy.copy(self)
        known.gaps = noise
        cuts = _thresholds(noise)
        if cuts.ndim == 1:
            known.support = (1.0, float(len(cuts)) + 1)  # type: ignore[misc]
            known.kernel = Kernel("ordinal", float(len(cuts)) - 1)  # type: ignore[misc]
        return known

    def n_noise(self, n_outputs: int) -> int | None:
        return None

    # -- the target -----------------------------------------------------------------------

    def start_noise(self, y: Float) -> Float:
        return np.diff(_cumulative_logits(y))

    def initial_bias(self, y: Float) -> Float:
        return np.array([-_cumulative_logits(column)[0] for column in y.T])

    # -- given the predictor --------------------------------------------------------------

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        parts = _Parts(y, noise)
        # sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)), without differences.
        above = parts.has_upper * softplus(eta - parts.upper)
        below = parts.has_lower * softplus(parts.lower - eta)
        width = xp.sum(parts.own * xp.log(-xp.expm1(-noise))[..., None, :], axis=-1)
        return xp.sum(above + below - width, axis=-1)

    def gradient(self, y: Array, eta: Array, noise: Array) -> Array:
        parts = _Parts(y, noise)
        above = parts.has_upper * sigmoid(eta - parts.upper)
        return above - parts.has_lower * sigmoid(parts.lower - eta)

    def mean(self, eta: Array) -> Array:
        xp = array_namespace(eta)
        return 1 + xp.sum(_above(eta, self.gaps), axis=-1)

    def variance(self, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        above = _above(eta, noise)
        odd = 2 * xp.arange(above.shape[-1], dtype=above.dtype) + 1
        mean = xp.sum(above, axis=-1)
        return xp.sum(odd * above, axis=-1) - mean * mean

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        above = _above(eta, noise)
        ends = np.concatenate([np.ones_like(above[..., :1]), above, 0 * above[..., :1]], axis=-1)
        information = (above * (1 - above) * (ends[..., :-2] - ends[..., 2:])).sum(axis=-1)
        return np.eye(eta.shape[1])[:, None] * np.sqrt(information)

    def noise_terms(self, y: Array, eta: Array, noise: Array) -> Array:
        # A step down the gradient of the NLL by the logarithm of each gap.
        xp = array_namespace(eta)
        parts = _Parts(y, noise)
        number = xp.arange(noise.shape[-1], dtype=eta.dtype) + 2
        above = (parts.has_upper * sigmoid(eta - parts.upper))[..., None]
        below = (parts.has_lower * sigmoid(parts.lower - eta))[..., None]
        level = y[..., None]
        slope = below * _where(level > number) - above * _where(level >= number)
        slope = slope - parts.own / xp.expm1(noise)
        return noise * (1 - GAP_STEP * xp.sum(slope, axis=-2) * noise / (1 + noise))

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        latent = (eta + rng.logistic(size=eta.shape))[..., None]
        return 1.0 + (latent > _thresholds(noise)[..., None, :]).sum(axis=-1)

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        up_to = 1 - _above(draws, noise).mean(axis=0)
        level = checked_levels(levels).reshape(-1, 1, 1, 1)
        return 1.0 + (up_to < level).sum(axis=-1)

    # -- classes --------------------------------------------------------------------------

    def class_targets(self, codes: NDArray[np.intp], n_classes: int) -> Float:
        return 1.0 + codes[:, None]

    def class_outputs(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        return (BETWEEN.join(classes),)

    def class_probabilities(self, eta: Float) -> Float:
        above = _above(eta, self.gaps)[..., 0, :]
        first = np.ones_like(above[..., :1])
        return np.concatenate([first, above], -1) - np.concatenate([above, 0 * first], -1)

    def response_names(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        names, n_classes = outputs[0].split(BETWEEN), len(self.gaps) + 2
        if len(set(names)) == n_classes:
            return tuple(names)
        return tuple(f"level {number}" for number in range(1, n_classes + 1))

    # -- spellings ------------------------------------------------------------------------

    def formula(self, eta: str, every: Sequence[str]) -> str:
        return " + ".join(["1", *(f"1/(1 + exp({cut} - {eta}))" for cut in self._cuts())])

    def latex(self, eta: str, every: Sequence[str]) -> str:
        parts = (rf"\frac{{1}}{{1 + e^{{{cut} - {eta}}}}}" for cut in self._cuts())
        return " + ".join(["1", *parts])

    def expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        distances = [eta[0]]  # from each threshold
        for number, gap in enumerate(noise):
            distances.append(let(f"distance{number}", distances[-1] - gap))
        above = [let(f"above{k}", expressions.sigmoid(each)) for k, each in enumerate(distances)]
        between = [first - second for first, second in pairwise(above)]
        return [1.0 - above[0], *between, above[-1]]

    def torch(self, eta: Any) -> Any:
        import torch

        above = torch.sigmoid(eta - torch.as_tensor(_thresholds(self.gaps), dtype=eta.dtype))
        first = torch.ones_like(above[:, :1])
        return torch.cat([first, above], dim=1) - torch.cat([above, 0 * first], dim=1)

    def _cuts(self) -> list[str]:
        return [f"{cut:.15g}" for cut in _thresholds(self.gaps)]


class _Parts:
    """The thresholds above and below each row's level, (..., outputs), and which exist."""

    def __init__(self, y: Array, noise: Array) -> None:
        xp = array_namespace(y)
        cuts = _thresholds(noise)
        number = xp.arange(cuts.shape[-1], dtype=y.dtype) + 1
        level = y[..., None]
        self.has_upper, self.has_lower = _where(y <= len(number)), _where(y > 1)
        self.upper = xp.sum(_where(level == number) * cuts[..., None, :], axis=-1)
        self.lower = xp.sum(_where(level - 1 == number) * cuts[..., None, :], axis=-1)
        self.own = _where(level - 1 == number[:-1])  # (..., outputs, gaps)


def _where(condition: Array) -> Array:
    """1 where it holds, else 0."""
    return 1 * condition


def _thresholds(gaps: Array) -> Array:
    xp = array_namespace(gaps)
    return xp.cumulative_sum(gaps, axis=-1, include_initial=True)


def _above(eta: Array, gaps: Array) -> Array:
    """Probability of a level above each threshold, (..., outputs, thresholds)."""
    return sigmoid(eta[..., None] - _thresholds(gaps)[..., None, :])


def _cumulative_logits(y: Float) -> Float:
    """Log odds of levels up to each but the last, of half a row more of each."""
    levels = np.asarray(y, dtype=np.intp).ravel() - 1
    counts = np.bincount(np.maximum(levels, 0), minlength=2) + 0.5
    share = np.cumsum(counts)[:-1] / counts.sum()
    return np.log(share) - np.log1p(-share)
