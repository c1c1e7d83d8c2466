"""All methods on the same splits, in parallel, and from where an earlier run was stopped."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from islab.evaluate.comparison.cells import reason, run_cell, training_rows, with_face
from islab.evaluate.comparison.methods import DEFAULT_METHODS, TASKS, check_names, make_method
from islab.evaluate.comparison.result import Comparison
from islab.io.files import writable
from islab.io.records import Record, append_record, read_records
from islab.tables.frames import is_frame, n_rows

RECORDS = "comparison.jsonl"


def compare(
    X: Any,
    y: ArrayLike,
    methods: Sequence[str] | Mapping[str, Any] = DEFAULT_METHODS,
    *,
    task: str | None = None,
    seeds: int | Iterable[int] = 10,
    test_size: float = 0.1,
    n_jobs: int | None = None,
    results: str | Path | None = None,
    force: bool = False,
    verbose: bool = False,
) -> Comparison:
    """Fits every method to the same random splits of the data and judges it by the held-out rows.

    Parameters
    ----------
    X : DataFrame or (rows, columns)
    y : (rows,)
        Classes or numbers.
    methods : sequence of str, or dict
        Names out of :data:`islab.evaluate.comparison.METHODS`; or labels of your choice with such
        names or with estimators. Those of scikit-learn read standardised covariates.
    task : {"classification", "regression", "counts"}, optional
        As ``islab fit`` detects it if not given.
    seeds : int or iterable of int
        How many splits, or the seeds of each; a seed is also that of the method.
    test_size : float
        Share of the rows held out; classes keep their shares.
    n_jobs : int, optional
        Fits at the same time; what :func:`joblib.parallel_config` says if not given, which may
        also be a cluster.
    results : path, optional
        File of JSON lines, or a folder for it. Each fit is added when it is done, and fits that
        it holds of the same data, methods and version are not repeated; failures are.
    force : bool
        Repeat also what the results hold.
    verbose : bool
        Show a progress bar.

    Returns
    -------
    Comparison
        Where a method fails, a line says why; the others go on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> compare(X, y, ["ridge"], seeds=2).to_frame()["accuracy"].round(2).tolist()
    [1.0, 1.0]
    """
    table = X if is_frame(X) else np.asarray(X)
    target = _checked_target(y, table)
    task = _checked_task(task, target)
    chosen = _estimators(methods, task)
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"Got seeds={seeds!r}, expected at least one, all different; try 10.")
    train = {seed: _split(target, task, seed, test_size) for seed in numbers}
    data = _fingerprint(table, target, task, test_size)
    cells = [Cell(label, _settings(made), seed, data) for seed in numbers for label, made in chosen]
    file = None if results is None else writable(_records_file(results))
    done = _done(file, cells) if file is not None and not force else {}
    left = [cell for cell in cells if cell not in done]
    made = dict(chosen)
    with _bar(len(cells), verbose) as bar:
        bar.update(len(done))
        for cell, found in _run(left, made, table, target, train, n_jobs):
            done[cell] = {**cell.to_dict(), **found}
            if file is not None:
                append_record(file, done[cell])
            bar.update(1)
    order = [cell for label, _ in chosen for cell in cells if cell.method == label]
    return Comparison(tuple(done[cell] for cell in order), task, tuple(_columns(table)))


def _records_file(path: str | Path) -> Path:
    """The file that a path stands for: itself, or one in the folder."""
    path = Path(path)
    return path / RECORDS if path.is_dir() else path


@dataclass(frozen=True)
class Cell:
    """What makes two fits the same.

    Attributes
    ----------
    method, settings : str
        Label and parameters.
    seed : int
    data : str
        Fingerprint of rows, targets, task and version.
    """

    method: str
    settings: str
    seed: int
    data: str

    def to_dict(self) -> Record:
        return dict(vars(self))


Made = Any  # an estimator, or the exception that came of making it


def _run(
    cells: list[Cell],
    made: dict[str, Made],
    table: Any,
    target: NDArray,
    train: dict[int, NDArray[np.bool_]],
    n_jobs: int | None,
) -> Iterator[tuple[Cell, Record]]:
    """Results as they come."""
    from joblib import Parallel, delayed

    for cell in cells:
        if isinstance(made[cell.method], Exception):
            yield cell, {"error": reason(made[cell.method])}
    jobs = (
        delayed(_numbered)(k, made[cell.method], table, target, train[cell.seed], cell.seed)
        for k, cell in enumerate(cells)
        if not isinstance(made[cell.method], Exception)
    )
    for k, found in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
        yield cells[k], found


def _numbered(number: int, *arguments: Any) -> tuple[int, Record]:
    return number, run_cell(*arguments)


def _estimators(methods: Sequence[str] | Mapping[str, Any], task: str) -> list[tuple[str, Made]]:
    """Labels and estimators; what cannot be made is its exception."""
    if isinstance(methods, str):
        methods = [methods]
    named = dict(methods) if isinstance(methods, Mapping) else {name: name for name in methods}
    if not named:
        raise ValueError("Got no methods, expected at least one; try ['islab', 'ridge'].")
    check_names([name for name in named.values() if isinstance(name, str)])
    made: list[tuple[str, Made]] = []
    for label, method in named.items():
        try:
            estimator = make_method(method, task) if isinstance(method, str) else method
            made.append((str(label), with_face(estimator, task)))
        except (ImportError, ValueError) as error:
            made.append((str(label), error))
    return made


def _settings(made: Made) -> str:
    if isinstance(made, Exception):
        return ""
    return " ".join(made.__repr__(N_CHAR_MAX=sys.maxsize).split())


def _done(file: Path, cells: list[Cell]) -> dict[Cell, Record]:
    """The latest good record of each cell."""
    wanted, found = {tuple(vars(cell).values()): cell for cell in cells}, {}
    for record in read_records(file):
        cell = wanted.get(
            tuple(record.get(name) for name in ("method", "settings", "seed", "data"))
        )
        if cell is not None and "models" in record:
            found[cell] = record
    return found


def _checked_target(y: ArrayLike, table: Any) -> NDArray:
    target = column_or_1d(y.to_numpy() if isinstance(y, pd.Series) else y)
    if len(target) != n_rows(table):
        raise ValueError(
            f"Got {n_rows(table)} rows of X and {len(target)} of y, expected as many of each."
        )
    if pd.isna(target).any():
        row = int(pd.isna(target).argmax())
        raise ValueError(f"Got no target in row {row}, expected one for each; try to drop the row.")
    return target


def _checked_task(task: str | None, target: NDArray) -> str:
    from islab.tables.targets import detected_task

    if task is None:
        return detected_task(pd.Series(target, name="y"))
    if task not in TASKS:
        raise ValueError(f"Got task={task!r}, expected one of {', '.join(TASKS)}.")
    return task


def _split(target: NDArray, task: str, seed: int, test_size: float) -> NDArray[np.bool_]:
    try:
        return training_rows(target, task, seed, test_size)
    except ValueError as error:
        raise ValueError(
            f"Got data that cannot be split ({error}); try another test_size than {test_size}, or "
            "leave out classes with a single row."
        ) from error


def _columns(table: Any) -> list[str]:
    if is_frame(table):
        return [str(name) for name in nw.from_native(table, eager_only=True).columns]
    return [f"x{number}" for number in range(table.shape[1])]


def _fingerprint(table: Any, target: NDArray, task: str, test_size: float) -> str:
    """Letters that differ where data, split, task or version do."""
    from islab import __version__

    if is_frame(table):
        columns = [c.to_numpy() for c in nw.from_native(table, eager_only=True).iter_columns()]
    else:
        columns = list(table.T)
    # By number: names may be anything, and stand in the facts.
    numbered = pd.DataFrame(dict(enumerate([*columns, target])))
    rows = pd.util.hash_pandas_object(numbered, index=False)
    facts = repr((_columns(table), task, float(test_size), __version__))
    return hashlib.sha256(rows.to_numpy().tobytes() + facts.encode()).hexdigest()[:16]


def _bar(total: int, verbose: bool) -> Any:
    from tqdm.auto import tqdm

    return tqdm(
        total=total, unit="fit", desc="compare", leave=False, disable=not verbose, file=sys.stderr
    )
