"""A small table of every kind of column, and targets that depend on it."""

import numpy as np
import pandas as pd
import pytest

N_ROWS = 120


@pytest.fixture(scope="package")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": np.where(np.arange(N_ROWS) % 17 == 3, np.nan, rng.normal(50, 10, N_ROWS)),
            "size": rng.normal(size=N_ROWS),
            "town": rng.choice(["Bath", "Ely", "Wells"], N_ROWS),
            "retired": rng.choice([True, False], N_ROWS),
            "visited": pd.date_range("2024-01-01", periods=N_ROWS, freq="3D"),
            "rank": pd.Categorical(rng.choice(["low", "mid", "top"], N_ROWS), ordered=True),
        },
        index=np.arange(1000, 1000 + N_ROWS),
    )


@pytest.fixture(scope="package")
def numbers(table):
    noise = np.random.default_rng(1).normal(size=N_ROWS)
    return (3 * table["size"] + 2 * (table["town"] == "Ely") + 0.3 * noise).rename("score")
