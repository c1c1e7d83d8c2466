"""All scores of a fitted model at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.evaluate.scores import (
    PINBALL_LEVELS,
    calibration_error,
    check_draws,
    crps,
    interval_coverage,
    interval_width,
    pinball_loss,
)

Float = NDArray[np.floating]

QUANTILE_DRAWS = 200
SIZE_DRAWS = 20


def evaluate(estimator: Any, X: Any, y: ArrayLike, model: str | None = None) -> dict[str, Any]:
    """All scores of a fitted classifier or regressor on rows it has not seen, and its size.

    Parameters
    ----------
    estimator : classifier or regressor
        One of this package, or any with ``predict_proba`` or ``predict(X, return_std=True)``.
    X : DataFrame or (rows, columns)
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
        the estimator uses, or None if it does not tell.
    """
    if hasattr(estimator, "classes_"):
        options = {} if model is None else {"model": model}
        probability = estimator.predict_proba(X, **options)
        scores = score_classes(y, probability, estimator.classes_)
    else:
        scores = _evaluate_numbers(estimator, X, y, model)
    return {**scores, **_size(estimator, model), "selected": _selected(estimator)}


def score_classes(y: ArrayLike, probability: ArrayLike, classes: ArrayLike) -> dict[str, float]:
    """Accuracy, ROC AUC, calibration error, log score and Brier score of class probabilities.

    Parameters
    ----------
    y : (rows,)
        Classes.
    probability : (rows, classes)
        Averaged over draws, if there are any.
    classes : (classes,)
        What the columns stand for, in ascending order.

    Returns
    -------
    dict
        ``accuracy``; ``auc``, of several classes the mean of each against the others, NaN if y
        lacks one; ``ece``, :func:`calibration_error` of the most probable class in ten bins, also
        for two classes; ``nll``; and ``brier``, for two classes the squared error of one
        probability, for several the sum over all.

    Examples
    --------
    >>> scores = score_classes(["a", "b"], [[0.9, 0.1], [0.4, 0.6]], ["a", "b"])
    >>> scores["accuracy"], round(scores["brier"], 3)
    (1.0, 0.085)
    """
    from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

    labels, stated = np.asarray(classes), np.asarray(probability, dtype=float)
    truth = np.asarray(y)
    if stated.ndim != 2 or stated.shape[1] != len(labels):
        raise ValueError(
            f"Got probability of shape {stated.shape} for {len(labels)} classes, expected a "
            "column for each; try predict_proba."
        )
    unknown = truth[~np.isin(truth, labels)]
    if len(unknown):
        raise ValueError(
            f"Got class {unknown.tolist()[0]!r} in y, expected those of the training: "
            f"{', '.join(map(str, labels))}."
        )
    codes = np.searchsorted(labels, truth)
    every, two = np.arange(len(labels)), len(labels) == 2
    auc = float("nan")
    if len(np.unique(codes)) == len(labels):
        ranked = stated[:, 1] if two else stated / stated.sum(axis=1, keepdims=True)
        auc = float(roc_auc_score(codes, ranked, multi_class="ovr", labels=every))
    return {
        "accuracy": float(accuracy_score(codes, stated.argmax(axis=1))),
        "auc": auc,
        "ece": calibration_error(codes, stated),
        "nll": float(log_loss(codes, stated, labels=every)),
        "brier": float(brier_score_loss(codes, stated[:, 1] if two else stated, labels=every)),
    }


def score_numbers(
    y: ArrayLike,
    draws: ArrayLike,
    noise: ArrayLike = 0.0,
    *,
    likelihood: str = "gaussian",
    level: float = 0.9,
) -> dict[str, float]:
    """Errors of predicted numbers, and how well their distribution fits.

    Parameters
    ----------
    y : (rows,)
    draws : (draws, rows)
        Of the target's mean; of the logarithm of the rate for counts.
    noise : float or (rows,)
        Variance of normal noise about the means, positive; counts have none.
    likelihood : {"gaussian", "poisson"}
    level : float
        Of the interval that is judged.

    Returns
    -------
    dict
        ``rmse``, ``mae``, ``r2`` and ``pearson`` (NaN where nothing varies) of the mean;
        ``nll``, the negative log of the predictive density; ``pinball`` over the predictive
        quantiles 0.05 to 0.95, and ``pinball_paper``, the same with the mean in place of every
        quantile, which is half the absolute error; ``coverage`` and ``width`` of the central
        interval; ``crps``.

    Notes
    -----
    Quantiles and ``crps`` are those of the first 200 draws. For counts ``crps`` is twice the
    pinball loss over 99 levels.
    """
    from scipy.stats import pearsonr
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    from islab.core import families

    truth, centres = np.asarray(y, dtype=float), np.asarray(draws, dtype=float)
    variance = np.broadcast_to(np.asarray(noise, dtype=float), truth.shape)[:, None]
    check_draws(truth, centres)
    family, few = families.likelihood(likelihood), centres[:QUANTILE_DRAWS, :, None]
    if family.learns_noise and not (variance > 0).all():
        raise ValueError(f"Got noise={variance.min():.3g}, expected positive variances.")

    def quantiles(levels: Float) -> Float:
        return family.predictive_quantiles(few, variance, levels)[..., 0].T

    mean = family.predictive_mean(centres[..., None])[:, 0]
    interval = quantiles(np.array([(1 - level) / 2, (1 + level) / 2]))
    if family.normal_noise:
        rank_score = crps(truth, few[..., 0], np.sqrt(variance[:, 0]))
    else:
        fine = np.arange(1, 100) / 100
        rank_score = 2 * pinball_loss(truth, quantiles(fine), fine)
    varies = np.ptp(truth) > 0
    return {
        "rmse": float(root_mean_squared_error(truth, mean)),
        "mae": float(mean_absolute_error(truth, mean)),
        "r2": float(r2_score(truth, mean)) if varies else float("nan"),
        "pearson": float(pearsonr(truth, mean)[0]) if varies and np.ptp(mean) > 0 else float("nan"),
        "nll": float(family.log_score(truth[:, None], centres[..., None], variance).mean()),
        "pinball": pinball_loss(truth, quantiles(PINBALL_LEVELS)),
        "pinball_paper": pinball_loss(truth, np.repeat(mean[:, None], len(PINBALL_LEVELS), axis=1)),
        "coverage": interval_coverage(truth, interval),
        "width": interval_width(interval),
        "crps": rank_score,
    }


def _evaluate_numbers(estimator: Any, X: Any, y: ArrayLike, model: str | None) -> dict[str, float]:
    network = getattr(estimator, "network_", None)
    if network is None:
        mean, sd = estimator.predict(X, return_std=True)
        return score_numbers(y, np.asarray(mean)[None], np.square(sd))
    predictions = estimator.predictions(X)
    draws, observed = predictions.predictor(model), predictions.observed(y)
    each = [
        score_numbers(target, draws[..., output], noise, likelihood=network.likelihood)
        for output, (target, noise) in enumerate(
            zip(observed.T, network.noise_in_units(), strict=True)
        )
    ]
    return {name: float(np.mean([scores[name] for scores in each])) for name in each[0]}


def _size(estimator: Any, model: str | None) -> dict[str, float]:
    """Used weights, their share of those before training, and depths."""
    network, nan = getattr(estimator, "network_", None), float("nan")
    if network is None:
        used = float(getattr(estimator, "n_used_weights_", nan))
        return {"used_weights": used, "density": nan, "average_depth": nan, "max_depth": nan}
    if model == "median" or estimator.posterior_ is None:
        counts = [estimator.n_used_weights_, network.average_depth, network.max_depth]
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
    from islab.core.paths import active_weights

    net = posterior.architecture
    layer = net.by_block([block.layer for block in net.blocks])
    from_covariate = net.by_block([block.source == "covariate" for block in net.blocks])
    rng, sizes = np.random.default_rng(seed), []
    for _ in range(SIZE_DRAWS):
        weights, _ = posterior.draw(1, rng)
        used = active_weights(net, weights[0] != 0)
        depths = net.n_layers - layer[used & from_covariate]
        sizes.append([used.sum(), depths.mean() if len(depths) else 0.0, depths.max(initial=0)])
    return np.mean(sizes, axis=0)


def _selected(estimator: Any) -> list[str] | None:
    from islab.tables.frames import column_names

    if not hasattr(estimator, "get_support"):
        return None
    return np.array(column_names(estimator), dtype=object)[estimator.get_support()].tolist()
