"""What people use already, behind the face of this package: nothing here learns by itself.

Tables become standardised covariates as they do for ISLaB, so that any estimator of scikit-learn's
kind can take data frames with categories and missing values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from islab.baselines.sizes import Size, size_of
from islab.estimators.settings import check_params
from islab.estimators.summary import ModelSummary
from islab.tables.columns import ColumnEncoder
from islab.tables.frames import all_or_nothing, checked_table, column_names
from islab.tables.targets import (
    checked_labels,
    checked_levels,
    checked_numbers,
    interval_levels,
    target_scale,
)

Float = NDArray[np.floating]

N_FOLDS = 5
LEAST_SD = 1e-6


class ReferenceEstimator(SelectorMixin, BaseEstimator):
    """Tables in, covariates to the wrapped estimator; selection, size and summary out."""

    columns_: ColumnEncoder
    center_: Float
    scale_: Float
    estimator_: Any
    n_features_in_: int

    def __init__(
        self, estimator: Any = None, *, missing: str = "impute", random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.missing = missing
        self.random_state = random_state

    def _make(self, task: str) -> Any:
        """The estimator to fit: a copy of the user's, with the seed if it takes one."""
        from islab.baselines.known import make_known

        inner = make_known("ridge", task) if self.estimator is None else clone(self.estimator)
        if self.random_state is not None and "random_state" in inner.get_params():
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            inner.set_params(random_state=int(seed))
        return inner

    def _learn_columns(self, table: Any) -> Float:
        self.columns_, covariates = ColumnEncoder.learn(table, column_names(self), self.missing)
        self.center_, self.scale_ = self.columns_.center_and_scale(covariates)
        return (covariates - self.center_) / self.scale_

    def _covariates(self, X: Any) -> Float:
        """Rows to predict as the wrapped estimator reads them."""
        check_is_fitted(self)
        table = checked_table(self, X, reset=False)
        return (self.columns_.encode(table) - self.center_) / self.scale_

    @property
    def _size(self) -> Size | None:
        check_is_fitted(self)
        return size_of(self.estimator_, len(self.columns_.varies))

    @property
    def n_used_weights_(self) -> int:
        """Numbers that predictions are made from; see :mod:`islab.baselines.sizes`."""
        size = self._size
        if size is None:
            raise AttributeError(f"{type(self.estimator_).__name__} does not tell its size.")
        return size.n_weights

    def _get_support_mask(self) -> NDArray[np.bool_]:
        """Columns that the wrapped estimator uses; all, if it does not tell."""
        size = self._size
        mask = np.zeros(self.n_features_in_, dtype=bool)
        used = slice(None) if size is None else size.by_covariate > 0
        mask[self.columns_.owner_index[used]] = True
        return mask

    def summary(self) -> ModelSummary:
        """Which covariates the model uses and how often, to print or to read."""
        import pandas as pd

        size, names = self._size, self.columns_.names
        counts = np.ones(len(names), int) if size is None else size.by_covariate
        order = [k for k in np.argsort(-counts, kind="stable") if counts[k] > 0]
        nothing = np.full(len(order), np.nan)
        frame = pd.DataFrame(
            {
                "covariate": [names[k] for k in order],
                "variable": [self.columns_.owners[k] for k in order],
                "weights": counts[order],
                "inclusion": nothing,
                "used_probability": nothing,
                "min_depth": "-",
                "max_depth": "-",
            }
        )
        facts = {
            "estimator": type(self.estimator_).__name__,
            "used weights": "unknown" if size is None else str(size.n_weights),
            "used covariates": f"{len(order)} of {len(names)}",
        }
        return ModelSummary(type(self).__name__, facts, frame)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags


