"""Counts with more zeros than their rate explains."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from islab.core.expressions import Expression, Let
from islab.core.families.likelihood import Array, Float, checked_levels
from islab.core.families.negative_binomial import (
    LEAST_DISPERSION,
    NegativeBinomial,
)
from islab.core.families.poisson import LARGEST_LOG_RATE, Poisson
from islab.core.families.spelling import CountShares, Kernel

LEAST_ODDS, ODDS_STEP = 1e-4, 4.0
LEVEL_ERROR = 1e-12
SMALLEST_SHARE, BIAS_STEPS = 0.02, 30


def _with_zeros(share: str, own: str) -> str:
    """The function ``_share`` of counts with other zeros, from that of the counts alone."""
    return f"""{share.replace("_share", "_counted")}


def _share(value, mean{own}, odds):
    return (odds * (value >= 0) + _counted(value, mean * (1 + odds){own})) / (1 + odds)"""


def _levels_of_counts(levels: Float, counted: Float) -> tuple[Float, Float]:
    """Between which shares of the counts alone those of all rows reach these levels.

    A share p of all rows is 1 - w + mean(w_d F_d), with w the mean of the shares w_d of rows that
    count. It differs from 1 - w + w F, where F is the mean of F_d, by their covariance, which is at
    most s sqrt(F (1 - F)), with s the standard deviation of w_d: two quadratic equations for F.
    """
    mean, variance = counted.mean(), counted.var()
    rest = levels - (1 - mean)
    half, square = rest * mean + variance / 2, mean**2 + variance
    radicand = variance * (rest * (mean - rest) + variance / 4)
    root = np.sqrt(np.maximum(radicand, 0))
    low = np.where(rest > 0, (half - root) / square - LEVEL_ERROR, 0)
    high = np.where(radicand >= 0, (half + root) / square + LEVEL_ERROR, 0)
    return low, high


class ZeroInflatedPoisson(Poisson):
    """A count is 0 with a learned probability, the same for all rows, and else a Poisson count.

    ``noise`` are the odds of such a zero. The predictor is the logarithm of the rate of the other
    rows; the expected count is that rate times their share, which :meth:`given` makes known.
    """

    name = "zero_inflated_poisson"
    kernel = Kernel("zero_inflated_poisson", LARGEST_LOG_RATE)
    learns_noise = True
    inflates_zeros = True
    noise_name = "odds of a zero that is no count"
    overdispersed: ClassVar[str | None] = "zero_inflated_negative_binomial"
    counts: ClassVar[Poisson] = Poisson()
    odds: Any = None

    def given(self, noise: Array) -> ZeroInflatedPoisson:
        known = copy.copy(self)
        known.odds = self._split(noise)[1]
        return known

    def _split(self, noise: Array) -> tuple[Array, Array]:
        """What the counts learn, and the odds of the other zeros, both (..., outputs)."""
        return 0 * noise + 1, noise

    # -- the target -----------------------------------------------------------------------

    def start_noise(self, y: Float) -> Float:
        rate = y.mean(axis=0)
        expected = np.exp(-self.counts.nll(0 * rate[:, None], np.log(rate + 1e-9)[:, None], 1.0))
        share = ((y == 0).mean(axis=0) - expected) / (1 - expected)
        share = np.clip(share, SMALLEST_SHARE, 1 - SMALLEST_SHARE)
        return self._joined(share / (1 - share))

    def _joined(self, odds: Float) -> Float:
        return odds

    def initial_bias(self, y: Float) -> Float:
        noise = self.start_noise(y)
        bias = super().initial_bias(y) + np.log1p(self._split(noise)[1])
        for _ in range(BIAS_STEPS):
            eta = np.broadcast_to(bias, y.shape)
            slope = self.gradient(y, eta, noise).mean(axis=0)
            information = (self.hessian_roots(eta[:1], noise) ** 2).sum(axis=0)[0]
            bias = bias - np.clip(slope / np.maximum(information, 1e-6), -1, 1)
        return bias

    # -- given the predictor --------------------------------------------------------------

    def _parts(self, y: Array, eta: Array, noise: Array) -> tuple[Array, Array, Array]:
        """NLL of the counts alone, log probability of a zero times 1 + odds, and of one of them."""
        xp = array_namespace(eta)
        own, odds = self._split(noise)

        def each(values: Array) -> Array:
            return self.counts.nll(values[..., None], eta[..., None], own[..., None])

        of_counts = -each(0 * y)
        return each(y), xp.logaddexp(xp.log(odds) + 0 * eta, of_counts), of_counts

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        counted, log_zero, _ = self._parts(y, eta, noise)
        return xp.sum(
            xp.log1p(self._split(noise)[1]) + xp.where(y == 0, -log_zero, counted), axis=-1
        )

    def nll_constant(self, y: Float) -> None:  # type: ignore[override]
        return None

    def _counted(self, y: Array, eta: Array, noise: Array) -> Array:
        """Probability that a row is a count, given its target."""
        xp = array_namespace(eta)
        _, log_zero, of_counts = self._parts(y, eta, noise)
        return xp.where(y == 0, xp.exp(of_counts - log_zero), 1 + 0 * eta)

    def gradient(self, y: Array, eta: Array, noise: Array) -> Array:
        own, _ = self._split(noise)
        return self._counted(y, eta, noise) * self.counts.gradient(y, eta, own)

    def mean(self, eta: Array) -> Array:
        rate = self.counts.mean(eta)
        return rate if self.odds is None else rate / (1 + self.odds)

    def variance(self, eta: Array, noise: Array) -> Array:
        own, odds = self._split(noise)
        rate, share = self.counts.mean(eta), 1 / (1 + odds)
        return share * (self.counts.variance(eta, own) + rate * rate * (1 - share))

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        own, odds = self._split(noise)
        zero, share = 0 * eta, 1 / (1 + odds)
        none = share * np.exp(-self.counts.nll(zero[..., None], eta[..., None], own[..., None]))
        slope = self.counts.gradient(zero, eta, own)
        whole = (self.counts.hessian_roots(eta, own) ** 2).sum(axis=0)
        information = share * whole - none * slope**2 + none**2 * slope**2 / (1 - share + none)
        return np.eye(eta.shape[1])[:, None] * np.sqrt(np.maximum(information, 0))

    def noise_terms(self, y: Array, eta: Array, noise: Array) -> Array:
        # A step down the gradient of the NLL by the logarithm of the odds.
        odds = self._split(noise)[1]
        slope = odds / (1 + odds) - (1 - self._counted(y, eta, noise))
        return odds * (1 - ODDS_STEP * slope) + LEAST_ODDS

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        own, odds = self._split(np.asarray(noise, dtype=float))
        counted = rng.random(np.shape(eta)) * (1 + odds) < 1
        return counted * self.counts.sample(eta, own, rng)

    # -- averaged over draws --------------------------------------------------------------

    def _up_to(self, count: Float, rate: Float, own: Float) -> Float:
        """Share of the counts alone that are at most ``count``."""
        from scipy.special import pdtr

        return pdtr(count, rate)

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        noise = np.asarray(noise, dtype=float)
        if noise.ndim > 1 and (noise == noise[..., :1, :]).all():
            noise = noise[..., :1, :]  # the same for all rows
        if noise.ndim > 1 and noise.shape[-2] > 1:
            rows = range(draws.shape[1])
            parts = [
                self.predictive_quantiles(draws[:, i : i + 1], noise[..., i, None, :], levels)
                for i in rows
            ]
            return np.concatenate(parts, axis=1)
        own, odds = self._split(noise)
        levels, shape = checked_levels(levels).ravel(), (len(draws), 1, draws.shape[2])
        own, counted = np.broadcast_to(own, shape), np.broadcast_to(1 / (1 + odds), shape)
        found = [
            self._quantiles(draws[..., k : k + 1], own[..., k : k + 1], counted[:, 0, k], levels)
            for k in range(shape[2])
        ]
        return np.concatenate(found, axis=-1)

    def _quantiles(self, draws: Float, own: Float, counted: Float, levels: Float) -> Float:
        """Of one output, (levels, rows, 1), where each draw has its share of rows that count.

        Quantiles of the counts alone at two levels enclose each, and are mostly the same.
        """
        alone = self.counts.predictive_quantiles
        ends = np.concatenate(_levels_of_counts(levels, counted))
        found = alone(draws, own, np.clip(ends, LEVEL_ERROR, 1 - LEVEL_ERROR))[..., 0]
        low, high = np.split(np.where(ends[:, None] > 0, found, 0), 2)
        rates, own, low = self.counts.mean(draws)[..., 0], own[..., 0], low - 1
        for place, level in enumerate(levels.tolist()):
            while len(open_rows := np.flatnonzero(high[place] - low[place] > 1)):
                middle = np.floor((low[place, open_rows] + high[place, open_rows]) / 2)
                up_to = self._up_to(middle, rates[:, open_rows], own)
                reached = 1 - counted.mean() + (counted[:, None] * up_to).mean(axis=0) >= level
                high[place, open_rows[reached]] = middle[reached]
                low[place, open_rows[~reached]] = middle[~reached]
        return high[..., None]

    # -- spellings ------------------------------------------------------------------------

    def _shares(self) -> list[float]:
        return (1 / (1 + self.odds)).tolist()

    def formula(self, eta: str, every: Sequence[str]) -> str:
        share = self._shares()[list(every).index(eta)]
        return f"{share:.15g}*{super().formula(eta, every)}"

    def latex(self, eta: str, every: Sequence[str]) -> str:
        share = self._shares()[list(every).index(eta)]
        return rf"{share:.15g}\,{super().latex(eta, every)}"

    def expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        rates = super().expressions(eta, noise, let)
        odds = noise[-len(rates) :]
        return [rate / (1.0 + own) for rate, own in zip(rates, odds, strict=True)]

    def variance_expression(self, mean: Expression, noise: tuple[Expression, ...]) -> Expression:
        *own, odds = noise
        rate = mean * (1.0 + odds)
        return self.counts.variance_expression(rate, tuple(own)) / (1.0 + odds) + odds * mean * mean

    def count_shares(self, mean: Expression, noise: tuple[Expression, ...]) -> CountShares:
        *own, odds = noise
        found = self.counts.count_shares(mean * (1.0 + odds), tuple(own))
        return replace(found, part=1.0 / (1.0 + odds))

    def torch(self, eta: Any) -> Any:
        import torch

        return torch.tensor(self._shares(), dtype=eta.dtype) * self.counts.mean(eta)

    python_share: ClassVar[str] = _with_zeros(Poisson.python_share, "")
    # The odds are the last numbers of the noise.
    javascript: ClassVar[str] = """(() => {
  const counts = COUNTS;
  return {
    response: (eta, noise) => counts.response(eta).map(
      (rate, k) => rate / (1 + noise[noise.length - eta.length + k])),
    interval(means, share, noise, odds) {
      const rest = share - average(odds, (each) => each / (1 + each));
      const rates = means.map((mean, i) => mean * (1 + odds[i]));
      const parts = odds.map((each) => 1 / (1 + each));
      return rest <= 0 ? 0 : counts.interval(rates, rest, noise, odds, parts);
    },
  };
})()""".replace("COUNTS", Poisson.javascript)


class ZeroInflatedNegativeBinomial(ZeroInflatedPoisson):
    """The same with counts that vary more than Poisson counts do.

    ``noise`` are the dispersions of all outputs and then the odds of their other zeros.
    """

    name = "zero_inflated_negative_binomial"
    kernel = Kernel("zero_inflated_negative_binomial", LARGEST_LOG_RATE)
    noise_name = "dispersion, and odds of a zero that is no count"
    overdispersed = None
    counts = NegativeBinomial()

    def n_noise(self, n_outputs: int) -> int:
        return 2 * n_outputs

    def _split(self, noise: Array) -> tuple[Array, Array]:
        half = noise.shape[-1] // 2
        return noise[..., :half], noise[..., half:]

    def _joined(self, odds: Float) -> Float:
        return np.concatenate([np.ones_like(odds), odds])

    def noise_terms(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        own, _ = self._split(noise)
        moved = self.counts.noise_terms(y, eta, own) - LEAST_DISPERSION - own
        dispersion = own + self._counted(y, eta, noise) * moved + LEAST_DISPERSION
        return xp.concat([dispersion, super().noise_terms(y, eta, noise)], axis=-1)

    def _up_to(self, count: Float, rate: Float, own: Float) -> Float:
        from scipy.special import betainc

        size = 1 / own
        return betainc(size, count + 1, size / (size + rate))

    def noise_expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression]
    ) -> list[tuple[Expression, ...]]:
        half = len(noise) // 2
        return list(zip(noise[:half], noise[half:], strict=True))

    python_share = _with_zeros(NegativeBinomial.python_share, ", noise")
    javascript = ZeroInflatedPoisson.javascript.replace(
        Poisson.javascript, NegativeBinomial.javascript
    )
