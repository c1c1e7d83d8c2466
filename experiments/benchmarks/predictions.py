"""Times predictions, intervals and explanations against gradient boosting on the same rows.

20,000 rows of 20 covariates, models of 2,000 rows: a regression, and a classification of the same
function. Everything runs on one thread of one process and takes turns with scikit-learn's
``HistGradientBoosting``; times are seconds of CPU, the median of the rounds, so that a machine
with other users says the same. Besides, 1,000 rows are explained and reports of 5,000 rows are
written. ``python -m experiments.benchmarks.predictions [--only explanations reports]`` prints each
number beside its target and stores ``results/predictions.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from experiments.benchmarks.steps import RESULTS
from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.architecture import Architecture
from islab.core.drawn import DrawnNetworks
from islab.core.scale import Scale
from islab.explain.drawn import ExplainedNetworks
from islab.explain.local import explain_draws

N_LEARNED, N_ROWS, N_COVARIATES = 2_000, 20_000, 20
ROUNDS = 9
Measured = dict[str, dict[str, float]]


def make_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariates, a number and a class of each row; five covariates matter, three are bent."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_LEARNED + N_ROWS, N_COVARIATES))
    f = x[:, 0] + np.abs(x[:, 1]) + np.maximum(x[:, 2] + x[:, 3], 0) - 0.5 * x[:, 4]
    y = f + 0.5 * rng.normal(size=len(x))
    return x, y, (rng.random(len(x)) < 1 / (1 + np.exp(2 - 2 * f))).astype(int)


def seconds(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median CPU seconds of calls that take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(ROUNDS + 1):
        for name, call in calls.items():
            start = time.process_time()
            call()
            if number:  # the first round draws, and fills the caches
                times[name].append(time.process_time() - start)
    return {name: float(np.median(values)) for name, values in times.items()}


def against_boosting(found: Measured, kind: str, posterior: str, target: np.ndarray) -> None:
    """Means and intervals of one model, as multiples of boosting's time for the same rows."""
    x = make_data()[0]
    rows = x[N_LEARNED:]
    classes = kind == "classes"
    peer = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    other = peer(random_state=0).fit(x[:N_LEARNED], target[:N_LEARNED])
    own = ISLaBClassifier if classes else ISLaBRegressor
    model = own(posterior=posterior, random_state=0).fit(x[:N_LEARNED], target[:N_LEARNED])
    predict = "predict_proba" if classes else "predict"
    taken = seconds(
        {
            "boosting": lambda: getattr(other, predict)(rows),
            "mean": lambda: getattr(model, predict)(rows),
            "90 % interval": lambda: model.predict_interval(rows),
            "one row": lambda: getattr(model, predict)(rows[:1]),
        }
    )
    for name, limit in (("mean", 2.0), ("90 % interval", 5.0)):
        keep(found, f"{name}, {kind}, {posterior}", taken[name] / taken["boosting"], limit, "x")
    keep(found, f"one row, {kind}, {posterior}", 1e3 * taken["one row"], 1.0, "ms")


def counts(found: Measured) -> None:
    """Intervals of 2,000 rows of overdispersed counts with 1,000 draws: no target, only seconds."""
    from islab.core import families

    rng = np.random.default_rng(1)
    for name, centre in (("tens", 3.0), ("hundreds", 6.0), ("thousands", 8.0)):
        draws = centre + rng.normal(size=(1, 2000, 1)) / 2 + 0.1 * rng.normal(size=(1000, 2000, 1))
        noise = rng.uniform(0.2, 0.3, size=(1000, 1, 1))
        likelihood = families.likelihood("negative_binomial")
        start = time.process_time()
        for first in range(0, 2000, 100):
            part = draws[:, first : first + 100]
            likelihood.predictive_quantiles(part, noise, [0.05, 0.95])
        keep(found, f"2,000 intervals of {name}", time.process_time() - start, None, "s")


def explanations(found: Measured) -> None:
    """1,000 rows explained under 1,000 draws of networks with 30 weights in two layers."""
    networks, rows = thirty_weights(1000), make_data()[0][:1000]
    columns, scale = np.arange(N_COVARIATES), Scale.plain(N_COVARIATES, 1)
    explained = ExplainedNetworks(networks, columns, scale, "gaussian", np.ones(1))
    taken = seconds(
        {
            "contributions": lambda: networks.contributions(np.zeros((1, N_COVARIATES)), rows),
            "table": lambda: explain_draws(explained, rows).to_frame(),
        }
    )
    keep(found, "1,000 rows x 1,000 draws explained", taken["contributions"], 2.0, "s")
    keep(found, "the same as a table with intervals", taken["table"], 2.0, "s")


def reports(found: Measured) -> None:
    """Reports of 5,000 rows of 20 covariates."""
    x, numbers, classes = make_data()
    rows = slice(N_LEARNED, N_LEARNED + 5000)
    with tempfile.TemporaryDirectory() as folder:
        for kind, own, target in (
            ("numbers", ISLaBRegressor, numbers),
            ("classes", ISLaBClassifier, classes),
        ):
            model = own(random_state=0).fit(x[:N_LEARNED], target[:N_LEARNED])
            path = Path(folder) / "report.html"
            write = partial(model.report, path, x[rows], target[rows])
            keep(found, f"report of 5,000 rows, {kind}", seconds({"": write})[""], 3.0, "s")


def thirty_weights(n_draws: int) -> DrawnNetworks:
    """Three units with four covariates each, two above with two more each, and five covariates."""
    rng = np.random.default_rng(2)
    net = Architecture(N_COVARIATES, (10, 10), 1, activation="relu")
    weights = np.zeros((n_draws, net.n_weights))
    for flat in weights:
        below, above = rng.choice(10, 3, replace=False), rng.choice(10, 2, replace=False)
        wires = net.covariate_matrix(flat)
        for unit, size in (*((u, 4) for u in below), *((10 + u, 2) for u in above), (20, 5)):
            wires[unit, rng.choice(N_COVARIATES, size, replace=False)] = rng.normal(size=size)
        net.hidden_block(1).view(flat)[np.ix_(above, below)] = rng.normal(size=(2, 3))
        net.hidden_block(2).view(flat)[0, above] = rng.normal(size=2)
    return DrawnNetworks.from_dense(net, weights, rng.normal(size=(n_draws, net.n_units)))


def keep(found: Measured, name: str, value: float, limit: float | None, unit: str) -> None:
    found[name] = {"value": value} | ({} if limit is None else {"target": limit})
    target = "" if limit is None else f"   target {limit:g} {unit}"
    print(f"{name:40s} {value:8.3f} {unit:2s}{target}", flush=True)


def boosting(found: Measured) -> None:
    """Models of numbers and of classes against boosting."""
    _, numbers, classes = make_data()
    for posterior in ("sampled", "independent"):
        against_boosting(found, "numbers", posterior, numbers)
        against_boosting(found, "classes", posterior, classes)


PARTS = {part.__name__: part for part in (boosting, counts, explanations, reports)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    path = RESULTS / "predictions.json"
    found: Measured = json.loads(path.read_text())["measured"] if path.exists() else {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in parser.parse_args().only:
            PARTS[name](found)
    machine = {"cpu": platform.machine(), "python": platform.python_version()}
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps({"measured": found, "machine": machine}, indent=2) + "\n")


if __name__ == "__main__":
    main()
