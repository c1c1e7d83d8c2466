"""Files that are written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PART = ".part"


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
def named_in_errors(path: str | Path) -> Iterator[None]:
    """Errors inside say which file they are about: those of a full disk do not say it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the path's place in one move once all is on the disk.

    Parameters
    ----------
    path : path
        A crash leaves the old file or the new one. The new one has the mode of the old one.
        Where it is a link, what it points to is replaced; a pipe or a device is written to as it
        is.
    """
    path = writable(path)
    if path.exists() and not path.is_file():
        with named_in_errors(path), path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    _remove_stale(path)
    temporary = path.with_name(f"{_prefix(path)}{os.getpid()}.{secrets.token_hex(4)}{PART}")
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    # Until its mode is that of the old file, nobody else shall read what may be private.
    first = 0o666 if mode is None else 0o600
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, first)
    try:
        with named_in_errors(path), os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _prefix(path: Path) -> str:
    """What the names of a file's parts start with: of fixed length, for this file and machine."""
    key = f"{platform.node()}/{path.name}".encode(errors="surrogateescape")
    return f".islab-{hashlib.sha256(key).hexdigest()[:16]}-"


def _remove_stale(path: Path) -> None:
    """Removes parts of this file whose process was killed before it could."""
    prefix = _prefix(path)
    for part in path.parent.glob(f"{prefix}*{PART}"):
        writer = part.name.removeprefix(prefix).partition(".")[0]
        if writer.isascii() and writer.isdecimal() and not _is_running(int(writer)):
            with suppress(OSError):
                part.unlink()


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # elsewhere the question would end the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Puts the new name on the disk; not all systems can, and the file itself is there."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
