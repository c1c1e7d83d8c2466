"""Times one training step on the paper's five sizes, as ratios against the plain version.

Engines take turns within one run, so that a noisy machine slows all of them alike; the median
of the rounds is reported. ``python -m experiments.benchmarks.steps [--quick]`` prints a table and
stores ``results/steps.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from experiments.benchmarks.plain import PlainFlowLayer, PlainLayer, PlainNetwork
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines import Engine, EngineChoice, Problem, Steps

RESULTS = Path(__file__).parent / "results"


class Size(NamedTuple):
    rows: int
    covariates: int
    hidden: tuple[int, ...]
    outputs: int
    likelihood: str
    batch: int
    flow_batch: int


SIZES = {
    "simulated": Size(64_000, 4, (20, 20, 20, 20), 1, "bernoulli", 1280, 6400),
    "wbc": Size(512, 30, (50, 50), 1, "bernoulli", 64, 64),
    "abalone": Size(3759, 9, (200, 200), 1, "gaussian", 752, 752),
    "mice": Size(972, 77, (100, 100, 100, 100), 8, "categorical", 36, 36),
    "mnist": Size(60_000, 784, (600, 600), 10, "categorical", 1200, 1200),
}


def make_problem(size: Size, rng: np.random.Generator) -> Problem:
    x = rng.standard_normal((size.rows, size.covariates)).astype(np.float32)
    if size.likelihood == "categorical":
        y = np.eye(size.outputs)[rng.integers(size.outputs, size=size.rows)]
    elif size.likelihood == "bernoulli":
        y = rng.integers(2, size=(size.rows, 1))
    else:
        y = rng.standard_normal((size.rows, 1))
    return Problem(x, y.astype(np.float32))


def engine_runner(
    kind: Callable[..., Engine], size: Size, problem: Problem, batch: int
) -> Callable[[int], None]:
    """A function that takes so many steps with an engine."""
    rng = np.random.default_rng(0)
    net = Architecture(size.covariates, size.hidden, size.outputs, activation="sigmoid")
    start = Posterior.initialise(net, rng, likelihood=size.likelihood)
    engine = kind(start, problem, seed=0)
    engine.set_prior(Prior.same(net, tau=1.0, psi=0.1), np.ones(len(net.blocks)))

    order = rng.permutation(size.rows)

    def run(n: int) -> None:
        rows = np.resize(order, n * batch)
        constant = np.full(n, 0.01)
        engine.run(Steps(rows, np.full(n, batch), constant, constant, np.ones(n)))

    return run


def plain_runner(
    layer: type[PlainLayer], size: Size, problem: Problem, batch: int
) -> Callable[[int], None]:
    torch.manual_seed(0)
    network = PlainNetwork(size.covariates, size.hidden, size.outputs, size.likelihood, layer)
    x, y = torch.as_tensor(problem.x), torch.as_tensor(problem.y)
    order = np.random.default_rng(0).permutation(size.rows)

    def run(n: int) -> None:
        for rows in torch.as_tensor(np.resize(order, n * batch)).split(batch):
            network.step(x[rows], y[rows], size.rows // batch)

    return run


def seconds_per_step(
    runners: dict[str, Callable[[int], None]], rounds: int, budget: float
) -> dict[str, float]:
    """Median seconds of a step, the runners taking turns."""
    steps = {}
    for name, run in runners.items():
        run(1)
        start = time.perf_counter()
        run(2)
        one = (time.perf_counter() - start) / 2
        steps[name] = max(1, int(budget / max(one, 1e-6)))
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            start = time.perf_counter()
            run(steps[name])
            times[name].append((time.perf_counter() - start) / steps[name])
    return {name: float(np.median(values)) for name, values in times.items()}


def engines(posterior: str = "independent") -> dict[str, Callable[..., Engine]]:
    """The engines that are there for a kind of posterior."""
    found: dict[str, Callable[..., Engine]] = {}
    for name in ("torch", "native"):
        with suppress(ImportError):
            found[name] = EngineChoice(name, posterior=posterior).resolve()
    return found


def measure(rounds: int, budget: float) -> dict:
    results: dict = {"independent": {}, "flow": {}}
    rng = np.random.default_rng(0)
    for name, size in SIZES.items():
        problem = make_problem(size, rng)
        runners = {"plain": plain_runner(PlainLayer, size, problem, size.batch)}
        for label, kind in engines().items():
            runners[label] = engine_runner(kind, size, problem, size.batch)
        results["independent"][name] = seconds_per_step(runners, rounds, budget)
        show("independent", name, results["independent"][name])
        runners = {"plain": plain_runner(PlainFlowLayer, size, problem, size.flow_batch)}
        for label, kind in engines("flow").items():
            runners[label] = engine_runner(kind, size, problem, size.flow_batch)
        results["flow"][name] = seconds_per_step(runners, rounds, budget)
        show("flow", name, results["flow"][name])
    return results


def show(kind: str, name: str, seconds: dict[str, float]) -> None:
    plain = seconds["plain"]
    ratios = "  ".join(
        f"{engine} {1e3 * value:8.3f} ms ({plain / value:5.1f}x)"
        for engine, value in seconds.items()
        if engine != "plain"
    )
    print(f"{kind:11s} {name:10s} plain {1e3 * plain:8.3f} ms  {ratios}", flush=True)


def peak_memory() -> dict[str, float]:
    """Memory of a process that trains at MNIST size, over one that only imports, in MB."""
    code = (
        "import sys; sys.path.insert(0, {here!r}); import steps, numpy as np;"
        "peak = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]);"
        "bare = peak();"
        "size = steps.SIZES['mnist']; problem = steps.make_problem(size, np.random.default_rng(0));"
        "steps.engine_runner(steps.engines()[{engine!r}], size, problem, size.batch)(5);"
        "print((peak() - bare) / 1024)"
    )
    here = str(Path(__file__).parent)
    return {
        name: float(
            subprocess.run(
                [sys.executable, "-c", code.format(here=here, engine=name)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for name in engines()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rounds, budget = (3, 0.2) if arguments.quick else (7, 0.5)
    results = measure(rounds, budget)
    results["peak_memory_mb"] = peak_memory()
    for name, value in results["peak_memory_mb"].items():
        print(f"peak memory at MNIST size over the bare interpreter, {name}: {value:.0f} MB")
    results["machine"] = {"cpu": platform.machine(), "python": platform.python_version()}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "steps.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
