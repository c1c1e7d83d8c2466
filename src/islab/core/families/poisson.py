"""Counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from islab.core.equations import exponential
from islab.core.expressions import Expression, Let, call, exp, largest
from islab.core.families.likelihood import Array, Float, Likelihood, Words, checked_levels
from islab.core.families.mixtures import count_quantiles
from islab.core.families.spelling import CountShares, Kernel

LARGEST_LOG_RATE = 20.0
LEAST_RATE = 1e-300  # that has a logarithm
# Of larger counts the likelihood has no maximum, since rates go on as a straight line.
LARGEST_COUNT = float(np.exp(LARGEST_LOG_RATE))


class Poisson(Likelihood):
    """Counts with a log link.

    Above a log rate of 20 the rate goes on as a straight line, so that one wild draw cannot
    overflow the training.
    """

    name = "poisson"
    target = "counts"
    kernel = Kernel("poisson", LARGEST_LOG_RATE)
    support = (0.0, np.inf)
    log_link = True
    overdispersed: ClassVar[str | None] = "negative_binomial"
    words = Words(
        predictor="log rate",
        ratio="rate ratio",
        response="expected count",
        prediction="its expected count",
        symbol="E",
        predicts="counts of {}",
        linear_model="log-linear",
    )
    # The upper incomplete gamma function: its series, or far out its continued fraction.
    python_share: ClassVar[str] = """def _share(value, mean, noise=1.0):
    a = math.floor(value) + 1
    if a < 1 or mean == 0:
        return float(a >= 1)
    front = math.exp(a * math.log(mean) - mean - math.lgamma(a))
    if mean < a + 1:
        term = total = 1 / a
        n = a
        while term > 1e-17 * total:
            n += 1
            term *= mean / n
            total += term
        return 1 - front * total
    b = mean + 1 - a
    c, d = 1e300, 1 / b
    total, change, n = d, 0.0, 0
    while abs(change - 1) > 1e-15:
        n += 1
        b += 2
        d = 1 / (n * (a - n) * d + b)
        c = n * (a - n) / c + b
        change = c * d
        total *= change
    return front * total"""

    def check_target(self, y: Float) -> None:
        if (y < 0).any():
            raise ValueError(
                f"Got {y.min()} in y with likelihood={self.name!r}, expected counts, 0 or more; "
                "try likelihood='gaussian'."
            )
        if (y >= LARGEST_COUNT).any():
            raise ValueError(
                f"Got {y.max():g} in y with likelihood={self.name!r}, expected counts below "
                f"{LARGEST_COUNT:.3g}; try a larger unit, such as thousands, or "
                "likelihood='gaussian'."
            )

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        return xp.sum(self.mean(eta) - y * eta + _log_factorial(y), axis=-1)

    def nll_constant(self, y: Float) -> Float:
        return _log_factorial(np.asarray(y, dtype=float)).sum(axis=1)

    def mean(self, eta: Array) -> Array:
        xp = array_namespace(eta)
        capped = xp.clip(eta, max=LARGEST_LOG_RATE)
        return exponential(capped) * (1 + eta - capped)

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
        return count_quantiles(self.mean(draws), None, checked_levels(levels).ravel(), _share)

    def formula(self, eta: str, every: Sequence[str]) -> str:
        cap = LARGEST_LOG_RATE
        return f"exp(min({eta}, {cap}))*(1 + max(0, {eta} - {cap}))"

    def latex(self, eta: str, every: Sequence[str]) -> str:
        return (
            rf"e^{{\min\left({eta}, {LARGEST_LOG_RATE}\right)}}"
            rf"\left(1 + \max\left(0, {eta} - {LARGEST_LOG_RATE}\right)\right)"
        )

    def expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        found = []
        for number, each in enumerate(eta):
            excess = let(f"excess{number}", largest(each - LARGEST_LOG_RATE, 0.0))
            found.append(exp(each - excess) * (1.0 + excess))
        return found

    def variance_expression(self, mean: Expression, noise: tuple[Expression, ...]) -> Expression:
        return mean

    def count_shares(self, mean: Expression, noise: tuple[Expression, ...]) -> CountShares:
        return CountShares(-mean, call("log", largest(mean, LEAST_RATE)))

    javascript = (
        """{
  response: (eta) => eta.map((value) => {
    const capped = Math.min(value, LARGEST_LOG_RATE);
    return Math.exp(capped) * (1 + value - capped);
  }),
  /* Smallest count that a mixture of Poisson counts does not exceed with that share. */
  interval(rates, share, noise, last, parts = rates.map(() => 1)) {
    const largest = Math.max(...rates);
    let low = -1;
    let high = Math.ceil(10 + largest + 20 * Math.sqrt(largest));
    /* Beyond 2^53 neighbouring counts are one number: there the middle is an end. */
    for (let middle = Math.floor((low + high) / 2); middle > low && middle < high;) {
      const count = middle;
      const below = average(rates, (rate, draw) => parts[draw] * this.countShare(count, rate));
      if (below < share) low = middle;
      else high = middle;
      middle = Math.floor((low + high) / 2);
    }
    return high;
  },
  /* Share of Poisson counts up to k: summed from k away from the middle, or, of large rates,
     Wilson and Hilferty's normal of the cube root, which agrees with SciPy to 1e-5. */
  countShare(k, rate) {
    if (rate === 0) return 1;
    if (rate > 1e5) {
      const shape = 9 * (k + 1);
      return normalShare((1 - 1 / shape - Math.cbrt(rate / (k + 1))) * Math.sqrt(shape));
    }
    const down = k < rate;
    let count = down ? k : k + 1;
    let term = Math.exp(count * Math.log(rate) - rate - this.logFactorial(count));
    let sum = 0;
    while (term > 1e-17 * sum && term > 0) {
      sum += term;
      term *= down ? count / rate : rate / (count + 1);
      count += down ? -1 : 1;
    }
    return down ? sum : 1 - sum;
  },
  logFactorial(n) {
    if (n < 20) {
      let product = 1;
      for (let k = 2; k <= n; k++) product *= k;
      return Math.log(product);
    }
    const series = 1 / (12 * n) - 1 / (360 * n ** 3) + 1 / (1260 * n ** 5);
    return n * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI * n) + series;
  },
}"""
    ).replace("LARGEST_LOG_RATE", str(LARGEST_LOG_RATE))


def _share(count: Float, rate: Float, _dispersion: None) -> Float:
    from scipy.special import pdtr

    return pdtr(count, rate)


def _log_factorial(y: Array) -> Array:
    xp = array_namespace(y)
    if "torch" in xp.__name__:
        import torch

        return torch.lgamma(y + 1)
    from scipy.special import gammaln

    return gammaln(y + 1)
