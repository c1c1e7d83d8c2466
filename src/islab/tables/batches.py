"""Tables that need not fit in memory: rows some at a time, and a random sample to learn from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from islab.core.dependencies import needed
from islab.tables.columns import TableWarning
from islab.tables.frames import frame_columns, is_frame, n_rows, rows_where

ROWS_AT_ONCE = 50_000
SAMPLE_ROWS = 200_000
BUFFER = 1 << 16  # bytes of each column of a Parquet file


class Batches:
    """A table whose rows come some at a time, as often as they are asked for.

    Parameters
    ----------
    source : pyarrow Dataset, Parquet files, data frames, or callable
        One path or a list of paths; one frame or a list of frames; or a function without arguments
        that gives a new iterator of frames at each call.
    n_rows : int
        How many rows a fit learns from: a random sample, if there are more.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": range(100_000)})
    >>> [len(batch) for batch in Batches(table)]
    [50000, 50000]
    """

    def __init__(self, source: Any, *, n_rows: int = SAMPLE_ROWS) -> None:
        if n_rows < 2:
            raise ValueError(f"Got n_rows={n_rows}, expected at least 2; try {SAMPLE_ROWS}.")
        self.n_rows = n_rows
        self._start = _opened(source)

    def __iter__(self) -> Iterator[Any]:
        """Frames with the same columns."""
        names: list[str] = []
        for batch in self._start():
            found = frame_columns(batch)
            names = names or found
            other = sorted({*found} ^ {*names})
            if other:
                raise ValueError(
                    f"Got batches of which only some have the column {other[0]!r}, expected the "
                    "same columns in all; try to rename or drop columns."
                )
            if found == names:
                yield batch
            else:
                yield nw.from_native(batch, eager_only=True).select(names).to_native()

    def total(self, read: Callable[[Any], Any], task: Callable[[Any], Any]) -> Any:
        """The sum, batch after batch, of what a task gives for what is read of each."""
        found = None
        for batch in self:
            if n_rows(batch):
                part = task(read(batch))
                found = part if found is None else found + part
        return found

    def sample(self, seed: int) -> Sample:
        """Rows drawn without replacement, each with the same probability, in their order.

        Which they are follows from the seed and the order of all rows, not from how rows are split
        into batches. At most twice as many rows as are drawn are in memory, and a batch.
        """
        rng = np.random.default_rng(seed)
        kept: list[Any] = []
        keys: list[NDArray[np.float64]] = []
        total, bound = 0, 1.0
        for batch in self:
            own = rng.random(n_rows(batch))
            total += len(own)
            chosen = own <= bound
            if chosen.any():
                kept.append(rows_where(batch, chosen))
                keys.append(own[chosen])
            if sum(map(len, keys)) > 2 * self.n_rows:
                bound = self._cut(kept, keys)
        if not total:
            raise ValueError("Got batches without a single row, expected a table.")
        if sum(map(len, keys)) > self.n_rows:
            self._cut(kept, keys)
        return Sample(_joined(kept), total)

    def _cut(self, kept: list[Any], keys: list[NDArray[np.float64]]) -> float:
        """Keeps the rows with the smallest keys, and gives the largest of these."""
        bound = float(np.partition(np.concatenate(keys), self.n_rows - 1)[self.n_rows - 1])
        pairs = [(part, own) for part, own in zip(kept, keys, strict=True) if (own <= bound).any()]
        kept[:] = [rows_where(part, own <= bound) for part, own in pairs]
        keys[:] = [own[own <= bound] for _, own in pairs]
        return bound


@dataclass(frozen=True)
class Sample:
    """Some rows of a table.

    Attributes
    ----------
    table : DataFrame
    n_rows : int
        Of the whole table.
    """

    table: Any
    n_rows: int

    @property
    def words(self) -> str:
        """One line to print."""
        return f"learned from a random sample of {n_rows(self.table):,} of {self.n_rows:,} rows"


def is_batched(X: Any) -> bool:
    """Whether a fit was given batches."""
    return isinstance(X, Batches) or _is_dataset(X)


@dataclass(frozen=True)
class SampledRows:
    """Table and target of the rows that a fit of batches sees at first, and where they are from.

    Attributes
    ----------
    table, y : table and column
    target : str
        Name of the column.
    batches : Batches
    sample : Sample
    """

    table: Any
    y: Any
    target: str
    batches: Batches
    sample: Sample

    @property
    def are_all(self) -> bool:
        """Whether the batches have no other rows."""
        return n_rows(self.table) == self.sample.n_rows

    def warn(self) -> None:
        """Says that a model is learned from these rows only."""
        warnings.warn(
            f"The model is {self.sample.words}; to learn from more, give Batches(..., n_rows=...).",
            TableWarning,
            stacklevel=5,  # past learn, fit and all_or_nothing
        )


def sampled_rows(X: Any, y: Any, sample_weight: Any, random_state: Any) -> SampledRows:
    """The rows that a fit of batches sees at first.

    Parameters
    ----------
    X : Batches or pyarrow Dataset
    y : name of the target's column
    sample_weight : object
        There is none for batches.
    random_state : int, RandomState instance or None
    """
    if not isinstance(y, str):
        raise ValueError(
            f"Got batches and y of type {type(y).__name__}, expected the name of the column that "
            "holds the target; try y='price'."
        )
    if sample_weight is not None:
        raise ValueError("Got batches and sample_weight, expected none; try to repeat rows.")
    batches = X if isinstance(X, Batches) else Batches(X)
    found = batches.sample(int(check_random_state(random_state).randint(np.iinfo(np.int32).max)))
    if y not in frame_columns(found.table):
        raise ValueError(f"Got y={y!r}, expected a column of the batches; there is none.")
    frame = nw.from_native(found.table, eager_only=True)
    return SampledRows(frame.drop(y).to_native(), frame[y].to_native(), y, batches, found)


def _opened(source: Any) -> Callable[[], Iterable[Any]]:
    """What gives a new iterator of frames at each call."""
    if callable(source):
        return source
    if _is_dataset(source):
        return lambda: _arrow(source)
    if is_frame(source):
        return lambda: _slices(source)
    items = [source] if isinstance(source, str | Path) else source
    if isinstance(items, Iterator):
        raise TypeError(
            "Got an iterator, which can be read only once, expected batches that can be read "
            "again; try a function that gives a new iterator at each call."
        )
    items = list(items)
    if not items:
        raise ValueError("Got no batches, expected at least one.")
    if all(isinstance(item, str | Path) for item in items):
        dataset = needed("pyarrow.dataset", "Reading Parquet files")
        return lambda: _parquet(dataset.dataset([str(item) for item in items], format="parquet"))
    if not all(map(is_frame, items)):
        odd = next(item for item in items if not is_frame(item))
        raise TypeError(
            f"Got a batch of type {type(odd).__name__}, expected data frames or paths of Parquet "
            "files."
        )
    return lambda: items


def _is_dataset(source: Any) -> bool:
    """Whether it is a Dataset of pyarrow, which need not be installed."""
    return type(source).__module__.partition(".")[0] == "pyarrow" and hasattr(
        source, "get_fragments"
    )


def _arrow(dataset: Any) -> Iterator[Any]:
    """Batches of a dataset, without reading far ahead."""
    arrow = needed("pyarrow", "Reading Parquet files")
    for batch in dataset.to_batches(
        batch_size=ROWS_AT_ONCE, batch_readahead=1, fragment_readahead=1
    ):
        if batch.num_rows:
            yield arrow.Table.from_batches([batch])


def _parquet(dataset: Any) -> Iterator[Any]:
    """Batches of Parquet files, of which one row group is in memory.

    A scanner of datasets holds several, and those of the next file.
    """
    arrow = needed("pyarrow", "Reading Parquet files")
    parquet = needed("pyarrow.parquet", "Reading Parquet files")
    schema = dataset.schema
    for path in dataset.files:
        with (
            dataset.filesystem.open_input_file(path) as source,
            parquet.ParquetFile(source, buffer_size=BUFFER) as file,
        ):
            for batch in file.iter_batches(ROWS_AT_ONCE):
                table = arrow.Table.from_batches([batch])
                if {*table.column_names} == {*schema.names}:
                    table = table.select(schema.names).cast(schema)
                yield table


def _slices(table: Any) -> Iterator[Any]:
    frame = nw.from_native(table, eager_only=True)
    for start in range(0, len(frame), ROWS_AT_ONCE):
        yield frame[start : start + ROWS_AT_ONCE].to_native()


def _joined(parts: list[Any]) -> Any:
    """Frames one below the other, with rows numbered anew."""
    frames = [nw.from_native(part, eager_only=True) for part in parts]
    joined = nw.concat(frames) if len(frames) > 1 else frames[0]
    return as_table(nw.maybe_reset_index(joined).to_native())


def as_table(batch: Any) -> Any:
    """A batch as fits take it: one of Arrow as a frame of pandas."""
    return batch.to_pandas(date_as_object=False) if hasattr(batch, "to_batches") else batch
