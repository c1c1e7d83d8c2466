"""How the cost of fits, sums and predictions grows: with rows, covariates, draws and partitions.

Rows and memory are read from what ``many_rows cost`` and ``beyond_memory`` have stored. The others
are measured here in seconds of CPU, each as a multiple of its first, and stored in
``results/growth.json``: fits of 500 rows with more and more covariates, of which five matter;
predictions of 20,000 rows with more and more draws; a pass of a Gauss-Newton step over 100,000
rows in more and more partitions of a Dask data frame.

    python -m experiments.benchmarks.growth --picture docs/images/growth.svg
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.benchmarks.many_rows import bent
from islab import ISLaBRegressor
from islab.dask import DaskBatches
from islab.estimators.streams import ByBlocks
from islab.learn.engines import Problem
from islab.learn.sample import Start
from islab.learn.scale.passes import NewtonPass

RESULTS = Path(__file__).parent / "results"
FILE = RESULTS / "growth.json"
COVARIATES = (10, 30, 100, 300)
DRAWS = (100, 300, 1000, 3000)
PARTITIONS = (1, 4, 16, 64)
Curve = dict[str, float]


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def covariates() -> Curve:
    """Fits of 500 rows."""
    rng = np.random.default_rng(0)
    few, y = bent(500, 0)
    found = {}
    for n_covariates in COVARIATES:
        x = np.hstack([few[:, :5], rng.normal(size=(500, n_covariates - 5))])
        found[str(n_covariates)] = seconds(lambda x=x: ISLaBRegressor(random_state=0).fit(x, y))
    return found


def draws() -> Curve:
    """Mean predictions of 20,000 rows."""
    model = ISLaBRegressor(random_state=0).fit(*bent(500, 0))
    x = bent(20_000, 1)[0]
    found = {}
    for n_draws in DRAWS:
        model.set_params(n_draws=n_draws).predict(x[:10])  # draws are kept
        found[str(n_draws)] = min(seconds(lambda: model.predict(x)) for _ in range(3))
    return found


def partitions() -> Curve:
    """Sums of one pass, gathered by Dask's threaded scheduler."""
    from dask import config, dataframe

    x, y = bent(100_000, 0)
    frame = pd.DataFrame(x).rename(columns=str).assign(y=y)
    model = ISLaBRegressor(random_state=0).fit(x[:500], y[:500])
    posterior = model.posterior_
    start = Start(**posterior.chains[0].state(0))
    networks = posterior.chains[0].take(np.zeros(1, np.intp)).networks(posterior.architecture)
    task = ByBlocks(NewtonPass(networks, start.noise[None], "gaussian"))
    found = {}
    with config.set(scheduler="synchronous"):
        for n_parts in PARTITIONS:
            batches = DaskBatches(dataframe.from_pandas(frame, npartitions=n_parts))
            batches.total(read, task)
            found[str(n_parts)] = min(seconds(partial(batches.total, read, task)) for _ in range(3))
    return found


def read(frame: pd.DataFrame) -> Problem:
    values = frame.to_numpy()
    return Problem(values[:, :-1], values[:, -1:])


def picture(path: Path, measured: dict[str, Curve]) -> None:
    """Curves on logarithmic axes, each beside what is asked for."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 5, figsize=(15, 3.2), layout="constrained")
    own = json.loads((RESULTS / "many_rows.json").read_text())["cost"]
    for truth, costs in own.items():
        rows = [int(n) for n in costs]
        axes[0].loglog(rows, [each["ratio"] for each in costs.values()], "o-", label=truth)
    axes[0].axhline(3, color="grey", linestyle="--", label="target")
    axes[0].set(title="fit of 20 covariates", xlabel="rows", ylabel="CPU / boosting's")
    axes[0].legend()
    memory = json.loads((RESULTS / "beyond_memory.json").read_text())
    sizes = sorted(memory, key=float)
    axes[1].plot([float(n) for n in sizes], [memory[n]["megabytes"] for n in sizes], "o-")
    axes[1].set(title="largest memory of a fit", xlabel="GB of Parquet", ylabel="MB")
    axes[1].set_ylim(0)
    words = {
        "covariates": "fit of 500 rows",
        "draws": "predictions of 20,000 rows",
        "partitions": "a pass over 100,000 rows",
    }
    for ax, (name, title) in zip(axes[2:], words.items(), strict=True):
        curve = measured[name]
        first = next(iter(curve.values()))
        ax.loglog([int(n) for n in curve], [each / first for each in curve.values()], "o-")
        ax.set(title=title, xlabel=name, ylabel="CPU / first")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--only-picture", action="store_true", help="of what is stored")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if not args.only_picture:
        measured = {}
        for measure in (covariates, draws, partitions):
            measured[measure.__name__] = curve = measure()
            print(measure.__name__, {n: round(each, 3) for n, each in curve.items()}, flush=True)
        FILE.write_text(json.dumps(measured, indent=2) + "\n")
    if args.picture:
        picture(args.picture, json.loads(FILE.read_text()))


if __name__ == "__main__":
    main()
