"""Estimators of other packages by the names that people know them by.

Where one cross-validates, ``cv`` is a number, and :mod:`islab.baselines.references` makes shuffled
folds of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from islab.baselines.peer_models import (
    GaussianProcessClasses,
    GaussianProcessNumbers,
    SplineClassifier,
    SplineRegressor,
    TreesClassifier,
    TreesRegressor,
)
from islab.core.arrays import Float
from islab.core.dependencies import needed

N_FOLDS = 5
N_MEMBERS = 5
FIRST_PENALTY = 1e-3
RIDGE_PENALTIES = np.logspace(-3, 4, 30)
N_TREES = 300
TUNED_TREES = 150
TUNED_SETTINGS = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [4, 10, 31]}


def make_peer(name: str, task: str) -> Any:
    """An estimator, not fitted.

    Parameters
    ----------
    name : str
        One of ``PEERS``: linear or logistic models with a penalty chosen by cross-validation;
        scikit-learn's gradient boosting, as it is or with settings chosen by cross-validation; a
        random forest; a Gaussian process; a deep ensemble of five networks; an explainable
        boosting machine (needs interpret-core); an additive model of splines (needs pygam);
        Bayesian additive regression trees (needs stochtree); LassoNet with a penalty chosen by
        cross-validation (needs lassonet).
    task : {"classification", "regression"}
    """
    if name not in PEERS:
        raise ValueError(f"Got name={name!r}, expected one of {', '.join(PEERS)}.")
    return PEERS[name](task == "classification")


def _ridge(classify: bool) -> Any:
    from sklearn.linear_model import RidgeCV

    return _logistic("l2", "lbfgs") if classify else RidgeCV(RIDGE_PENALTIES)


def _lasso(classify: bool) -> Any:
    from sklearn.linear_model import LassoCV

    return _logistic("l1", "saga") if classify else LassoCV(cv=N_FOLDS, max_iter=10_000)


def _logistic(penalty: str, solver: str) -> Any:
    from sklearn.linear_model import LogisticRegressionCV

    # Since scikit-learn 1.8 a penalty is told by its share of L1, before by its name.
    kind: dict[str, Any] = {"penalty": penalty}
    if hasattr(LogisticRegressionCV(), "use_legacy_attributes"):
        kind = {"l1_ratios": (float(penalty == "l1"),), "use_legacy_attributes": False}
    return LogisticRegressionCV(
        **kind,
        cv=N_FOLDS,
        solver=solver,
        scoring="neg_log_loss",
        tol=1e-3 if solver == "saga" else 1e-4,
        max_iter=5000,
    )


def _boosting(classify: bool) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return HistGradientBoostingClassifier() if classify else HistGradientBoostingRegressor()


def _tuned_boosting(classify: bool) -> Any:
    """Six settings, judged by three folds: what takes a minute and mostly helps."""
    from sklearn.model_selection import GridSearchCV

    scoring = "neg_log_loss" if classify else "neg_mean_squared_error"
    model = _boosting(classify).set_params(max_iter=TUNED_TREES)
    return GridSearchCV(model, TUNED_SETTINGS, scoring=scoring, cv=3)


def _forest(classify: bool) -> Any:
    """Larger leaves for classes, as shares of single rows are no probabilities."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if classify:
        return RandomForestClassifier(N_TREES, min_samples_leaf=5)
    return RandomForestRegressor(N_TREES)


def _gaussian_process(classify: bool) -> Any:
    return GaussianProcessClasses() if classify else GaussianProcessNumbers()


def _ensemble(classify: bool) -> Any:
    """Networks from different starts, all trained on all rows.

    The strong weight decay is what cross-validation on breast cancer and diabetes asked for.
    """
    from sklearn.ensemble import BaggingClassifier, BaggingRegressor
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    shared = {"alpha": 1.0, "learning_rate_init": 0.01, "max_iter": 2000}
    if classify:
        network = MLPClassifier(hidden_layer_sizes=(50,), **shared)
        return BaggingClassifier(network, N_MEMBERS, bootstrap=False)
    network = MLPRegressor(early_stopping=True, **shared)
    return BaggingRegressor(network, N_MEMBERS, bootstrap=False)


