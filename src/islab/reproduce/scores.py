"""Everything the paper measures on a fitted model, and what it should have measured besides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.metrics import (
    PINBALL_LEVELS,
    calibration_error,
    crps,
    interval_coverage,
    interval_width,
    pinball_loss,
)
from islab.reproduce.tasks import Task

INTERVAL = 0.9
CRPS_DRAWS = 100
MODELS = ("full", "median")


def score(estimator: Any, task: Task) -> dict[str, Any]:
    """Scores on the rows to judge by, by name.

    Those of the full model have plain names, those of the median network end in ``_median``.
    """
    judge = _score_classes if task.classes else _score_numbers
    found: dict[str, Any] = {}
    for model in MODELS:
        ending = "" if model == "full" else "_median"
        scores = judge(estimator, task, model)
        found |= {f"{name}{ending}": value for name, value in scores.items()}
    return found | _structure(estimator)


def _score_classes(estimator: Any, task: Task, model: str) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    probability = estimator.predict_proba(task.x_test, model=model)
    truth = np.searchsorted(estimator.classes_, task.y_test)
    stated = probability[np.arange(len(truth)), truth]
    binary = probability.shape[1] == 2
    return {
        "accuracy": float((probability.argmax(axis=1) == truth).mean()),
        "nll": float(-np.log(np.maximum(stated, np.finfo(float).tiny)).mean()),
        "ece": calibration_error(truth, probability),
        "auc": float(
            roc_auc_score(truth, probability[:, 1])
            if binary
            else roc_auc_score(truth, probability / probability.sum(1)[:, None], multi_class="ovr")
        ),
    }


def _score_numbers(estimator: Any, task: Task, model: str) -> dict[str, float]:
    y = task.y_test
    mean = estimator.predict(task.x_test, model=model)
    quantiles = estimator.predict_quantiles(task.x_test, PINBALL_LEVELS, model=model)
    interval = estimator.predict_interval(task.x_test, INTERVAL, model=model)
    draws = estimator.sample_posterior(task.x_test, model=model)[..., 0]
    sd = float(np.sqrt(estimator.network_.noise_in_units()[0]))
    return {
        "rmse": float(np.sqrt(((y - mean) ** 2).mean())),
        "pearson": float(np.corrcoef(y, mean)[0, 1]),
        "nll": _mixture_nll(y, draws, sd),
        "pinball": pinball_loss(y, quantiles),
        # The paper takes the mean prediction for every quantile: half the mean absolute error.
        "pinball_paper": float(np.abs(y - mean).mean() / 2),
        "coverage": interval_coverage(y, interval),
        "width": interval_width(interval),
        "crps": crps(y, draws[:CRPS_DRAWS], sd),
    }


def _mixture_nll(y: NDArray, draws: NDArray, sd: float) -> float:
    """Of the normals around the draws, (draws, rows), averaged as probabilities."""
    from scipy.special import logsumexp
    from scipy.stats import norm

    density = logsumexp(norm.logpdf(y, draws, sd), axis=0) - np.log(len(draws))
    return float(-density.mean())


def _structure(estimator: Any) -> dict[str, Any]:
    network = estimator.network_
    names = network.units.variables
    expected = getattr(estimator, "n_expected_weights_", None)
    return {
        "weights": float(network.n_used_weights if expected is None else expected),
        "density": float(network.density),
        "average_depth": float(network.average_depth),
        "max_depth": int(network.max_depth),
        "selected": sorted({names[column] for column in network.covariates}),
    }
