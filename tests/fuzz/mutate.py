"""Model files changed at random, at every level of their structure."""

from __future__ import annotations

import hashlib
import json
from copy import copy, deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

ZEROS = "0" * 64
ODD_VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 2**31, 2**53, 2**63, 10**15, 10**30, 0.5, 1e308, 5e-324,
    float("nan"), float("inf"), "", "a", "F64", "I64", "os.system", "\ud800", "x" * 5000,
    [], [0], [1, 2, 3], [[]], {}, {"a": 1}, {"tuple": [1, 2]}, {"dict": [[1, 2]]},
]  # fmt: skip
ODD_NUMBERS = [0.0, -1.0, 7.0, 0.5, 1e6, -1e6, 1e30, 1e308, 5e-324, 1e-150, np.nan, np.inf, -np.inf]
ODD_WHOLE = [0, -1, 1, 2, 10**6, 2**31, 2**53, 2**62]
CODES = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}


@dataclass
class Parts:
    """A model file taken apart: header entries, description and the bytes of each array."""

    description: Any
    entries: dict[str, dict[str, Any]]
    data: dict[str, bytes]

    @classmethod
    def of(cls, content: bytes) -> Parts:
        length = int.from_bytes(content[:8], "little")
        entries = json.loads(content[8 : 8 + length])
        description = json.loads(entries.pop("__metadata__")["islab"])
        body = content[8 + length :]
        data = {name: body[slice(*entry["data_offsets"])] for name, entry in entries.items()}
        return cls(description, entries, data)

    def content(self, *, offsets: bool = True) -> bytes:
        """The file again, with a hash that fits; ``offsets`` says whether places are mended."""
        entries, body = {name: {**entry} for name, entry in self.entries.items()}, b""
        for name in entries:
            start = len(body)
            body += self.data[name]
            if offsets:
                entries[name]["data_offsets"] = [start, len(body)]
        description = self.description
        if isinstance(description, dict):
            description = {**description, "sha256": ZEROS}
        metadata = {"islab": json.dumps(description, separators=(",", ":"))}
        header = json.dumps({"__metadata__": metadata, **entries}).encode()
        content = len(header).to_bytes(8, "little") + header + body
        digest = hashlib.sha256(content).hexdigest()
        return content.replace(ZEROS.encode(), digest.encode(), 1)


def rehashed(content: bytes) -> bytes:
    """The file with a hash that fits, if its hash can be found."""
    start = content.find(b'sha256\\":\\"') + len(b'sha256\\":\\"')
    if start < 20 or start + 64 > len(content):
        return content
    blank = content[:start] + ZEROS.encode() + content[start + 64 :]
    return content[:start] + hashlib.sha256(blank).hexdigest().encode() + content[start + 64 :]


def mutated(content: bytes, others: list[bytes], rng: Random) -> tuple[str, bytes]:
    """A changed file, and the name of the kind of change."""
    name, change = rng.choice(CHANGES)
    return name, change(content, others, rng)


def flipped(content: bytes, _: list[bytes], rng: Random) -> bytes:
    """Bytes changed, cut out, put in or cut off."""
    changed = bytearray(content)
    for _number in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                changed[place] = rng.randrange(256)
            case 2:
                del changed[place : place + rng.randrange(1, 40)]
            case 3:
                changed[place:place] = rng.randbytes(rng.randrange(1, 40))
        if len(changed) < 2:
            break
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed) + 1) :]
    return bytes(changed)


def flipped_with_hash(content: bytes, others: list[bytes], rng: Random) -> bytes:
    return rehashed(flipped(content, others, rng))


def edited(content: bytes, _: list[bytes], rng: Random) -> bytes:
    """Values of the description replaced by odd ones, dropped or doubled."""
    parts = Parts.of(content)
    for _number in range(rng.choice((1, 1, 1, 3))):
        parts.description = _edited(parts.description, rng)
    return parts.content()


def rearranged(content: bytes, others: list[bytes], rng: Random) -> bytes:
    """Arrays swapped, dropped, renamed, cut, or taken from another file."""
    parts = Parts.of(content)
    names = list(parts.entries)
    one, two = rng.choice(names), rng.choice(names)
    match rng.randrange(6):
        case 0:
            parts.entries[one], parts.entries[two] = parts.entries[two], parts.entries[one]
            parts.data[one], parts.data[two] = parts.data[two], parts.data[one]
        case 1:
            del parts.entries[one]
        case 2:
            new = rng.choice([two + "x", "", "mu", "edges", "part0.mu", "__x__"])
            parts.entries[new], parts.data[new] = parts.entries[one], parts.data[one]
        case 3:
            parts.data[one] = parts.data[one][: -rng.choice((1, 8, 64))]
        case 4:
            other = Parts.of(rng.choice(others))
            name = rng.choice(list(other.entries))
            parts.entries[name], parts.data[name] = other.entries[name], other.data[name]
        case 5:
            parts.description = Parts.of(rng.choice(others)).description
    return parts.content()


def renumbered(content: bytes, _: list[bytes], rng: Random) -> bytes:
    """Numbers of an array replaced by odd ones."""
    parts = Parts.of(content)
    name = rng.choice(list(parts.entries))
    values = np.frombuffer(parts.data[name], CODES[parts.entries[name]["dtype"]]).copy()
    if len(values):
        odd = ODD_WHOLE if values.dtype.kind == "i" else ODD_NUMBERS
        places = rng.sample(range(len(values)), rng.choice((1, min(3, len(values)), len(values))))
        with np.errstate(all="ignore"):
            values[places] = np.asarray(rng.choice(odd)).astype(values.dtype)
    parts.data[name] = values.tobytes()
    return parts.content()


def misplaced(content: bytes, _: list[bytes], rng: Random) -> bytes:
    """Types, shapes and places in the header replaced by odd values."""
    parts = Parts.of(content)
    entry = parts.entries[rng.choice(list(parts.entries))]
    key = rng.choice(["dtype", "shape", "data_offsets", "more"])
    entry[key] = rng.choice([*ODD_VALUES, [2**40, 2**40], [0, 8], [8, 0], [-8, 8], [2**62, 2]])
    return parts.content(offsets=rng.random() < 0.5)


def _edited(value: Any, rng: Random) -> Any:
    """A copy of nested values with a change at some place."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.02:
        return deepcopy(rng.choice(ODD_VALUES))
    changed = copy(value)
    key = rng.choice(list(changed)) if isinstance(changed, dict) else rng.randrange(len(changed))
    if isinstance(changed[key], dict | list) and changed[key] and rng.random() < 0.85:
        changed[key] = _edited(changed[key], rng)
    elif rng.random() < 0.1:
        del changed[key]
    elif isinstance(changed, list) and rng.random() < 0.2:
        changed += [changed[key]] * rng.choice((1, 50_000))
    else:
        changed[key] = deepcopy(rng.choice(ODD_VALUES))
    return changed


CHANGES = [
    (change.__name__.replace("_", " "), change)
    for change in (flipped, flipped_with_hash, edited, rearranged, renumbered, misplaced)
]
