"""A small table, quick methods, and estimators that misbehave on purpose."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge

from islab import ISLaBClassifier


def make_table(n_rows=60):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(10, 2, n_rows),
            "colour": rng.choice(["red", "blue", "green"], n_rows),
            "<b>noise</b>": rng.normal(size=n_rows),
        }
    )
    score = table["size"] - 10 + 3 * (table["colour"] == "red") + 0.5 * rng.normal(size=n_rows)
    return table, score


@pytest.fixture
def table():
    return make_table()[0]


@pytest.fixture
def price():
    return make_table()[1]


@pytest.fixture
def state():
    return np.where(make_table()[1] > 0.5, "ill", "well")


@pytest.fixture
def quick():
    """A network and a linear model that take no time."""
    network = ISLaBClassifier(max_epochs=5, n_restarts=1, hidden_layer_sizes=(2,), n_draws=20)
    return {"network": network, "linear": LogisticRegression()}


@pytest.fixture
def linear():
    return {"linear": Ridge()}


class Counting(ClassifierMixin, BaseEstimator):
    """Says the same for all rows, counts its fits, and at one of them stops with an error."""

    fits, stop_at, error = 0, None, KeyboardInterrupt

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        Counting.fits += 1
        if Counting.fits == Counting.stop_at:
            raise Counting.error("enough")
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


@pytest.fixture
def counting(monkeypatch):
    for name, value in {"fits": 0, "stop_at": None, "error": KeyboardInterrupt}.items():
        monkeypatch.setattr(Counting, name, value)
    return Counting