def _ebm(classify: bool) -> Any:
    glassbox = needed("interpret.glassbox", "An explainable boosting machine", "interpret-core")
    if classify:
        return glassbox.ExplainableBoostingClassifier(n_jobs=1)
    return glassbox.ExplainableBoostingRegressor(n_jobs=1)


def _gam(classify: bool) -> Any:
    needed("pygam", "An additive model of splines")
    return SplineClassifier() if classify else SplineRegressor()


def _bart(classify: bool) -> Any:
    needed("stochtree", "Bayesian additive regression trees")
    return TreesClassifier() if classify else TreesRegressor()


def _lassonet(classify: bool) -> Any:
    needed("lassonet", "LassoNet")
    return LassoNetClassifier() if classify else LassoNetRegressor()


PEERS: dict[str, Callable[[bool], Any]] = {
    "ridge": _ridge,
    "lasso": _lasso,
    "boosting": _boosting,
    "boosting-tuned": _tuned_boosting,
    "forest": _forest,
    "gp": _gaussian_process,
    "ensemble": _ensemble,
    "ebm": _ebm,
    "gam": _gam,
    "bart": _bart,
    "lassonet": _lassonet,
}


class _LassoNet(BaseEstimator):
    """LassoNet's own estimators change their parameters, so that copies of them differ.

    The path of penalties starts at a fixed value: to look for the first that matters takes
    longer than to follow the path. Three folds choose a penalty.
    """

    network_: Any

    def __init__(
        self,
        *,
        path_multiplier: float = 1.2,
        n_iters: tuple[int, int] = (1000, 100),
        cv: Any = 3,
        random_state: Any = None,
    ) -> None:
        self.path_multiplier = path_multiplier
        self.n_iters = n_iters
        self.cv = cv
        self.random_state = random_state

    def _fit(self, kind: str, x: Float, y: NDArray) -> None:
        estimator = getattr(needed("lassonet", "LassoNet"), kind)(
            cv=self.cv,
            lambda_start=FIRST_PENALTY,
            path_multiplier=self.path_multiplier,
            n_iters=self.n_iters,
            verbose=0,
            random_state=self.random_state,
            torch_seed=self.random_state,
        )
        self.network_ = estimator.fit(x.astype(np.float32), y)

    @property
    def weights_(self) -> tuple[list[Float], list[Float]]:
        """Weights (in, out) that read covariates, and the others."""
        model = self.network_.model
        first, *others = (layer.weight.detach().numpy().T for layer in model.layers)
        return [model.skip.weight.detach().numpy().T, first], others


class LassoNetClassifier(ClassifierMixin, _LassoNet):
    """LassoNet for positions of classes, with a penalty chosen by cross-validation."""

    classes_: NDArray

    def fit(self, x: Float, y: NDArray) -> LassoNetClassifier:
        self.classes_ = np.unique(y)
        self._fit("LassoNetClassifierCV", x, np.asarray(y, dtype=np.int64))
        return self

    def predict_proba(self, x: Float) -> Float:
        return self.network_.predict_proba(x.astype(np.float32))

    def predict(self, x: Float) -> NDArray:
        return self.classes_[self.predict_proba(x).argmax(axis=1)]


class LassoNetRegressor(RegressorMixin, _LassoNet):
    """LassoNet for numbers, with a penalty chosen by cross-validation."""

    def fit(self, x: Float, y: Float) -> LassoNetRegressor:
        self._fit("LassoNetRegressorCV", x, np.asarray(y, dtype=np.float32))
        return self

    def predict(self, x: Float) -> Float:
        return self.network_.predict(x.astype(np.float32)).ravel()
