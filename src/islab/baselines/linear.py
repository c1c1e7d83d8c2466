"""Bayesian linear models with the same posterior: the network without hidden layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from islab.estimators import ISLaBRegressor
from islab.estimators.base import Mask, NetworkEstimator
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.weight_distribution import Learned
from islab.learn.engines import Problem


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianLinearEstimator(NetworkEstimator):
    """Parameters and learning of both linear models."""

    posterior: str = "independent"
    flow: str = "iaf"
    n_transforms: int = 2
    sparsity: Any = "auto"
    prior_inclusion: Any = "auto"
    prior_scale: Any = "auto"
    slab_df: float | None = None
    inclusion_init: Any = "auto"
    batch_size: Any = "auto"
    learning_rate_init: Any = "auto"
    max_epochs: Any = "auto"
    n_draws: int = 1000
    missing: str = "impute"
    engine: str = "auto"
    device: str = "cpu"
    random_state: Any = None
    verbose: bool = False

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        # Which of the two estimators stands behind it does not matter to the weights.
        network = ISLaBRegressor(hidden_layer_sizes=(), **self.get_params(deep=False))
        return network._learn_weights(problem, likelihood, varies, seed)


class BayesianLinearClassifier(BayesianLinearEstimator, NetworkClassifier):
    """Logistic regression, or softmax, that keeps few covariates (BLR in the paper).

    Parameters are those of :class:`~islab.ISLaBClassifier` that a linear model has, without
    ``class_weight``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = BayesianLinearClassifier(random_state=0).fit(X, y)
    >>> model.network_.max_depth
    1
    """


class BayesianLinearRegressor(BayesianLinearEstimator, NetworkRegressor):
    """Linear regression that keeps few covariates (BLR in the paper).

    Parameters are those of :class:`~islab.ISLaBRegressor` that a linear model has, without
    ``likelihood``: for counts take an ISLaBRegressor with ``hidden_layer_sizes=()``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BayesianLinearRegressor(random_state=0).fit(X, y)
    >>> bool(model.get_support()[list(X.columns).index("bmi")])
    True
    """
