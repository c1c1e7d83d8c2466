"""The paper's split: a tenth for testing, seed 42."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def tenth_for_testing(
    n_rows: int, stratify: NDArray | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers to learn from and to judge by, each class in proportion where classes are given.

    Parameters
    ----------
    n_rows : int
    stratify : (rows,), optional
        Classes.
    """
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(
        np.arange(n_rows), test_size=0.10, random_state=42, stratify=stratify
    )
    return train, test
