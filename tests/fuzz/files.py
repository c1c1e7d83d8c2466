"""Changed model files and checkpoints: each is refused by one clear ValueError, or is harmless."""

from __future__ import annotations

import io
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

import islab
from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.convolution.stacked import StackedImagePosterior
from islab.core.sampled import AllRows, ReadingPrice, SampledPosterior
from islab.learn.checkpoint import Checkpoint
from tests.fuzz.mutate import flipped, mutated
from tests.fuzz.outcome import Outcome
from tests.images.nets import classifier, posterior

OLD = Path(__file__).parents[1] / "io" / "files"
MOST_SECONDS, GIVEN_UP = 2.0, 20.0
MOST_PIXELS = 10**6
SHARE_OF_CHECKPOINTS = 0.05
FEW_DRAWS = 20
QUICK = {"posterior": "sampled", "max_epochs": 40, "n_restarts": 1, "random_state": 0}


def fuzz_files(count: int, seed: int = 0) -> Outcome:
    """Loads ``count`` changed files."""
    outcome = Outcome("files")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        originals, states = _originals(Path(folder)), _checkpoints()
        path = Path(folder) / "changed"
        for number in range(count):
            rng = Random(f"{seed}/{number}")
            if rng.random() < SHARE_OF_CHECKPOINTS:
                ending = _try_checkpoint(path, flipped(rng.choice(states), [], rng))
            else:
                kind, content = mutated(rng.choice(originals), originals, rng)
                ending = f"{kind}: {_try_model(path, content)}"
            outcome.counts[ending] += 1
            if "FAILED" in ending:
                outcome.failures.append(f"seed={seed} number={number}: {ending}")
    return outcome


def _originals(folder: Path) -> list[bytes]:
    """Files of every kind and version: those that are kept, drawn networks and images."""
    found = [path.read_bytes() for path in sorted(OLD.glob("*/*.islab"))]
    for model in [*_sampled(), *_of_odd_columns(), _stacked_images()]:
        found += [_saved(_thinned(model), folder, sparse=sparse) for sparse in (False, True)]
    for number, options in enumerate(
        [{}, {"channels": (), "outputs": 1}, {"pool": 2, "stride": 1}]
    ):
        for sparse in (False, True):
            found.append(_saved(classifier(posterior(number, **options)), folder, sparse=sparse))
    return found


def _saved(model: Any, folder: Path, *, sparse: bool) -> bytes:
    model.save(folder / "model", sparse=sparse)
    return (folder / "model").read_bytes()