class ReferenceClassifier(ClassifierMixin, ReferenceEstimator):
    """Any classifier of scikit-learn's kind, for tables as they are.

    Parameters
    ----------
    estimator : classifier, optional
        Reads standardised covariates and positions of classes; logistic regression with a ridge
        penalty chosen by cross-validation if not given.
    missing : {"impute", "error"}
        What to do with missing values.
    random_state : int, RandomState instance or None
        Seed of the estimator, if it takes one.

    Attributes
    ----------
    classes_ : (classes,)
    estimator_ : classifier
        The fitted one.
    n_used_weights_ : int
    columns_ : ColumnEncoder
    n_features_in_ : int
    feature_names_in_ : (columns,)
        If the training table had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> ReferenceClassifier(GaussianNB()).fit(X, y).predict_proba(X).shape
    (150, 3)
    """

    classes_: NDArray

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> ReferenceClassifier:
        """Learns from rows and their classes."""
        check_params(self.get_params(deep=False))
        table = checked_table(self, X, reset=True)
        labels = checked_labels(self, y, table)
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise ValueError(f"Got y with a single class, {only!r}, expected at least two classes.")
        x = self._learn_columns(table)
        self.estimator_ = self._make("classification").fit(x, codes)
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> Float:
        """Probability of each class, (rows, classes)."""
        covariates = self._covariates(X)
        return np.asarray(self.estimator_.predict_proba(covariates), dtype=float)

    def predict(self, X: Any) -> NDArray:
        """The most probable class of each row, (rows,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class ReferenceRegressor(RegressorMixin, ReferenceEstimator):
    """Any regressor of scikit-learn's kind, for tables as they are, with a spread.

    Targets are taken as normal around the prediction, all with the same standard deviation: that
    of the residuals in a cross-validation of five folds within the training rows. Residuals of
    the fit itself would be too small.

    Parameters
    ----------
    estimator : regressor, optional
        Reads standardised covariates and targets; ridge regression with a penalty chosen by
        cross-validation if not given.
    missing : {"impute", "error"}
        What to do with missing values.
    random_state : int, RandomState instance or None
        Seed of the estimator, if it takes one.

    Attributes
    ----------
    estimator_ : regressor
        The fitted one.
    sd_ : float
        Standard deviation of the targets around the prediction.
    n_used_weights_ : int
    columns_ : ColumnEncoder
    n_features_in_ : int
    feature_names_in_ : (columns,)
        If the training table had names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = ReferenceRegressor(KNeighborsRegressor()).fit(X, y)
    >>> model.predict_interval(X, level=0.9).shape
    (442, 2)
    """

    sd_: float
    _center: float
    _scale: float

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> ReferenceRegressor:
        """Learns from rows and their targets (rows,)."""
        check_params(self.get_params(deep=False))
        table = checked_table(self, X, reset=True)
        values = checked_numbers(self, y, table, "gaussian")
        target = column_or_1d(values, warn=True)
        center, scale = target_scale(target[:, None], None, "gaussian")
        self._center, self._scale = float(center[0]), float(scale[0])
        standard = (target - self._center) / self._scale
        x = self._learn_columns(table)
        inner = self._make("regression")
        folds = KFold(min(N_FOLDS, len(x)), shuffle=True, random_state=0)
        apart = np.ravel(cross_val_predict(clone(inner), x, standard, cv=folds))
        spread = np.sqrt(np.mean(np.square(standard - apart)))
        self.sd_ = float(self._scale * max(spread, LEAST_SD))
        self.estimator_ = inner.fit(x, standard)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Float | tuple[Float, Float]:
        """Expected target of each row, (rows,).

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        return_std : bool
            Return also the standard deviation of the target.
        """
        mean = self._mean(X)
        return (mean, np.full(len(mean), self.sd_)) if return_std else mean

    def _mean(self, X: Any) -> Float:
        covariates = self._covariates(X)
        standard = np.asarray(self.estimator_.predict(covariates), dtype=float).ravel()
        return self._center + self._scale * standard

    def predict_quantiles(self, X: Any, levels: ArrayLike) -> Float:
        """Quantiles of each row's target, (rows, levels)."""
        from scipy.special import ndtri

        return self._mean(X)[:, None] + self.sd_ * ndtri(checked_levels(levels))

    def predict_interval(self, X: Any, level: float = 0.9) -> Float:
        """Lower and upper end of a central predictive interval, (rows, 2)."""
        return self.predict_quantiles(X, interval_levels(level))
