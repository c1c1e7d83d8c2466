"""Whether two seeds say the same of which variables are used.

``python -m experiments.benchmarks.agreement [--tables wbc pima]`` fits each table with two seeds,
prints the largest difference between their P(used) of a variable (goal: at most .05) and seconds of
CPU of a fit, and stores them in ``results/agreement.json``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from time import process_time
from typing import Any

import numpy as np

from experiments.benchmarks import many_tables
from experiments.benchmarks.steps import RESULTS
from experiments.benchmarks.tables import load
from experiments.datasets import load_abalone, load_wbc
from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.sampled import SampledPosterior

TABLES = ("wbc", "pima", "titanic", "abalone")
SEEDS = (0, 1)


def table(name: str) -> tuple[Any, Any, bool]:
    """Covariates and target of all rows, and whether the target is a class."""
    if name in ("wbc", "abalone"):
        data = load_wbc() if name == "wbc" else load_abalone()
        return data.x, data.y, name == "wbc"
    found = many_tables.load(name) if name == "titanic" else load(name)
    return found.x, found.y, True


def used(posterior: SampledPosterior) -> dict[str, float]:
    """P(used) by variable."""
    names, by_chain = posterior.used_variables()
    shares = np.array([draws.mean(axis=0) for draws in by_chain])
    return dict(zip(names, posterior.chain_weights @ shares, strict=True))


def agreement(name: str) -> dict[str, Any]:
    """The variable on whose use seeds disagree most, by how much, and what a fit costs."""
    x, y, classify = table(name)
    found, start = [], process_time()
    for seed in SEEDS:
        kind = ISLaBClassifier if classify else ISLaBRegressor
        found.append(used(kind(random_state=seed).fit(x, y).posterior_))
    cost = (process_time() - start) / len(SEEDS)
    apart = {v: max(f[v] for f in found) - min(f[v] for f in found) for v in found[0]}
    worst = max(apart, key=lambda v: apart[v])
    return {"largest difference": float(apart[worst]), "variable": worst, "seconds": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    file = RESULTS / "agreement.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for name in arguments.tables:
        results[name] = agreement(name)
        print(name, {k: v if k == "variable" else round(v, 3) for k, v in results[name].items()})
        file.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
