"""Times a whole run at the paper's abalone setting, with and without dropping dead units.

The paper trains a 2 x 200 network for 5,000 epochs of 5 batches. ``--steps`` shortens all runs
alike. The plain version is timed on a few hundred steps and scaled up, for it never gets
faster. Data are simulated to the size of abalone unless the set is in the cache folder. Prints
a table and stores ``experiments/benchmarks/results/shrinking.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

import numpy as np
import torch

from experiments.benchmarks.plain import PlainLayer
from experiments.benchmarks.steps import RESULTS, SIZES, plain_runner
from islab.learn.engines import EngineChoice, Problem
from islab.learn.fit import fit
from islab.learn.recipe import paper_recipe
from islab.learn.shrink import Shrink

PLAIN_STEPS = 200


def abalone_like(seed: int = 0) -> Problem:
    """3,759 rows, 9 covariates, a smooth target of some of them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((3759, 9)) @ (np.eye(9) + 0.5 * rng.standard_normal((9, 9)))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    y = x[:, 0] + np.tanh(2 * x[:, 1]) - 0.5 * x[:, 2] ** 2 + rng.standard_normal(3759)
    y = ((y - y.mean()) / y.std())[:, None]
    return Problem(x.astype(np.float32), y.astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=25_000, help="steps of a whole run")
    parser.add_argument("--engines", nargs="*", default=["native"], choices=["native", "torch"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    problem = abalone_like()
    recipe = paper_recipe(
        hidden=(200, 200),
        n_steps=arguments.steps,
        batch_size=752,
        rate=0.01,
        tau=25.0,
        psi=0.25,
        covariate_inclusion=(5.0, 5.0),
        hidden_inclusion=(-9.0, -4.0),
        shrink=Shrink(start=0.02),
    )
    run = plain_runner(PlainLayer, SIZES["abalone"], problem, 752)
    run(5)
    start = time.perf_counter()
    run(PLAIN_STEPS)
    plain = (time.perf_counter() - start) / PLAIN_STEPS * arguments.steps
    results: dict = {"steps": arguments.steps, "plain": plain}
    print(f"plain loop, whole run (from {PLAIN_STEPS} steps): {plain:7.1f} s")
    whole = replace(recipe, network=replace(recipe.network, shrink=None))
    for name in arguments.engines:
        for label, chosen in (("shrinking", recipe), ("not shrinking", whole)):
            start = time.perf_counter()
            found = fit(problem, "gaussian", chosen, seed=0, engine=EngineChoice(name))
            seconds = time.perf_counter() - start
            network = found.posterior.median()
            error = float(np.sqrt(np.square(network.predictor(problem.x) - problem.y).mean()))
            results[f"{name}, {label}"] = {
                "seconds": seconds,
                "used_weights": network.n_used_weights,
                "rmse": error,
            }
            print(
                f"{name}, {label}: {seconds:7.1f} s ({plain / seconds:5.1f}x plain), "
                f"{network.n_used_weights} weights, training RMSE {error:.4f}"
            )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "shrinking.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
