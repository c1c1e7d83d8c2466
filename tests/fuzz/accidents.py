"""Fits that are killed or interrupted at random moments, and go on from their checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

from tests.fuzz.outcome import Outcome

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
MOST_STARTS = 200
ENOUGH_FOR_ALL = 20  # tries, after which each signal must have ended a fit
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
        start = time.perf_counter()
        assert _fit(folder, "quiet.islab").wait() == 0
        length = time.perf_counter() - start
        expected = (folder / "quiet.islab").read_bytes()
        number = 0
        while outcome.tries < count:
            rng = Random(f"{seed}/{number}")
            _one_fit(folder, expected, length, count, signals, rng, outcome)
            number += 1
    unseen = [how.name for how in signals if not outcome.counts[how.name]]
    if count >= ENOUGH_FOR_ALL and unseen:
        outcome.failures.append(f"no fit was ended by {', '.join(unseen)}")
    return outcome


def _one_fit(folder, expected, length, count, signals, rng: Random, outcome: Outcome) -> None:
    """Starts one fit again and again, with an accident each time, until it is done."""
    model = folder / "model.islab"
    model.unlink(missing_ok=True)
    for _ in range(MOST_STARTS):
        running = _fit(folder, model.name)
        how = rng.choice(signals)
        if outcome.tries < count:
            time.sleep(rng.uniform(0, 1.1 * length))
            running.send_signal(how)
        code = running.wait()
        # A signal may come when the model is written and only its summary is left to print.
        if code == 0:
            break
        outcome.counts[f"{how.name}"] += 1
        if model.exists() and model.read_bytes() != expected:
            outcome.failures.append(f"{how.name}: an unfinished fit wrote a model")
        if how in EXIT_CODES and code not in (EXIT_CODES[how], -how):
            outcome.failures.append(f"{how.name}: exit code {code}")
    if not model.exists() or model.read_bytes() != expected:
        outcome.failures.append("a resumed fit ended in another model")
    left = {path.name for path in folder.iterdir()} - {"data.csv", "quiet.islab", "model.islab"}
    if left:
        outcome.failures.append(f"files were left behind: {sorted(left)}")


def _fit(folder: Path, model: str) -> subprocess.Popen:
    # A session of its own: what interrupts this process does not reach it.
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "fit", "data.csv", "-o", model, *SETTINGS],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _write_table(path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["y"] = np.abs(x[:, 0]) + 0.5 * x[:, 1] + 0.1 * rng.normal(size=300)
    frame.to_csv(path, index=False)
