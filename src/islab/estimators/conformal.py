"""Conformal intervals and sets of fitted models: what of the training rows they keep, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.arrays import Float
from islab.core.conformal import interval_around, p_values
from islab.estimators.drawn_rows import Model
from islab.estimators.predictions import ClassPredictions, NumberPredictions, Predictions
from islab.tables.targets import interval_levels

if TYPE_CHECKING:
    from islab.estimators.base import NetworkEstimator

MOST_ROWS, MOST_DRAWS = 400, 200
FARTHEST = 1e6  # SDs
TINY = np.finfo(float).tiny


def kept_of_training(
    estimator: NetworkEstimator, covariates: Float, observed: NDArray, offset: Float | None
) -> NDArray[np.float32]:
    """What conformal prediction needs of training rows, (draws, rows): of 400 rows at most.

    Of numbers their residuals in standard deviations under each draw, of classes the probability
    of each row's own. The rows are chosen at random by the seed of the fit; neither covariates nor
    targets are kept.
    """
    rows = np.arange(len(covariates))
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(estimator.seed_).permutation(rows)[:MOST_ROWS])
    found = estimator._predictions(
        covariates=covariates[rows],
        offset=None if offset is None else offset[rows],
        network=estimator.network_,
        posterior=estimator.posterior_,
        n_draws=min(estimator.n_draws, MOST_DRAWS),
        seed=estimator.seed_,
    )
    draws, own = found.predictor(), observed[rows]
    if isinstance(found, ClassPredictions):
        codes = np.searchsorted(found.classes, own)
        kept = found.response(draws)[:, np.arange(len(rows)), codes]
    else:
        kept = _residuals(found, draws, own.reshape(len(rows), -1)[:, 0])
    return np.clip(kept, -FARTHEST, FARTHEST).astype(np.float32)


def can_keep(estimator: NetworkEstimator, sample_weight: Float | None) -> bool:
    """Whether rows are exchangeable and have one target: the rest has no conformal prediction."""
    if sample_weight is not None and np.ptp(sample_weight) > 0:
        return False
    posterior = estimator.posterior_
    if posterior is None or hasattr(estimator, "classes_"):
        return posterior is not None
    scale, likelihood = estimator.network_.scale, estimator.network_.likelihood
    family = families.likelihood(likelihood)
    return family.target == "numbers" and len(scale.outputs) == family.n_predictors


def conformal_interval(
    found: NumberPredictions, kept: Float | None, level: float, model: Model | None
) -> Float:
    """Ends of conformal intervals, (rows, 2)."""
    kept, alpha = _checked(found, kept, level, model), 1 - level
    draws, noise = found.predictor(), found.noise()

    def inside(y: Float, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        own, targets = draws[:, rows], np.repeat(y[:, None], draws.shape[-1], axis=1)
        log_density = -found.likelihood.nll(targets, own, noise)
        return p_values(kept, log_density, _residuals(found, own, y), classes=False) > alpha

    return interval_around(inside, found.mean()[:, 0], found.sd()[:, 0])


def conformal_set(found: ClassPredictions, kept: Float | None, level: float) -> NDArray[np.bool_]:
    """Whether each class is in the row's prediction set, (rows, classes)."""
    kept = _checked(found, kept, level, None)
    probability = found.response(found.predictor())  # (draws, rows, classes)
    own = probability.reshape(len(probability), -1)
    values = p_values(kept, np.log(np.maximum(own, TINY)), own, classes=True)
    return values.reshape(probability.shape[1:]) > 1 - level


def n_draws_of(kept: Float | None) -> int | None:
    """The draws that the kept numbers are of."""
    return None if kept is None else len(kept)


def _residuals(found: Any, draws: Float, y: Float) -> Float:
    """Pearson residuals under each draw, (draws, rows)."""
    noise = found.noise()
    mean = found.likelihood.given(noise).mean(draws)[..., 0]
    return (y - mean) / np.sqrt(found.likelihood.variance(draws, noise)[..., 0])


def _checked(found: Predictions, kept: Float | None, level: float, model: Model | None) -> Float:
    interval_levels(level)
    if model == "median":
        raise ValueError(
            "Got model='median' for a conformal prediction, expected the full model, whose draws "
            "it weights; leave model out."
        )
    if kept is None:
        raise ValueError(
            "Got a model without what conformal prediction needs of training rows, expected one "
            "fitted to numbers of one target or to classes, without sample_weight or class_weight, "
            "and not saved with sparse=True; try method='posterior', or MAPIE with rows held out."
        )
    return kept.astype(float)
