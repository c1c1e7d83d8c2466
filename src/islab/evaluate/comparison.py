"""All methods on the same splits of the user's own data."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupShuffleSplit, StratifiedGroupKFold, train_test_split
from sklearn.utils import column_or_1d

from islab.core.arrays import Mask
from islab.core.dependencies import own_version
from islab.estimators.images import ISLaBImageClassifier
from islab.evaluate.methods import (
    DEFAULT_METHODS,
    IMAGE_METHODS,
    TASKS,
    check_names,
    make_method,
    method_name,
)
from islab.evaluate.result import Comparison
from islab.evaluate.runner import (
    Cell,
    Record,
    append_record,
    fit_timed,
    read_cells,
    run_cells,
    scored,
)
from islab.io.files import writable
from islab.tables.frames import is_frame, n_rows, rows_where
from islab.tables.images import as_pixels, checked_images

RECORDS = "comparison.jsonl"

Made = Any  # an estimator, or the exception that came of making it


def compare(
    X: Any,
    y: ArrayLike,
    methods: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    task: str | None = None,
    seeds: int | Iterable[int] = 10,
    test_size: float = 0.1,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
    results: str | Path | None = None,
    force: bool = False,
    verbose: bool = False,
) -> Comparison:
    """Fits every method to the same random splits of the data and scores it on the held-out rows.

    Parameters
    ----------
    X : DataFrame or (rows, columns), or images
        Images (rows, height, width) or (rows, channels, height, width): methods for tables read
        their pixels as covariates.
    y : (rows,)
        Classes or numbers.
    methods : sequence of str, or dict, optional
        Names out of :data:`islab.evaluate.METHODS`; or labels of your choice with such names or
        with estimators. Those of scikit-learn read standardised covariates. A few that are fast if
        not given.
    task : {"classification", "regression", "counts"}, optional
        As ``islab fit`` detects it if not given.
    seeds : int or iterable of int
        How many splits, or the seeds of each; a seed is also that of the method.
    test_size : float
        Share of the rows held out; classes keep their shares.
    groups : (rows,), optional
        Rows of one group, such as the visits of one patient, are held out together, also where a
        method chooses its penalty by cross-validation.
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
        Where a method fails, a line says why; the others go on. An interrupt stops them all and
        leaves no result of the fits under way.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> compare(X, y, ["ridge"], seeds=2).to_frame()["accuracy"].round(2).tolist()
    [1.0, 1.0]
    """
    table = X if is_frame(X) else np.asarray(X)
    images = _is_images(table)
    if images:
        table = checked_images(table)
    if methods is None:
        methods = IMAGE_METHODS if images else DEFAULT_METHODS
    target = _checked_target(y, table)
    task = _checked_task(task, target, images)
    made = _estimators(methods, task, images)
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"Got seeds={seeds!r}, expected at least one, all different; try 10.")
    together = None if groups is None else _checked_groups(groups, table)
    splits = {seed: _split(target, task, seed, test_size, together) for seed in numbers}
    data = _fingerprint(table, target, task, test_size, together)
    cells = [Cell(data, name, _settings(made[name]), seed) for seed in numbers for name in made]
    file = None if results is None else writable(_results_file(results))
    found = run_cells(
        cells,
        _Fits(table, target, together, made, splits),
        done={} if file is None or force else read_cells(file),
        keep=None if file is None else partial(append_record, file),
        n_jobs=n_jobs,
        title="compare" if verbose else "",
    )
    order = [cell for name in made for cell in cells if cell.method == name]
    return Comparison(tuple(found[cell] for cell in order), task, tuple(_columns(table)))


@dataclass(frozen=True, eq=False)
class _Fits:
    """Fits and scores a cell: a copy of its method's estimator, on the split of its seed."""

    table: Any
    target: NDArray
    groups: NDArray | None
    made: dict[str, Made]
    train: dict[int, Mask]

    def __call__(self, cell: Cell) -> Record:
        from islab.baselines.references import ReferenceEstimator

        estimator, train = self.made[cell.method], self.train[cell.seed]
        if isinstance(estimator, Exception):
            raise estimator
        model, options = clone(estimator).set_params(random_state=cell.seed), {}
        if self.groups is not None and isinstance(model, ReferenceEstimator):
            options["groups"] = self.groups[train]
        effort = fit_timed(model, _read_by(model, self.table, train), self.target[train], **options)
        scores = scored(model, _read_by(model, self.table, ~train), self.target[~train])
        share = float((~train).mean() / train.mean())
        return {"error": None, "test_by_train": share, **effort, **scores}


def _is_images(table: Any) -> bool:
    return not is_frame(table) and table.ndim > 2


def _read_by(model: Any, table: Any, chosen: Mask) -> Any:
    """Some rows as the model reads them: of images a method for tables gets the pixels."""
    rows = rows_where(table, chosen)
    if _is_images(table) and not isinstance(model, ISLaBImageClassifier):
        return as_pixels(rows).reshape(len(rows), -1)
    return rows


def _results_file(path: str | Path) -> Path:
    """The file that a path stands for: itself, or one in the folder."""
    path = Path(path)
    return path / RECORDS if path.is_dir() else path


