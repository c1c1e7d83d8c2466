"""How well a model predicts rows whose targets are known: numbers, and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.plots.predictive import calibration
from islab.plots.style import on_one_line
from islab.report.charts import (
    Chart,
    calibration_chart,
    interval_chart,
    precision_chart,
    roc_chart,
)
from islab.scores import interval_coverage, interval_width, score_classes

if TYPE_CHECKING:
    from islab.estimators.drawn_rows import Model
    from islab.estimators.predictions import ClassPredictions, NumberPredictions

QUANTILE_DRAWS = 200
MOST_CONFUSED = 12
IMBALANCED = 0.8


@dataclass(frozen=True)
class Score:
    """One measure of both models; ``full`` is None where there is no full posterior."""

    name: str
    meaning: str
    median: float
    full: float | None
    percent: bool = False

    @property
    def best(self) -> float:
        """Of the full model where there is one."""
        return self.median if self.full is None else self.full


@dataclass(frozen=True)
class Confusion:
    """How many rows of each observed class were predicted to be of each class."""

    names: list[str]
    lines: list[tuple[str, list[int]]]


@dataclass(frozen=True)
class Scores:
    """All measures, what to look at, and which rows to look at more closely."""

    table: list[tuple[str | None, list[Score]]]  # one entry, or one for each target of a regression
    charts: list[Chart]  # calibration, ROC and precision, or intervals of each target
    surprise: Float  # (rows,), how badly each row was predicted: its log score
    confusion: Confusion | None = None
    base_rate: float = float("nan")  # share of the most frequent class
    imbalance: str | None = None  # what to keep in mind if one class is rare


def score(predictions: ClassPredictions | NumberPredictions, y: NDArray, level: float) -> Scores:
    """Scores of predictions of rows with targets, which are checked."""
    if predictions.kind == "classes":
        return _class_scores(predictions, y)
    return _number_scores(predictions, y, level)


def _pairs(
    named: list[tuple[str, str, bool]], values: list[list[float]], models: tuple[Model, ...]
) -> list[Score]:
    """Scores from names and, for each model, their values."""
    full = values[models.index("full")] if "full" in models else [None] * len(named)
    return [
        Score(name, meaning, median, other, percent)
        for (name, meaning, percent), median, other in zip(named, values[0], full, strict=True)
    ]


def _class_scores(predictions: ClassPredictions, observed: NDArray) -> Scores:
    classes = predictions.classes
    codes = np.searchsorted(classes, observed)
    named = [
        ("accuracy", "share of rows whose most probable class is right", True),
        ("log score", "mean of \N{MINUS SIGN}log probability of the right class; 0 is best", False),
        (
            "Brier score",
            "mean squared difference of predicted probabilities and observed classes; 0 is best",
            False,
        ),
        (
            "calibration error",
            "mean difference of predicted and observed frequencies in ten bins; 0 is best",
            False,
        ),
    ]
    keys = ["accuracy", "nll", "brier", "ece", "auc"]
    binary = len(classes) == 2
    if binary and len(np.unique(codes)) == 2:
        named.append(
            (
                "AUC",
                "probability that a row of the class ranks above another; 1 is best, 0.5 is chance",
                False,
            )
        )
    values = []
    for which in predictions.models:
        scores = score_classes(observed, predictions.mean(which), classes)
        values.append([scores[key] for key in keys[: len(named)]])
    stated = predictions.mean()
    found = calibration(codes, stated[:, 1] if binary else stated)
    what = on_one_line(str(classes[1])) if binary else "the class predicted"
    charts = [calibration_chart(found, what)]
    if len(named) == len(keys):
        charts += [roc_chart(codes, stated[:, 1], what), precision_chart(codes, stated[:, 1], what)]
    shares = np.bincount(codes, minlength=len(classes)) / len(codes)
    return Scores(
        table=[(None, _pairs(named, values, predictions.models))],
        charts=charts,
        surprise=predictions.log_score(observed),
        confusion=_confusion(codes, stated.argmax(axis=1), classes),
        base_rate=float(shares.max()),
        imbalance=_imbalance(shares, classes),
    )


def _confusion(observed: NDArray, predicted: NDArray, classes: NDArray) -> Confusion | None:
    """The confusion matrix, None for more classes than can be read."""
    n_classes = len(classes)
    if n_classes > MOST_CONFUSED:
        return None
    counts = np.bincount(observed * n_classes + predicted, minlength=n_classes**2)
    names = [on_one_line(str(name)) for name in classes]
    return Confusion(
        names, list(zip(names, counts.reshape(n_classes, n_classes).tolist(), strict=True))
    )


def _imbalance(shares: Float, classes: NDArray) -> str | None:
    """A sentence, if always predicting one class would be right for most of the rows."""
    largest = int(shares.argmax())
    if shares[largest] < IMBALANCED:
        return None
    percent = f"{100 * shares[largest]:.1f} %"
    return (
        f"{percent} is the base rate: always predicting {on_one_line(str(classes[largest]))} would "
        "have that accuracy, so look at precision and recall as well."
    )


@dataclass(frozen=True)
class _Predicted:
    """Means, interval ends (rows, outputs) and log scores (rows,) of a regression."""

    mean: Float
    lower: Float
    upper: Float
    log_score: Float


def _number_scores(predictions: NumberPredictions, observed: Float, level: float) -> Scores:
    outputs, models = predictions.targets, predictions.models
    found = [_predicted(predictions, observed, level, which) for which in models]
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
    best = found[-1]
    charts = [
        interval_chart(
            observed[:, k], best.mean[:, k], best.lower[:, k], best.upper[:, k], name, level
        )
        for k, name in enumerate(outputs)
    ]
    return Scores(table, charts, best.log_score)


def _predicted(
    predictions: NumberPredictions, observed: Float, level: float, which: Model
) -> _Predicted:
    likelihood, noise = predictions.likelihood, predictions.noise(which)
    first = noise[:QUANTILE_DRAWS] if noise.ndim > 1 else noise
    ends = np.array([(1 - level) / 2, (1 + level) / 2])

    def predict(draws: Float, own: Float) -> tuple[Float, ...]:
        # Quantiles are the costly part, and those of fewer draws hardly differ.
        lower, upper = likelihood.predictive_quantiles(draws[:QUANTILE_DRAWS], first, ends)
        return lower, upper, likelihood.log_score(own, draws, noise)

    return _Predicted(predictions.mean(which), *predictions.reduce(predict, which, observed))


def _number_values(observed: Float, found: _Predicted, output: int) -> list[float]:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    mean = found.mean[:, output]
    interval = np.column_stack([found.lower[:, output], found.upper[:, output]])
    return [
        float(root_mean_squared_error(observed, mean)),
        float(mean_absolute_error(observed, mean)),
        float(r2_score(observed, mean)) if np.ptp(observed) > 0 else float("nan"),
        interval_coverage(observed, interval),
        interval_width(interval),
    ]
