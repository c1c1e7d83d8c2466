"""Where the inclusion probabilities start, and where a model of the abalone data ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import log, nan
from pathlib import Path
from typing import Any

from joblib import cpu_count, delayed

from experiments.paper.cells import Results, circumstances, flat
from experiments.paper.settings import methods_of
from islab.evaluate.runner import Record, fit_timed, scored
from islab.learn.parallel import in_parallel

NAME = "initialisation"
POSTERIORS = ("islab", "islab-flow")
# The paper names six of its ranges and shows them all in figures only.
RANGES = (
    (0.001, 0.01),
    (0.01, 0.1),
    (0.1, 0.2),
    (0.2, 0.3),
    (0.3, 0.4),
    (0.4, 0.5),
    (0.5, 0.75),
    (0.75, 0.9),
    (0.9, 0.99),
    (0.99, 0.999),
)
PANELS = {
    "pearson_median": "correlation",
    "rmse_median": "RMSE",
    "used_weights": "used weights",
}

Key = tuple[str, float]


def key(record: Record) -> Key:
    """What tells the runs of this study apart."""
    return record["method"], record["low"]


def panel(record: Record, name: str) -> float:
    """The number that a plot shows; NaN where there is none."""
    return nan if record[name] is None else record[name]


def study(
    folder: Path,
    *,
    methods: Sequence[str] = POSTERIORS,
    jobs: int = 1,
    quick: bool = False,
    force: bool = False,
) -> Iterator[str]:
    """One model with the paper's settings for each range and both posteriors, and the plots."""
    results = Results(folder)
    done = {} if force else results.read([NAME], key)
    wanted = list(product(methods_of(NAME, methods, POSTERIORS), RANGES))
    missing = (
        delayed(run_range)(method, bounds, quick)
        for method, bounds in wanted
        if (method, bounds[0]) not in done
    )
    for record in in_parallel(missing, n_jobs=min(jobs, cpu_count()), ordered=False):
        results.add(record)
        scores = ", ".join(f"{title} {record[name]:.3g}" for name, title in PANELS.items())
        yield f"{record['method']} from {record['low']} to {record['high']}: {scores}"
    from islab.plots.style import save_figure

    path = folder / f"{NAME}.svg"
    save_figure(plot(list(results.read([NAME], key).values())), path, bbox_inches="tight")
    yield str(path)


def run_range(method: str, bounds: tuple[float, float], quick: bool = False) -> Record:
    """One fit whose inclusion probabilities all start between these bounds."""
    from threadpoolctl import threadpool_limits

    from experiments.paper.methods import QUICK_EPOCHS, make_estimator
    from experiments.paper.settings import setting
    from experiments.paper.tasks import load_task

    low, high = bounds
    logits = log(low / (1 - low)), log(high / (1 - high))
    with threadpool_limits(1):
        task = load_task("abalone", "paper", quick)
        estimator = make_estimator(method, task, "paper", 0, quick)
        start = replace(
            estimator.recipe.initial, covariate_inclusion=logits, hidden_inclusion=logits
        )
        estimator.recipe = replace(estimator.recipe, initial=start)
        seconds = fit_timed(estimator, task.x_train, task.y_train)["cpu_seconds"]
        scores = flat(scored(estimator, task.x_test, task.y_test))
    cell = {"dataset": NAME, "method": method, "settings": "paper", "seed": 0}
    epochs = QUICK_EPOCHS if quick else setting("abalone", method).epochs
    place = {"low": low, "high": high, "epochs": epochs}
    return {**cell, **place, **scores, "seconds": round(seconds, 3), **circumstances()}


def plot(records: list[Record]) -> Any:
    """The paper's three plots for each posterior: correlation, RMSE and used weights."""
    from islab.plots.style import INK, axes_grid, heading, quiet

    methods = [name for name in POSTERIORS if any(r["method"] == name for r in records)]
    axes = axes_grid(None, len(methods), len(PANELS), 3.6, 2.6)
    labels = [f"{low:g} to {high:g}" for low, high in RANGES]
    places = {low: place for place, (low, _) in enumerate(RANGES)}
    for line, method in zip(axes, methods, strict=True):
        runs = sorted((r for r in records if r["method"] == method), key=lambda r: r["low"])
        for ax, (name, title) in zip(line, PANELS.items(), strict=True):
            x, y = [places[r["low"]] for r in runs], [panel(r, name) for r in runs]
            ax.plot(x, y, "o-", color=INK, markersize=4, linewidth=1)
            ax.set_xticks(range(len(RANGES)), labels, rotation=60, ha="right", fontsize=7)
            ax.set_xlabel("inclusion probabilities at the start", fontsize=8)
            quiet(ax, "y")
            heading(ax, f"{method}: {title}")
    return axes.flat[0].figure
