"""Do numbers far from the others help more if only their logarithm counts?

With ``low`` and ``high`` the 5 % and 95 % quantiles of a column's training rows, numbers stay from
``low - reach * (high - low)`` to ``high + reach * (high - low)``; beyond, their distance counts by
its logarithm. Five folds of the tables for choosing defaults, with the numbers as they are and with
several reaches.

``python -m experiments.benchmarks.tails [--tables pima ...]`` prints NLL and error of each.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

from experiments.benchmarks.defaults import N_FOLDS, judged, make, read_table
from experiments.benchmarks.tables import NAMES, Table
from islab.baselines.references import shuffled_folds
from islab.evaluate.runner import scored
from islab.tables.tails import Tails

REACHES = (None, 5.0, 1.0, 0.0)
TABLES = ("laser", "compactiv", "winequality_red", "concrete", "pima", "saheart")


def shortened(train: pd.DataFrame, test: pd.DataFrame, reach: float) -> list[pd.DataFrame]:
    """Both tables with the tails of the training rows' numbers by their logarithm."""
    pair = [train.copy(), test.copy()]
    for name in train.select_dtypes("number"):
        tails = Tails.around(train[name].dropna().to_numpy(float), reach=reach)
        if tails is not None:
            for table in pair:
                table[name] = tails.shorten(table[name].to_numpy(float))
    return pair


def fold(table: Table, number: int, reach: float | None) -> dict[str, float]:
    """Scores of one fold."""
    classify = table.task != "regression"
    folds = shuffled_folds(table.y, N_FOLDS, classify=classify, groups=None, seed=1)
    train, test = folds[number]
    x, x_test = table.x.iloc[train], table.x.iloc[test]
    if reach is not None:
        x, x_test = shortened(x, x_test, reach)
    model = make("islab", table).set_params(random_state=number, posterior="independent")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, table.y[train])
    scores = scored(model, x_test, table.y[test])["models"]["full"]
    return judged(scores, classify, 1.0 if classify else float(table.y[train].std()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=NAMES)
    for name in parser.parse_args().tables:
        plain: list[dict[str, float]] = []
        for reach in REACHES:
            found = [fold(read_table(name), number, reach) for number in range(N_FOLDS)]
            plain = plain or found
            gain = [own["nll"] - each["nll"] for own, each in zip(plain, found, strict=True)]
            error = np.std(gain, ddof=1) / np.sqrt(N_FOLDS)
            means = {key: round(float(np.mean([f[key] for f in found])), 4) for key in found[0]}
            print(name, reach, means, f"gain {np.mean(gain):.4f} ± {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
