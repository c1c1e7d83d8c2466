"""Calls side by side, also on backends that hand over all results at the end."""

import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib._parallel_backends import ThreadingBackend
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge

from islab import ISLaBClassifier, compare
from islab.learn.parallel import in_parallel


class AllAtOnce(ThreadingBackend):
    """Refuses generators, as the backends of Ray and Spark do."""

    supports_return_generator = False


@pytest.fixture
def all_at_once():
    joblib.register_parallel_backend("all-at-once", AllAtOnce)
    with joblib.parallel_config("all-at-once", n_jobs=2):
        yield
    joblib.parallel.BACKENDS.pop("all-at-once")


def squares(n, **options):
    return list(in_parallel((joblib.delayed(pow)(k, 2) for k in range(n)), **options))


def test_results_come_in_the_order_of_the_calls():
    assert squares(4, n_jobs=2) == [0, 1, 4, 9]


def test_results_come_as_they_are_ready():
    calls = (joblib.delayed(pow)(k, 2) for k in range(100_000))
    results = in_parallel(calls, n_jobs=1, ordered=False)
    assert [next(results), next(results)] == [0, 1]
    results.close()


def test_wrong_options_are_raised():
    with pytest.raises(ValueError, match="prefer"):
        squares(2, n_jobs=2, prefer="nothing")


@pytest.mark.usefixtures("all_at_once")
def test_the_backend_refuses_generators():
    with pytest.raises(ValueError, match="does not support return_as=generator"):
        joblib.Parallel(return_as="generator")


@pytest.mark.usefixtures("all_at_once")
@pytest.mark.parametrize("ordered", [True, False])
def test_a_backend_without_generators_gives_the_same(ordered):
    assert sorted(squares(4, ordered=ordered)) == [0, 1, 4, 9]


@pytest.mark.usefixtures("all_at_once")
def test_restarts_run_where_there_are_no_generators():
    x, y = load_breast_cancer(return_X_y=True)
    model = ISLaBClassifier(max_epochs=3, n_restarts=2, n_draws=5, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.5


@pytest.mark.usefixtures("all_at_once")
def test_a_comparison_runs_where_there_are_no_generators():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    found = compare(x, x["a"] + rng.normal(size=40), {"ridge": Ridge()}, seeds=3)
    assert found.to_frame()["rmse"].notna().sum() == 3


PARENT = """
import sys, time
from joblib import delayed
from islab.learn.parallel import in_parallel

def wait(_):
    print(__import__("os").getpid(), flush=True)
    time.sleep(60)

list(in_parallel((delayed(wait)(k) for k in range(2)), n_jobs=2))
"""


def is_running(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not in /proc")
def test_workers_end_soon_after_a_process_that_was_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(is_running, workers))
        parent.kill()
        for _ in range(200):
            if not any(map(is_running, workers)):
                break
            time.sleep(0.1)
    assert not any(map(is_running, workers))
