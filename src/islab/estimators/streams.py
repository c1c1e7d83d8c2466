"""All rows of batches, of which a fit has seen a sample: how they become what networks read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.arrays import Float
from islab.core.scale import Scale
from islab.learn.engines import Problem
from islab.learn.scale import blocks_of
from islab.tables.batches import Batches, SampledRows, as_table
from islab.tables.columns import ColumnEncoder
from islab.tables.offsets import OffsetColumns, read_offset
from islab.tables.targets import codes_of, plain_labels

SAME = 1e-9


@dataclass(frozen=True, eq=False)
class ClassTargets:
    """Targets (rows, outputs) from a column of classes."""

    classes: NDArray  # in the order of the likelihood
    likelihood: str

    def __call__(self, column: Any) -> Float:
        labels = plain_labels(np.asarray(column.to_numpy()), "y")
        codes = codes_of(labels, self.classes)
        new = self.classes[codes] != labels
        if new.any():
            raise ValueError(
                f"Got class {labels[new].tolist()[0]!r} in the batches, which the sample of rows "
                "does not have, expected the same classes; try Batches(..., n_rows=...) with more "
                "rows, or to leave out rows of rare classes."
            )
        family = families.likelihood(self.likelihood)
        assert isinstance(family, families.ClassLikelihood)
        return family.class_targets(codes, len(self.classes))


@dataclass(frozen=True)
class NumberTargets:
    """Targets (rows, 1) from a column of numbers."""

    likelihood: str

    def __call__(self, column: Any) -> Float:
        values = np.asarray(column.to_numpy(), dtype=float)[:, None]
        if not np.isfinite(values).all():
            raise ValueError(
                "Got missing or infinite targets in the batches, expected a finite number in each "
                "row; try to leave out rows without one."
            )
        families.likelihood(self.likelihood).check_target(values)
        return values


@dataclass(frozen=True, eq=False)
class Stream:
    """Batches whose rows are all to be learned from, and the sample that a fit sees at first.

    Attributes
    ----------
    sampled : SampledRows
    targets : callable
        Makes targets (rows, outputs) of the target's column.
    offsets : OffsetColumns, optional
    """

    sampled: SampledRows
    targets: Callable[[Any], Float]
    offsets: OffsetColumns | None = None

    def rows(self, columns: ColumnEncoder, scale: Scale) -> StreamRows:
        """All rows, on this scale."""
        offsets = self.offsets or OffsetColumns()
        reader = FrameReader(columns, scale, self.sampled.target, self.targets, offsets)
        return StreamRows(self.sampled.batches, reader, self.sampled.sample.n_rows)


@dataclass(frozen=True, eq=False)
class FrameReader:
    """What a frame holds, on the scale that networks see."""

    columns: ColumnEncoder
    scale: Scale
    target: str
    targets: Callable[[Any], Float]
    offsets: OffsetColumns

    def __call__(self, frame: Any) -> Problem:
        table = as_table(frame)
        y = self.targets(table[self.target])
        table = table.drop(columns=self.target)
        shift = read_offset(table, self.offsets.offset, self.offsets.exposure, y.shape[1])
        covariates = self.columns.covariates_of(self.offsets.without(table), [])
        return Problem(
            self.scale.standardise(covariates),
            (y - self.scale.y_center) / self.scale.y_scale,
            offset=None if shift is None else shift / self.scale.y_scale,
        )


@dataclass(frozen=True, eq=False)
class StreamRows:
    """All rows of batches, for passes of :mod:`islab.learn.scale`."""

    batches: Batches
    reader: FrameReader
    n_rows: int

    def total(self, task: Callable[[Problem], Any]) -> Any:
        return self.batches.total(self.reader, ByBlocks(task))

    def with_ranges_of_all(self, covariates: Float, target: Float) -> StreamRows:
        """The same with ranges, centres and scales of all rows instead of those of a sample.

        What is not scaled by its standard deviation in the sample keeps its scale. Centres and
        scales are rounded to single precision, so that they do not depend on how rows are split.

        Parameters
        ----------
        covariates : (rows, covariates)
            Of the sample, in the user's units.
        target : (rows, outputs)
        """
        scale, found = self.reader.scale, self.total(moments)
        n = len(scale.names)
        centers = np.concatenate([scale.x_center, scale.y_center])
        sizes = np.concatenate([scale.x_scale, scale.y_scale])
        moved, sd = found.center_and_sd
        in_sd = np.abs(np.hstack([covariates, target]).std(axis=0) / sizes - 1) < SAME
        kept = (sizes == 1) & (centers == 0)  # targets that are not scaled
        kept[:n] = False
        low, high = (scale.x_center + scale.x_scale * end[:n] for end in (found.low, found.high))
        new_centers = np.where(kept, centers, _rounded(centers + sizes * moved))
        new_sizes = np.where(in_sd & (sd > 0), _rounded(sizes * sd), sizes)
        new = replace(
            scale,
            x_center=new_centers[:n],
            x_scale=new_sizes[:n],
            y_center=new_centers[n:],
            y_scale=new_sizes[n:],
        )
        columns = self.reader.columns.with_ranges(np.array([low, high]))
        return replace(self, reader=replace(self.reader, columns=columns, scale=new))


@dataclass(frozen=True, eq=False)
class ByBlocks:
    """A pass over the rows of a whole batch, some at a time."""

    task: Callable[[Problem], Any]

    def __call__(self, rows: Problem) -> Any:
        found = None
        for block in blocks_of(rows):
            part = self.task(block)
            found = part if found is None else found + part
        return found


# -- scales -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over rows of numbers and their squares, and the ends of their ranges."""

    n_rows: int
    total: Float
    square: Float
    low: Float
    high: Float

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.n_rows + other.n_rows,
            self.total + other.total,
            self.square + other.square,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    @property
    def center_and_sd(self) -> tuple[Float, Float]:
        center = self.total / self.n_rows
        return center, np.sqrt(np.maximum(self.square / self.n_rows - center**2, 0.0))


def moments(block: Problem) -> Moments:
    """Of the covariates and then the targets less their offsets."""
    y = block.y if block.offset is None else block.y - block.offset
    values = np.hstack([block.x, y])
    return Moments(
        len(values),
        values.sum(axis=0),
        (values**2).sum(axis=0),
        values.min(axis=0),
        values.max(axis=0),
    )


def _rounded(values: Float) -> Float:
    return values.astype(np.float32).astype(float)
