"""Variables with levels: one covariate for each level with enough rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from islab.core.arrays import Float
from islab.core.expressions import Expression, Lookup
from islab.core.names import NAMES_SHOWN, counted, is_number, listed, shortened
from islab.tables.numbers import HALF, MISSING_LEVEL, NOTHING_TO_LEARN, fewest_rows
from islab.tables.reading import (
    BOOLEANS,
    Column,
    Days,
    Labels,
    labelled,
    wrong_kind,
)

OTHER_LEVEL = "(other)"
UNKNOWN = "(not seen in training)"
MOST_LEVELS = 1000
LONGEST_SHOWN = 30


@dataclass(frozen=True)
class Category:
    """A variable with levels."""

    kind: ClassVar[str] = "category"

    name: str
    levels: tuple[str, ...]  # with enough rows in training; then the others together, and missing
    shares: tuple[float, ...]  # of the training rows in each level: for rows of unknown level
    pooled: tuple[str, ...] = ()  # too rare for a covariate, the most frequent first
    n_pooled: int = 0  # all of them; the names of the rarest are not kept

    @property
    def _first(self) -> int:
        """The first level with a covariate of its own; of two levels, one says it all."""
        return 1 if len(self.levels) == 2 else 0

    @property
    def covariates(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={level}" for level in self.levels[self._first :])

    @property
    def varies(self) -> tuple[bool, ...]:
        """For each covariate whether it did in training."""
        return (len(self.levels) > 1,) * len(self.covariates)

    @property
    def parts(self) -> tuple[Category]:
        return (self,)

    @property
    def note(self) -> str:
        """What deserves to be said of it."""
        if len(self.levels) < 2:
            return NOTHING_TO_LEARN
        if not self.n_pooled:
            return ""
        shown = ", ".join(shortened(level, LONGEST_SHOWN) for level in self.pooled[:NAMES_SHOWN])
        more = self.n_pooled - NAMES_SHOWN
        return f"pooled: {shown}" + (f" and {more} more" if more > 0 else "")

    @property
    def spelled(self) -> tuple[str, ...]:
        """The text that the column may hold."""
        return tuple(
            level
            for level in (*self.levels, *self.pooled)
            if level not in (MISSING_LEVEL, OTHER_LEVEL)
        )

    def choices(self) -> tuple[list[str], Float]:
        """What a row may be, the unknown level last, and its covariates, (choices, covariates)."""
        table = np.vstack([np.eye(len(self.levels)), self.shares])
        return [*self.levels, UNKNOWN], table[:, self._first :]

    def encode(self, column: Column, remarks: list[str]) -> Float:
        """The covariates of the variable, (rows, covariates); remarks on what is new are added."""
        labels = as_labels(column, self.name, self.levels)
        position = {level: number for number, level in enumerate(self.levels)}
        # The last entry serves code -1, a missing value.
        names = (*labels.levels, MISSING_LEVEL)
        rest = self._rest
        codes = np.array([position.get(name, rest) for name in names], dtype=np.intp)[labels.codes]
        if self.n_pooled == len(self.pooled):
            known = {*self.levels, *self.pooled}
            new = np.array([name not in known for name in names])[labels.codes]
            treated = "rare" if OTHER_LEVEL in self.levels else "unknown"
            remarks += unknown_levels(self.name, labels, new, self.levels, treated)
        return self.choices()[1][codes]

    @property
    def _rest(self) -> int:
        """How other text is read: as the rare levels together or, if these are few, as unknown."""
        return self.levels.index(OTHER_LEVEL) if OTHER_LEVEL in self.levels else -1

    def value_of(self, level: str, number: int) -> float:
        """One of the covariates of a row with that text."""
        place = self.levels.index(level) if level in self.levels else self._rest
        return float(self.choices()[1][place, number])

    def expression(self, number: int, missing: str) -> Expression:
        """One of the covariates as a formula of the cell, for exports; see :meth:`encode`."""
        own = self.choices()[1][:, number].tolist()
        values = dict(zip(self.levels, own, strict=False))
        return level_lookup(self.name, values, own[self._rest], missing)

    def natural_scale(self, covariates: Float) -> list[float]:
        """For each of its covariates half the distance of 0 and 1."""
        return [HALF] * covariates.shape[1]


def level_lookup(name: str, values: dict[str, float], default: float, missing: str) -> Expression:
    """The number of each level, for exports; see :func:`as_labels` for booleans."""
    if set(values) <= {*BOOLEANS, MISSING_LEVEL}:
        numbers = {str(k): values[level] for k, level in enumerate(BOOLEANS) if level in values}
        values = values | numbers
    absent = np.nan if missing == "error" else values.get(MISSING_LEVEL, default)
    others = tuple((level, value) for level, value in values.items() if value != default)
    return Lookup(name, others, default, absent)


def as_labels(column: Column, name: str, levels: tuple[str, ...]) -> Labels:
    """A later column of a variable that had these levels."""
    if isinstance(column, Labels):
        return column
    if isinstance(column, Days):
        raise wrong_kind("dates", name, f"text as in training ({listed(levels)})")
    labels = labelled(column, declared=True)
    if set(levels) <= {*BOOLEANS, MISSING_LEVEL} and set(labels.levels) <= {"0", "1"}:
        return replace(labels, levels=tuple(BOOLEANS[int(level)] for level in labels.levels))
    if not any(is_number(level) for level in levels) and labels.levels:
        raise ValueError(
            f"Got the number {labels.levels[0]} in column {name!r}, expected text as in "
            f"training: {listed(levels)}."
        )
    return labels


def unknown_levels(
    name: str, labels: Labels, unknown: NDArray[np.bool_], levels: tuple[str, ...], treated: str
) -> list[str]:
    """A remark on levels not seen in training and how their rows are predicted, if there are."""
    if not unknown.any():
        return []
    seen = {labels.levels[code] if code >= 0 else None for code in labels.codes[unknown]}
    names = ["a missing value" if level is None else repr(level) for level in seen]
    return [
        f"Got {listed(sorted(names))} in {counted(int(unknown.sum()), 'row')} of column {name!r}, "
        f"not seen in training, which had {listed(levels)}; these rows are "
        f"predicted as of {treated} level."
    ]


def learn_category(column: Labels, name: str, sample_weight: Float | None = None) -> Category:
    """The variable of a training column; levels of few rows are pooled."""
    counts = np.bincount(column.codes + 1, weights=sample_weight, minlength=len(column.levels) + 1)
    sizes = {level: float(counts[number + 1]) for number, level in enumerate(column.levels)}
    if (column.codes == -1).any():
        # A table may spell missing values as we do, and have others besides.
        sizes[MISSING_LEVEL] = sizes.get(MISSING_LEVEL, 0.0) + float(counts[0])
    n_rows, fewest = sum(sizes.values()), fewest_rows(sum(sizes.values()))
    by_size = sorted(sizes, key=lambda level: (-sizes[level], level))
    frequent = [level for level in by_size[:MOST_LEVELS] if sizes[level] >= fewest]
    kept = {level: sizes[level] for level in frequent}
    pooled = [level for level in by_size if level not in kept]
    rest = sum(sizes[level] for level in pooled)
    if pooled and (rest >= fewest or not kept):
        kept[OTHER_LEVEL] = kept.get(OTHER_LEVEL, 0.0) + rest
    last = {OTHER_LEVEL: 1, MISSING_LEVEL: 2} if pooled or counts[0] else {}
    levels = sorted(kept, key=lambda level: (last.get(level, 0), level))
    total = sum(kept.values()) or n_rows
    shares = tuple(kept[level] / total for level in levels)
    return Category(name, tuple(levels), shares, tuple(pooled[:MOST_LEVELS]), len(pooled))
