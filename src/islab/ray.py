"""Fits of Ray datasets: rows stay where they are, and only sums of them travel.

A fit gives a plain local model, as that of :class:`islab.Batches` with the same rows would be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from islab.core.dependencies import needed
from islab.tables.batches import SAMPLE_ROWS
from islab.tables.partitions import Partitions, Task, Whole, added

__all__ = ["RayBatches"]


class RayBatches(Partitions):
    """The blocks of a Ray dataset as batches: what is done with each is done where it is.

    Blocks, and the numbers that are read of them, lie in Ray's object store. If a worker dies, Ray
    makes what it had anew.

    Parameters
    ----------
    dataset : ray.data.Dataset
    n_rows : int
        How many rows a fit holds on this machine: a random sample, the one that
        :class:`islab.Batches` would draw from the same rows.

    Examples
    --------
    >>> rows = ray.data.read_parquet("s3://bucket/rows")  # doctest: +SKIP
    >>> model = ISLaBRegressor().fit(RayBatches(rows), "price")  # doctest: +SKIP
    """

    def __init__(self, dataset: Any, *, n_rows: int = SAMPLE_ROWS) -> None:
        super().__init__(n_rows=n_rows)
        self._ray = needed("ray", "Fits of Ray datasets")
        self._parts = dataset.to_pandas_refs()
        self._read: tuple[Any, list[Any]] | None = None

    def by_part(self, task: Task) -> list[Any]:
        return self._ray.get(self._sent(task, range(len(self._parts)), self._parts))

    def total(self, read: Callable[[Any], Any], task: Callable[[Any], Any]) -> Any:
        """The sum, in the order of blocks, of what a task gives for what is read of each.

        What was read stays in the object store until something else is read.
        """
        if self._read is None or self._read[0] is not read:
            self._read = (read, self._sent(Whole(read), self._parts))
        return added(self._ray.get(self._sent(Whole(task), self._read[1])))

    def _sent(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        call, kept = self._ray.remote(_called), self._ray.put(function)
        return [call.remote(kept, *each) for each in zip(*arguments, strict=True)]


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
