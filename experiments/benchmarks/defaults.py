"""Judges the default settings by cross-validation on many tables, beside what people use.

Five folds for every method. Classification: accuracy, NLL and ECE; regression: RMSE and NLL of
the standardised target and the coverage of 90 % intervals. For all: used weights, selected
covariates, their agreement over folds (mean pairwise Jaccard) and seconds of a fit. Peers get a
Gaussian error with the spread of their cross-validated training residuals.

``python -m experiments.benchmarks.defaults [--tables pima ...] [--methods ...]`` prints a row for
each table and method and stores them in ``results/defaults.jsonl``; ``--summary`` prints what is
stored as a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments.benchmarks.tables import NAMES, Table, load
from islab import ISLaBClassifier, ISLaBRegressor
from islab.evaluate import calibration_error, selection_stability

RESULTS = Path(__file__).parent / "results"
FILE = RESULTS / "defaults.jsonl"
METHODS = ("islab", "islab-accurate", "islab-readable", "ridge", "lasso", "boosting")
SPARSITY = {"islab": "auto", "islab-accurate": 0.0, "islab-readable": 1.0}


def prepared(x: pd.DataFrame) -> object:
    """Impute, scale and one-hot encode, as one would before a linear model."""
    words = x.select_dtypes(exclude="number").columns
    numbers = [column for column in x if column not in set(words)]
    numeric = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer(
        (numeric, numbers), (OneHotEncoder(handle_unknown="ignore"), list(words))
    )


def peer(method: str, table: Table) -> object:
    classify = table.task != "regression"
    if method == "boosting":
        model = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
        return make_pipeline(prepared(table.x), model(random_state=0))
    if classify:
        ratio = 0.0 if method == "ridge" else 1.0
        solver = "lbfgs" if method == "ridge" else "saga"
        model = LogisticRegressionCV(
            l1_ratios=(ratio,),
            solver=solver,
            scoring="neg_log_loss",
            max_iter=2000,
            use_legacy_attributes=False,
        )
    else:
        model = RidgeCV(np.logspace(-3, 4, 30)) if method == "ridge" else LassoCV()
    return make_pipeline(prepared(table.x), model)


def judge_classes(probability: NDArray, truth: NDArray) -> dict[str, float]:
    chosen = np.clip(probability[np.arange(len(truth)), truth], 1e-12, None)
    return {
        "score": float((probability.argmax(axis=1) == truth).mean()),
        "nll": float(-np.log(chosen).mean()),
        "calibration": calibration_error(truth, probability),
    }


def judge_numbers(
    mean: NDArray, nll: NDArray, low: NDArray, high: NDArray, y: NDArray, sd: float
) -> dict[str, float]:
    """Scores on the scale of a target with unit spread."""
    return {
        "score": float(np.sqrt(np.square(mean - y).mean()) / sd),
        "nll": float(nll.mean() - np.log(sd)),
        "calibration": float(((y >= low) & (y <= high)).mean()),
    }


def fit_islab(method: str, table: Table, train: NDArray, test: NDArray, seed: int) -> dict:
    classify = table.task != "regression"
    kind = ISLaBClassifier if classify else ISLaBRegressor
    model = kind(sparsity=SPARSITY[method], random_state=seed)
    start = time.process_time()
    model.fit(table.x.iloc[train], table.y[train])
    seconds = time.process_time() - start
    x, y = table.x.iloc[test], table.y[test]
    result: dict = {"seconds": seconds, "weights": model.n_used_weights_}
    result["selected"] = sorted({str(name) for name in used_variables(model)})
    for label in ("median", "full"):
        if classify:
            truth = np.searchsorted(model.classes_, y)
            scores = judge_classes(model.predict_proba(x, model=label), truth)
        else:
            mean, _ = model.predict(x, return_std=True, model=label)
            low, high = model.predict_interval(x, level=0.9, model=label).T
            sd = table.y[train].std()
            scores = judge_numbers(mean, log_scores(model, x, y, label), low, high, y, sd)
        result[label] = scores
    return result


def used_variables(model: object) -> list[str]:
    network = model.network_  # type: ignore[attr-defined]
    return [network.scale.variables[column] for column in network.covariates]


def log_scores(model: ISLaBRegressor, x: pd.DataFrame, y: NDArray, label: str) -> NDArray:
    draws = model.sample_posterior(x, 500, model=label)[..., 0]
    noise = model.network_.noise_in_units()[0]
    density = norm.logpdf(y, draws, np.sqrt(noise))
    return -(np.logaddexp.reduce(density, axis=0) - np.log(len(draws)))


def fit_peer(method: str, table: Table, train: NDArray, test: NDArray, seed: int) -> dict:
    model = peer(method, table)
    x, y = table.x.iloc[train], table.y[train]
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)  # type: ignore[attr-defined]
        seconds = time.process_time() - start
        if table.task == "regression":
            residual = (y - cross_val_predict(model, x, y, cv=5)).std()
    coefficients = getattr(model[-1], "coef_", None)  # type: ignore[index]
    n_inputs = model[0].transform(x).shape[1]  # type: ignore[index]
    used = np.arange(n_inputs)
    if coefficients is not None:
        used = np.flatnonzero(np.abs(np.atleast_2d(coefficients)).max(axis=0) > 1e-8)
    result: dict = {"seconds": seconds, "weights": len(used), "selected": [str(u) for u in used]}
    xt, yt = table.x.iloc[test], table.y[test]
    if table.task == "regression":
        mean, sd = model.predict(xt), y.std()  # type: ignore[attr-defined]
        reach = norm.ppf(0.95) * residual
        nll = -norm.logpdf(yt, mean, residual)
        scores = judge_numbers(mean, nll, mean - reach, mean + reach, yt, sd)
    else:
        truth = np.searchsorted(model[-1].classes_, yt)  # type: ignore[index]
        scores = judge_classes(model.predict_proba(xt), truth)  # type: ignore[attr-defined]
    return result | {"full": scores, "median": scores}


def judge(table: Table, method: str, n_folds: int = 5) -> dict:
    """Mean scores over the folds."""
    splitter = KFold if table.task == "regression" else StratifiedKFold
    folds = splitter(n_folds, shuffle=True, random_state=1).split(table.x, table.y)
    run = fit_islab if method in SPARSITY else fit_peer
    runs = [run(method, table, train, test, seed) for seed, (train, test) in enumerate(folds)]
    row: dict = {"table": table.name, "task": table.task, "method": method}
    for label in ("median", "full"):
        for key in ("score", "nll", "calibration"):
            row[f"{label}_{key}"] = float(np.mean([run[label][key] for run in runs]))
    row["weights"] = float(np.mean([run["weights"] for run in runs]))
    row["covariates"] = float(np.mean([len(run["selected"]) for run in runs]))
    row["stability"] = selection_stability([run["selected"] for run in runs])
    row["seconds"] = float(np.mean([run["seconds"] for run in runs]))
    return row


def stored() -> pd.DataFrame:
    if not FILE.exists():
        return pd.DataFrame(columns=["table", "method"])
    return pd.DataFrame([json.loads(line) for line in FILE.read_text().splitlines()])


def summary() -> str:
    """What is stored, as Markdown: predictions of the full posterior, which are the default."""
    frame = stored().sort_values(["task", "table", "method"])
    columns = ["score", "nll", "calibration"]
    lines = [
        "| table | method | score | NLL | ECE / coverage | weights | covariates | stability | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in frame.to_dict("records"):
        scores = [f"{row['full_' + c]:.3f}" for c in columns]
        rest = [f"{row['weights']:.0f}", f"{row['covariates']:.0f}", f"{row['stability']:.2f}"]
        cells = [row["table"], row["method"], *scores, *rest, f"{row['seconds']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(NAMES), choices=NAMES)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--summary", action="store_true", help="print what is stored and stop")
    arguments = parser.parse_args()
    if arguments.summary:
        print(summary())
        return
    RESULTS.mkdir(exist_ok=True)
    done = set(stored()[["table", "method"]].itertuples(index=False, name=None))
    for name in arguments.tables:
        table = load(name)
        for method in arguments.methods:
            if (name, method) not in done:
                row = judge(table, method)
                with FILE.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                numbers = {k: round(v, 3) for k, v in row.items() if isinstance(v, float)}
                print(name, method, numbers, flush=True)


if __name__ == "__main__":
    main()
