"""Fits of Dask data frames: rows stay on the workers, and only sums of them travel.

Fitting gives a plain local model, as that of :class:`islab.Batches` with the same rows would be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from islab.core.dependencies import needed
from islab.estimators.islab import ISLaBClassifier, ISLaBRegressor
from islab.tables.batches import SAMPLE_ROWS
from islab.tables.partitions import Partitions, Task, Whole, added

__all__ = ["DaskBatches", "DaskISLaBClassifier", "DaskISLaBRegressor", "explain_local"]

PARTS_AT_ONCE = 16  # whose sums are added before they travel


class DaskBatches(Partitions):
    """The partitions of a Dask data frame as batches: what is done with each is done where it is.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    n_rows : int
        How many rows a fit holds on this machine: a random sample, the one that
        :class:`islab.Batches` would draw from the same rows.
    """

    def __init__(self, frame: Any, *, n_rows: int = SAMPLE_ROWS) -> None:
        super().__init__(n_rows=n_rows)
        self._dask = needed("dask", "Fits of Dask data frames")
        self._parts = frame.to_delayed()
        self._read: tuple[Any, Any] | None = None

    def by_part(self, task: Task) -> list[Any]:
        sent = self._dask.delayed(task, traverse=False)
        return list(self._dask.compute(*map(sent, range(len(self._parts)), self._parts)))

    def total(self, read: Callable[[Any], Any], task: Callable[[Any], Any]) -> Any:
        """The sum over partitions of what a task gives for what is read of each.

        What was read stays in the memory of the cluster until something else is read. Partitions
        are added in their order, some at a time, so that sums do not depend on the workers.
        """
        wait = self._dask.delayed
        if self._read is None or self._read[0] is not read:
            # A dataclass is to be sent whole: Dask would look into it for parts to compute.
            sent = wait(Whole(read), traverse=False)
            self._read = (read, self._dask.persist(*[sent(part) for part in self._parts]))
        sent = wait(Whole(task), traverse=False)
        sums = [sent(part) for part in self._read[1]]
        while len(sums) > 1:
            groups = range(0, len(sums), PARTS_AT_ONCE)
            sums = [wait(added)(sums[first : first + PARTS_AT_ONCE]) for first in groups]
        return self._dask.compute(sums[0])[0]


class _DaskEstimator:
    """Fit and predictions, partition by partition."""

    local: type

    def __init__(self, *, n_rows: int = SAMPLE_ROWS, **params: Any) -> None:
        self.n_rows = n_rows
        self.params = params
        self.local(**params)  # refuses parameters that it does not have

    def fit(self, X: Any, y: Any, **offsets: str) -> Any:
        """Learns from a Dask data frame, and gives a plain local model.

        Parameters
        ----------
        X : dask.dataframe.DataFrame
        y : str or dask.dataframe.Series
            The target, or the name of its column in X.
        **offsets : str
            ``offset`` or ``exposure`` of a regressor: names of columns.

        Returns
        -------
        ISLaBClassifier or ISLaBRegressor
            Also kept as ``model_``.
        """
        name = y
        if not isinstance(y, str):
            name = str(y.name) if y.name is not None else "y"
            if name in X.columns:
                raise ValueError(
                    f"Got y named {name!r}, which is a column of X as well, expected another "
                    "name; try y.rename('target'), or the name alone."
                )
            X = X.assign(**{name: y})
        model = self.local(**self.params)
        self.model_ = model.fit(DaskBatches(X, n_rows=self.n_rows), name, **offsets)
        return self.model_

    def predict(self, X: Any) -> Any:
        """Predictions of a Dask data frame, lazy, as a Dask series."""
        none = getattr(self.model_, "classes_", np.zeros(0))[:0]
        meta = pd.Series(none, name="prediction")
        return X.map_partitions(_predicted, self.model_, meta=meta)


class DaskISLaBClassifier(_DaskEstimator):
    """:class:`islab.ISLaBClassifier` for Dask data frames.

    Parameters
    ----------
    n_rows : int
        Rows that come to this machine, to find the structure.
    **params
        Those of :class:`islab.ISLaBClassifier`.
    """

    local = ISLaBClassifier

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, lazy, as a Dask data frame with a column for each."""
        names = [str(each) for each in self.model_.classes_]
        meta = pd.DataFrame(dict.fromkeys(names, pd.Series(dtype=float)))
        return X.map_partitions(_probabilities, self.model_, names, meta=meta)


class DaskISLaBRegressor(_DaskEstimator):
    """:class:`islab.ISLaBRegressor` for Dask data frames.

    Parameters
    ----------
    n_rows : int
        Rows that come to this machine, to find the structure.
    **params
        Those of :class:`islab.ISLaBRegressor`.
    """

    local = ISLaBRegressor


def explain_local(model: Any, X: Any, **options: Any) -> Any:
    """What each variable adds to the predictions of a Dask data frame, lazy.

    Parameters
    ----------
    model : ISLaBClassifier or ISLaBRegressor
    X : dask.dataframe.DataFrame
    **options
        Those of the model's ``explain_local``.

    Returns
    -------
    dask.dataframe.DataFrame
        The lines of :meth:`islab.explain.LocalExplanation.to_frame` of each partition.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a made-up row
        meta = _explained(X._meta_nonempty, model, options)[:0]
    return X.map_partitions(_explained, model, options, meta=meta)


def _predicted(part: pd.DataFrame, model: Any) -> pd.Series:
    values = model.predict(part) if len(part) else getattr(model, "classes_", np.zeros(0))[:0]
    return pd.Series(values, index=part.index, name="prediction")


def _probabilities(part: pd.DataFrame, model: Any, names: list[str]) -> pd.DataFrame:
    values = model.predict_proba(part) if len(part) else np.zeros((0, len(names)))
    return pd.DataFrame(values, index=part.index, columns=names)


def _explained(part: pd.DataFrame, model: Any, options: dict[str, Any]) -> pd.DataFrame:
    return model.explain_local(part, **options).to_frame()
