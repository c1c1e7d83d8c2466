"""Numbers that are orders of magnitude from the others, of which only the logarithm counts.

A single cell of 1e9 would make a standard deviation so large that all other values look the same.
Numbers in the usual range stay what they are; the distance d of one beyond it counts as
w log(1 + d / w), with w half the width of the range. The map rises and can be inverted, and its
slope has no jump.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from islab.core.arrays import Float
from islab.core.expressions import Expression, call, greater, largest, where

QUANTILES = (0.05, 0.95)
REACH = 10.0


@dataclass(frozen=True)
class Tails:
    """Where the usual range of a column ends."""

    low: float
    high: float

    @classmethod
    def around(
        cls, values: Float, weight: Float | None = None, reach: float = REACH
    ) -> Tails | None:
        """Tails that begin ``reach`` times the distance of two quantiles beyond them.

        The quantiles are those of the distinct values if most rows share one. None if no value lies
        so far out.
        """
        low, high = _quantiles(values, weight)
        if low == high:
            low, high = _quantiles(np.unique(values), None)
        low, high = low - reach * (high - low), high + reach * (high - low)
        if not low < high or (low <= values.min() and values.max() <= high):
            return None
        return cls(low, high)

    def shorten(self, values: Float) -> Float:
        """What each value counts as."""
        inside = np.clip(values, self.low, self.high)
        width = (self.high - self.low) / 2
        beyond = values - inside
        return inside + np.sign(beyond) * width * np.log1p(np.abs(beyond) / width)

    def expression(self, cell: Expression) -> Expression:
        """What a cell counts as, for exports; see :meth:`shorten`."""
        width = (self.high - self.low) / 2
        above = self.high + width * call("log", 1.0 + largest(cell - self.high, 0.0) / width)
        below = self.low - width * call("log", 1.0 + largest(self.low - cell, 0.0) / width)
        return where(greater(cell, self.high), above, where(greater(self.low, cell), below, cell))

    def restore(self, shortened: Float) -> Float:
        """The values that count as these."""
        inside = np.clip(shortened, self.low, self.high)
        width = (self.high - self.low) / 2
        beyond = shortened - inside
        return inside + np.sign(beyond) * width * np.expm1(np.abs(beyond) / width)


def _quantiles(values: Float, weight: Float | None) -> tuple[float, float]:
    # Of the methods, the one that takes weights.
    low, high = np.quantile(values, QUANTILES, weights=weight, method="inverted_cdf")
    return float(low), float(high)