def _sampled() -> list[Any]:
    """Models of networks that chains have drawn: of numbers, classes, several outputs, counts."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": np.where(rng.random(60) < 0.1, np.nan, rng.normal(5, 2, 60)),
            "c": rng.choice(["u", "v", "w"], 60),
        }
    )
    a = table["a"].to_numpy()
    counts = ISLaBRegressor(likelihood="negative_binomial", **QUICK)
    many_rows = ISLaBRegressor(**QUICK).fit(table, 3 * a + 100)
    seen = AllRows(n_rows=60, n_sampled=30, n_structures=2, promised=0.1, pareto_k=0.3)
    many_rows.posterior_ = replace(many_rows.posterior_, all_rows=seen)
    return [
        many_rows,
        ISLaBRegressor(**QUICK).fit(table, np.stack([a, np.abs(a)], axis=1)),
        ISLaBClassifier(**QUICK).fit(table, np.where(np.abs(a) > 0.7, "yes", "no")),
        ISLaBClassifier(**QUICK).fit(table, np.digitize(a, [-0.5, 0.5])),
        counts.fit(table, rng.poisson(np.exp(a)), exposure=np.full(60, 2.0)),
    ]


def _thinned(model: Any) -> Any:
    """A model with a few draws of each chain: small files are changed and read faster."""
    if isinstance(model.posterior_, SampledPosterior):
        chains = tuple(chain.take(np.arange(FEW_DRAWS)) for chain in model.posterior_.chains)
        model.posterior_ = replace(model.posterior_, chains=chains)
    return model


def _of_odd_columns() -> list[Any]:
    """Stacked runs, and noise of each row, of columns of every other kind."""
    rng = np.random.default_rng(1)
    sizes = pd.Categorical.from_codes(rng.integers(3, size=60), ["small", "mid", "large"], True)
    table = pd.DataFrame(
        {
            "price": [f"${number:,.2f}" for number in rng.lognormal(7, 2, 60)],
            "size": sizes,
            "seen": pd.date_range("2024-01-01 07:30", periods=60, freq="53h"),
            "note": [f"note {number}" for number in range(60)],
            "part": rng.choice(["u", "v", *(f"w{number}" for number in range(9))], 60),
            "some": np.where(rng.random(60) < 0.2, "n/a?", rng.normal(size=60).astype(str)),
        }
    )
    y = sizes.codes + rng.normal(size=60)
    stacked = ISLaBRegressor(**{**QUICK, "posterior": "stacked", "n_restarts": 2})
    noisy = ISLaBRegressor(**QUICK, likelihood="heteroscedastic")
    return [stacked.fit(table, y), noisy.fit(table, y)]


def _stacked_images() -> Any:
    runs = tuple(posterior(seed) for seed in (0, 1))
    price = ReadingPrice(difference=0.1, se=0.05, n_rows=60)
    return classifier(StackedImagePosterior(runs, np.array([0.3, 0.7]), 1, price))


def _checkpoints() -> list[bytes]:
    arrays = {"engine/theta": np.arange(9.0), "loop/step": np.array(3), "owner": np.array("me")}
    file, compressed, bare = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(file, **arrays)
    np.savez_compressed(compressed, **arrays)
    np.save(bare, np.arange(3))
    return [file.getvalue(), file.getvalue(), compressed.getvalue(), bare.getvalue()]


def _try_model(path: Path, content: bytes) -> str:
    """How loading and predicting ended."""
    _write(path, content)
    start = time.process_time()
    try:
        with _given_up():
            model = islab.load(path)
    except ValueError as error:
        ending = _refusal(error, path)
    except Exception as error:
        return f"FAILED with {type(error).__name__}: {error!s:.200}"
    else:
        ending = _try_predicting(model)
    taken = time.process_time() - start
    return ending if taken < MOST_SECONDS else f"FAILED: {taken:.1f} s"


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # a file that is written over waits for the disk
    path.write_bytes(content)


@contextmanager
def _given_up() -> Iterator[None]:
    """Ends what would go on for ever, after so many seconds of processor time."""

    def give_up(*_: Any) -> None:
        raise TimeoutError(f"no end after {GIVEN_UP:g} s")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVEN_UP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _refusal(error: ValueError, path: Path) -> str:
    cause = error.__cause__
    if str(path) not in str(error):
        return f"FAILED: a message without the path, {error!s:.200}"
    if cause is not None and not isinstance(cause, ValueError):
        return f"FAILED: the schema missed {type(cause).__name__}: {cause!s:.200}"
    return "refused"


def _try_predicting(model: Any) -> str:
    model.set_params(n_draws=min(model.n_draws, 20))
    try:
        with np.errstate(all="ignore"), _given_up():
            found = _predictions(model)
    except Exception as error:
        return f"FAILED when predicting: {type(error).__name__}: {error!s:.200}"
    return "loaded" if np.isfinite(found).all() else "FAILED: predictions are not finite"


def _predictions(model: Any) -> np.ndarray:
    if hasattr(model, "image_shape_"):
        if np.prod(model.image_shape_) > MOST_PIXELS:
            return np.zeros(1)
        return model.predict_proba(np.ones((1, *model.image_shape_)))
    variables = model.columns_.variables
    row = [_cell(variable) for variable in variables]
    names = [v.name for v in variables] if hasattr(model, "feature_names_in_") else None
    table = pd.DataFrame([row], columns=names)
    offsets = getattr(model, "offset_columns_", None)
    for name in offsets.names if offsets is not None else ():
        table[name] = 1.0
    return model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)


def _cell(variable: Any) -> Any:
    """A value that the variable knows."""
    if hasattr(variable, "levels"):
        return variable.levels[0]
    return variable.fill if hasattr(variable, "fill") else pd.Timestamp("2024-03-01")


def _try_checkpoint(path: Path, content: bytes) -> str:
    _write(path, content)
    try:
        found = Checkpoint(path, "me").read()
    except ValueError as error:
        named = "Got checkpoint=" in str(error)
        return "checkpoint: refused" if named else f"checkpoint: FAILED: {error!s:.200}"
    except Exception as error:
        return f"checkpoint: FAILED with {type(error).__name__}: {error!s:.200}"
    return "checkpoint: read" if found else "checkpoint: FAILED: not seen"
