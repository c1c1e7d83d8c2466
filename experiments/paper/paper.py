"""The numbers of the paper's tables, as printed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from experiments.paper.settings import method_of


@dataclass(frozen=True)
class Published:
    """One entry of a table of results in the paper.

    Attributes
    ----------
    table : str
        The table's label in the paper.
    dataset, method : str
        As in :mod:`experiments.paper.settings`, and what the paper has besides.
    model : {"full", "median"}
        All weights, or what the paper calls sparse.
    metric : str
        Accuracies and inclusion rates are in percent.
    median, low, high : float
        Over ten seeds; the last two are the median where the paper gives no range. One entry,
        mice by BLR-FLOW, has its median outside of its range.
    decimals : int
        Digits after the point as printed.
    has_range : bool
    """

    table: str
    dataset: str
    method: str
    model: str
    metric: str
    median: float
    low: float
    high: float
    decimals: int
    has_range: bool


@cache
def published() -> tuple[Published, ...]:
    """All entries, table after table."""
    text = files("experiments.paper").joinpath("paper.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return tuple(
        _entry(dict(zip(tables["columns"], row, strict=True))) for row in tables["entries"]
    )


def _entry(row: dict[str, str]) -> Published:
    numbers = [row["median"], row["min"] or row["median"], row["max"] or row["median"]]
    median, low, high = map(float, numbers)
    return Published(
        table=row["table"],
        dataset=row["dataset"],
        method=method_of(row["method"]),
        model=row["model"],
        metric=row["metric"],
        median=median,
        low=low,
        high=high,
        decimals=max(len(number.partition(".")[2]) for number in numbers),
        has_range=bool(row["min"]),
    )
