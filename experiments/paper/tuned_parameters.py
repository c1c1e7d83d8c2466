"""What the paper's baselines need and the paper does not say, chosen by held-out training rows.

The numbers are in ``CHOSEN`` of :mod:`experiments.paper.settings`; this is how they came about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from experiments.paper.cells import Results, circumstances
from experiments.paper.settings import CHOSEN, family, methods_of, setting
from islab.evaluate.runner import Record

NAME = "choices"
DATASETS = ("wbc", "abalone", "mice")
METHODS = ("concrete-dropout", "spam")


def study(
    folder: Path,
    *,
    methods: Sequence[str] = METHODS,
    quick: bool = False,
    force: bool = False,
) -> Iterator[str]:
    """One choice for each family of data sets and each method that the paper ran there."""
    parts = [
        (dataset, method)
        for dataset, method in product(DATASETS, methods_of(NAME, methods, METHODS))
        if (family(dataset), method) in CHOSEN
    ]
    for record in Results(folder).study(NAME, parts, partial(choose, quick=quick), force):
        yield "{task}, {method}: {parameter} {value:.2g}".format(**record)


def choose(dataset: str, method: str, quick: bool = False) -> Record:
    """One line: what "auto" stands for, for the paper's network trained half as long."""
    from experiments.paper.methods import make_estimator
    from experiments.paper.tasks import load_task

    task = load_task(dataset, "paper", quick)
    (parameter,) = CHOSEN[family(dataset), method]
    changes: dict[str, Any] = {parameter: "auto"}
    if not quick:
        changes["max_epochs"] = setting(dataset, method).epochs // 2
    model = make_estimator(method, task, "paper", 0, quick, **changes)
    model.fit(task.x_train, task.y_train)
    found = {"parameter": parameter, "value": model.chosen_[parameter]}
    return {"dataset": NAME, "task": dataset, "method": method, **found, **circumstances()}
