"""Estimators of other packages with the interface of this one: nothing here learns by itself.

Tables become standardised covariates as they do for ISLaB, so that any estimator of scikit-learn's
kind can take data frames with categories and missing values.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from islab.baselines.weight_counts import Size, size_of
from islab.core.arrays import Float
from islab.estimators.settings import check_params
from islab.estimators.summary import CovariateSummary
from islab.tables.columns import ColumnEncoder
from islab.tables.frames import all_or_nothing, checked_table, column_names
from islab.tables.targets import (
    checked_labels,
    checked_levels,
    checked_numbers,
    interval_levels,
    target_scale,
)

N_FOLDS = 5
LEAST_SD = 1e-6

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


def shuffled_folds(
    y: NDArray, n_folds: int = N_FOLDS, *, classify: bool, groups: NDArray | None, seed: int
) -> Folds:
    """Row numbers to learn from and to judge by, for each fold.

    Tables are often sorted, and folds of consecutive rows would then leave out what they are
    judged by. Classes keep their shares, and rows of one group stay in one fold.
    """
    most = len(y) if groups is None else len(np.unique(groups))
    if classify:
        most = min(most, max(np.unique(y, return_counts=True)[1].min(), 2))
    kinds = {
        (False, False): KFold,
        (True, False): StratifiedKFold,
        (False, True): GroupKFold,
        (True, True): StratifiedGroupKFold,
    }
    kind = kinds[classify, groups is not None]
    folds = kind(int(min(n_folds, most)), shuffle=True, random_state=seed)
    return list(folds.split(np.zeros(len(y)), y, groups))


def _choosing(estimator: BaseEstimator) -> dict[str, bool]:
    """Parameters of folds that are not the user's own, at any depth, in the estimator or its parts.

    True where the rows of the folds are those of the fit: in the estimator itself, and in the last
    step of a pipeline. Inside of another cross-validation they are not.
    """
    params, found = estimator.get_params(deep=True), {}
    for name, value in params.items():
        path, _, last = name.rpartition("__")
        owner = params[path] if path else estimator
        # Ridge regression leaves out one row at a time by default.
        default = value is None and not isinstance(owner, RidgeCV | RidgeClassifierCV)
        number = isinstance(value, int) and not isinstance(value, bool)
        if last == "cv" and (number or default):
            above = ["__".join(path.split("__")[:k]) for k in range(path.count("__") + bool(path))]
            owners = [params[each] if each else estimator for each in above]
            found[name] = all(isinstance(each, Pipeline) for each in owners)
    return found


def _is_free_seed(name: str, value: Any) -> bool:
    """Whether a parameter is a seed: the estimator's, or one of its parts' that is not set."""
    return name == "random_state" or (name.endswith("__random_state") and value is None)


def _described(n_folds: int, classify: bool, grouped: bool) -> str:
    parts = [f"{n_folds} shuffled folds"]
    return ", ".join(parts + ["stratified"] * classify + ["grouped"] * grouped)


class ReferenceEstimator(SelectorMixin, BaseEstimator):
    """Tables in, covariates to the wrapped estimator; selection, size and summary out."""

    columns_: ColumnEncoder
    center_: Float
    scale_: Float
    estimator_: Any
    folds_: str | None
    n_features_in_: int

    def __init__(
        self, estimator: BaseEstimator = None, *, missing: str = "impute", random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.missing = missing
        self.random_state = random_state

    def _make(self, task: str, y: NDArray, groups: NDArray | None, seed: int) -> Any:
        """The estimator to fit: a copy of the user's, with seed and folds if it takes any."""
        from islab.baselines.peers import make_peer

        inner = make_peer("ridge", task) if self.estimator is None else clone(self.estimator)
        params = inner.get_params(deep=True)
        if self.random_state is not None:
            free = [k for k, value in params.items() if _is_free_seed(k, value)]
            inner.set_params(**dict.fromkeys(free, seed))
        classify = task == "classification"
        for name, all_rows in _choosing(inner).items():
            n_folds = params[name] or N_FOLDS
            if all_rows:
                folds = shuffled_folds(y, n_folds, classify=classify, groups=groups, seed=seed)
                n_folds = len(folds)
            elif groups is None:
                kind = StratifiedKFold if classify else KFold
                folds = kind(n_folds, shuffle=True, random_state=seed)
            else:
                raise ValueError(
                    f"Got groups and {name!r} of {type(inner).__name__}, whose folds would part "
                    "them; try an estimator that does not cross-validate within another."
                )
            inner.set_params(**{name: folds})
            self.folds_ = _described(n_folds, classify, groups is not None)
        return inner

    def _draw_seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

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
        """Numbers that predictions are made from; see :mod:`islab.baselines.weight_counts`."""
        size = self._size
        if size is None:
            raise AttributeError(f"{type(self.estimator_).__name__} does not show its weights.")
        return size.n_weights

    def _get_support_mask(self) -> NDArray[np.bool_]:
        """Columns that the wrapped estimator uses; all if this is unknown."""
        size = self._size
        mask = np.zeros(self.n_features_in_, dtype=bool)
        used = slice(None) if size is None else size.by_covariate > 0
        mask[self.columns_.owner_index[used]] = True
        return mask

    def summary(self) -> CovariateSummary:
        """Which covariates the model uses and how often, to print or to read."""
        import pandas as pd

        size, names = self._size, self.columns_.names
        counts = np.ones(len(names), int) if size is None else size.by_covariate
        order = [k for k in np.argsort(-counts, kind="stable") if counts[k] > 0]
        frame = pd.DataFrame(
            {
                "covariate": [names[k] for k in order],
                "variable": [self.columns_.owners[k] for k in order],
                "weights": counts[order],
            }
        )
        facts = {
            "estimator": type(self.estimator_).__name__,
            "used weights": "unknown" if size is None else str(size.n_weights),
            "used covariates": f"{len(order)} of {len(names)}",
        }
        if self.folds_ is not None:
            facts["penalty chosen by"] = self.folds_
        return CovariateSummary(type(self).__name__, facts, frame)

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
        penalty chosen by cross-validation if not given. Where ``cv`` is a number or not set, the
        folds are shuffled and stratified.
    missing : {"impute", "error"}
        What to do with missing values.
    random_state : int, RandomState instance or None
        Seed of the folds, and of the estimator if it takes one.

    Attributes
    ----------
    classes_ : (classes,)
    estimator_ : classifier
        The fitted one.
    folds_ : str or None
        The folds by which it chose its settings, if it did.
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
    def fit(self, X: Any, y: ArrayLike, groups: NDArray | None = None) -> ReferenceClassifier:
        """Learns from rows and their classes; rows of one group stay in one fold."""
        check_params(self.get_params(deep=False))
        table = checked_table(self, X, reset=True)
        labels = checked_labels(self, y, table)
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise ValueError(f"Got y with a single class, {only!r}, expected at least two classes.")
        x = self._learn_columns(table)
        self.folds_ = None
        self.estimator_ = self._make("classification", codes, groups, self._draw_seed())
        self.estimator_.fit(x, codes)
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

    Targets are taken as normal around the prediction. Where the estimator's ``predict`` takes
    ``return_std``, the standard deviation is what it says. Else it is the same for all rows: that
    of the residuals in a cross-validation of five folds within the training rows. Residuals of
    the fit itself would be too small.

    Parameters
    ----------
    estimator : regressor, optional
        Reads standardised covariates and targets; ridge regression with a penalty chosen by
        cross-validation if not given. Where ``cv`` is a number or not set, the folds are
        shuffled.
    missing : {"impute", "error"}
        What to do with missing values.
    random_state : int, RandomState instance or None
        Seed of the folds, and of the estimator if it takes one.

    Attributes
    ----------
    estimator_ : regressor
        The fitted one.
    folds_ : str or None
        The folds by which it chose its settings, if it did.
    sd_ : float or None
        Standard deviation of the targets around the prediction; None if the estimator has one for
        each row.
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

    sd_: float | None
    _center: float
    _scale: float

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, groups: NDArray | None = None) -> ReferenceRegressor:
        """Learns from rows and their targets (rows,); rows of one group stay in one fold."""
        check_params(self.get_params(deep=False))
        table = checked_table(self, X, reset=True)
        values = checked_numbers(self, y, table, "gaussian")
        target = column_or_1d(values, warn=True)
        center, scale = target_scale(target[:, None], None, "gaussian")
        self._center, self._scale = float(center[0]), float(scale[0])
        standard = (target - self._center) / self._scale
        x = self._learn_columns(table)
        self.folds_ = None
        seed = self._draw_seed()
        self.estimator_ = self._make("regression", standard, groups, seed).fit(x, standard)
        self.sd_ = None
        if "return_std" not in signature(self.estimator_.predict).parameters:
            residual = self._residuals(x, standard, groups, seed)
            self.sd_ = float(self._scale * max(np.sqrt(np.mean(residual**2)), LEAST_SD))
        return self

    def _residuals(self, x: Float, y: Float, groups: NDArray | None, seed: int) -> Float:
        """Of rows that were left out of the fit, (rows,)."""
        residual = np.empty_like(y)
        for train, test in shuffled_folds(y, classify=False, groups=groups, seed=0):
            own = None if groups is None else groups[train]
            inner = self._make("regression", y[train], own, seed).fit(x[train], y[train])
            residual[test] = y[test] - np.ravel(inner.predict(x[test]))
        return residual

    def predict(self, X: Any, return_std: bool = False) -> Float | tuple[Float, Float]:
        """Expected target of each row, (rows,).

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        return_std : bool
            Return also the standard deviation of the target.
        """
        mean, sd = self._mean_and_sd(X, return_std)
        return (mean, sd) if return_std else mean

    def _mean_and_sd(self, X: Any, wants_sd: bool) -> tuple[Float, Float]:
        """Both in the unit of the target; the second means nothing if it is not wanted."""
        covariates, own = self._covariates(X), wants_sd and self.sd_ is None
        found = self.estimator_.predict(covariates, **({"return_std": True} if own else {}))
        standard, sd = found if own else (found, None)
        mean = self._center + self._scale * np.asarray(standard, dtype=float).ravel()
        if sd is None:
            return mean, np.full(len(mean), np.nan if self.sd_ is None else self.sd_)
        return mean, self._scale * np.maximum(np.asarray(sd, dtype=float).ravel(), LEAST_SD)

    def predict_quantiles(self, X: Any, levels: ArrayLike) -> Float:
        """Quantiles of each row's target, (rows, levels)."""
        from scipy.special import ndtri

        mean, sd = self._mean_and_sd(X, wants_sd=True)
        return mean[:, None] + sd[:, None] * ndtri(checked_levels(levels))

    def predict_interval(self, X: Any, level: float = 0.9) -> Float:
        """Lower and upper end of a central predictive interval, (rows, 2)."""
        return self.predict_quantiles(X, interval_levels(level))