def _estimators(
    methods: Sequence[str] | Mapping[str, Any], task: str, images: bool
) -> dict[str, Made]:
    """Estimators by label; what cannot be made is its exception."""
    if isinstance(methods, str):
        methods = [methods]
    if isinstance(methods, Mapping):
        named = {str(label): method for label, method in methods.items()}
    else:
        check_names(methods)
        named = {method_name(name, task): name for name in methods}
    if not named:
        raise ValueError("Got no methods, expected at least one; try ['islab', 'ridge'].")
    check_names([name for name in named.values() if isinstance(name, str)])
    made: dict[str, Made] = {}
    for label, method in named.items():
        try:
            estimator = make_method(method, task) if isinstance(method, str) else method
            made[label] = _fitting(estimator, task, images)
        except (ImportError, ValueError) as error:
            made[label] = error
    return made


def _fitting(estimator: Any, task: str, images: bool) -> Any:
    """The estimator itself if it is of this package, else wrapped so that it takes tables."""
    from islab.baselines.references import (
        ReferenceClassifier,
        ReferenceEstimator,
        ReferenceRegressor,
    )
    from islab.estimators.base import NetworkEstimator

    if is_classifier(estimator) != (task == "classification"):
        name = type(estimator).__name__
        raise ValueError(f"{name} is not for {task}; try another estimator, or another task.")
    if isinstance(estimator, ISLaBImageClassifier) and not images:
        raise ValueError("ISLaBImageClassifier reads images, not a table; try 'islab'.")
    if isinstance(estimator, NetworkEstimator | ReferenceEstimator | ISLaBImageClassifier):
        return estimator
    wrapper = ReferenceClassifier if task == "classification" else ReferenceRegressor
    return wrapper(estimator)


def _settings(made: Made) -> str:
    if isinstance(made, Exception):
        return ""
    return " ".join(made.__repr__(N_CHAR_MAX=sys.maxsize).split())


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


def _checked_groups(groups: ArrayLike, table: Any) -> NDArray:
    """Numbers of groups, (rows,)."""
    codes, names = pd.factorize(column_or_1d(groups))
    if len(codes) != n_rows(table) or (codes < 0).any():
        raise ValueError(
            f"Got groups of {int((codes >= 0).sum())} rows, expected the group of each of the "
            f"{n_rows(table)} rows."
        )
    if len(names) < 2:
        raise ValueError(f"Got groups={names[0]!r} for all rows, expected at least two groups.")
    return codes


def _checked_task(task: str | None, target: NDArray, images: bool) -> str:
    from islab.tables.targets import detected_task

    if images:
        if task not in (None, "classification"):
            raise ValueError(f"Got task={task!r} for images, expected 'classification'.")
        return "classification"
    if task is None:
        return detected_task(pd.Series(target, name="y"))
    if task not in TASKS:
        raise ValueError(f"Got task={task!r}, expected one of {', '.join(TASKS)}.")
    return task


def _split(target: NDArray, task: str, seed: int, test_size: float, groups: NDArray | None) -> Mask:
    """Which rows to learn from, (rows,); classes keep their shares, groups stay together."""
    rows, classes = np.arange(len(target)), task == "classification"
    try:
        if groups is None:
            stratify = target if classes else None
            _, test = train_test_split(
                rows, test_size=test_size, random_state=seed, stratify=stratify
            )
        elif classes and 0 < test_size < 1:
            n_parts = min(max(2, round(1 / test_size)), groups.max() + 1)
            parts = StratifiedGroupKFold(n_parts, shuffle=True, random_state=seed)
            _, test = next(parts.split(rows, target, groups))
        else:
            parts = GroupShuffleSplit(1, test_size=test_size, random_state=seed)
            _, test = next(parts.split(rows, target, groups))
    except ValueError as error:
        raise ValueError(
            f"Got data that cannot be split ({error}); try another test_size than {test_size}, or "
            "leave out classes with a single row."
        ) from error
    train = np.ones(len(target), dtype=bool)
    train[test] = False
    return train


def _columns(table: Any) -> list[str]:
    if is_frame(table):
        return [str(name) for name in nw.from_native(table, eager_only=True).columns]
    if _is_images(table):
        return []
    return [f"x{number}" for number in range(table.shape[1])]


def _fingerprint(
    table: Any, target: NDArray, task: str, test_size: float, groups: NDArray | None
) -> str:
    """Letters that differ where data, split, task or version do."""
    if is_frame(table):
        columns = [c.to_numpy() for c in nw.from_native(table, eager_only=True).iter_columns()]
    elif _is_images(table):
        columns = [np.array([hashlib.sha256(image.tobytes()).hexdigest() for image in table])]
    else:
        columns = list(table.T)
    together = [] if groups is None else [groups]
    # By number: names may be anything, and stand in the facts.
    numbered = pd.DataFrame(dict(enumerate([*columns, target, *together])))
    rows = pd.util.hash_pandas_object(numbered, index=False)
    facts = repr((_columns(table), task, float(test_size), groups is None, own_version()))
    return hashlib.sha256(rows.to_numpy().tobytes() + facts.encode()).hexdigest()[:16]
