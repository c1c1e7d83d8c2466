"""Records as lines of JSON in a file that only grows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def append_record(path: Path, record: Record) -> None:
    """Adds a record in one write; it is on the disk when this returns."""
    with path.open("a+b") as file:
        # A line that was cut short must not spoil the next one.
        start = b"\n" if _cut_short(file) else b""
        os.write(file.fileno(), start + json.dumps(record, allow_nan=False).encode() + b"\n")
        os.fsync(file.fileno())


def read_records(path: Path) -> list[Record]:
    """All records of a file that may not exist; lines cut short are left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [record for line in lines if isinstance(record := _parsed(line), dict)]


def _cut_short(file: Any) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
