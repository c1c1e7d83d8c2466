"""Spike-and-slab priors by block, and how the data set them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.architecture import Blocks
from islab.core.arrays import Float
from islab.core.equations import sigmoid, softplus

BIAS_TAU = 2.5


@dataclass(frozen=True, eq=False)
class Prior:
    """Slab scale and inclusion probability of each block of weights.

    Attributes
    ----------
    tau, psi : (blocks,)
        In the order of ``architecture.blocks``.
    bias_tau : float
        Standard deviation of the biases' Gaussian prior.
    bias_psi : float, optional
        Prior probability that a bias is needed; all are certain if not given.
    df : float, optional
        Degrees of freedom of a Student-t slab; None for the Gaussian.
    """

    tau: Float
    psi: Float
    bias_tau: float = BIAS_TAU
    df: float | None = None
    bias_psi: float | None = None

    @classmethod
    def same(
        cls,
        architecture: Blocks,
        *,
        tau: ArrayLike,
        psi: ArrayLike,
        df: float | None = None,
        bias_tau: float = BIAS_TAU,
        bias_psi: float | None = None,
    ) -> Prior:
        """One scale and one inclusion probability for all blocks, or one for each."""
        taus, psis = np.asarray(tau, dtype=float), np.asarray(psi, dtype=float)
        if not ((taus > 0) & (taus < np.inf)).all():
            raise ValueError(f"Got tau={tau!r}, expected a positive number.")
        if not ((psis > 0) & (psis < 1)).all():
            raise ValueError(f"Got psi={psi!r}, expected a number between 0 and 1.")
        if not 0 < bias_tau < np.inf:
            raise ValueError(f"Got bias_tau={bias_tau}, expected a positive number.")
        if df is not None and not 0 < df < np.inf:
            raise ValueError(f"Got df={df}, expected a positive number, or None for the Gaussian.")
        if bias_psi is not None and not 0 < bias_psi < 1:
            raise ValueError(
                f"Got bias_psi={bias_psi}, expected a number between 0 and 1, or None."
            )
        n_blocks = len(architecture.blocks)
        return cls(
            np.broadcast_to(taus, n_blocks).copy(),
            np.broadcast_to(psis, n_blocks).copy(),
            bias_tau,
            df,
            bias_psi,
        )

    def excluded_kl(self, n_dropped: NDArray[np.intp]) -> float:
        """KL of weights that were dropped for good, by block."""
        return float(-(n_dropped * np.log1p(-self.psi)).sum())


@dataclass(frozen=True)
class EmpiricalBayes:
    """How the priors follow the posterior during training.

    Parameters
    ----------
    tau_from, psi_from : float
        Share of the stage after which each is learned; 1 or more leaves it fixed.
    psi_shape : (a, b)
        Beta prior on the inclusion probability; a larger b gives sparser networks.
    largest_psi : float
        Upper bound on the inclusion probability.
    tau_fixed, psi_fixed : tuple of bool
        Blocks in which each stays what it is; none if empty.
    """

    tau_from: float = 0.05
    psi_from: float = 0.30
    psi_shape: tuple[float, float] = (1.0, 10.0)
    largest_psi: float = 0.5
    tau_fixed: tuple[bool, ...] = ()
    psi_fixed: tuple[bool, ...] = ()

    def update(
        self,
        prior: Prior,
        architecture: Blocks,
        mu: Float,
        rho: Float,
        lam: Float,
        n_initial: NDArray[np.intp],
        progress: float,
    ) -> Prior:
        """The prior that the current posterior suggests.

        ``tau**2 = (2 + sum alpha E[w**2]) / (2 + sum alpha)`` and
        ``psi = (a + sum alpha) / (a + b + weights)``, where dropped weights still count.
        """
        alpha = sigmoid(lam).astype(float)
        second = np.asarray(softplus(rho), dtype=float) ** 2 + np.asarray(mu, dtype=float) ** 2
        if prior.df is not None:
            tau = architecture.by_block(prior.tau)
            second = second * (prior.df + 1) / (prior.df + second / tau**2)
        included = _sums(alpha, architecture)
        energy = _sums(alpha * second, architecture)
        tau, psi = prior.tau, prior.psi
        if progress >= self.tau_from:
            tau = _but(self.tau_fixed, prior.tau, np.sqrt((2 + energy) / (2 + included)))
        if progress >= self.psi_from:
            a, b = self.psi_shape
            psi = np.clip((a + included) / (a + b + n_initial), 1e-6, self.largest_psi)
            psi = _but(self.psi_fixed, prior.psi, psi)
        return replace(prior, tau=tau, psi=psi)


def _but(fixed: tuple[bool, ...], old: Float, new: Float) -> Float:
    return np.where(np.array(fixed), old, new) if fixed else new


def _sums(values: Float, architecture: Blocks) -> NDArray[np.float64]:
    """Of each block."""
    return np.array([values[block.weights].sum() for block in architecture.blocks])
