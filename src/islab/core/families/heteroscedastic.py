"""Real numbers with normal noise whose size depends on covariates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from islab.core.expressions import Expression, Let, exp, greater, largest, where
from islab.core.families.gaussian import NORMAL, Gaussian
from islab.core.families.likelihood import Array, Float, Uncertainty, checked_levels
from islab.core.families.mixtures import location_quantiles
from islab.core.families.spelling import Kernel

LARGEST_LOG_SD = 15.0


class Heteroscedastic(Gaussian):
    """Real targets with two predictors each: of the mean, and of the log SD of the noise.

    The first half of the outputs are the means of the targets, the second half the logarithms of
    their noise's standard deviations. Targets stand twice in ``y``, so that it has the shape of
    ``eta``; their second half is not read. Beyond 15 a log SD counts as 15.
    """

    name = "heteroscedastic"
    kernel = Kernel("heteroscedastic", LARGEST_LOG_SD)
    words = replace(Gaussian.words, predicts="{} as numbers")
    n_predictors = 2
    learns_noise = False
    with_outliers = None
    normal_noise = False
    javascript = "{ response: (eta) => eta.slice() }"

    # -- the target -----------------------------------------------------------------------

    def output_names(self, targets: tuple[str, ...]) -> tuple[str, ...]:
        return (*targets, *(f"log noise SD of {name}" for name in targets))

    def output_scale(self, center: Float, scale: Float) -> tuple[Float, Float]:
        # A log SD in the target's unit is one in standard deviations plus the log of those.
        return np.concatenate([center, np.log(scale)]), np.concatenate([scale, np.ones_like(scale)])

    def initial_bias(self, y: Float) -> Float:
        values = y[:, : y.shape[1] // 2]
        spread = np.maximum(values.std(axis=0), 1e-6)
        return np.concatenate([values.mean(axis=0), np.log(spread)])

    # -- given the predictor --------------------------------------------------------------

    def nll(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        error, log_sd, precision = _parts(y, eta)
        return xp.sum(0.5 * np.log(2 * np.pi) + log_sd + 0.5 * error * error * precision, axis=-1)

    def gradient(self, y: Array, eta: Array, noise: Array) -> Array:
        xp = array_namespace(eta)
        error, log_sd, precision = _parts(y, eta)
        own = eta[..., log_sd.shape[-1] :]
        inside = 1 * ((own > -LARGEST_LOG_SD) & (own < LARGEST_LOG_SD))
        spread = inside * (1 - error * error * precision)
        return xp.concat([-error * precision, spread], axis=-1)

    def variance(self, eta: Array, noise: Array) -> Array:
        return 1 / _parts(eta, eta)[2]

    def hessian_roots(self, eta: Float, noise: Float) -> Float:
        precision = _parts(eta, eta)[2]
        roots = np.concatenate([np.sqrt(precision), np.full_like(precision, np.sqrt(2))], axis=-1)
        return np.eye(eta.shape[1])[:, None] * roots

    def sample(self, eta: Float, noise: Float, rng: np.random.Generator) -> Float:
        means, sd = eta[..., : eta.shape[-1] // 2], np.sqrt(self.variance(eta, noise))
        drawn = means + sd * rng.standard_normal(means.shape)
        return np.concatenate([drawn, drawn], axis=-1)

    # -- averaged over draws --------------------------------------------------------------

    def predictive_quantiles(self, draws: Float, noise: Float, levels: ArrayLike) -> Float:
        means = np.ascontiguousarray(draws[..., : draws.shape[-1] // 2])
        sd = np.sqrt(self.variance(draws, noise))
        return location_quantiles(NORMAL, means, sd, checked_levels(levels).ravel())

    def uncertainty(self, draws: Float, noise: Float) -> Uncertainty:
        means = draws[..., : draws.shape[-1] // 2]
        return Uncertainty(self.variance(draws, noise).mean(axis=0), means.var(axis=0))

    # -- spellings ------------------------------------------------------------------------

    def response_names(self, outputs: tuple[str, ...]) -> tuple[str, ...]:
        return outputs[: len(outputs) // 2]

    def expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression], let: Let
    ) -> list[Expression]:
        return list(eta[: len(eta) // 2])

    def noise_expressions(
        self, eta: Sequence[Expression], noise: Sequence[Expression]
    ) -> list[tuple[Expression, ...]]:
        return [(exp(2.0 * _kept(each)),) for each in eta[len(eta) // 2 :]]

    def torch(self, eta: Any) -> Any:
        return eta[..., : eta.shape[-1] // 2]


def _kept(log_sd: Expression) -> Expression:
    return where(greater(log_sd, LARGEST_LOG_SD), LARGEST_LOG_SD, largest(log_sd, -LARGEST_LOG_SD))


def _parts(y: Array, eta: Array) -> tuple[Array, Array, Array]:
    """Errors of the means, log SDs and precisions, (..., targets)."""
    xp = array_namespace(eta)
    half = eta.shape[-1] // 2
    log_sd = xp.clip(eta[..., half:], -LARGEST_LOG_SD, LARGEST_LOG_SD)
    return y[..., :half] - eta[..., :half], log_sd, xp.exp(-2 * log_sd)
