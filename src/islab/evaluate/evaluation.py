"""All scores of a fitted model at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from islab.core.convolution.paths import active_image_weights
from islab.core.paths import active_weights
from islab.core.sampled import SampledPosterior
from islab.scores import score_classes, score_numbers

Float = NDArray[np.floating]

SIZE_DRAWS = 20


def evaluate(
    estimator: BaseEstimator, X: Any, y: ArrayLike, model: str | None = None
) -> dict[str, Any]:
    """All scores of a fitted classifier or regressor on rows it has not seen, and its size.

    Parameters
    ----------
    estimator : classifier or regressor
        One of this package, or any with ``predict_proba`` or ``predict(X, return_std=True)``.
    X : DataFrame, (rows, columns) or images
        Or what ``estimator.predictions`` gave, to judge both models by one pass over the rows.
    y : (rows,) or (rows, outputs)
        Scores of several outputs are averaged.
    model : {"full", "median"}, optional
        Of estimators that have both; what they predict with by default if not given.

    Returns
    -------
    dict
        What :func:`score_classes` or :func:`score_numbers` gives, and ``used_weights``,
        ``density``, ``average_depth`` and ``max_depth`` (means over draws for the full model,
        NaN where a method has no such number), and ``selected``, the names of the columns that
        the estimator uses, or None if this is unknown.
    """
    if hasattr(estimator, "classes_"):
        options = {} if model is None else {"model": model}
        probability = estimator.predict_proba(X, **options)
        scores = score_classes(y, probability, estimator.classes_)
    else:
        scores = _evaluate_numbers(estimator, X, y, model)
    return {**scores, **_size(estimator, model), "selected": _selected(estimator)}


def _evaluate_numbers(
    estimator: BaseEstimator, X: Any, y: ArrayLike, model: str | None
) -> dict[str, float]:
    network = getattr(estimator, "network_", None)
    if network is None:
        mean, sd = estimator.predict(X, return_std=True)
        return score_numbers(y, np.asarray(mean)[None], np.square(sd))
    predictions = estimator.predictions(X)
    if predictions.likelihood.n_predictors > 1:
        return _evaluate_moments(predictions, y, model)
    draws, observed = predictions.predictor(model), predictions.observed(y)
    # What each output learned: mostly one number, of each draw if it has its own.
    noise = predictions.noise(model)
    noise = noise.reshape(*noise.shape[:-1], -1, observed.shape[1])
    each = [
        score_numbers(
            target,
            draws[..., output],
            np.atleast_2d(noise[..., output]),
            likelihood=network.likelihood,
        )
        for output, target in enumerate(observed.T)
    ]
    return {name: float(np.mean([scores[name] for scores in each])) for name in each[0]}


def _evaluate_moments(predictions: Any, y: ArrayLike, model: str | None) -> dict[str, float]:
    """Scores of normal distributions with the predicted means and standard deviations."""
    mean, sd = predictions.mean(model), predictions.sd(model)
    each = [
        score_numbers(target, mean[None, :, k], sd[:, k] ** 2)
        for k, target in enumerate(predictions.observed(y).T)
    ]
    return {name: float(np.mean([scores[name] for scores in each])) for name in each[0]}


def _size(estimator: BaseEstimator, model: str | None) -> dict[str, float]:
    """Used weights, their share of those before training, and depths."""
    network, nan = getattr(estimator, "network_", None), float("nan")
    if network is None:
        used = float(getattr(estimator, "n_used_weights_", nan))
        return {"used_weights": used, "density": nan, "average_depth": nan, "max_depth": nan}
    if model == "median" or estimator.posterior_ is None:
        depths = (getattr(network, name, nan) for name in ("average_depth", "max_depth"))
        counts = [estimator.n_used_weights_, *depths]
    else:
        counts = _full_size(estimator.posterior_, estimator.seed_).tolist()
    used, average, deepest = map(float, counts)
    return {
        "used_weights": used,
        "density": used / max(network.n_weights_initial, 1),
        "average_depth": average,
        "max_depth": deepest,
    }


def _full_size(posterior: Any, seed: int) -> Float:
    """Used weights, average and greatest depth: means over networks drawn from the posterior."""
    net = posterior.architecture
    if hasattr(net, "convolutions"):
        return _full_image_size(posterior, seed)
    layer = net.by_block([block.layer for block in net.blocks])
    from_covariate = net.by_block([block.source == "covariate" for block in net.blocks])
    rng, sizes = np.random.default_rng(seed), []
    if isinstance(posterior, SampledPosterior):
        drawn = iter(posterior.draw(SIZE_DRAWS, rng)[0])
    else:
        drawn = (posterior.draw(1, rng)[0][0] for _ in range(SIZE_DRAWS))
    for weights in drawn:
        used = active_weights(net, weights != 0)
        depths = net.n_layers - layer[used & from_covariate]
        sizes.append([used.sum(), depths.mean() if len(depths) else 0.0, depths.max(initial=0)])
    return np.mean(sizes, axis=0)


def _full_image_size(posterior: Any, seed: int) -> Float:
    """The same of a network of images, whose paths have no single depth."""
    rng, sizes = np.random.default_rng(seed), []
    for _ in range(SIZE_DRAWS):
        drawn = posterior.draw(rng)
        kept = [weights != 0 for weights in (*drawn.kernels, drawn.head_weights)]
        sizes.append(sum(used.sum() for used in active_image_weights(posterior.architecture, kept)))
    return np.array([np.mean(sizes), np.nan, np.nan])


def _selected(estimator: BaseEstimator) -> list[str] | None:
    from islab.tables.frames import column_names

    if not hasattr(estimator, "get_support"):
        return None
    return np.array(column_names(estimator), dtype=object)[estimator.get_support()].tolist()
