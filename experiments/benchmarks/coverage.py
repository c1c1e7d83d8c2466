"""Whether intervals cover what they say, on simulated tables whose truth is known.

``python -m experiments.benchmarks.coverage [--tables 50] [--rows 50 200 1000]`` fits the default
regressor to tables of ten covariates with equal correlations, and prints how often 90 % intervals
cover effects, expectations and new targets. Truths are drawn from the prior of the chains
(linear), fixed (three effects of 1, 0.5 and 0.25 residual SDs among ten covariates), or bent once.
An effect is what the expected target gains if a covariate moves from 0 to 1, the others at 0: the
slope of a linear truth. Results are kept in ``results/coverage.json``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from islab import ISLaBRegressor

FILE = Path(__file__).parent / "results" / "coverage.json"
N_COVARIATES, LEVEL, NEW_ROWS = 10, 0.9, 50
FIXED = (1.0, 0.5, 0.25)
Float = NDArray[np.floating]
Function = Callable[[Float], Float]


def linear_from_prior(rng: np.random.Generator) -> Function:
    share = rng.beta(1.0, 1.0)
    used = rng.random(N_COVARIATES) < share
    slab = 1 / np.sqrt(rng.gamma(1.0, 1.0))
    weights = np.where(used, slab * rng.standard_normal(N_COVARIATES), 0.0)
    return lambda x: x @ weights


def linear_fixed(rng: np.random.Generator) -> Function:
    weights = np.zeros(N_COVARIATES)
    weights[rng.choice(N_COVARIATES, len(FIXED), replace=False)] = FIXED
    return lambda x: x @ weights


def bent_once(rng: np.random.Generator) -> Function:
    first, second, third = rng.choice(N_COVARIATES, 3, replace=False)
    return lambda x: x[:, first] + 2 * np.maximum(x[:, second] + 0.5 * x[:, third] - 0.3, 0.0)


TRUTHS = {"from the prior": linear_from_prior, "fixed": linear_fixed, "bent": bent_once}


def covariates(n_rows: int, correlation: float, rng: np.random.Generator) -> Float:
    own, shared = rng.standard_normal((n_rows, N_COVARIATES)), rng.standard_normal((n_rows, 1))
    return np.sqrt(1 - correlation) * own + np.sqrt(correlation) * shared


def one_table(truth: str, correlation: float, n_rows: int, seed: int) -> list[dict]:
    """What a fit to one table covers: a record for each effect and one for the rows."""
    rng = np.random.default_rng([seed, n_rows, round(100 * correlation)])
    function = TRUTHS[truth](rng)
    x, new = (covariates(n, correlation, rng) for n in (n_rows, NEW_ROWS))
    y, new_y = (function(rows) + rng.standard_normal(len(rows)) for rows in (x, new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = ISLaBRegressor(random_state=seed).fit(x, y)
    steps = np.vstack([np.zeros(N_COVARIATES), np.eye(N_COVARIATES)])
    drawn = model.sample_posterior(np.vstack([steps, new]))[..., 0]
    effects = drawn[:, 1 : len(steps)] - drawn[:, :1]
    true = function(steps)[1:] - function(steps)[:1]
    used = model.posterior_.to_frame()["p_used"].to_numpy()
    base = {"truth": truth, "correlation": correlation, "rows": n_rows}
    lines = [
        {**base, "kind": "effect", "true": t, "covered": c, "p_used": p}
        for t, c, p in zip(true, covered(effects, true), used, strict=True)
    ]
    ends = model.predict_interval(new, LEVEL)
    shares = {
        "expectation": covered(drawn[:, len(steps) :], function(new)).mean(),
        "target": ((ends[:, 0] <= new_y) & (new_y <= ends[:, 1])).mean(),
    }
    return lines + [{**base, "kind": k, "covered": v} for k, v in shares.items()]


def covered(draws: Float, true: Float) -> NDArray[np.bool_]:
    """Whether central intervals of draws (draws, numbers) hold the true numbers."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return (low - 1e-12 <= true) & (true <= high + 1e-12)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Coverage by setting: effects that are 0, those that are not, expectations and targets."""
    kind = frame["kind"].where(
        frame["kind"] != "effect", np.where(frame["true"] == 0, "effect of 0", "effect")
    )
    fixed = (frame["truth"] == "fixed") & (kind == "effect")
    kind = kind.where(~fixed, "effect of " + frame["true"].astype(str))
    table = frame.assign(kind=kind).pivot_table(
        index=["truth", "correlation", "rows"], columns="kind", values="covered", aggfunc="mean"
    )
    return table.round(3)


def calibration(frame: pd.DataFrame) -> pd.DataFrame:
    """Of covariates given a probability, the share that is real."""
    effects = frame[(frame["kind"] == "effect") & (frame["truth"] == "from the prior")]
    bins = pd.cut(effects["p_used"], [-0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
    real = (effects["true"] != 0).groupby(bins, observed=True)
    return pd.DataFrame(
        {
            "mean p_used": effects.groupby(bins, observed=True)["p_used"].mean(),
            "share real": real.mean(),
            "n": real.size(),
        }
    ).round(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20, help="of each setting")
    parser.add_argument("--rows", type=int, nargs="*", default=[50, 200, 1000])
    parser.add_argument("--correlations", type=float, nargs="*", default=[0.0, 0.5, 0.7, 0.9])
    parser.add_argument("--truths", nargs="*", default=list(TRUTHS), choices=TRUTHS)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    cells = [
        (truth, correlation, rows, seed)
        for truth in arguments.truths
        for correlation in arguments.correlations
        for rows in arguments.rows
        for seed in range(arguments.tables)
    ]
    found = Parallel(n_jobs=arguments.jobs, verbose=1)(delayed(one_table)(*cell) for cell in cells)
    frame = pd.DataFrame([line for lines in found for line in lines])
    tables = {"coverage": summary(frame), "p_used": calibration(frame)}
    print(*(table.to_string() for table in tables.values()), sep="\n\n")
    kept = {
        name: json.loads(t.reset_index().astype(str).to_json(orient="records"))
        for name, t in tables.items()
    }
    FILE.write_text(json.dumps({"tables": arguments.tables, **kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
