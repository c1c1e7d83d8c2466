"""Certificates of fitted models: how large the error on new rows is at most, and what it is.

Each table is split into two halves, the first to learn from and the second to certify with; one of
three thousand rows or more has a third part, which checks the bounds. Defaults, seed 0. MNIST is
learned by the classifier of images from 55,000 images and certified with 5,000 others; its
test images check.

``python -m experiments.benchmarks.certificates [--tables wbc pima adult mnist]`` prints a row for
each table and stores it in ``results/certificates.jsonl``; ``--summary`` prints what is stored.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from experiments.benchmarks import tables
from islab import ISLaBClassifier
from islab.evaluate.runner import (
    Cell,
    Record,
    append_record,
    fit_timed,
    read_cells,
    run_cells,
)
from islab.images import ISLaBImageClassifier

FILE = Path(__file__).parent / "results" / "certificates.jsonl"
LEVEL = 0.95
ENOUGH_TO_CHECK = 3000
N_CERTIFYING_IMAGES = 5000


class Parts(NamedTuple):
    """Rows and targets to learn from, to certify with, and to check with if there are any."""

    model: Any
    train: tuple[Any, NDArray]
    certify: tuple[Any, NDArray]
    check: tuple[Any, NDArray] | None


def of_table(x: pd.DataFrame, y: NDArray) -> Parts:
    x, rest, y, others = train_test_split(x, y, test_size=0.5, stratify=y, random_state=0)
    certify, check = (rest, others), None
    if len(rest) >= ENOUGH_TO_CHECK / 2:
        a, b, c, d = train_test_split(rest, others, test_size=0.5, stratify=others, random_state=0)
        certify, check = (a, c), (b, d)
    return Parts(ISLaBClassifier(), (x, y), certify, check)


def wbc() -> Parts:
    return of_table(*load_breast_cancer(return_X_y=True, as_frame=True))


def pima() -> Parts:
    table = tables.load("pima")
    return of_table(table.x, table.y)


def adult() -> Parts:
    from experiments.benchmarks.many_tables import load

    table = load("adult")
    return of_table(table.x, table.y)


def mnist() -> Parts:
    from experiments.datasets.images import load_mnist

    (x, y), check = load_mnist()
    own, held, y_own, y_held = train_test_split(
        x, y, test_size=N_CERTIFYING_IMAGES, stratify=y, random_state=0
    )
    return Parts(ISLaBImageClassifier(), (own, y_own), (held, y_held), check)


TABLES: dict[str, Callable[[], Parts]] = {
    "wbc": wbc,
    "pima": pima,
    "adult": adult,
    "mnist": mnist,
}


def run(cell: Cell) -> Record:
    parts = TABLES[cell.dataset]()
    model = parts.model.set_params(random_state=cell.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        effort = fit_timed(model, *parts.train)
    found = model.certificate(*parts.certify, level=LEVEL)
    checked = None
    if parts.check is not None:
        checked = float((model.predict(parts.check[0]) != parts.check[1]).mean())
    return {
        **effort,
        "n_train": len(parts.train[1]),
        "n_certify": found.n_rows,
        "average_loss": found.average_loss,
        "average_bound": found.average_bound,
        "loss": found.loss,
        "bound": found.bound,
        "kl": found.kl,
        "checked_loss": checked,
    }


def summary(records: list[Record]) -> str:
    """A Markdown table of what is stored."""
    lines = [
        "| table | training rows | certifying rows | error on them | at most on new rows | "
        "error on further rows | random network: error | at most |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for record in sorted(records, key=lambda record: [*TABLES].index(record["dataset"])):
        names = ("average_loss", "average_bound", "checked_loss", "loss", "bound")
        numbers = ["" if record[n] is None else f"{record[n]:.1%}" for n in names]
        counts = [f"{record['n_train']:,}", f"{record['n_certify']:,}"]
        lines.append(f"| {' | '.join([record['dataset'], *counts, *numbers])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--summary", action="store_true", help="print what is stored and stop")
    parser.add_argument("--results", type=Path, default=FILE, help="JSON lines to add to")
    arguments = parser.parse_args()
    done = read_cells(arguments.results)
    if not arguments.summary:
        cells = [Cell(name, "islab", "halves", 0) for name in arguments.tables]
        keep = lambda record: append_record(arguments.results, record)  # noqa: E731
        found = run_cells(cells, run, done=done, keep=keep, n_jobs=1)
        for record in found.values():
            if record.get("error"):
                print(f"{record['dataset']}: {record['error']}")
        done = read_cells(arguments.results)
    print(summary(list(done.values())))


if __name__ == "__main__":
    main()
