"""The paper's experiments as cells of the one runner: what to run, how, and where it is kept."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper.settings import (
    EVERY_METHOD,
    IMAGE_METHODS,
    IMAGES,
    METHODS,
    RECIPES,
    SETTINGS,
    family,
    method_of,
)
from islab.evaluate import calibration_error
from islab.evaluate.runner import Cell, Record, append_record, fit_timed, read_records, scored

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names and numbers of malloc.h
MEMORY_TO_KEEP, LARGEST_ARRAY_KEPT = 2**28, 2**25
VERSIONS = ("islab-bnn", "numpy", "scipy", "scikit-learn", "torch")
SIZE = ("used_weights", "density", "average_depth", "max_depth")
ENDINGS = {"full": "", "median": "_median"}

Float = NDArray[np.floating]


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
    by_default = recipe == "default" and method in METHODS
    return by_default or (recipe == "paper" and (family(dataset), method) in SETTINGS)


def run_cell(cell: Cell, quick: bool = False, epochs: int | None = None) -> Record:
    """Fits and scores one model.

    Scores of the full model have plain names, those of the median network end in ``_median``.
    Used weights, depths and the selected columns are the median network's. Of several classes
    there are ``nll_paper`` and ``ece_paper`` besides, with logarithms averaged over draws.
    ``seconds`` are of processor time. ``epochs`` are other than the paper's where given.
    """
    from experiments.paper.images import run_images
    from experiments.paper.methods import make_estimator
    from experiments.paper.settings import setting
    from experiments.paper.tasks import load_task

    if cell.dataset in IMAGES:
        return run_images(cell, quick)
    task = load_task(cell.dataset, cell.settings, quick)
    model = make_estimator(cell.method, task, cell.settings, cell.seed, quick, epochs)
    one_thread()
    keep_memory()
    effort = fit_timed(model, task.x_train, task.y_train)
    record = flat(scored(model, task.x_test, task.y_test))
    if task.classes and len(model.classes_) > 2:
        record |= paper_scores(model, task.x_test, task.y_test)
    if cell.settings == "paper" and not quick:
        record["epochs"] = epochs or setting(cell.dataset, cell.method).epochs
    return {**record, "seconds": round(effort["cpu_seconds"], 3), **circumstances()}


def flat(scores: Record) -> Record:
    """Scores of both models in one dict, as the results keep them."""
    models = scores["models"]
    both = {
        f"{name}{ending}": value
        for model, ending in ENDINGS.items()
        for name, value in models[model].items()
        if name not in SIZE
    }
    size = {name: models["median"][name] for name in SIZE}
    return {**both, **size, "selected": scores["selected"]}


def paper_scores(model: Any, X: Any, y: NDArray) -> Record:
    """Log score and calibration error of both models, the paper's way.

    The authors' code predicts with the mean over draws of the logarithm of each probability. The
    mean of probabilities is at least as large.
    """
    codes, found = np.searchsorted(model.classes_, y), {}
    for kind, ending in ENDINGS.items():
        logs = mean_logs(model.sample_posterior(X, model=kind))
        nll = -np.take_along_axis(logs, codes[:, None], axis=1).mean()
        found[f"nll_paper{ending}"] = float(nll)
        found[f"ece_paper{ending}"] = calibration_error(codes, np.exp(logs))
    return found


def mean_logs(draws: Float) -> Float:
    """Mean logarithm of probabilities (draws, rows, classes), (rows, classes)."""
    return np.log(np.maximum(draws, np.finfo(draws.dtype).tiny)).mean(axis=0)


class Results:
    """A folder of JSON lines, a file for each data set.

    Parameters
    ----------
    folder : path
        Made when the first line is added.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def make(self) -> None:
        """Makes the folder, or says why not before there is something to keep."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK):
            raise PermissionError(
                f"Got the results folder {str(self.folder)!r}, where this user may not write; try "
                "another one with --results."
            )

    def add(self, record: Record) -> None:
        """Appends a line; it is on the disk when this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        append_record(self.folder / f"{record['dataset']}.jsonl", record)

    def read(
        self, datasets: Iterable[str], key: Callable[[Record], Hashable] | None = None
    ) -> dict[Any, Record]:
        """The records of data sets by cell, the latest of each.

        Lines that were cut short, or that are of something else, are left out. Old names are
        replaced by those of today.

        Parameters
        ----------
        datasets : iterable of str
        key : callable, optional
            What tells records apart, if not their cells; a KeyError for what is none.
        """
        found = {}
        for dataset in datasets:
            for line in read_records(self.folder / f"{dataset}.jsonl"):
                with suppress(KeyError, TypeError):
                    record = _of_today(line)
                    found[(key or _cell_of_run)(record)] = record
        return found

    def study(
        self,
        name: str,
        parts: Iterable[tuple[str, str]],
        run: Callable[[str, str], Record],
        force: bool = False,
    ) -> Iterator[Record]:
        """The record of each part of a study, a task and a method; what is missing is run and kept.

        Parameters
        ----------
        name : str
        parts : iterable of (task, method)
        run : callable
        force : bool
            Run also what is stored.
        """
        done = {} if force else self.read([name], lambda line: (line["task"], line["method"]))
        for part in parts:
            record = done.get(part)
            if record is None:
                record = run(*part)
                self.add(record)
            yield record


def _of_today(line: Record) -> Record:
    """Version 0.1 said ``recipe`` for the settings and had the paper's names of methods."""
    own = {"settings" if name == "recipe" else name: value for name, value in line.items()}
    return {**own, "method": method_of(own["method"])}


def _cell_of_run(record: Record) -> Cell:
    cell, seconds = Cell.of(record), record["seconds"]
    known = cell.method in EVERY_METHOD and cell.settings in RECIPES
    if not (known and isinstance(seconds, int | float)):
        raise KeyError("seconds")
    return cell


def one_thread() -> None:
    """Torch's own pool heeds no limit from outside; it may be loaded by now or not at all."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def keep_memory() -> None:
    """Lets this process keep the memory of arrays it frees, for the next ones.

    The GNU C library hands arrays of a few megabytes back to the system, which clears them page
    by page for the next step: up to half of the time of a baseline.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(M_TRIM_THRESHOLD, MEMORY_TO_KEEP)
        library.mallopt(M_MMAP_THRESHOLD, LARGEST_ARRAY_KEPT)


def circumstances() -> Record:
    """Versions of what computed, and the machine it ran on."""
    loaded = [name for name in VERSIONS if name != "torch" or "torch" in sys.modules]
    versions = {name: version(name) for name in loaded} | {"python": platform.python_version()}
    machine = {"cores": os.cpu_count(), "cpu": _cpu_name(), "system": platform.system()}
    return {"versions": versions, "machine": machine}


def _cpu_name() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
