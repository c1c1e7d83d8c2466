"""Leave-one-out log densities of draws, and weights of chains that predict best together.

Each row's density without that row follows from the draws by importance sampling, its largest
weights smoothed by a generalised Pareto distribution (Vehtari, Simpson, Gelman, Yao and Gabry,
2024; the fit is that of Zhang and Stephens, 2009). ArviZ does the same one row after the other;
here all rows go through at once, which is what makes it cheap enough for every fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.floating]

FEWEST_IN_TAIL = 5
MOST_NUMBERS = 4_000_000
STACKING_STEPS = 500
PRIOR_ROOTS = 3


def leave_one_out(log_likelihood: Float) -> tuple[Float, Float]:
    """Log density of each row given the others, and how far that can be trusted.

    Parameters
    ----------
    log_likelihood : (draws, rows)

    Returns
    -------
    elpd : (rows,)
    pareto_k : (rows,)
        Above 0.7 the row's value is unreliable.
    """
    n_draws, n_rows = log_likelihood.shape
    at_once = max(1, MOST_NUMBERS // (n_draws * 40))
    parts = [
        _leave_one_out(log_likelihood[:, first : first + at_once].T)
        for first in range(0, n_rows, at_once)
    ]
    elpd, k = (np.concatenate(part) for part in zip(*parts, strict=True))
    return elpd, k


def _leave_one_out(rows: Float) -> tuple[Float, Float]:
    n_draws = rows.shape[1]
    order = np.argsort(-rows, axis=1)
    log_weights = -np.take_along_axis(rows, order, axis=1)
    log_weights -= log_weights[:, -1:]
    n_tail = int(min(0.2 * n_draws, 3 * np.sqrt(n_draws)))
    k = np.full(len(rows), np.inf)
    if n_tail >= FEWEST_IN_TAIL:
        cut = log_weights[:, -n_tail - 1]
        excess = np.exp(log_weights[:, -n_tail:]) - np.exp(cut)[:, None]
        fits = excess[:, 0] > 0
        if fits.any():
            k[fits], scale = _pareto(excess[fits])
            chances = (np.arange(n_tail) + 0.5) / n_tail
            smooth = _pareto_quantiles(chances, k[fits], scale) + np.exp(cut[fits])[:, None]
            log_weights[fits, -n_tail:] = np.minimum(np.log(smooth), 0.0)
    log_weights -= _log_sum(log_weights)[:, None]
    return _log_sum(log_weights + np.take_along_axis(rows, order, axis=1)), k


def _pareto(excess: Float) -> tuple[Float, Float]:
    """Shape and scale of a generalised Pareto distribution for sorted numbers of each row."""
    n = excess.shape[1]
    n_points = 30 + int(np.sqrt(n))
    points = np.arange(1, n_points + 1)
    quarter = excess[:, int(n / 4 + 0.5) - 1, None]
    b = 1 - np.sqrt(n_points / (points - 0.5))
    b = b / (3 * quarter) + 1 / excess[:, -1:]
    k = np.log1p(-b[:, :, None] * excess[:, None, :]).mean(axis=2)
    height = n * (np.log(-(b / k)) - k - 1)
    weights = np.exp(height - _log_sum(height)[:, None])
    weights[weights < 10 * np.finfo(float).eps] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    best = (b * weights).sum(axis=1)
    shape = np.log1p(-best[:, None] * excess).mean(axis=1)
    scale = -shape / best
    # A weak prior towards 0.5, worth ten numbers.
    return (n * shape + 10 * 0.5) / (n + 10), scale


def _pareto_quantiles(chances: Float, k: Float, scale: Float) -> Float:
    steep = np.where(np.abs(k) < 1e-12, 1e-12, k)[:, None]
    return scale[:, None] * np.expm1(-steep * np.log1p(-chances)) / steep


def _log_sum(values: Float) -> Float:
    largest = values.max(axis=1)
    return largest + np.log(np.exp(values - largest[:, None]).sum(axis=1))


def stacking_weights(elpd: Float) -> Float:
    """Shares of chains whose mixture has the highest leave-one-out density.

    Parameters
    ----------
    elpd : (chains, rows)
        Leave-one-out log densities under each chain.

    Notes
    -----
    Chains that draw from the same posterior differ by chance only, and the shares that fit their
    chance best mean nothing. A Dirichlet prior keeps such shares equal; it weighs as much as a
    number of rows that grows with the square root of all.
    """
    n_chains, n_rows = elpd.shape
    prior = np.sqrt(n_rows) / PRIOR_ROOTS
    density = np.exp(elpd - elpd.max(axis=0))
    weights = np.full(n_chains, 1 / n_chains)
    for _ in range(STACKING_STEPS):
        share = weights[:, None] * density
        weights = (share / share.sum(axis=0)).sum(axis=1) + prior
        weights /= weights.sum()
    return weights


def mixture_density(elpd: Float, weights: Float) -> Float:
    """Leave-one-out log density of each row under the chains mixed with these shares."""
    largest = elpd.max(axis=0)
    return largest + np.log(weights @ np.exp(elpd - largest))


def words_of_stacking(weights: Float) -> str:
    """One line to print of runs with these shares."""
    shares = ", ".join(f"{share:.2f}" for share in sorted(weights)[::-1])
    return f"{len(weights)} runs, stacked with shares {shares}"
