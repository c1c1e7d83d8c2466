"""How many numbers a fitted estimator predicts with, and how many of them belong to a covariate.

What counts as a used weight: a coefficient that is not zero; in a network, a weight that is not
zero, biases left out; in trees, a threshold or a leaf; in an additive model, the score of a bin
that is not zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator


@dataclass(frozen=True, eq=False)
class Size:
    """The used weights of an estimator."""

    n_weights: int
    by_covariate: NDArray[np.intp]  # (covariates,), those that read each covariate


def size_of(estimator: BaseEstimator, n_covariates: int) -> Size | None:
    """The size of a fitted estimator, or None if it is of an unknown kind."""
    kinds: dict[str, Callable[[Any, int], Size]] = {
        "coef_": _linear,
        "weights_": _skip_network,
        "term_scores_": _additive,
        "_predictors": _trees,
        "coefs_": _network,
        "tree_": _tree,
    }
    for attribute, size in kinds.items():
        if hasattr(estimator, attribute):
            return size(estimator, n_covariates)
    if hasattr(estimator, "best_estimator_"):
        return size_of(estimator.best_estimator_, n_covariates)
    members = getattr(estimator, "estimators_", None)
    if isinstance(members, list):
        return _sum([size_of(member, n_covariates) for member in members])
    return None


def _linear(estimator: BaseEstimator, n_covariates: int) -> Size:
    used = np.reshape(estimator.coef_, (-1, n_covariates)) != 0
    return Size(int(used.sum()), used.sum(axis=0))


def _skip_network(estimator: BaseEstimator, n_covariates: int) -> Size:
    """Weights as (in, out); matrices with as many rows as there are covariates read them."""
    reading, others = estimator.weights_
    by_covariate = sum((matrix != 0).sum(axis=1) for matrix in reading)
    inside = sum(int((matrix != 0).sum()) for matrix in others)
    return Size(int(by_covariate.sum()) + inside, by_covariate)


def _network(estimator: BaseEstimator, n_covariates: int) -> Size:
    first, *others = (weights != 0 for weights in estimator.coefs_)
    return Size(int(first.sum() + sum(w.sum() for w in others)), first.sum(axis=1))


def _trees(estimator: BaseEstimator, n_covariates: int) -> Size:
    # scikit-learn shows the nodes of these trees nowhere else.
    nodes = [tree.nodes for trees in estimator._predictors for tree in trees]
    split = [each["feature_idx"][each["is_leaf"] == 0] for each in nodes]
    features = np.concatenate([np.zeros(0, dtype=np.intp), *split]).astype(np.intp)
    return Size(sum(map(len, nodes)), np.bincount(features, minlength=n_covariates))


def _tree(estimator: BaseEstimator, n_covariates: int) -> Size:
    features = estimator.tree_.feature  # negative in leaves
    split = features[features >= 0]
    return Size(len(features), np.bincount(split, minlength=n_covariates))


def _additive(estimator: BaseEstimator, n_covariates: int) -> Size:
    total, by_covariate = 0, np.zeros(n_covariates, dtype=np.intp)
    for features, scores in zip(estimator.term_features_, estimator.term_scores_, strict=True):
        used = int(np.count_nonzero(scores))
        total += used
        by_covariate[list(features)] += used
    return Size(total, by_covariate)


def _sum(sizes: list[Size | None]) -> Size | None:
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(sizes):
        return None
    return Size(
        sum(size.n_weights for size in known), np.sum([size.by_covariate for size in known], axis=0)
    )
