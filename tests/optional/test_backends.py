"""Restarts and comparisons on the joblib backends of Ray and Spark, where these are installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from islab import ISLaBRegressor, compare

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
