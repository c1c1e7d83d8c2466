"""Records as they are stored, made up."""

import pytest

from islab.evaluate.runner import Cell


def record(cell: Cell, **scores):
    """A stored line of a classification task."""
    both = {"accuracy": 55 / 57, "ece": 0.05, "nll": 0.1, "auc": 0.99}
    size = {"used_weights": 4.0, "density": 0.001, "average_depth": 1.0, "max_depth": 1.0}
    return {
        **{"dataset": cell.dataset, "method": cell.method},
        **{"settings": cell.settings, "seed": cell.seed},
        **both,
        **{f"{name}_median": value for name, value in both.items()},
        **size,
        "selected": ["x1", "x2"],
        "seconds": 1.0,
        "machine": {"cores": 2, "cpu": "some processor"},
        **scores,
    }


@pytest.fixture
def wbc_records():
    return [record(Cell("wbc", "islab", "default", seed)) for seed in range(3)]
