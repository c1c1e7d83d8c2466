"""Chains that are stopped in the middle: they go on, or what they have drawn is kept, and a bar."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from islab import ISLaBRegressor, load
from islab.learn.sample.chains import Sampler

RNG = np.random.default_rng(1)
ROWS = RNG.normal(size=(120, 3))
TARGET = 2 * np.abs(ROWS[:, 0]) + ROWS[:, 1] + 0.3 * RNG.normal(size=120)
QUICK = {"posterior": "sampled", "max_epochs": 40, "n_restarts": 2, "hidden_layer_sizes": (4,)}


@pytest.fixture
def stop_after(monkeypatch):
    """Ctrl-C after so many rounds of steps of all chains together, once."""

    def after(n_rounds):
        pause, left = Sampler._pause, [n_rounds]

        def impatient(self, steps, report):
            pause(self, steps, report)
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

        monkeypatch.setattr(Sampler, "_pause", impatient)

    return after


@pytest.fixture(scope="module")
def whole():
    return ISLaBRegressor(**QUICK, random_state=0).fit(ROWS, TARGET)


@pytest.mark.parametrize("n_rounds", [1, 7, 30, 60])
def test_chains_that_are_stopped_go_on_to_the_same_model_bit_for_bit(
    n_rounds, whole, stop_after, tmp_path
):
    model = ISLaBRegressor(**QUICK, random_state=0, checkpoint=tmp_path / "states")
    stop_after(n_rounds)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS, TARGET)
    model.fit(ROWS, TARGET)
    whole.save(tmp_path / "whole.islab")
    model.save(tmp_path / "model.islab")
    assert (tmp_path / "model.islab").read_bytes() == (tmp_path / "whole.islab").read_bytes()
    assert not list((tmp_path / "states").iterdir())


def test_what_chains_have_done_is_not_done_again(stop_after, tmp_path, monkeypatch):
    model = ISLaBRegressor(**QUICK, random_state=0, checkpoint=tmp_path)
    monkeypatch.setattr("islab.learn.checkpoint.SHARE_OF_TIME", np.inf)  # write every time
    stop_after(30)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS, TARGET)
    monkeypatch.undo()
    steps, pause = [], Sampler._pause
    monkeypatch.setattr(
        Sampler,
        "_pause",
        lambda self, size, report: (
            steps.append(size if self.checkpoint else 0),
            pause(self, size, report),
        ),
    )
    model.fit(ROWS, TARGET)
    again = sum(steps)
    steps.clear()
    ISLaBRegressor(**QUICK, random_state=0, checkpoint=tmp_path).fit(ROWS, TARGET)
    assert sum(steps) == again + 30 * 10


def test_draws_so_far_are_kept_on_request(stop_after, tmp_path):
    model = ISLaBRegressor(**QUICK, random_state=0, on_interrupt="keep")
    stop_after(30)
    with pytest.warns(UserWarning, match="interrupted; the best model so far is kept"):
        model.fit(ROWS, TARGET)
    posterior = model.posterior_
    assert model.interrupted_
    assert 20 <= posterior.n_draws < 900
    model.save(tmp_path / "m.islab")
    again = load(tmp_path / "m.islab")
    assert again.interrupted_
    np.testing.assert_array_equal(again.predict(ROWS), model.predict(ROWS))


def test_too_few_draws_are_not_kept(stop_after):
    model = ISLaBRegressor(**QUICK, random_state=0, on_interrupt="keep")
    stop_after(2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS, TARGET)
    assert not hasattr(model, "posterior_")


def test_a_bar_shows_draws_accepted_moves_and_the_time_left(monkeypatch):
    import tqdm.auto

    shown = []

    class Bar(tqdm.auto.tqdm):
        def display(self, *arguments, **options):
            shown.append(str(self))

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=len, flush=int))
    ISLaBRegressor(**QUICK, random_state=0, verbose=True, on_interrupt="raise").fit(ROWS, TARGET)
    lines = [line for line in shown if line.startswith("sampling")]
    assert any("% accepted" in line and "draw/s" in line for line in lines)
    assert any("<" in line and "<?" not in line for line in lines)
