"""How well a model predicts rows whose targets are known: numbers, and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core import families
from islab.estimators.draws import by_rows
from islab.evaluate import interval_coverage, interval_width, score_classes
from islab.plots.predictive import calibration
from islab.plots.style import on_one_line
from islab.report.charts import Chart, calibration_chart, interval_chart

Float = NDArray[np.floating]

QUANTILE_DRAWS = 200


@dataclass(frozen=True)
class Score:
    """One measure of both models; ``full`` is None where there is no full posterior."""

    name: str
    meaning: str
    median: float
    full: float | None
    percent: bool = False


@dataclass(frozen=True)
class Scores:
    """All measures, what to look at, and which rows to look at more closely.

    Attributes
    ----------
    table : list of (output, scores)
        One entry, or one for each target of a regression.
    charts : list of Chart
        Calibration, or predictive intervals of each target.
    surprise : (rows,)
        How badly each row was predicted: its log score.
    """

    table: list[tuple[str | None, list[Score]]]
    charts: list[Chart]
    surprise: Float


def score(model: Any, X: Any, y: ArrayLike, level: float) -> Scores:
    """Scores of a fitted classifier or regressor on rows with targets."""
    if hasattr(model, "classes_"):
        return _classifier_scores(model, X, y)
    return _regressor_scores(model, X, y, level)


def _models(model: Any) -> list[str]:
    return ["median"] if model.posterior_ is None else ["median", "full"]


def _pairs(
    named: list[tuple[str, str, bool]], values: list[list[float]], models: list[str]
) -> list[Score]:
    """Scores from names and, for each model, their values."""
    full = values[models.index("full")] if "full" in models else [None] * len(named)
    return [
        Score(name, meaning, median, other, percent)
        for (name, meaning, percent), median, other in zip(named, values[0], full, strict=True)
    ]


def _classifier_scores(model: Any, X: Any, y: ArrayLike) -> Scores:
    observed = model.residuals(X, y)["observed"].to_numpy()
    codes = np.searchsorted(model.classes_, observed)
    named = [
        ("accuracy", "share of rows whose most probable class is right", True),
        ("log score", "mean of \N{MINUS SIGN}log probability of the right class; 0 is best", False),
        ("Brier score", "mean squared distance of probabilities and truth; 0 is best", False),
        (
            "calibration error",
            "mean distance of stated and real frequencies in ten bins of equal width; 0 is best",
            False,
        ),
    ]
    keys = ["accuracy", "nll", "brier", "ece", "auc"]
    binary = len(model.classes_) == 2
    if binary and len(np.unique(codes)) == 2:
        named.append(("AUC", "how surely the classes are ranked; 1 is best, 0.5 is chance", False))
    models, values, found = _models(model), [], {}
    for which in models:
        probability = model.predict_proba(X, model=which)
        found[which] = calibration(codes, probability[:, 1] if binary else probability)
        scores = score_classes(observed, probability, model.classes_)
        values.append([scores[key] for key in keys[: len(named)]])
        if which == "median":
            own = probability[np.arange(len(codes)), codes]
    what = on_one_line(str(model.classes_[1])) if binary else "the class predicted"
    return Scores(
        table=[(None, _pairs(named, values, models))],
        charts=[calibration_chart(found["median"], what)],
        surprise=-np.log(np.maximum(own, np.finfo(float).tiny)),
    )


@dataclass(frozen=True)
class _Predicted:
    """Means, interval ends (rows, outputs) and log scores (rows,) of a regression."""

    mean: Float
    lower: Float
    upper: Float
    log_score: Float


def _regressor_scores(model: Any, X: Any, y: ArrayLike, level: float) -> Scores:
    outputs = model.network_.scale.outputs
    observed = model.residuals(X, y)["observed"].to_numpy().reshape(-1, len(outputs))
    models = _models(model)
    found = [_predicted(model, X, observed, level, which) for which in models]
    percent = f"{level:.0%}".replace("%", " %")
    named = [
        ("RMSE", "root of the mean squared error, in the target's unit; 0 is best", False),
        ("MAE", "mean absolute error, in the target's unit; 0 is best", False),
        ("R\N{SUPERSCRIPT TWO}", "share of the variance explained; 1 is best", False),
        ("coverage", f"share of values inside their {percent} intervals", True),
        ("interval width", f"mean width of the {percent} intervals; narrow is best", False),
    ]
    table: list[tuple[str | None, list[Score]]] = []
    for number, name in enumerate(outputs):
        values = [_number_values(observed[:, number], each, number) for each in found]
        label = on_one_line(name) if len(outputs) > 1 else None
        table.append((label, _pairs(named, values, models)))
    overall = [
        ("log score", "mean of \N{MINUS SIGN}log predictive density; small is best", False),
    ]
    table[0][1].extend(_pairs(overall, [[float(each.log_score.mean())] for each in found], models))
    median = found[0]
    charts = [
        interval_chart(
            observed[:, k], median.mean[:, k], median.lower[:, k], median.upper[:, k], name, level
        )
        for k, name in enumerate(outputs)
    ]
    return Scores(table, charts, median.log_score)


def _predicted(model: Any, X: Any, observed: Float, level: float, which: str) -> _Predicted:
    likelihood = families.likelihood(model.network_.likelihood)
    noise = model.network_.noise_in_units()
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    covariates = model._covariates(X)
    with_target = np.concatenate([covariates, observed], axis=1)
    n_columns = covariates.shape[1]

    def predict(rows: Float) -> _Predicted:
        draws = model._draw(rows[:, :n_columns], which)
        # Quantiles are the costly part, and those of fewer draws hardly differ.
        lower, upper = likelihood.predictive_quantiles(draws[:QUANTILE_DRAWS], noise, ends)
        scores = likelihood.log_score(rows[:, n_columns:], draws, noise)
        return _Predicted(likelihood.predictive_mean(draws), lower, upper, scores)

    parts = by_rows(with_target, model.n_draws * observed.shape[1], predict)
    fields = ("mean", "lower", "upper", "log_score")
    return _Predicted(*(np.concatenate([getattr(p, name) for p in parts]) for name in fields))


def _number_values(truth: Float, found: _Predicted, output: int) -> list[float]:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    mean = found.mean[:, output]
    interval = np.column_stack([found.lower[:, output], found.upper[:, output]])
    return [
        float(root_mean_squared_error(truth, mean)),
        float(mean_absolute_error(truth, mean)),
        float(r2_score(truth, mean)) if np.ptp(truth) > 0 else float("nan"),
        interval_coverage(truth, interval),
        interval_width(interval),
    ]
