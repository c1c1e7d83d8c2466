"""Checks that both engines find the same: covariates, weights and scores, over seeds.

One restart of the default recipe for each engine, data set and seed; the noise differs, so
numbers agree as two seeds of one engine do.
``python -m experiments.benchmarks.engines [--sets ...]``
"""

from __future__ import annotations

import argparse

import numpy as np

from experiments.benchmarks.defaults import judged
from experiments.benchmarks.paper_sets import load, split
from islab import ISLaBClassifier, ISLaBRegressor
from islab.evaluate import selection_stability
from islab.evaluate.runner import scored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=["wbc", "abalone", "mice", "linear-0.5"])
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    for name in arguments.sets:
        data = load(name)
        train, test = split(data, name, 0)
        x, y = data.x.iloc[test], data.y[test]
        chosen = {}
        for engine in ("native", "torch"):
            rows, selected = [], []
            for seed in range(arguments.seeds):
                kind = ISLaBRegressor if name == "abalone" else ISLaBClassifier
                model = kind(engine=engine, n_restarts=1, random_state=seed)
                model.fit(data.x.iloc[train], data.y[train])
                found = scored(model, x, y)
                scores = judged(found["models"]["full"], classify=name != "abalone")
                rows.append([scores["score"], scores["nll"], model.n_used_weights_, model.elbo_])
                selected.append(set(found["selected"]))
            chosen[engine] = selected
            numbers = ", ".join(f"{value:.4g}" for value in np.mean(rows, axis=0))
            print(f"{name:10s} {engine:7s} score, NLL, weights, ELBO: {numbers}", flush=True)
        pairs = [[a, b] for a in chosen["native"] for b in chosen["torch"]]
        agreement = np.mean([selection_stability(pair) for pair in pairs])
        print(f"{name:10s} covariates shared between engines (Jaccard): {agreement:.2f}")


if __name__ == "__main__":
    main()
