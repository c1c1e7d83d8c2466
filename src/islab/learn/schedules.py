"""How learning rates move over a stage of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Rates = Callable[[Any], NDArray[np.float64]]


@dataclass(frozen=True)
class Schedule:
    """Factor on the learning rate at a share ``t`` of the stage, 0 to 1.

    Parameters
    ----------
    kind : {"cosine", "step", "one_cycle", "constant"}
        Half a cosine down to ``floor``; multiplied by ``drop`` at each milestone; a linear rise
        until ``warm_up`` with a cosine down after it, from ``floor`` and back; or 1 throughout.
    warm_up : float
        Share over which the rate rises from 0 (for ``one_cycle``, from ``floor``).
    floor : float
        Smallest factor of the cosine kinds.
    milestones, drop : tuple of float, float
        Of the ``step`` kind.

    Examples
    --------
    >>> Schedule("step", milestones=(0.5, 0.7, 0.9), drop=0.5)([0.0, 0.6, 0.95]).tolist()
    [1.0, 0.5, 0.125]
    """

    kind: Literal["cosine", "step", "one_cycle", "constant"] = "cosine"
    warm_up: float = 0.0
    floor: float = 0.01
    milestones: tuple[float, ...] = ()
    drop: float = 0.5

    def __post_init__(self) -> None:
        kinds = ("cosine", "step", "one_cycle", "constant")
        if self.kind not in kinds:
            raise ValueError(
                f"Got schedule kind={self.kind!r}, expected one of {', '.join(kinds)}."
            )

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        t = np.asarray(t, dtype=float)
        rise = np.minimum(1.0, t / self.warm_up) if self.warm_up else np.ones_like(t)
        if self.kind == "one_cycle":
            fall = np.clip((t - self.warm_up) / (1 - self.warm_up), 0, 1)
            shape = np.where(t < self.warm_up, rise, (1 + np.cos(np.pi * fall)) / 2)
            return self.floor + (1 - self.floor) * shape
        if self.kind == "cosine":
            return np.maximum(self.floor, (1 + np.cos(np.pi * t)) / 2) * rise
        passed = (t[..., None] >= np.asarray(self.milestones)).sum(axis=-1)
        return np.power(self.drop, passed) * rise
