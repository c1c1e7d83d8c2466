"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def writable(path: str | Path) -> Path:
    """The path, if a file can stand there: to ask before long work whose result it shall hold."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"Got path={str(path)!r}, a folder, expected a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Got path={str(path)!r}, whose folder does not exist.")
    # A file is replaced, which takes leave to write in its folder; a device is written to.
    place = path if path.exists() and not path.is_file() else path.resolve().parent
    if not os.access(place, os.W_OK):
        raise PermissionError(f"Got path={str(path)!r}, where this user may not write.")
    return path


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the path's place in one move once all is on the disk.

    Parameters
    ----------
    path : path
        A crash leaves the old file or the new one. Where it is a link, what it points to is
        replaced; a pipe or a device is written to as it is.
    """
    path = writable(path)
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
