"""Checkpoints of a running stage: plain arrays, written atomically, read without pickle."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from islab.files import replacing

Arrays = dict[str, NDArray]

ENGINE, LOOP = "engine/", "loop/"


def write_checkpoint(path: Path, engine: Arrays, loop: Arrays) -> None:
    """Replaces the file in one move, so that a crash leaves the old one or the new one."""
    arrays = {ENGINE + name: array for name, array in engine.items()}
    arrays |= {LOOP + name: array for name, array in loop.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_checkpoint(path: Path) -> tuple[Arrays, Arrays]:
    """The engine's and the loop's arrays."""
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"Got checkpoint={str(path)!r}, which cannot be read ({error}); "
            "delete it to start afresh."
        ) from error
    engine, loop = (
        {name.removeprefix(part): a for name, a in arrays.items() if name.startswith(part)}
        for part in (ENGINE, LOOP)
    )
    return engine, loop
