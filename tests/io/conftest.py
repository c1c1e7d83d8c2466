"""Models to keep in files."""

import numpy as np
import pandas as pd
import pytest

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.io.kinds import find_kind
from islab.io.store import to_bytes

QUICK = {
    "max_epochs": 30,
    "n_restarts": 1,
    "n_draws": 50,
    "hidden_layer_sizes": (3,),
    "random_state": 0,
    "posterior": "independent",
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": np.where(rng.random(60) < 0.1, np.nan, rng.normal(5, 2, 60)),
            "c": rng.choice(["u", "v", "w"], 60),
        }
    )


@pytest.fixture(scope="module")
def model(table):
    """A network with a hidden unit."""
    far = np.where(np.abs(table["a"]) > 0.7, "yes", "no")
    return ISLaBClassifier(**{**QUICK, "max_epochs": 300}).fit(table, far)


@pytest.fixture(scope="module")
def regressor(table):
    return ISLaBRegressor(**QUICK).fit(table, table["a"] * 3 + (table["c"] == "u") + 100)


@pytest.fixture(params=[False, True], ids=["full", "sparse"])
def sparse(request):
    return request.param


def held(sparse):
    """The model that a file of this kind predicts with."""
    return "median" if sparse else "full"


def state_of(model, *, sparse):
    """What a file of the model says."""
    return find_kind(type(model).__name__).state_of(model, sparse=sparse)


def from_state(description, arrays):
    return find_kind(str(description["estimator"])).from_state(description, arrays)


def write(path, description, arrays):
    path.write_bytes(to_bytes(description, arrays))
    return path


def refused(path):
    """Whether loading ends in one ValueError that names the file."""
    try:
        islab.load(path)
    except ValueError as error:
        return str(path) in str(error)
    return False
