"""Models of other packages that need more than a call: settings by the data, or another interface.

All read standardised covariates, and positions of classes or standardised targets. Regressors whose
``predict`` takes ``return_std`` have a predictive distribution of their own, noise included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from islab.core.arrays import Float
from islab.core.dependencies import needed

MOST_PROCESS_ROWS = 1000
FEWEST_SPLINE_VALUES = 8
N_GROWN, N_BURN_IN, N_TREE_DRAWS = 10, 100, 200


# -- Gaussian processes -------------------------------------------------------------------------


def _kernel(x: Float) -> Any:
    """A squared exponential with a length of its own for each covariate."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    if len(x) > MOST_PROCESS_ROWS:
        raise ValueError(
            f"Got {len(x)} training rows, expected at most {MOST_PROCESS_ROWS}: the time of a "
            "Gaussian process grows with their cube."
        )
    return ConstantKernel(1.0, (1e-3, 1e3)) * RBF(np.full(x.shape[1], 3.0), (0.1, 1e3))


class GaussianProcessNumbers(RegressorMixin, BaseEstimator):
    """A Gaussian process with noise, its lengths and variances those of the largest evidence."""

    process_: Any

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, x: Float, y: Float) -> GaussianProcessNumbers:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import WhiteKernel

        kernel = _kernel(x) + WhiteKernel(0.1, (1e-5, 10.0))
        process = GaussianProcessRegressor(kernel, random_state=self.random_state)
        self.process_ = _quietly(process.fit, x, y)
        return self

    def predict(self, x: Float, return_std: bool = False) -> Any:
        return self.process_.predict(x, return_std=return_std)


class GaussianProcessClasses(ClassifierMixin, BaseEstimator):
    """A Gaussian process for classes, by Laplace's method; of several, each against the rest."""

    process_: Any
    classes_: NDArray

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, x: Float, y: NDArray) -> GaussianProcessClasses:
        from sklearn.gaussian_process import GaussianProcessClassifier

        process = GaussianProcessClassifier(_kernel(x), random_state=self.random_state)
        self.process_ = _quietly(process.fit, x, y)
        self.classes_ = self.process_.classes_
        return self

    def predict_proba(self, x: Float) -> Float:
        return self.process_.predict_proba(x)

    def predict(self, x: Float) -> NDArray:
        return self.process_.predict(x)


def _quietly(fit: Any, x: Float, y: NDArray) -> Any:
    """Lengths of covariates that do not matter run into their limits, which is no news."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(x, y)


# -- additive models of splines -----------------------------------------------------------------


class _Splines(BaseEstimator):
    """pyGAM: a spline of each covariate with many values, a slope of the others.

    One penalty for all is chosen by generalised cross-validation, as pyGAM's ``gridsearch`` does.
    """

    gam_: Any

    def _fit(self, kind: str, x: Float, y: NDArray) -> None:
        pygam = needed("pygam", "An additive model of splines")
        terms = pygam.terms.TermList()
        for number, column in enumerate(x.T):
            bends = len(np.unique(column)) >= FEWEST_SPLINE_VALUES
            terms += pygam.s(number) if bends else pygam.l(number)
        self.gam_ = _quietly_splined(getattr(pygam, kind)(terms), x, y)

    @property
    def term_features_(self) -> list[tuple[int]]:
        """The covariate of each term."""
        return [(term.feature,) for term in self.gam_.terms if not term.isintercept]

    @property
    def term_scores_(self) -> list[Float]:
        """The coefficients of each term."""
        terms = self.gam_.terms
        return [
            self.gam_.coef_[terms.get_coef_indices(number)]
            for number, term in enumerate(terms)
            if not term.isintercept
        ]


class SplineClassifier(ClassifierMixin, _Splines):
    """A logistic additive model of two classes."""

    classes_: NDArray

    def fit(self, x: Float, y: NDArray) -> SplineClassifier:
        self.classes_ = _two_classes(y, "pyGAM")
        self._fit("LogisticGAM", x, y == self.classes_[1])
        return self

    def predict_proba(self, x: Float) -> Float:
        second = np.asarray(self.gam_.predict_proba(x))
        return np.column_stack([1 - second, second])

    def predict(self, x: Float) -> NDArray:
        return self.classes_[self.predict_proba(x).argmax(axis=1)]


class SplineRegressor(RegressorMixin, _Splines):
    """An additive model of numbers, with the noise that it found."""

    def fit(self, x: Float, y: Float) -> SplineRegressor:
        self._fit("LinearGAM", x, y)
        return self

    def predict(self, x: Float, return_std: bool = False) -> Any:
        mean = np.asarray(self.gam_.predict(x))
        if not return_std:
            return mean
        return mean, np.full(len(mean), np.sqrt(self.gam_.statistics_["scale"]))


def _quietly_splined(model: Any, x: Float, y: NDArray) -> Any:
    """pyGAM warns of penalties that it leaves out of its search."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.gridsearch(x, np.asarray(y, dtype=float), progress=False)


# -- Bayesian additive regression trees ---------------------------------------------------------


class _Trees(BaseEstimator):
    """stochtree's BART: ten forests grown from the root, 100 steps to settle, 200 draws."""

    model_: Any

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def _fit(self, x: Float, y: Float, **params: Any) -> None:
        seed = -1 if self.random_state is None else int(self.random_state)
        # Its C++ reads rows of float64, one covariate after the other.
        self.model_ = needed("stochtree", "Bayesian additive regression trees").BARTModel()
        self.model_.sample(
            X_train=np.ascontiguousarray(x, dtype=float),
            y_train=np.asarray(y, dtype=float),
            num_gfr=N_GROWN,
            num_burnin=N_BURN_IN,
            num_mcmc=N_TREE_DRAWS,
            general_params={"random_seed": seed, **params},
        )


class TreesClassifier(ClassifierMixin, _Trees):
    """Probit BART of two classes."""

    classes_: NDArray

    def fit(self, x: Float, y: NDArray) -> TreesClassifier:
        self.classes_ = _two_classes(y, "BART")
        stochtree = needed("stochtree", "Bayesian additive regression trees")
        probit = stochtree.OutcomeModel(outcome="binary", link="probit")
        self._fit(x, y == self.classes_[1], outcome_model=probit, sample_sigma2_global=False)
        return self

    def predict_proba(self, x: Float) -> Float:
        second = self.model_.predict(x, type="mean", terms="y_hat", scale="probability")
        return np.column_stack([1 - second, second])

    def predict(self, x: Float) -> NDArray:
        return self.classes_[self.predict_proba(x).argmax(axis=1)]


class TreesRegressor(RegressorMixin, _Trees):
    """BART of numbers; its predictive variance is that of its draws and their noise."""

    def fit(self, x: Float, y: Float) -> TreesRegressor:
        self._fit(x, y)
        return self

    def predict(self, x: Float, return_std: bool = False) -> Any:
        draws = self.model_.predict(x, type="posterior", terms="y_hat")  # (rows, draws)
        mean = draws.mean(axis=1)
        if not return_std:
            return mean
        return mean, np.sqrt(draws.var(axis=1) + self.model_.global_var_samples.mean())


def _two_classes(y: NDArray, name: str) -> NDArray:
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"Got {len(classes)} classes, expected two, as {name} knows no more.")
    return classes
