"""The numbers of the paper's tables, as printed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import sqrt

from experiments.paper.settings import in_paper, method_of

SEEDS = 10  # of every number in its tables


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


@cache
def seeds_of_the_paper() -> dict[tuple[str, str, str, str], tuple[float, ...]]:
    """The ten values behind a number of the tables, by data set, method, model and metric.

    The authors have published them for ISLaB only, and neither log scores nor calibration errors,
    depths or inclusion rates among them.
    """
    text = files("experiments.paper").joinpath("paper_seeds.toml").read_text(encoding="utf-8")
    found = {}
    for run in tomllib.loads(text)["runs"]:
        key = in_paper(run["dataset"], run["method"])
        for name, values in run.items():
            if isinstance(values, list):
                stem, _, ending = name.partition("_")
                metric, as_printed = _AS_PRINTED[stem]
                numbers = tuple(as_printed(value, run["rows"]) for value in values)
                found[*key, ending or _MODEL.get(stem, "full"), metric] = numbers
    return found


_MODEL = {"weights": "median"}
_AS_PRINTED: dict[str, tuple[str, Callable[[float, int], float]]] = {
    "errors": ("accuracy", lambda errors, rows: 100 * (1 - errors / rows)),
    "weights": ("weights", lambda weights, _: float(weights)),
    "rmse": ("rmse", lambda rmse, _: rmse),
    # The authors' code takes the root of R2 for the correlation.
    "r2": ("pearson", lambda r2, _: sqrt(r2)),
}


def spread_seeds(published: Published) -> tuple[float, ...]:
    """Ten values with the median, the least and the greatest that are printed.

    They stand at even steps between the least and the median and between the median and the
    greatest: what a rank test is given where the paper does not say more.
    """
    half = SEEDS // 2
    below = [
        published.low + (published.median - published.low) * step / (half - 1)
        for step in range(half)
    ]
    above = [
        published.median + (published.high - published.median) * step / (half - 1)
        for step in range(half)
    ]
    return tuple(round(value, published.decimals + 6) for value in below + above)
