"""Runs cells over processes and keeps each as soon as it is finished."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from experiments.paper.cells import Cell, Results, run_cell
from experiments.paper.names import IMAGE_METHODS, IMAGES, family
from experiments.paper.settings import SETTINGS
from islab.io.records import Record


def plan(
    datasets: Sequence[str], methods: Sequence[str], recipes: Sequence[str], seeds: Iterable[int]
) -> list[Cell]:
    """The cells of these data sets, methods and recipes.

    Left out are those with the paper's recipe for methods that the paper did not run there, and
    methods that do not learn from images.
    """
    return [
        Cell(dataset, method, recipe, seed)
        for dataset, method, recipe, seed in product(datasets, methods, recipes, list(seeds))
        if _offered(dataset, method, recipe)
    ]


def _offered(dataset: str, method: str, recipe: str) -> bool:
    if dataset in IMAGES:
        return recipe == "default" and method in IMAGE_METHODS
    return recipe == "default" or (family(dataset), method) in SETTINGS


def run_cells(
    cells: Sequence[Cell],
    results: Results,
    *,
    jobs: int = 1,
    quick: bool = False,
    force: bool = False,
    progress: bool = False,
) -> list[Record]:
    """Runs what is not stored yet; returns the failures, each with its ``error``.

    Where the data cannot be had they are not asked for again.

    Parameters
    ----------
    cells : sequence of Cell
    results : Results
        Where finished cells are, and where new ones go at once.
    jobs : int
        Processes, at most one for each processor.
    quick : bool
        A few rows and epochs.
    force : bool
        Run also what is stored.
    progress : bool
        Show how far it is, where a person can see it.
    """
    done = {} if force else results.read(dict.fromkeys(cell.dataset for cell in cells))
    missing = [cell for cell in cells if cell not in done]
    if missing:
        results.make()
    failures, lost, tried = [], {}, set()
    waiting = (cell for cell in missing if cell.dataset not in lost)
    found = over_processes(run_cell, ((cell, quick) for cell in waiting), jobs)
    for record in _shown(found, len(missing), progress):
        tried.add(Cell.of(record))
        if "error" in record:
            failures.append(record)
            if "lost" in record:
                lost[record["dataset"]] = record["error"]
        else:
            results.add(record)
    untried = [cell for cell in missing if cell not in tried]
    return failures + [{**asdict(cell), "error": lost[cell.dataset]} for cell in untried]


def over_processes(
    run: Callable[..., Record], tasks: Iterable[tuple[Any, ...]], jobs: int
) -> Iterator[Record]:
    """What ``run`` gives for each task as soon as it is there; a task starts when one ends."""
    from joblib import Parallel, cpu_count, delayed

    jobs = min(jobs, cpu_count())
    runs = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    return runs(delayed(run)(*task) for task in tasks)


def _shown(records: Iterator[Record], total: int, progress: bool) -> Iterator[Record]:
    from tqdm.auto import tqdm

    with tqdm(
        total=total,
        unit="cell",
        desc="reproduce",
        disable=None if progress else True,
        leave=False,
        file=sys.stderr,
    ) as bar:
        for record in records:
            bar.set_postfix_str(" ".join(map(str, Cell.of(record).__dict__.values())))
            bar.update()
            yield record
