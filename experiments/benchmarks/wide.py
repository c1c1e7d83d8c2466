"""Many covariates: what a screening before the fit would lose, and what fits cost and find.

``screen`` counts how many of the covariates that matter are among the K most associated with the
target, one at a time: the larger of the correlations with the covariate and with its square. The
tables are simulated: neighbours are correlated, five covariates matter, one of them bent and two
only together.

``fit`` prints the CPU time of fits with the default posterior, which has the 500 best of very many
covariates, and with the variational one, which has all; what they use;
and the R squared on new rows. ``results/wide.json`` has what was found.

    python -m experiments.benchmarks.wide screen
    python -m experiments.benchmarks.wide fit --sizes 42x6830 200x1000 300x10000
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from islab import ISLaBRegressor

FILE = Path(__file__).parent / "results" / "wide.json"
TARGETS = {"42x6830": 10.0}  # seconds of CPU with the default posterior
KEPT = (50, 200, 500, 1000)
TRUE = np.array([0.1, 0.3, 0.5, 0.7, 0.9])  # places of the covariates that matter


def simulated(
    n_rows: int, n_covariates: int, correlation: float, rng: np.random.Generator, *, pair: bool
) -> tuple[NDArray, NDArray, NDArray]:
    """Rows, targets and the covariates that matter. The residual SD is 1."""
    x = rng.standard_normal((n_rows, n_covariates))
    for column in range(1, n_covariates):
        x[:, column] = correlation * x[:, column - 1] + np.sqrt(1 - correlation**2) * x[:, column]
    used = (TRUE * n_covariates).astype(int)
    own = x[:, used]
    y = own[:, 0] - 0.7 * own[:, 1] + 1.5 * np.maximum(own[:, 2], 0)
    # Two that matter together: without a part of their own nothing shows either alone.
    y += own[:, 3] * own[:, 4] if pair else 0.7 * own[:, 3] - 0.5 * own[:, 4]
    return x, y + rng.standard_normal(n_rows), used


def association(x: NDArray, y: NDArray) -> NDArray:
    """The larger of the correlations of y with each covariate and with its square."""
    moved = (y - y.mean()) / y.std()
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    square = standard**2
    square = (square - square.mean(axis=0)) / square.std(axis=0)
    return np.maximum(np.abs(standard.T @ moved), np.abs(square.T @ moved)) / len(y)


def screen(n_tables: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for pair in (False, True):
        for n_rows, n_covariates in ((200, 1000), (1000, 1000), (200, 10_000), (1000, 10_000)):
            for correlation in (0.0, 0.9):
                found = np.zeros((n_tables, len(KEPT)))
                for number in range(n_tables):
                    x, y, used = simulated(n_rows, n_covariates, correlation, rng, pair=pair)
                    rank = np.argsort(np.argsort(-association(x, y)))[used]
                    found[number] = [(rank < kept).mean() for kept in KEPT]
                shares = ", ".join(
                    f"{kept}: {share:.3f}"
                    for kept, share in zip(KEPT, found.mean(axis=0), strict=True)
                )
                print(
                    f"{'pair' if pair else 'sums':5s} {n_rows:5d} x {n_covariates:6d}, correlation "
                    f"{correlation}: share of those that matter among the best {shares}",
                    flush=True,
                )


def fit(n_rows: int, n_covariates: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, used = simulated(n_rows + 1000, n_covariates, 0.5, rng, pair=False)
    for posterior in ("auto", "independent"):
        start = time.process_time()
        model = ISLaBRegressor(random_state=seed, posterior=posterior).fit(x[:n_rows], y[:n_rows])
        seconds = time.process_time() - start
        chosen = set(model.get_support(indices=True))
        size = f"{n_rows}x{n_covariates}"
        target = TARGETS.get(size) if posterior == "auto" else None
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        own = {"seconds": seconds, "r2": model.score(x[n_rows:], y[n_rows:])}
        own |= {"found": len(chosen & set(used)), "others": len(chosen - set(used))}
        own |= {} if target is None else {"target": target}
        kept.setdefault(size, {})[posterior] = own
        FILE.write_text(json.dumps(kept, indent=2) + "\n")
        words = "" if target is None else f" (target {target:g} s)"
        print(
            f"{n_rows:5d} x {n_covariates:6d} {posterior:11s} {seconds:6.1f} s of CPU{words}, "
            f"{own['found']} of 5 found, {own['others']} others, R2 {own['r2']:.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("screen", "fit"))
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--sizes", nargs="+", default=["42x6830", "200x1000", "300x10000"])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.what == "screen":
        screen(args.tables, args.seed)
        return
    for size in args.sizes:
        n_rows, n_covariates = map(int, size.split("x"))
        fit(n_rows, n_covariates, args.seed)


if __name__ == "__main__":
    main()
