"""Predictions as a table: what the command line writes and a server answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from islab.core.fitted import FittedModel


def predicted_table(
    model: FittedModel, X: Any, level: float | None = None, average: str | None = None
) -> pd.DataFrame:
    """A line of predictions for each row.

    Parameters
    ----------
    model : estimator
        Fitted, of tables or of images.
    X : DataFrame, (rows, columns) or images
    level : float, optional
        Of an interval, which is added.
    average : {"full", "median"}, optional
        What predicts; what the model predicts with by default if not given.

    Returns
    -------
    DataFrame
        ``prediction``, and of classes the ``probability_`` of each, of numbers ``sd``; ``lower``
        and ``upper`` with a level. Several outputs have their names behind an underscore.
    """
    classes = getattr(model, "classes_", None)
    if classes is not None:
        probability = model.predict_proba(X, model=average)
        columns = {"prediction": classes[probability.argmax(axis=1)]}
        for name, values in zip(classes, probability.T, strict=True):
            columns[f"probability_{name}"] = values
        outputs = classes[1:] if len(classes) == 2 else classes
        suffixes = [f"_{name}" for name in outputs]
    else:
        mean, sd = model.predict(X, return_std=True, model=average)
        outputs = model.network_.scale.outputs
        suffixes = [""] if mean.ndim == 1 else [f"_{n}" for n in outputs[: mean.shape[1]]]
        columns = {}
        for number, suffix in enumerate(suffixes):
            columns[f"prediction{suffix}"] = mean.reshape(len(mean), -1)[:, number]
            columns[f"sd{suffix}"] = sd.reshape(len(sd), -1)[:, number]
    if level is not None:
        interval = model.predict_interval(X, level, model=average)
        interval = interval.reshape(len(interval), -1, 2)
        for number, suffix in enumerate(suffixes):
            columns[f"lower{suffix}"] = interval[:, number, 0]
            columns[f"upper{suffix}"] = interval[:, number, 1]
    return pd.DataFrame(columns)
