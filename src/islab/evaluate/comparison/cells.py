"""One fit of one method on one split: what is compared, many times over."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import train_test_split

from islab.evaluate.evaluation import evaluate
from islab.io.records import Record
from islab.tables.frames import rows_where

Mask = NDArray[np.bool_]


def training_rows(y: NDArray, task: str, seed: int, test_size: float) -> Mask:
    """Which rows to learn from, (rows,); classes keep their shares on both sides."""
    stratify = y if task == "classification" else None
    _, test = train_test_split(
        np.arange(len(y)), test_size=test_size, random_state=seed, stratify=stratify
    )
    train = np.ones(len(y), dtype=bool)
    train[test] = False
    return train


def with_face(estimator: Any, task: str) -> Any:
    """The estimator itself if it is of this package, else wrapped so that it takes tables."""
    from islab.baselines.references import (
        ReferenceClassifier,
        ReferenceEstimator,
        ReferenceRegressor,
    )
    from islab.estimators.base import NetworkEstimator

    if is_classifier(estimator) != (task == "classification"):
        name = type(estimator).__name__
        raise ValueError(f"{name} is not for {task}; try another estimator, or another task.")
    if isinstance(estimator, NetworkEstimator | ReferenceEstimator):
        return estimator
    wrapper = ReferenceClassifier if task == "classification" else ReferenceRegressor
    return wrapper(estimator)


def run_cell(estimator: Any, X: Any, y: NDArray, train: Mask, seed: int) -> Record:
    """Fits a copy of the estimator to the training rows and judges it by the others.

    Libraries compute on one thread, so that fits at the same time do not get in each other's way
    and seconds can be compared.

    Returns
    -------
    dict
        In JSON's types: ``models``, the scores by model, ``selected`` columns and ``seconds`` of
        the fit; or ``error``, why there are none.
    """
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):
            model = clone(estimator).set_params(random_state=seed)
            start = time.perf_counter()
            model.fit(rows_where(X, train), y[train])
            seconds = time.perf_counter() - start
            judged = _judged(model, rows_where(X, ~train), y[~train])
        return {"error": None, "seconds": seconds, **judged}
    except Exception as error:
        return {"error": reason(error)}


def reason(error: Exception) -> str:
    """What went wrong, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _judged(model: Any, X: Any, y: NDArray) -> Record:
    both = getattr(model, "posterior_", None) is not None
    scores = {
        which or "full": evaluate(model, X, y, which)
        for which in (("full", "median") if both else (None,))
    }
    numbers = {
        which: {name: _finite(value) for name, value in each.items() if name != "selected"}
        for which, each in scores.items()
    }
    return {"models": numbers, "selected": scores["full"]["selected"]}


def _finite(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
