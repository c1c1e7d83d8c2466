"""How far the native step is from the matrix products that it cannot do without.

Times the step at MNIST size (784 covariates, 2 x 600 units, 10 classes, batches of 1200) and, in
turn, bare calls of the same BLAS on the same shapes, on one thread.
``python -m experiments.benchmarks.native_limit`` prints both and their ratio, and exits with an
error above ``LARGEST_RATIO``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import sgemm
from threadpoolctl import threadpool_limits

from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines import Problem, Steps
from islab.learn.engines.native import NativeEngine

NET = Architecture(n_covariates=784, hidden=(600, 600), n_outputs=10)
BATCH, N_ROWS, ROUNDS = 1200, 6000, 7
LARGEST_RATIO = 1.3


def engine_step(rng: np.random.Generator) -> Callable[[], None]:
    x = rng.standard_normal((N_ROWS, NET.n_covariates))
    y = np.eye(NET.n_outputs)[rng.integers(NET.n_outputs, size=N_ROWS)]
    start = Posterior.initialise(NET, rng, likelihood="categorical")
    engine = NativeEngine(start, Problem(x, y), seed=0)
    engine.set_prior(Prior.same(NET, tau=1.0, psi=0.1), np.ones(len(NET.blocks)))
    rate = np.full(1, 0.01)

    def step() -> None:
        rows = rng.integers(N_ROWS, size=BATCH)
        engine.run(Steps(rows, np.array([BATCH]), rate, rate, np.ones(1)))

    return step


def bare_products(rng: np.random.Generator) -> Callable[[], None]:
    """Every product of a step: forward, weight gradients and, for hidden inputs, backward."""
    layers = []
    for block in NET.blocks:
        out, inputs = block.n_targets, block.n_sources
        shapes = ((out, inputs), (inputs, BATCH), (out, BATCH))
        operands = [rng.standard_normal(shape).astype(np.float32, order="F") for shape in shapes]
        layers.append((block.source, *operands))

    def products() -> None:
        for source, weights, inputs, gradients in layers:
            for _ in ("mean", "variance"):
                sgemm(1.0, weights, inputs)
                sgemm(1.0, gradients, inputs, trans_b=True)
                if source == "hidden":
                    sgemm(1.0, weights, gradients, trans_a=True)

    return products


def milliseconds(functions: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Median time of each function, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: float(np.median(values)) for name, values in times.items()}


def main() -> None:
    rng = np.random.default_rng(0)
    with threadpool_limits(1, user_api="blas"):
        found = milliseconds({"step": engine_step(rng), "products": bare_products(rng)})
    ratio = found["step"] / found["products"]
    print(f"native step {found['step']:.0f} ms, bare sgemm {found['products']:.0f} ms: {ratio:.2f}")
    if ratio > LARGEST_RATIO:
        sys.exit(f"The step is {ratio:.2f} times its products, expected {LARGEST_RATIO} at most.")


if __name__ == "__main__":
    main()
