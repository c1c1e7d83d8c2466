"""Judges the default settings by cross-validation on many tables, beside what people use.

Five folds for every method, on the runner and the scores of `islab compare`. Classification:
accuracy, NLL and ECE; regression: RMSE and NLL of the standardised target and the coverage of 90 %
intervals. For all: used weights, selected covariates, their agreement over folds (mean pairwise
Jaccard) and seconds of a fit.

``python -m experiments.benchmarks.defaults [--tables pima ...] [--methods ...]`` prints a row for
each table and method and stores them in ``results/defaults.jsonl``; ``--summary`` prints what is
stored as a Markdown table, ``--verdict`` on how many tables the NLL is lower than that of others.
"""

from __future__ import annotations

import argparse
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.benchmarks.tables import NAMES, Table, load
from islab.baselines.references import shuffled_folds
from islab.evaluate import make_method, selection_stability
from islab.evaluate.runner import (
    Cell,
    Record,
    append_record,
    fit_timed,
    read_records,
    run_cells,
    scored,
)

FILE = Path(__file__).parent / "results" / "defaults.jsonl"
SETTINGS: dict[str, dict[str, Any]] = {
    "islab-accurate": {"sparsity": 0.0},
    "islab-readable": {"sparsity": 1.0},
    "islab-stacked": {"posterior": "stacked"},
    "islab-independent": {"posterior": "independent"},
}
METHODS = ("islab", *SETTINGS, "ridge", "lasso", "boosting")
N_FOLDS = 5
# What a table shows for classes, and for numbers.
SCORES = {
    True: {"score": "accuracy", "nll": "nll", "calibration": "ece"},
    False: {"score": "rmse", "nll": "nll", "calibration": "coverage"},
}

read_table = lru_cache(maxsize=2)(load)


def make(method: str, table: Table) -> Any:
    task = "regression" if table.task == "regression" else "classification"
    if method not in SETTINGS:
        return make_method(method, task)
    return make_method("islab", task).set_params(**SETTINGS[method])


def run(cell: Cell) -> Record:
    """One fold; the seed is its number."""
    table = read_table(cell.dataset)
    classify = table.task != "regression"
    folds = shuffled_folds(table.y, N_FOLDS, classify=classify, groups=None, seed=1)
    train, test = folds[cell.seed]
    model = make(cell.method, table).set_params(random_state=cell.seed)
    effort = fit_timed(model, table.x.iloc[train], table.y[train])
    scores = scored(model, table.x.iloc[test], table.y[test])
    return {**effort, **scores, "sd": 1.0 if classify else float(table.y[train].std())}


def judged(scores: Record, classify: bool, sd: float = 1.0) -> dict[str, float]:
    """Score, NLL and calibration, of numbers on the scale of a target with this spread."""
    found = {title: scores[name] for title, name in SCORES[classify].items()}
    if not classify:
        found |= {"score": found["score"] / sd, "nll": found["nll"] - np.log(sd)}
    return found


def row(table: Table, method: str) -> Record:
    """Mean scores over the folds."""
    cells = [Cell(table.name, method, "folds", fold) for fold in range(N_FOLDS)]
    runs = list(run_cells(cells, run).values())
    failed = [record["error"] for record in runs if "error" in record]
    if failed:
        raise RuntimeError(f"{method} failed on {table.name}: {failed[0]}")
    found: Record = {"table": table.name, "task": table.task, "method": method}
    sparse = [record["models"].get("median", record["models"]["full"]) for record in runs]
    for model, scores in (("median", sparse), ("full", [r["models"]["full"] for r in runs])):
        folds = [
            judged(own, table.task != "regression", record["sd"])
            for own, record in zip(scores, runs, strict=True)
        ]
        found |= {f"{model}_{k}": float(np.mean([f[k] for f in folds])) for k in folds[0]}
    found["weights"] = float(np.mean([own["used_weights"] for own in sparse]))
    found["covariates"] = float(np.mean([len(record["selected"]) for record in runs]))
    found["stability"] = selection_stability([record["selected"] for record in runs])
    found["seconds"] = float(np.mean([record["cpu_seconds"] for record in runs]))
    return found


def summary() -> str:
    """What is stored, as Markdown: predictions of the full posterior, which are the default."""
    frame = pd.DataFrame(read_records(FILE)).sort_values(["task", "table", "method"])
    columns = ["score", "nll", "calibration"]
    lines = [
        "| table | method | score | NLL | ECE / coverage | weights | covariates | stability | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for line in frame.to_dict("records"):
        scores = [f"{line['full_' + c]:.3f}" for c in columns]
        rest = [f"{line['weights']:.0f}", f"{line['covariates']:.0f}", f"{line['stability']:.2f}"]
        cells = [line["table"], line["method"], *scores, *rest, f"{line['seconds']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict() -> str:
    """NLL of the default's full model against that of others, table by table."""
    stored = pd.DataFrame(read_records(FILE))
    frame = stored.pivot_table(index="table", columns="method", values="full_nll")
    frame["ridge or lasso"] = frame[["ridge", "lasso"]].min(axis=1)
    lines = []
    for other in ("islab-0.1", "boosting", "ridge or lasso", *SETTINGS):
        if other in frame:
            known = frame[["islab", other]].dropna()
            apart = known["islab"] - known[other]
            worst = f"{apart.max():+.3f} on {apart.idxmax()}"
            lines.append(
                f"lower than {other} on {(apart < 0).sum()} of {len(apart)}; at most {worst}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(NAMES), choices=NAMES)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--summary", action="store_true", help="print what is stored and stop")
    parser.add_argument("--verdict", action="store_true", help="compare what is stored and stop")
    parser.add_argument("--results", type=Path, default=FILE, help="JSON lines to add to")
    arguments = parser.parse_args()
    if arguments.summary or arguments.verdict:
        print(summary() if arguments.summary else verdict())
        return
    done = {(record["table"], record["method"]) for record in read_records(arguments.results)}
    for name in arguments.tables:
        for method in arguments.methods:
            if (name, method) not in done:
                found = row(read_table(name), method)
                append_record(arguments.results, found)
                numbers = {k: round(v, 3) for k, v in found.items() if isinstance(v, float)}
                print(name, method, numbers, flush=True)


if __name__ == "__main__":
    main()
