"""A variable of a thousand levels: fitted, and read in a page."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor


def simulate(n_levels, n_rows, seed=0):
    """Twenty levels differ from the others."""
    rng = np.random.default_rng(seed)
    effects = np.zeros(n_levels)
    effects[:20] = np.repeat([3.0, -3.0], 10)
    code = rng.integers(0, n_levels, n_rows)
    X = pd.DataFrame({"zip": [f"z{k:04d}" for k in code], "size": rng.standard_normal(n_rows)})
    y = X["size"] + effects[code] + 0.5 * rng.standard_normal(n_rows)
    return X, y.rename("rent"), {f"z{k:04d}" for k in range(20)}


@pytest.mark.parametrize(
    ("n_levels", "n_rows"), [(100, 1500), pytest.param(1000, 15_000, marks=pytest.mark.slow)]
)
def test_the_levels_that_matter_are_found_and_the_summary_fits_a_page(n_levels, n_rows):
    X, y, expected = simulate(n_levels, n_rows)
    model = ISLaBRegressor(hidden_layer_sizes=(), n_restarts=1, random_state=0).fit(X, y)
    names = np.array(model.columns_.names)[model.network_.covariates]
    assert {name.removeprefix("zip=") for name in names} - {"size"} == expected
    assert len(str(model.summary()).splitlines()) < 60
    assert model.score(*simulate(n_levels, 2000, seed=1)[:2]) > 0.8


@pytest.mark.slow
def test_the_few_of_many_levels_that_matter_are_found():
    rng = np.random.default_rng(0)
    n, n_levels, n_telling = 9000, 600, 12
    level = rng.integers(n_levels, size=n)
    effect = np.zeros(n_levels)
    effect[:n_telling] = rng.choice([-4.0, 4.0], n_telling)
    frame = pd.DataFrame({"shop": [f"s{number:03}" for number in level], "x": rng.normal(size=n)})
    y = frame["x"] + effect[level] + rng.normal(size=n)
    model = ISLaBRegressor(posterior="independent", random_state=0).fit(frame, y)
    used = {model.columns_.names[k] for k in model.network_.covariates}
    telling = {f"shop=s{number:03}" for number in range(n_telling)} & set(model.columns_.names)
    assert len(telling & used) >= 0.9 * len(telling)
    assert len(used - telling) <= 5
