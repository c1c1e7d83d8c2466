"""Fits that are killed or interrupted at random moments, and go on from their checkpoint."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

from islab.cli import main
from tests.fuzz.outcome import Outcome

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
MOST_STARTS = 200
ENOUGH_FOR_ALL = 20  # tries, after which each signal must have ended a training
SHARE_OF_PROGRAMS = 0.1
IN_TRAINING = "in training"
PROGRAM = "from islab.cli import main; raise SystemExit(main())"
SETTINGS = (
    "--target",
    "y",
    "--set",
    "max_epochs=60",
    "--set",
    "n_restarts=1",
    "--seed",
    "0",
    "--resume",
)


@dataclass
class Fit:
    """A running fit, as a program of its own or as a fork of this one.

    A program spends most of its time on imports. A fork has them done, so that accidents reach
    what follows, many times as often.
    """

    folder: Path
    model: str
    forked: bool

    def __post_init__(self) -> None:
        self._since = time.time()
        arguments = ["fit", "data.csv", "-o", self.model, *SETTINGS]
        self.pid = self._fork(arguments) if self.forked else self._start(arguments)

    def _start(self, arguments: list[str]) -> int:
        # A session of its own: what interrupts this process does not reach it.
        self._program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self._program.pid

    def _fork(self, arguments: list[str]) -> int:
        # A signal waits until the child is ready: it must never come back into the fuzzer.
        signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_CODES)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.setsid()
                os.chdir(self.folder)
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)
                os.dup2(nowhere, 2)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, EXIT_CODES)
                code = main(arguments)
            except KeyboardInterrupt:
                code = EXIT_CODES[signal.SIGINT]  # as Python says it
            finally:
                os._exit(code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, EXIT_CODES)
        return pid

    def send_signal(self, how: signal.Signals) -> None:
        os.kill(self.pid, how)  # also where it has ended: nobody has waited for it yet

    def wait(self) -> int:
        """The exit code, or minus the signal that ended it."""
        if not self.forked:
            return self._program.wait()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def trained(self) -> bool:
        """Whether it has left a checkpoint of its own."""
        found = (self.folder / f"{self.model}.checkpoint").glob("*/*.npz")
        return any(path.stat().st_mtime >= self._since for path in found)


def fuzz_kills(count: int, seed: int = 0) -> Outcome:
    """Kills fits ``count`` times with SIGKILL; each must end in the model of a quiet fit."""
    return _accidents("kills", count, seed, [signal.SIGKILL])


def fuzz_interrupts(count: int, seed: int = 0) -> Outcome:
    """The same with SIGINT and SIGTERM, which must be said in the exit code and write nothing."""
    return _accidents("interrupts", count, seed, [signal.SIGINT, signal.SIGTERM])


def _accidents(section: str, count: int, seed: int, signals: list[signal.Signals]) -> Outcome:
    # A shell's background jobs ignore SIGINT, and what they start inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    outcome = Outcome(section)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_table(folder / "data.csv")
        _import_all(folder)
        lengths = {forked: _length(folder, forked) for forked in (True, False)}
        expected = (folder / "quiet.islab").read_bytes()
        number = 0
        while outcome.tries < count:
            rng = Random(f"{seed}/{number}")
            _one_fit(folder, expected, lengths, count, signals, rng, outcome)
            number += 1
    unseen = [how.name for how in signals if not outcome.counts[f"{how.name} {IN_TRAINING}"]]
    if count >= ENOUGH_FOR_ALL and unseen:
        outcome.failures.append(f"no training was ended by {', '.join(unseen)}")
    return outcome


def _import_all(folder: Path) -> None:
    """Imports what a fit needs."""
    said = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        assert main(["fit", "data.csv", "-o", "quiet.islab", *SETTINGS]) == 0


def _length(folder: Path, forked: bool) -> float:
    """Seconds of a fit that nothing happens to."""
    start = time.perf_counter()
    assert Fit(folder, "quiet.islab", forked).wait() == 0
    return time.perf_counter() - start


def _one_fit(folder, expected, lengths, count, signals, rng: Random, outcome: Outcome) -> None:
    """Starts one fit again and again, with an accident each time, until it is done."""
    model = folder / "model.islab"
    model.unlink(missing_ok=True)
    for _ in range(MOST_STARTS):
        fit = Fit(folder, model.name, forked=rng.random() > SHARE_OF_PROGRAMS)
        how = rng.choice(signals)
        if outcome.tries < count:
            time.sleep(rng.uniform(0, 1.1 * lengths[fit.forked]))
            fit.send_signal(how)
        code = fit.wait()
        # A signal may come when the model is written and only its summary is left to print.
        if code == 0:
            break
        outcome.counts[f"{how.name} {IN_TRAINING if fit.trained() else 'elsewhere'}"] += 1
        if model.exists() and model.read_bytes() != expected:
            outcome.failures.append(f"{how.name}: an unfinished fit wrote a model")
        if how in EXIT_CODES and code not in (EXIT_CODES[how], -how):
            outcome.failures.append(f"{how.name}: exit code {code}")
    if not model.exists() or model.read_bytes() != expected:
        outcome.failures.append("a resumed fit ended in another model")
    left = {path.name for path in folder.iterdir()} - {"data.csv", "quiet.islab", "model.islab"}
    if left:
        outcome.failures.append(f"files were left behind: {sorted(left)}")


def _write_table(path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["y"] = np.abs(x[:, 0]) + 0.5 * x[:, 1] + 0.1 * rng.normal(size=300)
    frame.to_csv(path, index=False)
