"""Mean, spread and credible interval of draws, and how sure the interval's ends are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from islab.core.arrays import Float


@dataclass(frozen=True)
class Summary:
    """What draws say about a quantity; every array has the shape of one draw.

    Attributes
    ----------
    mean, sd : array
    lower, upper : array
        Ends of the equal-tailed credible interval.
    lower_error, upper_error : array
        Monte Carlo standard errors of the two ends: how far they would move with other draws.
    """

    mean: Float
    sd: Float
    lower: Float
    upper: Float
    lower_error: Float
    upper_error: Float

    def __mul__(self, factor: Float) -> Summary:
        """The summary of ``factor * draws``: a negative factor swaps the ends."""
        size = np.abs(factor)
        flip = factor < 0
        return Summary(
            mean=self.mean * factor,
            sd=self.sd * size,
            lower=np.where(flip, self.upper, self.lower) * factor,
            upper=np.where(flip, self.lower, self.upper) * factor,
            lower_error=np.where(flip, self.upper_error, self.lower_error) * size,
            upper_error=np.where(flip, self.lower_error, self.upper_error) * size,
        )

    def columns(self, name: str) -> dict[str, Float]:
        """The arrays, flat, under the column names of a frame: ``name_mean``, ``name_sd``, ..."""
        parts = ("mean", "sd", "lower", "upper", "lower_error", "upper_error")
        return {f"{name}_{part}": np.ravel(getattr(self, part)) for part in parts}


def summarise(draws: Float, level: float) -> Summary:
    """Summary of draws over their first axis.

    Notes
    -----
    The share of ``n`` draws below the true ``p``-quantile has standard deviation
    ``sqrt(p (1 - p) / n)``; half the distance between the draws' quantiles that far below and
    above ``p`` is the Monte Carlo error of the end, whatever the distribution.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).standard_normal(100_000)
    >>> summary = summarise(draws, level=0.95)
    >>> bool(abs(summary.upper - 1.96) < 3 * summary.upper_error)
    True
    """
    tail = (1 - level) / 2
    step = np.sqrt(tail * (1 - tail) / len(draws))
    ends = np.array([tail, 1 - tail])
    probabilities = np.clip(ends[:, None] + step * np.array([-1, 0, 1]), 0, 1)
    quantiles = np.quantile(draws, probabilities.ravel(), axis=0)
    below_lower, lower, above_lower, below_upper, upper, above_upper = quantiles
    return Summary(
        mean=draws.mean(axis=0),
        sd=draws.std(axis=0),
        lower=lower,
        upper=upper,
        lower_error=(above_lower - below_lower) / 2,
        upper_error=(above_upper - below_upper) / 2,
    )
