"""One experiment: a data set, a method, a recipe and a seed; what it gave, kept as a JSON line."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any

from experiments.paper.names import IMAGES, METHODS, RECIPES
from islab.io.records import Record, append_record, read_records

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names and numbers of malloc.h
MEMORY_TO_KEEP, LARGEST_ARRAY_KEPT = 2**28, 2**25
VERSIONS = ("islab-bnn", "numpy", "scipy", "scikit-learn", "torch")


@dataclass(frozen=True, order=True)
class Cell:
    """What to run."""

    dataset: str
    method: str
    recipe: str
    seed: int

    @classmethod
    def of(cls, record: Record) -> Cell:
        """The cell that a record is of."""
        return cls(record["dataset"], record["method"], record["recipe"], record["seed"])

    @classmethod
    def of_run(cls, line: Record) -> Cell:
        """The same for a line of a file, which may be of something else: a KeyError then."""
        cell, seconds = cls.of(line), line["seconds"]
        known = cell.method in METHODS and cell.recipe in RECIPES
        if not (known and isinstance(cell.seed, int) and isinstance(seconds, int | float)):
            raise KeyError("seconds")
        return cell


def run_cell(cell: Cell, quick: bool = False) -> Record:
    """Fits and judges one model, on one thread.

    Returns
    -------
    dict
        The cell, its scores, ``seconds`` of processor time that the fit took, versions and
        machine; or the cell and ``error``, a sentence, with ``lost`` if there are no data.
    """
    from threadpoolctl import threadpool_limits

    from experiments.paper.images import run_images
    from experiments.paper.methods import make_estimator
    from experiments.paper.scores import score
    from experiments.paper.settings import setting
    from experiments.paper.tasks import load_task

    task = None
    try:
        with threadpool_limits(1):
            if cell.dataset in IMAGES:
                return run_images(cell, quick)
            task = load_task(cell.dataset, cell.recipe, quick)
            estimator = make_estimator(cell.method, task, cell.recipe, cell.seed, quick)
            _one_thread()
            keep_memory()
            start = time.process_time()
            estimator.fit(task.x_train, task.y_train)
            seconds = time.process_time() - start
            scores = score(estimator, task)
    except Exception as error:
        # Images are loaded and fitted in one go.
        no_data = isinstance(error, FileNotFoundError) if cell.dataset in IMAGES else task is None
        lost = {"lost": True} if no_data else {}
        return {**asdict(cell), "error": f"{type(error).__name__}: {error}", **lost}
    if cell.recipe == "paper" and not quick:
        scores["epochs"] = setting(cell.dataset, cell.method).epochs
    return {**asdict(cell), **scores, "seconds": round(seconds, 3), **circumstances()}


def storable(record: Record) -> Record:
    """A record as JSON has it, which knows no number that is not finite: the correlation of a
    constant prediction is null.
    """
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in record.items()
    }


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
        append_record(self.folder / f"{record['dataset']}.jsonl", storable(record))

    def read(
        self, datasets: Iterable[str], key: Callable[[Record], Hashable] = Cell.of_run
    ) -> dict[Any, Record]:
        """The records of data sets by cell, the latest of each.

        Lines that were cut short, or that are of something else, are left out.

        Parameters
        ----------
        datasets : iterable of str
        key : callable
            What tells records apart, if not their cells; a KeyError for what is none.
        """
        found = {}
        for dataset in datasets:
            for record in read_records(self.folder / f"{dataset}.jsonl"):
                with suppress(KeyError, TypeError):
                    found[key(record)] = record
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


def _one_thread() -> None:
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
