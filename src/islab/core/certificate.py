"""Bounds on the loss of drawn networks for new rows, from rows that they have not seen.

A loss between 0 and 1 is averaged over ``n`` rows that had no part in training. Two bounds then
hold together:

- of a network drawn at random with any weights ``q`` over the draws, also weights that were
  chosen by these rows: ``kl(q's mean loss, bound) = (KL(q, p) + log(2 sqrt(n) / delta)) / n``,
  where ``p`` are the equal weights of training (Maurer, 2004; Seeger, 2002);
- of the averaged prediction, which is one fixed function: ``kl(loss, bound) = log(1 / delta) / n``
  (Chernoff's bound).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]

BISECTIONS = 60
LARGEST_TEMPERATURE, N_TEMPERATURES = 4.0, 80


@dataclass(frozen=True, eq=False)
class Certificate:
    """How large the loss on new rows is at most, with a stated confidence.

    Attributes
    ----------
    level : float
        Confidence that both bounds hold: rows like the certifying ones would give wrong bounds
        in at most ``1 - level`` of all cases.
    n_rows : int
        Rows that certify.
    size : float, optional
        Where absolute errors are clipped; None for the share of wrong classes.
    loss, bound : float
        Of a network drawn with ``weights``: mean over the rows, and at most on new rows.
    kl : float
        Of ``weights`` from equal weights, in nats.
    average_loss, average_bound : float
        The same of the averaged prediction, which ``predict`` gives.
    weights : (draws,)
        Weights of the draws that have the smallest bound.
    """

    level: float
    n_rows: int
    size: float | None
    loss: float
    bound: float
    kl: float
    average_loss: float
    average_bound: float
    weights: Float

    def to_frame(self) -> pd.DataFrame:
        """``loss`` on the rows, ``bound`` on new rows and ``kl``, by what predicts."""
        import pandas as pd

        return pd.DataFrame(
            {
                "loss": [self.loss, self.average_loss],
                "bound": [self.bound, self.average_bound],
                "kl": [self.kl, 0.0],
            },
            index=pd.Index(["random network", "averaged prediction"], name="predictor"),
        )

    def __str__(self) -> str:
        if self.size is None:
            what, random, average = "error rate", f"{self.bound:.1%}", f"{self.average_bound:.1%}"
        else:
            what = f"mean absolute error, errors above {self.size:.4g} counted as that,"
            random, average = f"{self.bound:.4g}", f"{self.average_bound:.4g}"
        return (
            f"With {self.level:.4g} confidence the {what} on new rows is at most {average} for the "
            f"averaged prediction and at most {random} for a network drawn at random "
            f"({self.n_rows} certifying rows)."
        )

    __repr__ = __str__


def certify(draw_losses: Float, average_loss: float, n_rows: int, level: float) -> Certificate:
    """Bounds from mean losses between 0 and 1 over rows that training has not seen.

    Parameters
    ----------
    draw_losses : (draws,)
        Of each draw, mean over the rows.
    average_loss : float
        Of the averaged prediction.
    n_rows : int
    level : float
        The two bounds hold together with this confidence.
    """
    delta = (1 - level) / 2
    weights, kl = _candidates(draw_losses, n_rows)
    losses = weights @ draw_losses
    budgets = (kl + np.log(2 * np.sqrt(n_rows) / delta)) / n_rows
    bounds = kl_upper(losses, budgets)
    best = int(bounds.argmin())
    average = kl_upper(np.array([average_loss]), np.array([np.log(1 / delta) / n_rows]))
    return Certificate(
        level=level,
        n_rows=n_rows,
        size=None,
        loss=float(losses[best]),
        bound=float(bounds[best]),
        kl=float(kl[best]),
        average_loss=average_loss,
        average_bound=float(average[0]),
        weights=weights[best],
    )


def _candidates(losses: Float, n_rows: int) -> tuple[Float, Float]:
    """Weights of draws that fall with their loss, (candidates, draws), and their KL.

    The first are equal weights. The bound holds for all weights, so that the best may be taken.
    """
    rise = np.linspace(0, np.log1p(LARGEST_TEMPERATURE * n_rows), N_TEMPERATURES)
    log_weights = -np.expm1(rise)[:, None] * (losses - losses.min())
    weights = np.exp(log_weights)
    weights /= weights.sum(axis=1, keepdims=True)
    share = np.where(weights > 0, weights, 1.0)
    kl = (weights * (np.log(share) + np.log(len(losses)))).sum(axis=1)
    return weights, np.maximum(kl, 0.0)


def kl_upper(share: Float, budget: Float) -> Float:
    """The largest ``p`` with ``kl(share, p) <= budget``, by bisection."""
    low, high = share.astype(float), np.ones_like(share, dtype=float)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        inside = binary_kl(share, middle) <= budget
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def binary_kl(q: Float, p: Float) -> Float:
    """KL of a coin with probability ``q`` from one with ``p``, in nats."""
    tiny = np.finfo(float).tiny
    q_, p_ = np.clip(q, tiny, 1.0), np.clip(p, tiny, 1.0)
    heads = np.where(q > 0, q * (np.log(q_) - np.log(p_)), 0.0)
    rest, left = np.maximum(1 - q, tiny), np.maximum(1 - p, tiny)
    tails = np.where(q < 1, (1 - q) * (np.log(rest) - np.log(left)), 0.0)
    return heads + tails
