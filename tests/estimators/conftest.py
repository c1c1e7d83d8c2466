"""Small data sets and quickly trained models."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor

QUICK = {
    "max_epochs": 60,
    "n_restarts": 1,
    "n_draws": 200,
    "hidden_layer_sizes": (4,),
    "random_state": 0,
}


def make_table(n_rows=120, seed=0):
    """Two numbers that matter, one that does not, a category that matters, one that does not."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(100, 20, n_rows),
            "age": rng.uniform(20, 80, n_rows),
            "noise": rng.normal(size=n_rows),
            "colour": rng.choice(["red", "green", "blue"], n_rows),
            "smoker": rng.choice(["yes", "no"], n_rows),
        }
    )


def make_score(table):
    """What decides the targets."""
    return (table["size"] - 100) / 20 - (table["age"] - 50) / 17 + 2 * (table["colour"] == "red")


@pytest.fixture(scope="session")
def table():
    return make_table()


@pytest.fixture(scope="session")
def labels(table):
    return pd.Series(np.where(make_score(table) > 0.5, "ill", "well"), name="state")


@pytest.fixture(scope="session")
def three_labels(table):
    return pd.cut(make_score(table), [-np.inf, 0, 1.2, np.inf], labels=["a", "b", "c"]).astype(str)


@pytest.fixture(scope="session")
def numbers(table):
    noise = np.random.default_rng(1).normal(scale=0.3, size=len(table))
    return pd.Series(1000 + 50 * (make_score(table) + noise), name="price")


@pytest.fixture(scope="session")
def classifier(table, labels):
    return ISLaBClassifier(**QUICK).fit(table, labels)


@pytest.fixture(scope="session")
def three_classes(table, three_labels):
    return ISLaBClassifier(**QUICK).fit(table, three_labels)


@pytest.fixture(scope="session")
def regressor(table, numbers):
    return ISLaBRegressor(**QUICK).fit(table, numbers)


@pytest.fixture(scope="session")
def two_outputs(table, numbers):
    targets = pd.DataFrame({"price": numbers, "half": -numbers / 2})
    return ISLaBRegressor(**QUICK).fit(table, targets)


@pytest.fixture(scope="session")
def counts(table):
    rate = np.exp(1 + 0.5 * make_score(table))
    return np.random.default_rng(2).poisson(rate)


@pytest.fixture(scope="session")
def poisson(table, counts):
    return ISLaBRegressor(likelihood="poisson", **QUICK).fit(table, counts)
