"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the path's place in one move once all is on the disk.

    Parameters
    ----------
    path : path
        A crash leaves the old file or the new one. Where it is a link, what it points to is
        replaced; a pipe or a device is written to as it is.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"Got path={str(path)!r}, a folder, expected a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Got path={str(path)!r}, whose folder does not exist.")
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
