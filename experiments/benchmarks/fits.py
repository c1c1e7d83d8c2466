"""Times whole fits of the breast cancer data: ten restarts on two threads, and the defaults.

Ten runs at the paper's setting (2 x 50 units, 200 epochs of 8 batches) against ten plain runs,
which are timed on a few hundred steps and scaled up; then the default fit and one restart of it,
in seconds of CPU, and ``islab demo`` in seconds of wall clock. Prints them and stores
``experiments/benchmarks/results/fits.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler

from experiments.benchmarks.plain import PlainLayer
from experiments.benchmarks.steps import RESULTS, SIZES, plain_runner
from experiments.datasets import load_wbc
from islab import ISLaBClassifier
from islab.learn.engines import EngineChoice, Problem
from islab.learn.fit import fit
from islab.learn.recipe import paper_recipe

PLAIN_STEPS = 300
RUN_STEPS = 1600


def ten_restarts() -> tuple[float, float]:
    """Seconds of ten plain runs, and of ten native ones on two threads."""
    data = load_wbc()
    x = StandardScaler().fit_transform(data.x.iloc[data.train]).astype(np.float32)
    problem = Problem(x, data.y[data.train][:, None].astype(np.float32))
    run = plain_runner(PlainLayer, SIZES["wbc"], problem, 64)
    run(10)
    start = time.perf_counter()
    run(PLAIN_STEPS)
    plain = (time.perf_counter() - start) / PLAIN_STEPS * RUN_STEPS * 10
    recipe = paper_recipe(
        hidden=(50, 50),
        n_steps=RUN_STEPS,
        batch_size=64,
        rate=0.1,
        tau=1.0,
        psi=0.01,
        covariate_inclusion=(5.0, 5.0),
        hidden_inclusion=(-9.0, -5.0),
    )
    start = time.perf_counter()
    fit(
        problem,
        "bernoulli",
        replace(recipe, n_restarts=10),
        seed=0,
        engine=EngineChoice("native"),
        n_jobs=2,
    )
    return plain, time.perf_counter() - start


def default_fit(**params: object) -> float:
    data = load_wbc()
    start = time.process_time()
    ISLaBClassifier(random_state=0, **params).fit(data.x.iloc[data.train], data.y[data.train])
    return time.process_time() - start


def demo() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "islab", "demo"], capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    torch.set_num_threads(1)
    plain, native = ten_restarts()
    default_fit()
    results = {
        "ten plain runs": plain,
        "ten native restarts, two threads": native,
        "ratio": plain / native,
        "default fit, CPU": float(np.median([default_fit() for _ in range(5)])),
        "one restart, CPU": float(np.median([default_fit(n_restarts=1) for _ in range(5)])),
        "islab demo, wall clock": float(np.median([demo() for _ in range(3)])),
    }
    for name, value in results.items():
        print(f"{name:34s} {value:8.2f} {'x' if name == 'ratio' else 's'}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "fits.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
