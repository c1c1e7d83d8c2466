"""Signals that reach the program: nothing half-done is left, and no good file is replaced."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from islab import load

from .conftest import make_table, run

SLOW = ["--set", "max_epochs=300000", "--set", "n_restarts=2", "--set", "hidden_layer_sizes=(3,)"]
COLUMNS = ["--target", "state", "--drop", "price", "--drop", "visits"]


@pytest.fixture
def data(tmp_path):
    make_table().to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def started(*arguments):
    """A Python program that does not ignore SIGINT, as it would if the tests were told to."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def signalled(*arguments, number=signal.SIGINT, seconds=0.0, says=" from "):
    """Exit code and stderr of a command that gets a signal some time after it said something."""
    with started("-m", "islab", *map(str, arguments)) as program:
        said = program.stderr.readline() if says else ""
        assert says in said
        time.sleep(seconds)
        program.send_signal(number)
        rest = program.stderr.read()
    return program.returncode, said + rest


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_fit_that_is_stopped_leaves_the_old_model(data, tmp_path, number, code, jobs):
    model = tmp_path / "m.islab"
    model.write_bytes(b"the old one")
    arguments = ["fit", data, *COLUMNS, *SLOW, "--jobs", jobs, "-o", model]
    ended, said = signalled(*arguments, number=number, seconds=1.0)
    # Where a slow machine still imports, Python itself ends by SIGINT once all is said and done.
    assert ended in (code, -signal.SIGINT), said
    assert "Traceback" not in said
    assert model.read_bytes() == b"the old one"
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "m.islab"}


def interrupted_at_random(data, folder, n_times, seed):
    """Interrupts short fits anywhere from their start to after their end."""
    model, choice = folder / "m.islab", random.Random(seed)
    quick = ["--set", "max_epochs=40", "--set", "n_restarts=1", "--set", "hidden_layer_sizes=()"]
    arguments = ["fit", data, *COLUMNS, *quick, "-o", model]
    for _ in range(n_times):
        model.write_bytes(b"the old one")
        ended, said = signalled(*arguments, seconds=choice.uniform(0, 1.5))
        if model.read_bytes() == b"the old one":
            assert ended in (130, -signal.SIGINT), said
        else:
            assert load(model).interrupted_ is False
        assert not list(folder.glob(".*"))


def test_a_fit_that_is_interrupted_anywhere_leaves_the_old_model_or_a_whole_one(data, tmp_path):
    interrupted_at_random(data, tmp_path, 2, 0)


@pytest.mark.slow
def test_many_fits_that_are_interrupted_leave_the_old_model_or_a_whole_one(data, tmp_path):
    interrupted_at_random(data, tmp_path, 60, 1)


def test_an_interrupted_comparison_keeps_no_fit_that_was_not_finished(data, tmp_path):
    results = tmp_path / "fits.jsonl"
    options = ["--methods", "islab", "--seeds", 60, "--results", results]
    ended, said = signalled("compare", data, *COLUMNS, *options, seconds=0.6)
    assert ended in (130, -signal.SIGINT), said
    assert not results.exists() or results.read_text().count("\n") < 60


CROSS_VALIDATION = """
import sys
import numpy as np
from sklearn.model_selection import cross_val_score
from islab import ISLaBRegressor

rows = np.random.default_rng(0).normal(size=(80, 3))
model = ISLaBRegressor(max_epochs=100_000, n_restarts=1, random_state=0)
print("from here", file=sys.stderr, flush=True)
cross_val_score(model, rows, rows[:, 0], cv=5)
print("went on", file=sys.stderr)
"""


def test_cross_validation_in_a_program_ends_at_one_interrupt():
    with started("-c", CROSS_VALIDATION) as program:
        program.stderr.readline()
        time.sleep(1.0)
        program.send_signal(signal.SIGINT)
        said = program.stderr.read()
    assert program.returncode == -signal.SIGINT
    assert "went on" not in said


def test_a_fit_that_was_killed_goes_on_to_the_same_model(data, tmp_path, capsys):
    quick = [
        "--set",
        "max_epochs=6000",
        "--set",
        "n_restarts=1",
        "--set",
        "hidden_layer_sizes=(3,)",
    ]
    arguments = ["fit", data, *COLUMNS, *quick]
    assert run(capsys, *arguments, "-o", tmp_path / "whole.islab")[0] == 0
    model, folder = tmp_path / "m.islab", tmp_path / "m.islab.checkpoint"
    resumed = [*arguments, "-o", model, "--resume"]
    with started("-m", "islab", *map(str, resumed)) as program:
        while program.poll() is None and not list(folder.glob("*/*.npz")):
            time.sleep(0.01)
        program.kill()
    assert program.returncode == -signal.SIGKILL
    assert list(folder.glob("*/*.npz"))
    assert run(capsys, *resumed)[0] == 0
    assert model.read_bytes() == (tmp_path / "whole.islab").read_bytes()
    assert not folder.exists()


def test_a_folder_for_checkpoints_can_be_named(data, tmp_path, capsys):
    quick = ["--set", "max_epochs=20", "--set", "n_restarts=1", "--set", "hidden_layer_sizes=()"]
    options = ["-o", tmp_path / "m.islab", "--checkpoint", tmp_path / "states"]
    assert run(capsys, "fit", data, *COLUMNS, *quick, *options)[0] == 0
    assert (tmp_path / "states").is_dir()
