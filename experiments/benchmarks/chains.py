"""Times chains: a step against numpy, default fits against independent weights, growth with rows.

``python -m experiments.benchmarks.chains [--only steps]`` prints ratios of seconds of CPU within
one run and stores them in ``results/chains.json``. Goals: a step at least 15 times as fast as
in numpy, a default fit below 5,000 rows at most 3 times as long as one with
``posterior="independent"``, ten times the rows at most ten times as long.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from experiments.benchmarks.plain_chain import LinearStep, WeightStep
from experiments.benchmarks.steps import RESULTS
from experiments.benchmarks.tables import load
from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.architecture import Architecture
from islab.learn.engines import Problem
from islab.learn.sample import ChainPrior, Start
from islab.learn.sample.chains import make_chain

TABLES = ("pima", "saheart", "ionosphere", "segment0", "concrete", "airfoil", "autoMPG6")
GROWTH = (500, 5000)
TOGGLES, PARTS = 40, 4


def seconds(run: Callable[[], object], budget: float = 0.5) -> float:
    """Median seconds of CPU of a call."""
    run()
    times: list[float] = []
    while sum(times) < budget:
        start = process_time()
        run()
        times.append(process_time() - start)
    return float(np.median(times))


def compiled(
    problem: Problem, likelihood: str, net: Architecture, start: Start, **effort: int
) -> Callable[[], object]:
    """A function that takes ten steps of a compiled chain."""
    chain = make_chain(problem, likelihood, net, start, 1, ChainPrior())
    none = dict.fromkeys(("toggles", "edges", "units", "parts", "largest_part"), 0)
    options: dict[str, Any] = {**none, **effort, "every": 1, "keep_rows": False}
    chain.run(steps=50, warming=True, **options)
    return lambda: chain.run(steps=10, warming=False, **options)


def linear_steps(n_rows: int, n_covariates: int) -> float:
    """How many times faster a step of a linear Gaussian model is than in numpy."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_rows, n_covariates))
    y = x[:, :3].sum(axis=1) + rng.standard_normal(n_rows)
    net = Architecture(n_covariates, (), 1)
    none = np.zeros(0)
    start = Start(none.astype(np.intp), none, np.zeros(1), np.ones(1), np.ones(1))
    fast = compiled(Problem(x, y[:, None]), "gaussian", net, start, toggles=TOGGLES)
    plain = LinearStep(x, y, rng)
    return 10 * seconds(lambda: plain.step(TOGGLES)) / seconds(fast)


def network_steps(n_rows: int, n_covariates: int, n_units: int) -> float:
    """The same for the weights of a network with counts as its target."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_rows, n_covariates))
    y = rng.poisson(np.exp(0.5 * np.abs(x[:, 0]))).astype(float)
    plain = WeightStep(x, y, n_units, rng)
    net = Architecture(n_covariates, (n_units,), 1, input_skip=False)
    start = Start(
        np.arange(net.n_weights),
        np.concatenate([plain.hidden[:, 1:].ravel(), plain.out[1:]]),
        np.append(plain.hidden[:, 0], plain.out[0]),
        np.ones(len(net.blocks)),
        np.ones(1),
    )
    fast = compiled(
        Problem(x, y[:, None]),
        "poisson",
        net,
        start,
        parts=PARTS,
        largest_part=n_covariates + n_units + 2,
    )
    plain.step(PARTS)
    return 10 * seconds(lambda: plain.step(PARTS)) / seconds(fast)


def fitted(x: Any, y: Any, *, classify: bool, **parameters: object) -> float:
    """Seconds of a fit, the shorter of two."""
    kind = ISLaBClassifier if classify else ISLaBRegressor
    times = []
    for seed in range(2):
        start = process_time()
        kind(random_state=seed, **parameters).fit(x, y)
        times.append(process_time() - start)
    return min(times)


def default_fits() -> dict[str, float]:
    """Default fits over those with independent weights."""
    found = {}
    for name in TABLES:
        table = load(name)
        classify = table.task != "regression"
        independent = fitted(table.x, table.y, classify=classify, posterior="independent")
        found[name] = fitted(table.x, table.y, classify=classify) / independent
        print(f"default fit over independent weights, {name:12s} {found[name]:6.1f}x", flush=True)
    return found


def growth() -> dict[str, float]:
    """Seconds of default fits of ten times the rows over those of the rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((max(GROWTH), 10))
    eta = 2 * np.abs(x[:, 0]) + x[:, 1] - 1.5
    found = {}
    for kind, y in (
        ("numbers", eta + rng.standard_normal(len(x))),
        ("classes", (eta + rng.logistic(size=len(x)) > 0).astype(int)),
    ):
        few, many = (fitted(x[:n], y[:n], classify=kind == "classes") for n in GROWTH)
        found[kind] = many / few
        print(f"{GROWTH[1]} over {GROWTH[0]} rows, {kind:12s} {found[kind]:6.1f}x", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["steps"], help="leave whole fits out")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"step over numpy": {}}
    for name, ratio in (
        ("linear, 500 x 10", linear_steps(500, 10)),
        ("linear, 2000 x 30", linear_steps(2000, 30)),
        ("network, 500 x 8, 5 units", network_steps(500, 8, 5)),
        ("network, 2000 x 8, 5 units", network_steps(2000, 8, 5)),
    ):
        results["step over numpy"][name] = ratio
        print(f"chain step over numpy, {name:28s} {ratio:6.1f}x", flush=True)
    if arguments.only is None:
        results["default fit over independent"] = default_fits()
        results["ten times the rows"] = growth()
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "chains.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
