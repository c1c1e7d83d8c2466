"""What there is to learn: a data set, split and prepared as the recipe wants it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

QUICK_ROWS = 600


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to learn from and rows to judge by.

    Attributes
    ----------
    name : str
    x_train, x_test : DataFrame or array
    y_train, y_test : array
    classes : bool
        Whether the target is a class or a number.
    image_shape : (height, width), optional
    """

    name: str
    x_train: Any
    y_train: NDArray
    x_test: Any
    y_test: NDArray
    classes: bool = True
    image_shape: tuple[int, int] | None = None


@lru_cache(maxsize=2)
def load_task(name: str, recipe: str = "default", quick: bool = False) -> Task:
    """The task of that name.

    Parameters
    ----------
    name : str
        A data set's, see :mod:`experiments.paper.settings`.
    recipe : {"paper", "default"}
        The paper scales columns and makes numbers of text by hand, with what the training rows
        say; by default tables go to the estimator as they are loaded.
    quick : bool
        Keep a few hundred rows.
    """
    task = _images(name) if name in ("mnist", "fer2013") else _table(name, recipe)
    if not quick:
        return task
    # Every so many, since rows may be in the order of their classes.
    train = slice(None, None, ceil(len(task.y_train) / QUICK_ROWS))
    test = slice(None, None, ceil(2 * len(task.y_test) / QUICK_ROWS))
    return replace(
        task,
        x_train=task.x_train[train],
        y_train=task.y_train[train],
        x_test=task.x_test[test],
        y_test=task.y_test[test],
    )


def _table(name: str, recipe: str) -> Task:
    from experiments.datasets import load_abalone, load_mice, load_wbc, simulate

    if name == "wbc":
        data = load_wbc()
    elif name == "abalone":
        data = load_abalone()
    elif name in ("mice", "mice-by-mouse"):
        data = load_mice(by_mouse=name == "mice-by-mouse")
    else:
        kind, rho = name.split("-")
        data = simulate(kind, float(rho))
    x = data.x
    if recipe == "paper":
        import pandas as pd

        x = scaled(pd.get_dummies(x, drop_first=True, dtype=float), data.train, name)
    return Task(
        name,
        x.iloc[data.train].reset_index(drop=True),
        data.y[data.train],
        x.iloc[data.test].reset_index(drop=True),
        data.y[data.test],
        classes=name != "abalone",
    )


def scaled(x: pd.DataFrame, train: NDArray[np.intp], name: str) -> pd.DataFrame:
    """The paper's scaling: from 0 to 1 for WBC, z-scores for mice, none for the others."""
    known = x.iloc[train]
    if name == "wbc":
        return (x - known.min()) / (known.max() - known.min())
    if name.startswith("mice"):
        return (x - known.mean()) / known.std(ddof=0)
    return x


def _images(name: str) -> Task:
    from experiments.datasets import cache_folder, load_fer2013, load_mnist

    data = load_mnist() if name == "mnist" else load_fer2013(cache_folder() / "fer2013.csv")
    pixels = data.images.reshape(len(data.images), -1).astype(np.float32) / 255
    labels = np.array(data.classes)[data.labels]
    return Task(
        name,
        pixels[data.train],
        labels[data.train],
        pixels[data.test],
        labels[data.test],
        image_shape=data.images.shape[1:],
    )
