"""Models in files: one safetensors file with JSON inside, checked by a hash, without pickle.

The file is an ordinary safetensors file. Its metadata holds a description in JSON and the SHA-256
of the whole file, taken with zeros in the place of the hash. Nothing in a file is ever run or
imported: a class is chosen by name from a fixed list, and every array is checked against the
description before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from islab.io.files import replacing

Arrays = dict[str, NDArray]

FORMAT = "islab"
VERSION = 1
LARGEST_HEADER = 64 * 2**20
NO_HASH = "0" * 64
DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def save(estimator: Any, path: str | Path, *, sparse: bool = False) -> None:
    """Writes a fitted estimator to a file.

    Parameters
    ----------
    estimator : ISLaBClassifier or ISLaBRegressor
    path : path
        Replaced in one move: a crash leaves the old file or the new one.
    sparse : bool
        Leave out the full posterior; the median network is a few kilobytes.
    """
    from islab.estimators.restore import from_state
    from islab.estimators.state import state_of

    description, arrays = state_of(estimator, sparse=sparse)
    try:
        content = to_bytes(description, arrays)
        _require_finite(arrays)
        from_state(json.loads(json.dumps(description)), arrays)
    except ValueError as error:
        raise ValueError(
            f"Got a model that could not be read again ({error}), expected one that agrees with "
            "its parameters; try to fit it again, with classes that are text or small numbers."
        ) from error
    with replacing(path) as file:
        file.write(content)


def load(path: str | Path) -> Any:
    """The estimator in a file that ``save`` wrote.

    Raises
    ------
    ValueError
        If the file is truncated, altered, too new or not a model.
    """
    from islab.estimators.restore import BadState, from_state

    description, arrays = read(path)
    if description.get("estimator") == "ISLaBImageClassifier":
        from islab.images import ISLaBImageClassifier

        return ISLaBImageClassifier.load(path)
    try:
        return from_state(description, arrays)
    except BadState as error:
        _refuse(path, str(error))


def to_bytes(description: dict[str, Any], arrays: Arrays) -> bytes:
    """The content of a file."""
    from safetensors.numpy import save as serialise

    start = {"format": FORMAT, "version": VERSION, "sha256": NO_HASH}
    text = json.dumps({**start, **description}, allow_nan=False, separators=(",", ":"))
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    # One entry only: the order of several is not the same each time.
    content = serialise(tensors, metadata={FORMAT: text})
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(NO_HASH.encode(), digest.encode(), 1)


def read(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a file whose format, version and hash are right."""
    path = Path(path)
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > min(LARGEST_HEADER, size - 8):
            _refuse(path, "it is not a model file, or it is truncated")
        header = file.read(length)
        description, digest = _parse(path, header, size - 8 - length)
        body = file.read()
    blank = header.replace(digest.encode(), NO_HASH.encode(), 1)
    found = hashlib.sha256(start)
    found.update(blank)
    found.update(body)
    if found.hexdigest() != digest:
        _refuse(path, "its content does not agree with its hash: it was altered or damaged")
    return description, _arrays(path, start + header + body)


def _opened(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"Got path={str(path)!r}, expected a model file; there is none.")
    if not stat.S_ISREG(path.stat().st_mode):
        _refuse(path, "it is not a regular file")
    return path.open("rb")


def _parse(path: Path, header: bytes, n_data: int) -> tuple[dict[str, Any], str]:
    """Description and hash in a header whose arrays fit the rest of the file."""
    entries = _json(path, header)
    metadata = entries.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get(FORMAT), str):
        _refuse(path, "it holds no model")
    description = _json(path, metadata[FORMAT])
    if description.get("format") != FORMAT:
        _refuse(path, "it holds no model")
    version = description.get("version")
    if not isinstance(version, int) or version < 1:
        _refuse(path, f"its version is {version!r}")
    if version > VERSION:
        _refuse(
            path,
            f"its version is {version} and this islab reads versions up to {VERSION}; "
            "try `pip install --upgrade islab-bnn`",
        )
    digest = description.get("sha256")
    if not isinstance(digest, str) or len(digest) != len(NO_HASH):
        _refuse(path, "it holds no hash")
    for entry in entries.values():
        if not isinstance(entry, dict) or entry.get("dtype") not in DTYPES:
            _refuse(path, "it holds arrays of unknown type")
    if not _fills(entries, n_data):
        _refuse(path, "its length does not agree with its arrays: it is truncated or altered")
    return description, digest


def _fills(entries: dict[str, Any], n_data: int) -> bool:
    """Whether the arrays end where the file ends."""
    ends = [entry.get("data_offsets") for entry in entries.values()]
    if not all(isinstance(e, list) and len(e) == 2 and isinstance(e[1], int) for e in ends):
        return False
    return max((end[1] for end in ends), default=0) == n_data


def _json(path: Path, text: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _refuse(path, "its header cannot be read: it was altered or is not a model file")
    if not isinstance(value, dict):
        _refuse(path, "it holds no model")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _arrays(path: Path, content: bytes) -> Arrays:
    from safetensors import SafetensorError
    from safetensors.numpy import load as deserialise

    try:
        arrays = deserialise(content)
        _require_finite(arrays)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        _refuse(path, f"its arrays cannot be read ({error})")
    return arrays


def _require_finite(arrays: Arrays) -> None:
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"array {name!r} holds numbers that are not finite")


def _refuse(path: str | Path, reason: str) -> NoReturn:
    raise ValueError(f"Got path={str(path)!r}, which cannot be loaded: {reason}.")
