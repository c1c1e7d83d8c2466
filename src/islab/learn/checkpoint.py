"""Checkpoints of a running stage: plain arrays, written atomically, read without pickle."""

from __future__ import annotations

import shutil
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from time import monotonic
from typing import IO

import numpy as np
from numpy.typing import NDArray

from islab.io.files import replacing

Arrays = dict[str, NDArray]

ENGINE, LOOP, OWNER = "engine/", "loop/", "owner"
SHARE_OF_TIME = 0.05


def own_folder(checkpoint: str | Path, owner: str) -> Path:
    """The folder of one fit among those that share a folder; both are made if need be."""
    folder = Path(checkpoint) / owner[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ValueError(
            f"Got checkpoint={str(checkpoint)!r}, which is a file, expected a folder."
        ) from error
    return folder


def close(folder: Path | None, interrupted: bool) -> None:
    """Warns of a fit that was interrupted; removes the folder of one that is done."""
    if interrupted:
        warnings.warn(
            "Training was interrupted; the best model so far is kept.", UserWarning, stacklevel=3
        )
    elif folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
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
    _next: float = field(default=0.0, init=False)

    def write(self, engine: Arrays, loop: Arrays) -> None:
        """Replaces the file in one move, so that a crash leaves the old one or the new one.

        Unless the stage is finished it does so only now and then, to take a small share of the
        time.
        """
        start = monotonic()
        if start < self._next and not loop.get("finished", True):
            return
        self._replace(engine, loop)
        self._next = monotonic() + (monotonic() - start) / SHARE_OF_TIME

    def _replace(self, engine: Arrays, loop: Arrays) -> None:
        arrays = {ENGINE + name: array for name, array in engine.items()}
        arrays |= {LOOP + name: array for name, array in loop.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as file:
            np.savez(file, allow_pickle=False, **arrays, **{OWNER: np.array(self.owner)})

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Turns whatever a file that is none of ours leads to into one clear error."""
        try:
            yield
        except (EOFError, OSError, LookupError, ArithmeticError, TypeError, ValueError) as error:
            raise self._unreadable(error) from error
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, MemoryError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: BaseException) -> ValueError:
        return ValueError(
            f"Got checkpoint={str(self.path)!r}, which cannot be read ({error}); delete it to "
            "start again."
        )

    def read(self) -> tuple[Arrays, Arrays] | None:
        """The engine's and the loop's arrays; None if there is nothing to go on from."""
        if not self.path.exists():
            return None
        with self.readable():
            arrays = _read_arrays(self.path)
            owner = str(arrays.pop(OWNER))
        if owner != self.owner:
            raise ValueError(
                f"Got checkpoint={str(self.path)!r}, which belongs to a fit of other data, "
                "settings or seed; delete it to start again, or choose another folder."
            )
        engine, loop = (
            {name.removeprefix(part): a for name, a in arrays.items() if name.startswith(part)}
            for part in (ENGINE, LOOP)
        )
        return engine, loop


def _read_arrays(path: Path) -> Arrays:
    """The arrays of a file; none may claim to be larger than what the file holds of it."""
    with zipfile.ZipFile(path) as members:
        for member in members.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"array {member.filename!r} is compressed")
            with members.open(member) as file:
                shape, dtype = _claimed(file)
                if not 0 <= prod(shape) * dtype.itemsize == member.file_size - file.tell():
                    raise ValueError(f"array {member.filename!r} is not whole")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _claimed(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type that an array says it has."""
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array is of version {version}")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype
