"""All scores of a fitted model at once, and those that scikit-learn does not have one by one.

For accuracy, log loss, Brier score, ROC AUC, RMSE and the like alone, use :mod:`sklearn.metrics`.
"""

from islab.evaluate.comparison import compare
from islab.evaluate.evaluation import evaluate
from islab.evaluate.methods import METHODS, make_method
from islab.evaluate.ranking import Ranking, rank_methods
from islab.evaluate.result import Comparison
from islab.scores import (
    PINBALL_LEVELS,
    calibration_error,
    crps,
    inclusion_rate,
    interval_coverage,
    interval_width,
    pinball_loss,
    score_classes,
    score_numbers,
    selection_stability,
)

__all__ = [
    "METHODS",
    "PINBALL_LEVELS",
    "Comparison",
    "Ranking",
    "calibration_error",
    "compare",
    "crps",
    "evaluate",
    "inclusion_rate",
    "interval_coverage",
    "interval_width",
    "make_method",
    "pinball_loss",
    "rank_methods",
    "score_classes",
    "score_numbers",
    "selection_stability",
]
