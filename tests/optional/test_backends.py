"""Fits, restarts and comparisons on Ray and Spark, where these are installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import reduce

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

from islab import Batches, ISLaBRegressor, compare
from tests.estimators.conftest import QUICK
from tests.estimators.test_many_rows import few_seen

__all__ = ["few_seen"]

pytestmark = pytest.mark.filterwarnings("ignore")  # of the packages that are tried


@pytest.fixture(params=["ray", "spark"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "ray":
        ray = pytest.importorskip("ray")
        pytest.importorskip("ray.util.joblib").register_ray()
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield "ray"
        ray.shutdown()
    else:
        sql = pytest.importorskip("pyspark.sql")
        os.environ["PYSPARK_PYTHON"] = sys.executable
        pytest.importorskip("joblibspark").register_spark()
        session = sql.SparkSession.builder.master("local[2]").getOrCreate()
        yield "spark"
        session.stop()


@pytest.fixture
def table():
    x, y = load_diabetes(return_X_y=True, as_frame=True)
    return x.iloc[:200], y.iloc[:200]


def test_a_fit_on_the_backend_is_the_one_of_a_single_process(backend, table):
    x, y = table
    alone = ISLaBRegressor(random_state=0).fit(x, y).predict(x)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        there = ISLaBRegressor(random_state=0, n_jobs=2).fit(x, y).predict(x)
    np.testing.assert_array_equal(there, alone)


def test_a_comparison_on_the_backend_has_the_scores_of_a_single_process(backend, table):
    methods = ["ridge", "lasso"]
    alone = compare(*table, methods=methods).to_frame()["rmse"]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        there = compare(*table, methods=methods, n_jobs=2).to_frame()["rmse"]
    np.testing.assert_allclose(there.to_numpy(), alone.to_numpy(), rtol=1e-12)


N_ROWS = 3000


@pytest.fixture
def many_rows():
    rng = np.random.default_rng(0)
    size, colour = rng.normal(50, 10, N_ROWS), rng.choice(["red", "green", "blue"], N_ROWS)
    eta = size / 10 - 5 + (colour == "red")
    columns = {"size": size, "colour": colour, "noise": rng.normal(size=N_ROWS)}
    return pd.DataFrame(columns).assign(price=eta + rng.normal(size=N_ROWS))


def batches_of(backend, table, n_rows):
    """The table in several parts, on Spark with one that is empty."""
    parts = np.array_split(np.arange(len(table)), 5)
    if backend == "ray":
        from islab.ray import RayBatches

        data = pytest.importorskip("ray.data")
        return RayBatches(data.from_pandas([table.iloc[rows] for rows in parts]), n_rows=n_rows)
    from islab.spark import SparkBatches

    session = pytest.importorskip("pyspark.sql").SparkSession.getActiveSession()
    lots = [session.createDataFrame(table.iloc[rows]) for rows in parts]
    lots.insert(2, lots[0].where("price > 1e9"))
    return SparkBatches(reduce(lambda one, other: one.unionAll(other), lots), n_rows=n_rows)


def test_rows_are_sampled_as_those_of_local_batches(backend, many_rows):
    found = batches_of(backend, many_rows, 100).sample(5)
    expected = Batches(many_rows, n_rows=100).sample(5)
    assert found.n_rows == expected.n_rows == N_ROWS
    np.testing.assert_array_equal(found.table["noise"], expected.table["noise"])


def test_a_fit_of_rows_on_the_backend_is_that_of_local_batches(few_seen, backend, many_rows):
    rows = many_rows.drop(columns="price")
    alone = ISLaBRegressor(**QUICK).fit(Batches(many_rows, n_rows=600), "price").predict(rows)
    model = ISLaBRegressor(**QUICK).fit(batches_of(backend, many_rows, 600), "price")
    np.testing.assert_allclose(model.predict(rows), alone, rtol=1e-7)
