"""Many rows: structures are drawn on some of them, weights given all of them by sums over rows."""

from __future__ import annotations

from islab.learn.scale.growing import Grown, Growth, sample_sizes, set_apart, shuffled
from islab.learn.scale.passes import ArrayRows, Rows, SeenRows, blocks_of, rows_of
from islab.learn.scale.posterior import Reading, posterior_of_all

__all__ = [
    "ArrayRows",
    "Grown",
    "Growth",
    "Reading",
    "Rows",
    "SeenRows",
    "blocks_of",
    "posterior_of_all",
    "rows_of",
    "sample_sizes",
    "set_apart",
    "shuffled",
]
