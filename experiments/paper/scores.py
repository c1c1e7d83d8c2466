"""Everything the paper measures on a fitted model, and what it should have measured besides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper.tasks import Task
from islab.estimators.draws import by_rows
from islab.evaluate import calibration_error, evaluate

SIZE = ("used_weights", "density", "average_depth", "max_depth", "selected")

Float = NDArray[np.floating]


def score(estimator: Any, task: Task) -> dict[str, Any]:
    """Scores on the rows to judge by, by name; see :func:`islab.evaluate.evaluate`.

    Those of the full model have plain names, those of the median network end in ``_median``.
    Used weights, depths and the selected columns are the median network's. Of several classes
    there are ``nll_paper`` and ``ece_paper`` besides, with logarithms averaged over draws.
    """
    full, median = (_scores(estimator, task, model) for model in ("full", "median"))
    return {
        **{name: value for name, value in full.items() if name not in SIZE},
        **{f"{name}_median": value for name, value in median.items() if name not in SIZE},
        **{name: median[name] for name in SIZE},
    }


def _scores(estimator: Any, task: Task, model: str) -> dict[str, Any]:
    scores = evaluate(estimator, task.x_test, task.y_test, model=model)
    if not task.classes or len(estimator.classes_) == 2:
        return scores
    codes = np.searchsorted(estimator.classes_, task.y_test)
    return scores | paper_scores(codes, mean_logs(estimator, task.x_test, model))


def paper_scores(codes: NDArray[np.intp], logs: Float) -> dict[str, float]:
    """Log score and calibration error of mean logarithms of probabilities (rows, classes)."""
    nll = -np.take_along_axis(logs, codes[:, None], axis=1).mean()
    return {"nll_paper": float(nll), "ece_paper": calibration_error(codes, np.exp(logs))}


def mean_logs(estimator: Any, X: Any, model: str) -> Float:
    """Mean over draws of the logarithm of each class's probability, (rows, classes).

    What the authors' code predicts with. The mean of probabilities is at least as large.
    """
    from scipy.special import log_softmax

    def mean(rows: Float) -> Float:
        return log_softmax(estimator._draw(rows, model), axis=-1).mean(axis=0)

    covariates = estimator._covariates(X)
    return np.concatenate(by_rows(covariates, estimator._numbers_per_row(), mean))
