"""Paired differences of scores: the same splits for both methods, and how far chance goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from islab.core.arrays import Float

if TYPE_CHECKING:
    import pandas as pd

HIGH_IS_GOOD = ("accuracy", "auc", "r2", "pearson")
LOW_IS_GOOD = ("nll", "brier", "ece", "rmse", "mae", "pinball", "pinball_paper", "crps")
USUAL_SHARE = 1 / 9  # of test rows by training rows, for records that do not tell


def sign_of(score: str) -> int:
    """1 if low is good, -1 if high is good; a ValueError for what is neither."""
    if score in LOW_IS_GOOD:
        return 1
    if score in HIGH_IS_GOOD:
        return -1
    known = ", ".join((*LOW_IS_GOOD, *HIGH_IS_GOOD))
    raise ValueError(f"Got score={score!r}, expected one of {known}.")


def standard_error(differences: Float, test_by_train: float) -> float:
    """Of the mean difference over random splits, (splits,); NaN for a single one.

    Notes
    -----
    The splits share most of their training rows and part of their test rows, so their differences
    are correlated and the usual ``s / sqrt(J)`` is too small. The correction of Nadeau and Bengio
    (2003), ``s sqrt(1 / J + n_test / n_train)``, holds for new data of the same kind, with another
    training set.
    """
    if len(differences) < 2:
        return float("nan")
    variance = differences.var(ddof=1)
    return float(np.sqrt(variance * (1 / len(differences) + test_by_train)))


def paired_differences(
    frame: pd.DataFrame, score: str, reference: tuple[str, str], test_by_train: float
) -> pd.DataFrame:
    """What :meth:`islab.evaluate.Comparison.differences` gives, of its frame of fits."""
    import pandas as pd

    sign, known = sign_of(score), frame[frame["error"].isna()]
    numbers = known.set_index(["method", "model", "seed"])[score].astype(float)
    own = numbers.xs(reference, level=("method", "model"))
    rows = {}
    for key, values in numbers.groupby(level=["method", "model"], sort=False):
        if key == reference:
            continue
        other = values.droplevel(["method", "model"])
        both = (other - own).dropna().to_numpy()
        rows[key] = {
            "difference": both.mean() if len(both) else np.nan,
            "se": standard_error(both, test_by_train),
            "better": int((sign * both < 0).sum()),
            "worse": int((sign * both > 0).sum()),
            "splits": len(both),
        }
    index = pd.MultiIndex.from_tuples(rows, names=["method", "model"])
    columns = ["difference", "se", "better", "worse", "splits"]
    return pd.DataFrame(list(rows.values()), index=index, columns=columns)
