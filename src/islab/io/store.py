"""Models in files: one safetensors file with JSON inside, checked by a hash, without pickle.

The file is an ordinary safetensors file. Its metadata holds a description in JSON and the SHA-256
of the whole file, taken with zeros in the place of the hash. The hash finds damage; whoever can
write the file can also write its hash, so the content is checked for itself: by
:mod:`islab.io.schema`, before anything is built from it. Nothing in a file is ever run or imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from islab.io.files import replacing
from islab.io.kinds import find_kind
from islab.io.schema import ArrayRecord, as_record

Arrays = dict[str, NDArray]

FORMAT = "islab"
VERSION = 1
NO_HASH = "0" * 64
DTYPES: dict[str, Any] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "I64": np.dtype("<i8")}

LARGEST_HEADER = 16 * 2**20
# Values in the header: this many, and so many for each byte of the arrays they describe.
FREE_VALUES, VALUES_PER_BYTE = 100_000, 2


def save(model: Any, path: str | Path, *, sparse: bool = False) -> None:
    """Writes a fitted estimator to a file.

    Parameters
    ----------
    model : estimator
        Of tables or of images, or one of the baselines.
    path : path
        Replaced in one move: a crash leaves the old file or the new one.
    sparse : bool
        Leave out the full posterior; the median network is a few kilobytes.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if getattr(model, "posterior_", None) is None and not sparse:
        raise ValueError(
            "Got sparse=False for a model without its full posterior, which a sparse file does not "
            "hold; try sparse=True."
        )
    try:
        content = _content(model, sparse)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"Got a model that could not be read again ({error}), expected one that agrees with "
            "its parameters; try to fit it again, with classes that are text or small numbers."
        ) from error
    with replacing(path) as file:
        file.write(content)


def load(path: str | Path, expected: type | None = None) -> Any:
    """The estimator in a file that ``save`` wrote.

    Parameters
    ----------
    path : path
    expected : type, optional
        Refuse models of other classes.

    Raises
    ------
    ValueError
        If the file is truncated, altered, too new or not a model, whatever it holds.
    """
    description, arrays = read(path)
    try:
        kind = find_kind(str(description.get("estimator")))
        if expected is not None and kind.estimator() is not expected:
            raise ValueError(
                f"it holds a {kind.name!r}, expected a {expected.__name__!r}; try islab.load"
            )
        return kind.from_state(description, arrays)
    except ValueError as error:
        _refuse(path, str(error), error)
    # What strangers wrote must not end in an error of another kind than the documented one.
    except Exception as error:
        _refuse(path, f"its parts do not fit together ({error})", error)


def read(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a file whose format, version and hash are right."""
    path = Path(path)
    with _opened(path) as file:
        try:
            return _unpack(file, os.fstat(file.fileno()).st_size)
        except ValueError as error:
            _refuse(path, str(error), error)


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


def _content(model: Any, sparse: bool) -> bytes:
    """The content of a model's file, which has been read again."""
    kind = find_kind(type(model).__name__)
    if kind.estimator() is not type(model):
        raise ValueError(f"it is another {kind.name!r} than islab's")
    content = to_bytes(*kind.state_of(model, sparse=sparse))
    kind.from_state(*_unpack(BytesIO(content), len(content)))
    return content


def _opened(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"Got path={str(path)!r}, expected a model file; there is none.")
    if not stat.S_ISREG(path.stat().st_mode):
        _refuse(path, "it is not a regular file")
    return path.open("rb")


def _unpack(file: BinaryIO, size: int) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays, or ValueError with the reason."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > size - 8:
        raise ValueError("it is not a model file, or it is truncated")
    n_data = size - 8 - length
    if length > LARGEST_HEADER:
        raise ValueError(f"its header has {length} bytes, expected at most {LARGEST_HEADER}")
    header = file.read(length)
    if header.count(b",") > FREE_VALUES + VALUES_PER_BYTE * n_data:
        raise ValueError("its header is too large for its arrays")
    entries = _object(header)
    description = _description(entries.pop("__metadata__", None))
    arrays = {str(name): as_record(entry, ArrayRecord) for name, entry in entries.items()}
    _require_filled(arrays, n_data)
    body = file.read()
    digest = str(description["sha256"]).encode()
    found = hashlib.sha256(start)
    found.update(header.replace(digest, NO_HASH.encode(), 1))
    found.update(body)
    if found.hexdigest().encode() != digest:
        raise ValueError("its content does not agree with its hash: it was altered or damaged")
    return description, {name: _array(name, entry, body) for name, entry in arrays.items()}


def _object(text: bytes | str) -> dict[str, Any]:
    """An object of JSON without NaN, names that stand twice and halves of characters."""
    try:
        text = text.decode() if isinstance(text, bytes) else text
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"its header cannot be read: it was altered or is not a model file ({error})"
        ) from error
    if not isinstance(value, dict):
        raise ValueError("it holds no model")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _description(metadata: Any) -> dict[str, Any]:
    """The description in a header, its version and hash checked."""
    text = metadata.get(FORMAT) if isinstance(metadata, dict) else None
    description = _object(text) if isinstance(text, str) else {}
    if description.get("format") != FORMAT:
        raise ValueError("it holds no model")
    version = description.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {version!r}")
    if version > VERSION:
        raise ValueError(
            f"its version is {version} and this islab reads versions up to {VERSION}; "
            "try `pip install --upgrade islab-bnn`"
        )
    if not re.fullmatch(r"[0-9a-f]{64}", str(description.get("sha256"))):
        raise ValueError("it holds no hash")
    return description


def _require_filled(arrays: dict[str, ArrayRecord], n_data: int) -> None:
    """Refuses arrays that are not, one after the other, all of the rest of the file."""
    end = 0
    for entry in sorted(arrays.values(), key=lambda entry: entry.data_offsets):
        start, stop = entry.data_offsets
        if start != end or stop - start != prod(entry.shape) * DTYPES[entry.dtype].itemsize:
            raise ValueError("its arrays do not follow each other: it was altered")
        end = stop
    if end != n_data:
        raise ValueError("its length does not agree with its arrays: it is truncated or altered")


def _array(name: str, entry: ArrayRecord, body: bytes) -> NDArray:
    dtype, (start, _) = DTYPES[entry.dtype], entry.data_offsets
    flat = np.frombuffer(body, dtype, count=prod(entry.shape), offset=start)
    if not np.isfinite(flat).all():
        raise ValueError(f"array {name!r} holds numbers that are not finite")
    return flat.reshape(entry.shape).copy()


def _refuse(path: str | Path, reason: str, cause: Exception | None = None) -> NoReturn:
    raise ValueError(f"Got path={str(path)!r}, which cannot be loaded: {reason}.") from cause
