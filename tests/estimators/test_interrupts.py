"""Ctrl-C during a fit, and fits that are killed and go on."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from islab import ISLaBClassifier, ISLaBRegressor, load
from islab.estimators.settings import keeps_interrupted
from islab.learn.engines import EngineChoice

RNG = np.random.default_rng(1)
ROWS = RNG.normal(size=(120, 4))
ROWS[:, 3] = ROWS[:, 0] + 0.3 * RNG.normal(size=120)
TARGET = 2 * np.abs(ROWS[:, 0]) + ROWS[:, 1] + 0.3 * RNG.normal(size=120)
# A linear model of 3 runs of steps, two networks of 8, and a trial to prune them.
QUICK = {
    "max_epochs": 200,
    "sparsity": 1.0,
    "n_restarts": 2,
    "n_draws": 20,
    "hidden_layer_sizes": (6,),
}
LONG = {**QUICK, "max_epochs": 500_000}


@pytest.fixture
def stop_after(monkeypatch):
    """Presses Ctrl-C in the n-th run of steps of all engines together."""

    def after(n_runs):
        create, left = EngineChoice.create, [n_runs]

        def create_impatient(self, *arguments):
            engine = create(self, *arguments)
            inner = engine.run

            def run(steps):
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
                return inner(steps)

            engine.run = run
            return engine

        monkeypatch.setattr(EngineChoice, "create", create_impatient)

    return after


@pytest.fixture
def ctrl_c():
    """Sends this process SIGINT in a while, even if it was started to ignore it."""
    timers, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)

    def later(seconds):
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        timers.append(timer)
        timer.start()

    yield later
    for timer in timers:
        timer.cancel()
    signal.signal(signal.SIGINT, before)


def kept(stop_after, **params):
    stop_after(4)
    model = ISLaBRegressor(**QUICK, random_state=0, on_interrupt="keep", **params)
    with pytest.warns(UserWarning, match="interrupted; the best model so far is kept"):
        return model.fit(ROWS, TARGET)


@pytest.mark.parametrize("n_runs", [1, 8, 20])
def test_an_interrupted_fit_raises(stop_after, n_runs):
    stop_after(n_runs)
    model = ISLaBRegressor(**QUICK, random_state=0, posterior="independent")
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS, TARGET)
    assert not hasattr(model, "network_")


def test_an_interrupted_fit_is_kept_on_request(stop_after):
    model = kept(stop_after)
    assert model.interrupted_
    assert model.score(ROWS, TARGET) > 0.1


def test_a_fit_that_ends_well_is_not_marked():
    model = ISLaBRegressor(**QUICK, random_state=0).fit(ROWS, TARGET)
    assert model.interrupted_ is False
    assert "training" not in model.summary().facts


def test_a_kept_fit_is_marked_in_its_file(stop_after, tmp_path):
    kept(stop_after).save(tmp_path / "m.islab", sparse=True)
    assert load(tmp_path / "m.islab").interrupted_


def test_a_kept_fit_is_marked_in_its_summary(stop_after):
    assert "interrupted" in kept(stop_after).summary().to_dict()["facts"]["training"]


def test_a_kept_fit_is_marked_in_its_report(stop_after, tmp_path):
    kept(stop_after).report(tmp_path / "r.html", ROWS, TARGET)
    assert "Training: interrupted" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(("verbose", "kept"), [(True, True), (False, False)])
def test_a_person_who_watches_keeps_the_model(monkeypatch, verbose, kept):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert keeps_interrupted("auto", verbose) is kept
    assert keeps_interrupted("raise", verbose) is False


def test_a_script_raises_even_if_it_is_verbose():
    assert not keeps_interrupted("auto", verbose=True)


def test_an_unknown_option_is_refused():
    with pytest.raises(ValueError, match="Got on_interrupt='ask', expected one of auto, raise"):
        ISLaBRegressor(on_interrupt="ask").fit(ROWS, TARGET)


def test_cross_validation_stops_at_once(stop_after):
    stop_after(4)
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(ISLaBRegressor(**QUICK, random_state=0), ROWS, TARGET, cv=3)


def test_a_grid_search_stops_at_once(stop_after):
    stop_after(4)
    search = GridSearchCV(ISLaBRegressor(**QUICK), {"sparsity": [0.2, 0.8]}, cv=3)
    with pytest.raises(KeyboardInterrupt):
        search.fit(ROWS, TARGET)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_all_restarts(ctrl_c, n_jobs):
    threads = threading.active_count()
    model = ISLaBRegressor(**LONG, n_jobs=n_jobs, random_state=0)
    ctrl_c(0.8)
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS, TARGET)
    assert time.perf_counter() - start < 10
    time.sleep(0.2)
    assert threading.active_count() <= threads + 1  # the timer's own may be there still


def test_ctrl_c_keeps_the_best_of_all_restarts_on_request(ctrl_c):
    params = {**LONG, "n_jobs": 2, "input_skip": False, "on_interrupt": "keep"}
    model = ISLaBRegressor(**params, random_state=0)
    ctrl_c(0.8)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(ROWS, TARGET)
    assert model.interrupted_


# -- resuming ----------------------------------------------------------------------------------


def weights(model):
    return model.posterior_.mu


@pytest.mark.parametrize("posterior", ["independent", "flow"])
@pytest.mark.parametrize("n_runs", [2, 9, 16, 20])
def test_an_interrupted_fit_goes_on_to_the_same_model(stop_after, tmp_path, posterior, n_runs):
    params = {**QUICK, "posterior": posterior, "random_state": 0}
    whole = ISLaBRegressor(**params).fit(ROWS, TARGET)
    stop_after(n_runs)
    model = ISLaBRegressor(**params, checkpoint=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS, TARGET)
    assert list(tmp_path.glob("*/*.npz"))
    np.testing.assert_array_equal(weights(model.fit(ROWS, TARGET)), weights(whole))


def test_the_checkpoints_are_gone_when_the_fit_is_done(tmp_path):
    ISLaBRegressor(**QUICK, random_state=0, checkpoint=tmp_path).fit(ROWS, TARGET)
    assert list(tmp_path.iterdir()) == []


def test_finished_stages_are_not_done_again(stop_after, tmp_path, monkeypatch):
    model = ISLaBRegressor(**QUICK, random_state=0, checkpoint=tmp_path)
    stop_after(15)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS, TARGET)
    monkeypatch.undo()
    taken, create = [], EngineChoice.create

    def create_counting(self, *arguments):
        engine = create(self, *arguments)
        inner = engine.run
        engine.run = lambda steps: taken.append(1) or inner(steps)
        return engine

    monkeypatch.setattr(EngineChoice, "create", create_counting)
    model.fit(ROWS, TARGET)
    resumed, _ = len(taken), taken.clear()
    model.set_params(checkpoint=None).fit(ROWS, TARGET)
    assert resumed < len(taken) - 9


@pytest.mark.filterwarnings("ignore::UserWarning")  # what short chains of sixty rows find
def test_fits_that_share_a_folder_do_not_meet(tmp_path):
    model = ISLaBClassifier(**QUICK, random_state=0)
    y = np.median(TARGET) < TARGET
    alone = cross_val_score(model, ROWS, y, cv=2)
    model.set_params(checkpoint=tmp_path)
    np.testing.assert_array_equal(cross_val_score(model, ROWS, y, cv=2, n_jobs=2), alone)


def test_a_checkpoint_without_a_seed_is_of_no_use(tmp_path):
    with pytest.warns(UserWarning, match="try random_state=0"):
        ISLaBRegressor(**QUICK, checkpoint=tmp_path).fit(ROWS, TARGET)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="which is a file, expected a folder"):
        ISLaBRegressor(**QUICK, random_state=0, checkpoint=tmp_path / "file").fit(ROWS, TARGET)


def test_a_model_file_does_not_say_where_checkpoints_were(tmp_path):
    model = ISLaBRegressor(**QUICK, random_state=0, checkpoint=tmp_path / "secret")
    model.fit(ROWS, TARGET).save(tmp_path / "m.islab")
    assert b"secret" not in (tmp_path / "m.islab").read_bytes()
    assert load(tmp_path / "m.islab").checkpoint is None


# The interpreter is started once; each fit is a process of its own that is killed somewhere.
KILLS = """
import os, random, signal, sys, time
import numpy as np
from islab import ISLaBRegressor

