"""Does noise that depends on covariates pay, and does ``likelihood="auto"`` know when?

Log predictive density of held-out rows with ``"heteroscedastic"`` less that with ``"gaussian"``,
and what ``"auto"`` takes, on the usual splits of UCI sets, which serve to report only; see
``experiments.benchmarks.uci`` for the files.

``python -m experiments.benchmarks.noise --data FOLDER [--sets yacht wine] [--splits 5]`` prints a
line for each split and the mean of each set.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from experiments.benchmarks.uci import SETS, load
from islab import ISLaBRegressor

CONSTANT, VARYING = "gaussian", "heteroscedastic"


def split(name: str, folder: Path, number: int) -> tuple[float, str]:
    """Gain in nats a row, and the likelihood that is taken."""
    x, y, test = load(name, folder)
    held = test[number]
    scores = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for likelihood in (CONSTANT, VARYING):
            model = ISLaBRegressor(likelihood=likelihood, random_state=number)
            model.fit(x[~held], y[~held])
            scores[likelihood] = model.predictions(x[held]).log_score(y[held]).mean()
        taken = ISLaBRegressor(likelihood="auto", posterior="independent", random_state=number)
        taken.fit(x[~held], y[~held])
    return float(scores[CONSTANT] - scores[VARYING]), taken.network_.likelihood


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=["yacht", "wine"], choices=SETS)
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    for name in arguments.sets:
        gains = []
        for number in range(arguments.splits):
            gain, taken = split(name, arguments.data, number)
            gains.append(gain)
            print(f"{name} split {number}: gain {gain:.3f}, auto takes {taken}", flush=True)
        error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.nan
        print(f"{name}: gain {np.mean(gains):.3f} nats a row (SE {error:.3f})", flush=True)


if __name__ == "__main__":
    main()
