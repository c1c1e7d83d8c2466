"""Whether chains have mixed: rank-normalised R-hat and effective sample sizes.

Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021). ArviZ computes the same one quantity after
the other; here all quantities of a fit go through at once, after every round of its chains.

Arrays are (chains, draws, quantities).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

Float = NDArray[np.floating]


def of_one_length(chains: Sequence[NDArray]) -> NDArray:
    """Chains (draws, ...) as one array: of longer ones as many draws as the shortest has.

    They are evenly spaced.
    """
    shortest = min(map(len, chains))
    places = [np.linspace(0, len(chain) - 1, shortest).astype(np.intp) for chain in chains]
    return np.array([chain[kept] for chain, kept in zip(chains, places, strict=True)])


def rhat(draws: Float) -> Float:
    """Rank-normalised split R-hat of each quantity; 1 for one that never changes.

    Parameters
    ----------
    draws : (chains, draws, quantities)

    Returns
    -------
    (quantities,)
        The larger of those of location and of spread.
    """
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_rhat(_normal_scores(halves)), _rhat(_normal_scores(folded)))


def bulk_size(draws: Float) -> Float:
    """Effective number of draws in the bulk of each quantity's distribution, (quantities,)."""
    return _effective_size(_normal_scores(_split(draws)))


def effective_size(draws: Float) -> Float:
    """Effective number of draws for the mean of each quantity, (quantities,).

    All of them for a quantity that never changes.
    """
    return _effective_size(_split(draws))


def mean_error(draws: Float) -> Float:
    """Monte Carlo standard error of the mean of each quantity, (quantities,)."""
    flat = draws.reshape(-1, draws.shape[2])
    return flat.std(axis=0, ddof=1) / np.sqrt(effective_size(draws))


def _split(draws: Float) -> Float:
    """Each chain as two of half its length."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]]).astype(float)


def _normal_scores(draws: Float) -> Float:
    ranks = rankdata(draws.reshape(-1, draws.shape[2]), axis=0)
    return ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(draws.shape)


def _variances(draws: Float) -> tuple[Float, Float]:
    """Mean variance within chains, and the variance of all that it estimates with their means."""
    n_draws = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1) if len(draws) > 1 else 0.0
    return within, within * (n_draws - 1) / n_draws + between


def _rhat(draws: Float) -> Float:
    within, total = _variances(draws)
    ratio = np.divide(total, within, out=np.full_like(total, np.inf), where=within > 0)
    return np.where(total > 0, np.sqrt(ratio), 1.0)


def _effective_size(draws: Float) -> Float:
    """By Geyer's initial monotone sequence of autocorrelations."""
    n_chains, n_draws, _ = draws.shape
    n_all = n_chains * n_draws
    within, total = _variances(draws)
    centred = draws - draws.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * n_draws)))
    spectrum = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=1)[:, :n_draws].mean(axis=0) / n_draws
    varies = total > 0
    variance = np.where(varies, total, 1.0)
    rho = 1 - (within - covariance) / variance
    rho[0] = 1.0
    last = 2 * ((n_draws - 3) // 2)
    pairs = rho[:last:2] + rho[1:last:2]
    stopped = np.maximum.accumulate(pairs < 0, axis=0)
    sums = np.where(stopped, 0.0, np.minimum.accumulate(pairs, axis=0)).sum(axis=0)
    n_pairs = (~stopped).sum(axis=0)
    next_even = np.take_along_axis(rho[::2], n_pairs[None], axis=0)[0]
    length = np.maximum(-1 + 2 * sums + np.maximum(next_even, 0.0), 1 / np.log10(n_all))
    return np.where(varies, n_all / length, n_all)
