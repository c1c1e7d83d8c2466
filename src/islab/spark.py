"""Fits of Spark data frames: rows stay where they are, and only sums of them travel.

A fit gives a plain local model, as that of :class:`islab.Batches` with the same rows would be.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from islab.core.dependencies import needed
from islab.tables.batches import SAMPLE_ROWS
from islab.tables.partitions import Partitions, Task

__all__ = ["SparkBatches"]


class SparkBatches(Partitions):
    """The partitions of a Spark data frame as batches: what is done with each is done where it is.

    Each pass is one ``mapInPandas``, which reads a partition whole. A frame that is read from files
    is read again in each; ``frame.cache()`` keeps it in the memory of the executors. Its rows must
    come in the same partitions and order each time, as those of files do.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    n_rows : int
        How many rows a fit holds on this machine: a random sample, the one that
        :class:`islab.Batches` would draw from the same rows.

    Examples
    --------
    >>> rows = spark.read.parquet("s3://bucket/rows").cache()  # doctest: +SKIP
    >>> model = ISLaBRegressor().fit(SparkBatches(rows), "price")  # doctest: +SKIP
    """

    def __init__(self, frame: Any, *, n_rows: int = SAMPLE_ROWS) -> None:
        super().__init__(n_rows=n_rows)
        needed("pyspark", "Fits of Spark data frames")
        self._frame = frame

    def by_part(self, task: Task) -> list[Any]:
        done = _InPandas(task, self._frame.columns)
        rows = self._frame.mapInPandas(done, "number long, found binary").collect()
        # What executors of one's own session return, as Spark itself sends it.
        return [pickle.loads(row.found) for row in sorted(rows, key=lambda row: row.number)]


@dataclass(frozen=True)
class _InPandas:
    """What a task gives for a partition, as one row of a frame."""

    task: Callable[[int, pd.DataFrame], Any]
    columns: list[str]

    def __call__(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        from pyspark import TaskContext

        parts = [pd.DataFrame(columns=self.columns), *frames]
        number = TaskContext.get().partitionId()
        part = pd.concat(parts[1:], ignore_index=True) if parts[1:] else parts[0]
        yield pd.DataFrame({"number": [number], "found": [pickle.dumps(self.task(number, part))]})
