"""Everything the paper measures on a fitted model, and what it should have measured besides."""

from __future__ import annotations

from typing import Any

from islab.metrics import evaluate
from islab.reproduce.tasks import Task

SIZE = ("used_weights", "density", "average_depth", "max_depth", "selected")


def score(estimator: Any, task: Task) -> dict[str, Any]:
    """Scores on the rows to judge by, by name; see :func:`islab.metrics.evaluate`.

    Those of the full model have plain names, those of the median network end in ``_median``.
    Used weights, depths and the selected columns are the median network's.
    """
    full = evaluate(estimator, task.x_test, task.y_test, model="full")
    median = evaluate(estimator, task.x_test, task.y_test, model="median")
    return {
        **{name: value for name, value in full.items() if name not in SIZE},
        **{f"{name}_median": value for name, value in median.items() if name not in SIZE},
        **{name: median[name] for name in SIZE},
    }
