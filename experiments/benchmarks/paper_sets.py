"""What the defaults give on the paper's data sets, nothing set, medians over seeds.

Wisconsin breast cancer over 30 random 90/10 splits; abalone and mice protein on the paper's
split and the simulated problems, over seeds. Judges the median network. Run it to check a
release, never to choose a setting: settings are chosen by ``defaults.py``.
``python -m experiments.benchmarks.paper_sets [--sets wbc ...] [--seeds 5] [--sparsity 0.5]``
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.benchmarks.defaults import judged
from experiments.datasets import Dataset, load_abalone, load_mice, load_wbc, simulate
from islab import ISLaBClassifier, ISLaBRegressor
from islab.evaluate import selection_stability
from islab.evaluate.runner import fit_timed, scored

RESULTS = Path(__file__).parent / "results"
SIMULATED = [f"{kind}-{rho}" for kind in ("linear", "nonlinear") for rho in (0.0, 0.1, 0.5, 0.9)]
SETS = ("wbc", "abalone", "mice", "mice-by-mouse", *SIMULATED)


def load(name: str) -> Dataset:
    if name == "wbc":
        return load_wbc()
    if name == "abalone":
        return load_abalone()
    if name.startswith("mice"):
        return load_mice(by_mouse=name == "mice-by-mouse")
    kind, rho = name.split("-")
    return simulate(kind, float(rho))


def split(data: Dataset, name: str, seed: int) -> tuple:
    if name == "wbc":
        return tuple(
            train_test_split(
                np.arange(len(data.y)), test_size=0.1, random_state=seed, stratify=data.y
            )
        )
    return data.train, data.test


def run(data: Dataset, name: str, seed: int, sparsity: object, model: str) -> dict:
    train, test = split(data, name, seed)
    kind = ISLaBRegressor if name == "abalone" else ISLaBClassifier
    estimator = kind(sparsity=sparsity, random_state=seed)
    effort = fit_timed(estimator, data.x.iloc[train], data.y[train])
    found = scored(estimator, data.x.iloc[test], data.y[test])
    return {
        **judged(found["models"][model], classify=name != "abalone"),
        "weights": found["models"]["median"]["used_weights"],
        "selected": found["selected"],
        "seconds": effort["cpu_seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sparsity", type=float, default=None)
    parser.add_argument("--model", default="median", choices=["median", "full"])
    arguments = parser.parse_args()
    sparsity = "auto" if arguments.sparsity is None else arguments.sparsity
    results = {}
    for name in arguments.sets:
        data = load(name)
        seeds = 30 if name == "wbc" and arguments.seeds >= 5 else arguments.seeds
        runs = [run(data, name, seed, sparsity, arguments.model) for seed in range(seeds)]
        keys = ("score", "nll", "calibration", "weights", "seconds")
        row = {key: float(np.median([r[key] for r in runs])) for key in keys}
        means = {key: float(np.mean([r[key] for r in runs])) for key in ("score", "nll")}
        row |= {f"mean_{key}": value for key, value in means.items()}
        row["covariates"] = float(np.median([len(r["selected"]) for r in runs]))
        row["stability"] = selection_stability([r["selected"] for r in runs])
        row["worst_score"] = float(min(r["score"] for r in runs))
        row["seeds"] = seeds
        results[name] = row
        print(name, {key: round(value, 4) for key, value in row.items()}, flush=True)
    if arguments.sparsity is None and set(arguments.sets) == set(SETS):
        (RESULTS / "paper_sets.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
