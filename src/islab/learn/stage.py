"""A stage of training, declared: how long, how fast, against which prior, when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.architecture import Blocks
from islab.core.priors import BIAS_TAU, EmpiricalBayes, Prior
from islab.learn.engines.base import ADAM_BETAS
from islab.learn.shrink import Shrink

Rates = Callable[[Any], NDArray[np.float64]]


@dataclass(frozen=True)
class Schedule:
    """Factor on the learning rate at a share ``t`` of the stage, 0 to 1.

    Parameters
    ----------
    kind : {"cosine", "step", "constant"}
        Half a cosine down to ``floor``; multiplied by ``drop`` at each milestone; or 1
        throughout.
    warm_up : float
        Share over which the rate rises from 0.
    floor : float
        Smallest factor of the cosine.
    milestones, drop : tuple of float, float
        Of the ``step`` kind.

    Examples
    --------
    >>> Schedule("step", milestones=(0.5, 0.7, 0.9), drop=0.5)([0.0, 0.6, 0.95]).tolist()
    [1.0, 0.5, 0.125]
    """

    kind: Literal["cosine", "step", "constant"] = "cosine"
    warm_up: float = 0.0
    floor: float = 0.01
    milestones: tuple[float, ...] = ()
    drop: float = 0.5

    def __post_init__(self) -> None:
        kinds = ("cosine", "step", "constant")
        if self.kind not in kinds:
            raise ValueError(
                f"Got schedule kind={self.kind!r}, expected one of {', '.join(kinds)}."
            )

    def __call__(self, t: ArrayLike) -> NDArray[np.float64]:
        t = np.asarray(t, dtype=float)
        rise = np.minimum(1.0, t / self.warm_up) if self.warm_up else np.ones_like(t)
        if self.kind == "cosine":
            return np.maximum(self.floor, (1 + np.cos(np.pi * t)) / 2) * rise
        passed = (t[..., None] >= np.asarray(self.milestones)).sum(axis=-1)
        return np.power(self.drop, passed) * rise


@dataclass(frozen=True)
class Plateau:
    """Stops a stage whose smoothed ELBO no longer rises.

    Parameters
    ----------
    patience : int
        Records without a new best before stopping.
    smoothing : float
        Weight of the past in the running mean of the ELBO.
    tolerance : float
        Rise that counts, as a share of the ELBO's size.
    start : float
        Share of the stage that always runs.
    """

    patience: int = 20
    smoothing: float = 0.9
    tolerance: float = 1e-4
    start: float = 0.5

    def reached(self, elbo: NDArray[np.float64]) -> bool:
        """Whether the records so far end in a plateau."""
        if len(elbo) <= self.patience:
            return False
        smooth = elbo.copy()
        for i in range(1, len(smooth)):
            smooth[i] = self.smoothing * smooth[i - 1] + (1 - self.smoothing) * smooth[i]
        best_before = smooth[: -self.patience].max()
        return bool(
            smooth[-self.patience :].max() <= best_before + self.tolerance * abs(best_before)
        )


@dataclass(frozen=True)
class Stage:
    """One stage of training, declared.

    Parameters
    ----------
    n_steps, batch_size : int
    rate, lambda_rate : float
        Adam's peak rate, and the one of the inclusion parameters.
    betas : (float, float)
        How long Adam remembers gradients and their squares.
    schedule : Schedule or callable
        Of both rates.
    kl_ramp : float
        Share of the stage over which the weight of the KL rises from 0.
    kl_weight : float
        The weight it rises to. 1 is the ELBO; less trusts the data more and keeps more weights.
    tau, psi, df, bias_tau, bias_psi
        Prior to start from; see :class:`~islab.core.priors.Prior`. Scale and inclusion are the same
        for all blocks, or one for each.
    empirical_bayes : EmpiricalBayes, optional
        None keeps the prior fixed.
    scale_mu_step : bool
        Multiply the step of the means by ``max(1, tau)`` of their block, so that wide slabs
        do not need more steps.
    noise_rate : float
        Speed at which Gaussian noise variances follow their optimum; 0 fixes them.
    shrink : Shrink, optional
        None never drops units.
    linear_ends : bool
        Whether to stop once no hidden unit is left, because a linear model has been fitted.
    plateau : Plateau, optional
        None runs all steps.
    """

    n_steps: int
    batch_size: int
    rate: float = 0.05
    lambda_rate: float = 0.05
    betas: tuple[float, float] = ADAM_BETAS
    schedule: Rates = field(default_factory=lambda: Schedule("cosine", warm_up=0.02))
    kl_ramp: float = 0.25
    kl_weight: float = 1.0
    tau: float | tuple[float, ...] = 1.0
    psi: float | tuple[float, ...] = 0.2
    df: float | None = None
    bias_tau: float = BIAS_TAU
    bias_psi: float | None = None
    empirical_bayes: EmpiricalBayes | None = field(default_factory=EmpiricalBayes)
    scale_mu_step: bool = True
    noise_rate: float = 0.02
    shrink: Shrink | None = field(default_factory=Shrink)
    linear_ends: bool = False
    plateau: Plateau | None = None

    def __post_init__(self) -> None:
        for name in ("n_steps", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"Got {name}={getattr(self, name)}, expected at least 1.")
        for name in ("rate", "lambda_rate"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"Got {name}={getattr(self, name)}, expected 0 or more.")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(
                f"Got betas={self.betas}, expected two numbers from 0 to below 1; try (0.9, 0.99)."
            )

    def prior(self, architecture: Blocks) -> Prior:
        """The prior to start from, of this network."""
        return Prior.same(
            architecture,
            tau=self.tau,
            psi=self.psi,
            df=self.df,
            bias_tau=self.bias_tau,
            bias_psi=self.bias_psi,
        )
