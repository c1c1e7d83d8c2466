"""Checkpoints of a running stage: plain arrays, written atomically, read without pickle."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from islab.io.files import replacing

Arrays = dict[str, NDArray]

ENGINE, LOOP, OWNER = "engine/", "loop/", "owner"


@dataclass(frozen=True)
class Checkpoint:
    """Where a stage keeps its state, and whose it is.

    Parameters
    ----------
    path : Path
    owner : str
        Stands for data and settings: the state of another owner is refused.
    """

    path: Path
    owner: str = ""

    def write(self, engine: Arrays, loop: Arrays) -> None:
        """Replaces the file in one move, so that a crash leaves the old one or the new one."""
        arrays = {ENGINE + name: array for name, array in engine.items()}
        arrays |= {LOOP + name: array for name, array in loop.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as file:
            np.savez(file, allow_pickle=False, **arrays, **{OWNER: np.array(self.owner)})

    def read(self) -> tuple[Arrays, Arrays] | None:
        """The engine's and the loop's arrays; None if there is nothing to go on from."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            owner = str(arrays.pop(OWNER))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"Got checkpoint={str(self.path)!r}, which cannot be read ({error}); "
                "delete it to start afresh."
            ) from error
        if owner != self.owner:
            raise ValueError(
                f"Got checkpoint={str(self.path)!r}, which belongs to a fit of other data, "
                "settings or seed; delete it to start afresh, or choose another folder."
            )
        engine, loop = (
            {name.removeprefix(part): a for name, a in arrays.items() if name.startswith(part)}
            for part in (ENGINE, LOOP)
        )
        return engine, loop
