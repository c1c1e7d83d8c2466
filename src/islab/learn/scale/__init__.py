"""Many rows: structures are drawn on some of them, weights given all of them by sums over rows."""

from __future__ import annotations

from islab.learn.scale.growing import FIRST_ROWS, FRESH_ROWS, Grown, grow, shuffled
from islab.learn.scale.passes import ArrayRows, Rows, SeenRows, blocks_of, rows_of
from islab.learn.scale.posterior import posterior_of_all

__all__ = [
    "FIRST_ROWS",
    "FRESH_ROWS",
    "ArrayRows",
    "Grown",
    "Rows",
    "SeenRows",
    "blocks_of",
    "grow",
    "posterior_of_all",
    "rows_of",
    "shuffled",
]
