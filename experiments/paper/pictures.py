"""The paper's pictures, of models learned with nothing set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper.tasks import Task, load_task

MICE_CLASSES = {"class-1": "c-CS-s", "class-5": "t-CS-s"}
DIGIT = "6"
RINGS = (8, 10, 11)
DIGITS_EXPLAINED = ("7", "4")
DIGIT_CLASSES = ("0", "4", "7")


def structures(folder: Path, *, quick: bool = False, force: bool = False) -> Iterator[str]:
    """The learned structures: one picture for each data set, classes 1 and 5 of the mice."""
    from islab.plots import path_graph

    for name in ("linear-0.0", "nonlinear-0.0", "wbc", "abalone"):
        model, _ = fitted(name, folder, quick=quick, force=force)
        yield saved(path_graph(model.network_), folder / f"structure-{name}.svg")
    model, _ = fitted("mice", folder, quick=quick, force=force)
    for title, group in MICE_CLASSES.items():
        axes = path_graph(model.network_, output=group)
        yield saved(axes, folder / f"structure-mice-{title}.svg")
    yield from _digit(folder, quick, force)


def _digit(folder: Path, quick: bool, force: bool) -> Iterator[str]:
    from islab.plots import pixel_maps

    try:
        model, task = fitted("mnist", folder, quick=quick, force=force)
    except OSError as error:
        yield f"not drawn: {error}"
        return
    mean = task.x_train[task.y_train == DIGIT].mean(axis=0)
    assert task.image_shape is not None
    axes = pixel_maps(model.network_, task.image_shape, output=DIGIT, mean_image=mean)
    yield saved(axes, folder / "structure-mnist-6.png")


def explanations(folder: Path, *, quick: bool = False, force: bool = False) -> Iterator[str]:
    """Why single rows are predicted as they are: linear, abalone and, if it is there, MNIST."""
    options: dict[str, Any] = {"quick": quick, "force": force, "activation": "relu"}
    model, task = fitted("linear-0.0", folder, **options)
    yield saved(
        model.explain_local(
            task.x_test.iloc[_sure_and_unsure(model, task)], kind="linear", model="median"
        ).plot(by_variable=False),
        folder / "explanations-linear.svg",
    )
    model, task = fitted("abalone", folder, **options)
    rows = [int(np.flatnonzero(task.y_test == rings)[0]) for rings in RINGS]
    yield saved(
        model.explain_local(task.x_test.iloc[rows], kind="linear", model="median").plot(
            by_variable=False
        ),
        folder / "explanations-abalone.svg",
    )
    yield from _digits(folder, options)


def _sure_and_unsure(model: Any, task: Task) -> list[int]:
    """A row of class 0, one of class 1, and one of class 1 that could be either."""
    probability = model.predict_proba(task.x_test)[:, 1]
    open_ = np.where(task.y_test == 1, np.abs(probability - 0.5), 1.0)
    first = [int(np.flatnonzero(task.y_test == label)[0]) for label in (0, 1)]
    return [*first, int(open_.argmin())]


def _digits(folder: Path, options: dict[str, Any]) -> Iterator[str]:
    from islab.plots import contribution_map

    try:
        model, task = fitted("mnist", folder, **options)
    except OSError as error:
        yield f"not drawn: {error}"
        return
    assert task.image_shape is not None
    for digit in DIGITS_EXPLAINED:
        row = np.flatnonzero(task.y_test == digit)[:1]
        explanation = model.explain_local(
            task.x_test[row],
            output=list(DIGIT_CLASSES),
            n_draws=200,
            kind="linear",
            model="median",
        )
        axes = contribution_map(explanation, task.image_shape)
        yield saved(axes, folder / f"explanations-mnist-{digit}.png")


def fitted(
    dataset: str, folder: Path, *, quick: bool = False, force: bool = False, **changes: Any
) -> tuple[Any, Task]:
    """An ISLaB model of seed 0 and its task; kept in the folder, and read from there."""
    import islab
    from experiments.paper.methods import make_estimator

    task = load_task(dataset, "default", quick)
    name = "-".join([dataset, *map(str, changes.values())])
    path = folder / "models" / f"{name}.islab"
    if path.exists() and not force:
        return stored(islab.load, path), task
    model = make_estimator("islab", task, "default", 0, quick, **changes)
    model.fit(task.x_train, task.y_train)
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    return model, task


def stored(load: Callable[[Path], Any], path: Path) -> Any:
    """A model of an earlier run."""
    try:
        return load(path)
    except ValueError as error:
        raise ValueError(f"{error} --force fits it again.") from error


def saved(axes: Any, path: Path) -> str:
    """Writes the figure of these axes to a file; the path, to print.

    The same model gives the same file.
    """
    from islab.plots.style import pyplot, save_figure

    figure = np.atleast_1d(np.asarray(axes, dtype=object)).flat[0].figure
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    with pyplot().rc_context({"svg.hashsalt": "islab"}):
        save_figure(figure, path, bbox_inches="tight", dpi=110, metadata=metadata)
    pyplot().close(figure)
    return str(path)
