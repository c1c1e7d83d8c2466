"""Runs cells, one fit each: side by side, kept as soon as they are done, never twice.

A results file is lines of JSON and only grows. ``compare`` and the repository's experiments run
all their fits through here.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from islab.evaluate.evaluation import evaluate
from islab.io.files import named_in_errors
from islab.learn.parallel import in_parallel

Record = dict[str, Any]


@dataclass(frozen=True, order=True)
class Cell:
    """What makes two fits the same."""

    dataset: str  # a name, or the fingerprint of rows, targets and task
    method: str
    settings: str  # the method's parameters, or the name of a set of them
    seed: int

    @classmethod
    def of(cls, record: Record) -> Cell:
        """The cell of a record; a KeyError if it is of something else."""
        cell = cls(record["dataset"], record["method"], record["settings"], record["seed"])
        kinds = {"dataset": str, "method": str, "settings": str, "seed": int}
        for name, kind in kinds.items():
            if not isinstance(getattr(cell, name), kind):
                raise KeyError(name)
        return cell

    def to_dict(self) -> Record:
        return asdict(self)


class NoData(FileNotFoundError):
    """Data that are not available: the cells that need them are not tried one by one."""


# -- running ----------------------------------------------------------------------------------


def run_cells(
    cells: Sequence[Cell],
    run: Callable[[Cell], Record],
    *,
    done: Mapping[Cell, Record] | None = None,
    keep: Callable[[Record], None] | None = None,
    n_jobs: int | None = None,
    title: str = "",
    **options: Any,
) -> dict[Cell, Record]:
    """Runs what is not done yet; the records of all cells, failures included.

    A failure is a record with an ``error``, which says why, and is not kept. An interrupt ends
    the run and leaves no record of the cells under way.

    Parameters
    ----------
    cells : sequence of Cell
    run : callable
        Fits and scores one cell, on one thread. If it raises :class:`NoData`, the other cells of
        that data set fail for the same reason without being tried.
    done : mapping, optional
        Records of earlier runs.
    keep : callable, optional
        Called with every new record as soon as it is there.
    n_jobs : int, optional
        Cells at the same time; what :func:`joblib.parallel_config` says if not given.
    title : str
        Of the progress bar; without one there is none.
    **options
        Of :class:`joblib.Parallel`.
    """
    from joblib import delayed

    found = {cell: record for cell, record in (done or {}).items() if cell in set(cells)}
    left = [cell for cell in cells if cell not in found]
    lost: dict[str, str] = {}
    waiting = (delayed(_attempt)(run, cell) for cell in left if cell.dataset not in lost)
    results = in_parallel(waiting, n_jobs=n_jobs, ordered=False, **options)
    with _bar(title, len(cells)) as bar:
        bar.update(len(found))
        for cell, record in results:
            if record.pop("lost", False):
                lost[cell.dataset] = record["error"]
            elif keep is not None and record.get("error") is None:
                keep(record)
            found[cell] = record
            bar.update(1)
    for cell in left:
        if cell not in found:
            found[cell] = {**cell.to_dict(), "error": lost[cell.dataset]}
    return {cell: found[cell] for cell in cells}


def _attempt(run: Callable[[Cell], Record], cell: Cell) -> tuple[Cell, Record]:
    """One thread, so that fits at the same time do not get in each other's way."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):
            found = run(cell)
    except Exception as error:
        found = {"error": " ".join(f"{type(error).__name__}: {error}".split())}
        if isinstance(error, NoData):
            found["lost"] = True
    return cell, finite({**cell.to_dict(), **found})


def _bar(title: str, total: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(
        total=total, unit="fit", desc=title, leave=False, disable=not title, file=sys.stderr
    )


# -- one cell ---------------------------------------------------------------------------------


def fit_timed(model: Any, X: Any, y: NDArray, **options: Any) -> Record:
    """Fits a model; ``seconds`` by the clock and ``cpu_seconds`` of this process.

    A model that was interrupted and kept is not worth a record: KeyboardInterrupt.
    """
    clock, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y, **options)
    seconds, cpu_seconds = time.perf_counter() - clock, time.process_time() - cpu
    if getattr(model, "interrupted_", False):
        raise KeyboardInterrupt(f"The fit of {type(model).__name__} was interrupted.")
    return {"seconds": seconds, "cpu_seconds": cpu_seconds}


def scored(model: Any, X: Any, y: NDArray) -> Record:
    """Scores of a fitted model on other rows, in JSON's types.

    Returns
    -------
    dict
        ``models``, the scores of the ``full`` model and, if there is one, of the ``median``
        network; ``selected`` columns; ``folds``, how it chose its penalty, if it says so.
    """
    both = getattr(model, "posterior_", None) is not None
    scores = {
        which or "full": evaluate(model, X, y, which)
        for which in (("full", "median") if both else (None,))
    }
    numbers = {
        which: {name: value for name, value in each.items() if name != "selected"}
        for which, each in scores.items()
    }
    selected = scores["full"]["selected"]
    return {"models": numbers, "selected": selected, "folds": getattr(model, "folds_", None)}


# -- results ----------------------------------------------------------------------------------


def append_record(path: Path, record: Record) -> None:
    """Adds a line; it is whole and on the disk when this returns.

    A disk that is full in the middle of a line raises OSError and leaves the file as it was.
    """
    line = json.dumps(finite(record), allow_nan=False).encode() + b"\n"
    with named_in_errors(path), path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        # A line that an earlier crash cut short must not take this one with it.
        if end and not _ends_a_line(file):
            line = b"\n" + line
        written = 0
        try:
            while written < len(line):
                written += os.write(file.fileno(), line[written:])
            os.fsync(file.fileno())
        except BaseException:
            # Unless another process has added lines behind ours.
            if os.fstat(file.fileno()).st_size == end + written:
                os.ftruncate(file.fileno(), end)
            raise


def read_records(path: Path) -> list[Record]:
    """All records of a file that may not exist; lines cut short are left out."""
    return [record for record in _objects(path) if isinstance(record, dict)]


def read_cells(path: Path) -> dict[Cell, Record]:
    """The latest record of each cell; lines that are of something else are left out."""
    found = {}
    for record in read_records(path):
        try:
            found[Cell.of(record)] = record
        except KeyError:
            continue
    return found


def finite(value: Any) -> Any:
    """The same in JSON's types, which know no NaN: None in its place."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def cache_folder() -> Path:
    """Where this package keeps things: ``ISLAB_DATA``, or ``islab`` in the user's cache."""
    chosen = os.environ.get("ISLAB_DATA")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "islab"


def _ends_a_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _objects(path: Path) -> Iterator[Any]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue
