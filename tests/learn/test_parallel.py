"""Calls side by side, also on backends that hand over all results at the end."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
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


# -- workers -----------------------------------------------------------------------------------

BUSY = """
import time
from joblib import delayed
from islab.learn.parallel import in_parallel

print("ready", flush=True)
list(in_parallel((delayed(time.sleep)(60) for _ in range(2)), n_jobs=2))
"""

# Its workers are still starting when it is gone.
GONE_AT_ONCE = """
import os, signal, time
from joblib import delayed
from islab.learn.parallel import in_parallel

def calls():
    for _ in range(2):
        yield delayed(time.sleep)(60)
    time.sleep(0.2)
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

list(in_parallel(calls(), n_jobs=2))
"""

# Only workers that have begun a fit can know that their parent is gone.
CROSS_VALIDATION = """
import os, tempfile, threading, time
import numpy as np
from sklearn.model_selection import cross_val_score
from islab import ISLaBRegressor

folder = tempfile.mkdtemp()

class Telling(ISLaBRegressor):
    def _learn_weights(self, *args):
        open(os.path.join(self.checkpoint, str(os.getpid())), "x").close()
        self.checkpoint = None
        return super()._learn_weights(*args)

def tell():
    while len(os.listdir(folder)) < 2:
        time.sleep(0.05)
    print("ready", flush=True)

threading.Thread(target=tell, daemon=True).start()
rows = np.random.default_rng(0).normal(size=(80, 3))
model = Telling(max_epochs=1_000_000, n_restarts=1, random_state=0, checkpoint=folder)
cross_val_score(model, rows, rows[:, 0], cv=2, n_jobs=2)
"""


def running(session):
    """The processes of a session; those that have ended and wait for their parent are none."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, of = file.read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found.append(file.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not in /proc")
@pytest.mark.parametrize("program", [BUSY, GONE_AT_ONCE, CROSS_VALIDATION])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_soon_after_a_process_that_was_ended(program, number):
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdout.readline() == b"ready\n"
        parent.send_signal(number)
        parent.wait()
    for _ in range(200):
        if not running(parent.pid):
            break
        time.sleep(0.1)
    left = running(parent.pid)
    if left:
        os.killpg(parent.pid, signal.SIGKILL)
    assert left == []


def test_who_stops_early_is_not_told_that_calls_were_cancelled():
    results = in_parallel((joblib.delayed(time.sleep)(0.1) for _ in range(8)), n_jobs=2)
    next(results)
    results.close()  # a warning would be an error
