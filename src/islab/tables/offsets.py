"""Offsets of the predictor: numbers or exposures, given as arrays or as columns of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from islab.core.arrays import Float
from islab.tables.frames import frame_columns, is_frame

Given = ArrayLike | str | None


@dataclass(frozen=True)
class OffsetColumns:
    """Columns of the table that hold an offset or an exposure; they are no covariates.

    Attributes
    ----------
    offset, exposure : str, optional
        Names of columns; None where there is none, or where an array was given.
    """

    offset: str | None = None
    exposure: str | None = None

    @classmethod
    def among(cls, offset: Given, exposure: Given) -> OffsetColumns:
        """Those of the two that are names."""
        return cls(
            offset if isinstance(offset, str) else None,
            exposure if isinstance(exposure, str) else None,
        )

    @property
    def names(self) -> list[str]:
        return [name for name in (self.offset, self.exposure) if name is not None]

    def without(self, table: Any) -> Any:
        """The table without these columns, if it has them."""
        if not self.names or not is_frame(table):
            return table
        frame = nw.from_native(table, eager_only=True)
        present = [name for name in self.names if name in frame.columns]
        return frame.drop(present).to_native() if present else table


def read_offset(table: Any, offset: Given, exposure: Given, n_outputs: int) -> Float | None:
    """What is added to the predictor, (rows, outputs): ``offset`` + log ``exposure``.

    None if neither is given.

    Parameters
    ----------
    table : table
        In which columns are looked up, and whose rows are counted.
    offset, exposure : (rows,), (rows, outputs), str or None
    n_outputs : int
    """
    if offset is None and exposure is None:
        return None
    total: Float = np.zeros((len(table), n_outputs))
    if offset is not None:
        total = total + _numbers(table, offset, "offset", n_outputs)
    if exposure is not None:
        values = _numbers(table, exposure, "exposure", n_outputs)
        if (values <= 0).any():
            row = int((values <= 0).any(axis=1).argmax())
            raise ValueError(
                f"Got exposure {values[row].min():g} (row {row}), expected positive numbers; try "
                "to drop rows without exposure, in which nothing can be counted."
            )
        total = total + np.log(values)
    return total


def _numbers(table: Any, given: ArrayLike | str, name: str, n_outputs: int) -> Float:
    """Finite numbers, (rows, 1) or (rows, outputs)."""
    values = _column(table, given, name) if isinstance(given, str) else given
    found = check_array(
        values, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name=name
    )
    shape = found.shape
    found = found.reshape(len(found), -1) if found.ndim else np.full((len(table), 1), found)
    if found.ndim > 2 or len(found) != len(table) or found.shape[1] not in (1, n_outputs):
        raise ValueError(
            f"Got {name} of shape {shape}, expected one number for each of the {len(table)} rows "
            "of X."
        )
    wrong = ~np.isfinite(found).all(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"Got {found[row].tolist()[0]} in {name} (row {row}), expected finite numbers; try to "
            "drop rows without one."
        )
    return found


def _column(table: Any, column: str, name: str) -> Any:
    if not is_frame(table):
        raise ValueError(
            f"Got {name}={column!r} and X without column names, expected a data frame with that "
            f"column; try {name}= with an array."
        )
    if column not in frame_columns(table):
        raise ValueError(
            f"Got X without the column {column!r}, which holds the {name}, expected one; try "
            f"{name}= with an array."
        )
    return nw.from_native(table, eager_only=True)[column].to_numpy()
