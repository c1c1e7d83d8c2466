"""Which slope should a hidden unit have while it is off: none, a little, or one that is learned?

Three times two folds of tables for choosing defaults, with the default estimators and several
slopes below 0: 0 is the exact ReLU. One learned slope for a table can do no better than the best of
them, which is printed as well; what training would choose is the one with the highest ELBO. Then
ten simulated tables of 2,000 rows whose truth has seven weights: how many weights are kept, and
whether 90 % intervals of slopes cover them where the true slope is 0 because units are off.

``python -m experiments.benchmarks.activations [--tables pima ...] [--simulated 10]`` prints a line
for each, and keeps them in ``results/activations.jsonl``; ``--summary`` prints means of what is
kept.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.benchmarks.defaults import judged, make
from experiments.benchmarks.tables import load
from islab import ISLaBRegressor
from islab.baselines.references import shuffled_folds
from islab.core import families
from islab.core.families.activation import LeakyRelu
from islab.evaluate.runner import Record, append_record, read_records, scored

FILE = Path(__file__).parent / "results" / "activations.jsonl"
TABLES = (
    "pima",
    "saheart",
    "ionosphere",
    "mammographic",
    "autoMPG6",
    "concrete",
    "laser",
    "airfoil",
)
SLOPES = {"relu": 0.0, "leaky_relu": 0.01, "leaky_10": 0.1, "leaky_30": 0.3}
N_FOLDS, N_REPEATS, N_ROWS, N_COVARIATES, LEVEL = 2, 3, 2000, 10, 0.9


def fold(name: str, activation: str, number: int) -> Record:
    """Scores of one fold of a table; further pairs of folds are other ones."""
    table = load(name)
    classify = table.task != "regression"
    folds = shuffled_folds(table.y, N_FOLDS, classify=classify, groups=None, seed=2 + number // 2)
    train, test = folds[number % N_FOLDS]
    model = make("islab", table).set_params(random_state=number, activation=activation)
    start = time.process_time()
    model.fit(table.x.iloc[train], table.y[train])
    seconds = time.process_time() - start
    scores = scored(model, table.x.iloc[test], table.y[test])["models"]
    sd = 1.0 if classify else float(table.y[train].std())
    full, median = (judged(scores[which], classify, sd) for which in ("full", "median"))
    return {
        "nll": float(full["nll"]),
        "median_nll": float(median["nll"]),
        "weights": model.n_used_weights_,
        "mean_weights": _mean_size(model),
        "elbo": float(model.elbo_),
        "seconds": seconds,
    }


def truth(x: np.ndarray) -> np.ndarray:
    """Two weights into each of two units, one out of each, and one from a covariate: seven."""
    return (
        x[:, 0]
        + 2 * np.maximum(x[:, 1] + 0.5 * x[:, 2] - 0.3, 0.0)
        - 1.5 * np.maximum(x[:, 3] - 0.7 * x[:, 4] - 0.5, 0.0)
    )


def simulated(activation: str, seed: int) -> Record:
    """Sizes and coverage of one simulated table."""
    rng = np.random.default_rng([seed, N_ROWS])
    x = rng.standard_normal((N_ROWS, N_COVARIATES))
    y = truth(x) + rng.standard_normal(N_ROWS)
    start = time.process_time()
    model = ISLaBRegressor(random_state=seed, activation=activation).fit(x, y)
    seconds = time.process_time() - start
    rows = rng.standard_normal((50, N_COVARIATES))
    rows[:, 1:5] = (-np.abs(rows[:, 1:5]) - 0.2) * [1, 1, 1, -1]  # where both units are off
    frame = model.explain_local(rows, kind="linear", level=LEVEL).to_frame("covariates")
    off = frame[frame["covariate"].isin(["x1", "x2", "x3", "x4"])]
    low, high = off["slope_lower"], off["slope_upper"]
    return {
        "weights": model.n_used_weights_,
        "mean_weights": _mean_size(model),
        "error": float(np.sqrt(np.mean((model.predict(rows) - truth(rows)) ** 2))),
        "covers_no_slope": float(((low <= 1e-12) & (high >= -1e-12)).mean()),
        "slope_width": float((high - low).mean()),
        "seconds": seconds,
    }


def _mean_size(model: object) -> float:
    posterior = model.posterior_  # type: ignore[attr-defined]
    return float(posterior.draw_weights @ posterior.sizes())


def summary() -> str:
    """Means of what is kept; slopes are compared within runs of the same rows and seed."""
    frame = pd.DataFrame(read_records(FILE))
    own = frame["table"] == "simulated"
    tables = frame[~own].dropna(axis=1, how="all").set_index(["table", "run", "activation"])
    index = ["table", "run"]
    nll, elbo = (
        tables.reset_index().pivot_table(name, index, "activation") for name in ("nll", "elbo")
    )
    by_table = nll.groupby("table").mean()
    gain = nll.rsub(nll["leaky_relu"], axis=0).groupby("table").mean()
    chosen = elbo.idxmax(axis=1)
    at = [nll.columns.get_loc(name) for name in chosen]
    picked = pd.Series(nll.to_numpy()[np.arange(len(nll)), at], nll.index)
    lines = {
        "NLL": by_table.round(4),
        "mean over tables": tables.groupby("activation").mean().round(4).T,
        "mean gain in NLL over leaky_relu": gain.mean().round(4),
        "its standard error over tables": gain.sem().round(4),
        "NLL of the best slope of each table": by_table.min(axis=1).mean().round(4),
        "NLL of the slope with the highest ELBO": picked.groupby("table").mean().mean().round(4),
    }
    if own.any():
        means = frame[own].dropna(axis=1, how="all").drop(columns=["table", "run"])
        lines["simulated, seven weights"] = means.groupby("activation").mean().round(3).T
    return "\n\n".join(f"{title}\n{value}" for title, value in lines.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--simulated", type=int, default=10)
    parser.add_argument("--summary", action="store_true", help="print what is kept and stop")
    arguments = parser.parse_args()
    for name, below in SLOPES.items():
        if name not in families.activations():
            families.register(LeakyRelu(name, below))
    if arguments.summary:
        print(summary())
        return
    done = {(r["table"], r["activation"], r["run"]) for r in read_records(FILE)}
    runs = [(name, number) for name in arguments.tables for number in range(N_FOLDS * N_REPEATS)]
    runs += [("simulated", seed) for seed in range(arguments.simulated)]
    for table, number in runs:
        for activation in SLOPES:
            if (table, activation, number) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found = (
                    simulated(activation, number)
                    if table == "simulated"
                    else fold(table, activation, number)
                )
            line = {"table": table, "activation": activation, "run": number, **found}
            append_record(FILE, line)
            print(line, flush=True)


if __name__ == "__main__":
    main()
