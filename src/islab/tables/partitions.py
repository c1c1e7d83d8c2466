"""Batches that lie in other processes: what is done with each is done where it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from islab.tables.batches import SAMPLE_ROWS, Batches, Sample
from islab.tables.frames import n_rows

Task = Callable[[int, pd.DataFrame], Any]


class Partitions(Batches):
    """Frames of pandas in other processes, in an order that does not change.

    Parameters
    ----------
    n_rows : int
        How many rows a fit holds on this machine: a random sample, the one that
        :class:`islab.Batches` would draw from the same rows.
    """

    def __init__(self, *, n_rows: int = SAMPLE_ROWS) -> None:
        if n_rows < 2:
            raise ValueError(f"Got n_rows={n_rows}, expected at least 2; try {SAMPLE_ROWS}.")
        self.n_rows = n_rows

    @abstractmethod
    def by_part(self, task: Task) -> list[Any]:
        """What a task gives for the number of each partition and its frame, in their order."""

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Got a table in other processes, whose rows do not come here one by one.")

    def total(self, read: Callable[[Any], Any], task: Callable[[Any], Any]) -> Any:
        """The sum over partitions of what a task gives for what is read of each.

        Partitions are added in their order, so that sums do not depend on who made them.
        """
        return added(self.by_part(_ReadAndDone(Whole(read), Whole(task))))

    def sample(self, seed: int) -> Sample:
        """The sample of :meth:`islab.Batches.sample`, drawn where the rows are."""
        sizes = self.by_part(_size)
        total = int(sum(sizes))
        if not total:
            raise ValueError("Got partitions without a single row, expected a table.")
        # Fewer keys than are wanted lie below this bound once in many billions of samples.
        share = (self.n_rows + 8 * np.sqrt(self.n_rows) + 8) / total
        found = self.by_part(_Drawn(seed, np.cumsum([0, *sizes[:-1]]).tolist(), min(share, 1.0)))
        table = pd.concat([part for part, _ in found], ignore_index=True)
        keys = np.concatenate([own for _, own in found])
        if len(keys) > self.n_rows:
            bound = np.partition(keys, self.n_rows - 1)[self.n_rows - 1]
            table = table[keys <= bound].reset_index(drop=True)
        return Sample(table, total)


def added(parts: list[Any]) -> Any:
    """The sum, in their order, of those that are not None."""
    found = None
    for part in parts:
        if part is not None:
            found = part if found is None else found + part
    return found


@dataclass(frozen=True)
class Whole:
    """A function of a part of the rows; None of one without rows."""

    function: Callable[[Any], Any]

    def __call__(self, part: Any) -> Any:
        empty = part is None or (isinstance(part, pd.DataFrame) and not len(part))
        return None if empty else self.function(part)


@dataclass(frozen=True)
class _ReadAndDone:
    read: Callable[[Any], Any]
    task: Callable[[Any], Any]

    def __call__(self, number: int, part: pd.DataFrame) -> Any:
        return self.task(self.read(part))


@dataclass(frozen=True)
class _Drawn:
    """Rows of a partition whose keys are small, with the keys that all rows in order would get."""

    seed: int
    starts: list[int]
    share: float

    def __call__(self, number: int, part: pd.DataFrame) -> tuple[pd.DataFrame, NDArray]:
        rng = np.random.default_rng(self.seed)
        rng.bit_generator.advance(self.starts[number])  # type: ignore[attr-defined]
        keys = rng.random(len(part))
        chosen = keys <= self.share
        return part[chosen], keys[chosen]


def _size(number: int, part: pd.DataFrame) -> int:
    return n_rows(part)
