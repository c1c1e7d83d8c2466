"""Bars with intervals, placed in percent of their panel's width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from islab.core.arrays import Float


@dataclass(frozen=True)
class Bar:
    """A contribution with its interval, as numbers and as places in percent of the panel."""

    name: str
    size: float
    lower: float
    upper: float
    left: float
    width: float
    low: float
    high: float

    @property
    def sign(self) -> str:
        return "positive" if self.size >= 0 else "negative"


def placed(names: list[str], sizes: Float, lower: Any, upper: Any) -> dict[str, Any]:
    """Zero and bars of a panel, in percent of its width."""
    every = np.concatenate([sizes, lower, upper, [0.0]])
    low, reach = every.min(), float(np.ptp(every)) or 1.0

    def percent(values: Float | float) -> Any:
        return np.round((values - low) / reach * 100, 2)

    zero = float(percent(0.0))
    ends = percent(sizes)
    bars = [
        Bar(
            name=name,
            size=float(sizes[k]),
            lower=float(lower[k]),
            upper=float(upper[k]),
            left=min(zero, float(ends[k])),
            width=round(abs(float(ends[k]) - zero), 2),
            low=float(percent(lower[k])),
            high=float(percent(upper[k])),
        )
        for k, name in enumerate(names)
    ]
    return {"zero": zero, "bars": bars}