seed, n_kills, posterior = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(1)
rows = rng.normal(size=(120, 4))
rows[:, 3] = rows[:, 0] + 0.3 * rng.normal(size=120)
target = 2 * np.abs(rows[:, 0]) + rows[:, 1] + 0.3 * rng.normal(size=120)
params = {"max_epochs": 400, "n_restarts": 2, "sparsity": 1.0, "hidden_layer_sizes": (6,)}

def fit(path, checkpoint):
    model = ISLaBRegressor(
        **params, posterior=posterior, random_state=0, checkpoint=checkpoint
    )
    model.fit(rows, target).save(path)

start = time.perf_counter()
fit("whole.islab", None)
whole, seconds = open("whole.islab", "rb").read(), time.perf_counter() - start
choice, done, ended = random.Random(seed), 0, 0
while done < n_kills:
    child = os.fork()
    if not child:
        fit("model.islab", "states")
        os._exit(0)
    time.sleep(choice.uniform(0, 0.6 * seconds))
    os.kill(child, signal.SIGKILL)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    done += killed
    if not killed:
        ended += 1
        assert open("model.islab", "rb").read() == whole, "a resumed model differs"
fit("model.islab", "states")
assert open("model.islab", "rb").read() == whole, "the last model differs"
print(done, ended, os.listdir("states"))
"""


def kill(folder, seed, n_kills, posterior):
    command = [sys.executable, "-c", KILLS, str(seed), str(n_kills), posterior]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("posterior", ["sampled", "independent", "flow"])
def test_fits_that_are_killed_end_in_the_same_model_bit_for_bit(tmp_path, posterior):
    assert kill(tmp_path, 0, 10, posterior).startswith("10 ")


@pytest.mark.slow
@pytest.mark.parametrize("posterior", ["sampled", "stacked", "independent", "flow"])
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_fits_that_are_killed_end_in_the_same_model(tmp_path, posterior, seed):
    assert kill(tmp_path, seed, 20, posterior).startswith("20 ")
