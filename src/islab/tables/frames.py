"""The tables people give to estimators, checked as scikit-learn does and a little more."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from functools import wraps
from os import PathLike
from typing import Any, TypeVar, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from islab.core.names import counted, unicode_in

Fit = TypeVar("Fit", bound=Callable[..., Any])

FEWEST_ROWS = 2


def all_or_nothing(fit: Fit) -> Fit:
    """Lets a fit that fails leave the estimator as it was: names, sizes and what it had learned."""

    @wraps(fit)
    def careful(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast("Fit", careful)


def in_memory(table: Any) -> Any:
    """The table; a DuckDB relation as the Arrow table that it gives."""
    duckdb = nw.dependencies.get_duckdb()
    if duckdb is not None and isinstance(table, duckdb.DuckDBPyRelation):
        return table.to_arrow_table()
    return table


def is_frame(table: Any) -> bool:
    """Whether it is a data frame: pandas, polars, pyarrow and others."""
    return bool(nw.dependencies.is_into_dataframe(table))


def row_index(table: Any, n_outputs: int = 1) -> Any:
    """The index of a pandas frame, each entry as often as there are outputs; None of others."""
    index: Any = getattr(table, "index", None)
    return index.repeat(n_outputs) if hasattr(index, "repeat") else None


def columns_where(table: Any, mask: NDArray[np.bool_], output: str) -> Any:
    """Some columns of a data frame: as one of "pandas" or "polars", else as an array."""
    chosen = nw.from_native(table, eager_only=True)[:, np.flatnonzero(mask).tolist()]
    if output == "polars":
        return chosen.to_polars()
    return chosen.to_pandas() if output == "pandas" else chosen.to_pandas().to_numpy()


def n_rows(table: Any) -> int:
    """Rows of a checked table."""
    return table.shape[0]


def rows_where(table: Any, mask: NDArray[np.bool_]) -> Any:
    """Some rows of a checked table."""
    if isinstance(table, np.ndarray):
        return table[mask]
    return nw.from_native(table, eager_only=True).filter(mask.tolist()).to_native()


def checked_table(estimator: BaseEstimator, table: Any, *, reset: bool) -> Any:
    """The table as a data frame or a float array, with names and sizes checked.

    With ``reset`` the estimator learns names and number of columns, else they must agree.
    """
    fewest = FEWEST_ROWS if reset else 1
    table = in_memory(table)
    if isinstance(table, str | PathLike):
        raise TypeError(f"Got X={str(table)!r}, expected data; try pandas.read_csv(X).")
    if isinstance(table, np.ma.MaskedArray):
        table = np.ma.filled(table.astype(np.float64), np.nan)
    if hasattr(table, "collect"):
        raise TypeError(f"Got a lazy {type(table).__name__}, expected data; try X.collect().")
    if not is_frame(table):
        return _checked_array(estimator, table, reset, fewest)
    names = frame_columns(table)
    validate_data(estimator, table, skip_check_array=True, reset=reset)
    if reset and not all(isinstance(name, str) for name in names) and names != [*range(len(names))]:
        warnings.warn(
            f"Got column names that are not text, such as {names[0]!r}: columns are known by their "
            "place only, and called x0, x1, ...; try X.columns = X.columns.map(str).",
            UserWarning,
            stacklevel=4,  # past fit and all_or_nothing
        )
    rows, columns = table.shape
    if rows < fewest or columns < 1:
        raise ValueError(
            f"Got a table with {rows} row(s) and {columns} column(s) (n_samples = {rows}), "
            f"expected at least {fewest} row(s) and 1 column(s)."
        )
    return table


def plain_table(table: Any) -> tuple[Any, list[str]]:
    """A table that no estimator has seen, as a frame or an array, and the names of its columns."""
    table = in_memory(table)
    if is_frame(table):
        return table, [str(name) for name in frame_columns(table)]
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(
            f"Got X with {counted(array.ndim, 'dimension')}, expected a table of rows and columns; "
            "try X.to_frame() for a single column."
        )
    names = [f"x{number}" for number in range(array.shape[1])]
    try:
        return array.astype(np.float64), names
    except (ValueError, TypeError):
        import pandas as pd

        return pd.DataFrame(array.astype(object), columns=names).infer_objects(), names


def column_names(estimator: BaseEstimator) -> list[str]:
    """Names of the table's columns: the user's, or x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{number}" for number in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def _checked_array(estimator: BaseEstimator, table: Any, reset: bool, fewest: int) -> Any:
    kind = table.dtype if isinstance(table, np.ndarray) else np.dtype(float)
    if kind.kind in "mM":
        raise ValueError(
            f"Got an array of type {kind}, expected numbers; try to derive numbers from dates: the "
            "year, the month, the days since a start."
        )
    try:
        return validate_data(
            estimator,
            table,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=fewest,
            reset=reset,
        )
    except (ValueError, TypeError) as error:
        cell = _first_text(table) if "could not convert" in str(error) else None
        if cell is None and isinstance(error, ValueError):
            raise
        frame = _frame_of_objects(table) if kind.kind == "O" else None
        if frame is not None:
            options = {"ensure_all_finite": False, "ensure_min_samples": fewest, "reset": reset}
            validate_data(estimator, table, dtype=None, **options)
            return frame
        if cell is None:
            raise
        row, column, value = cell
        raise ValueError(
            f"Got {value!r} in column {column} (row {row}) of an array, expected numbers; try a "
            "DataFrame, whose columns may hold text."
        ) from error


def _frame_of_objects(table: NDArray) -> Any:
    """An array with text or dates, which other estimators may have made of a frame, as one again.

    None if a column has values of several kinds, or of none that is known.
    """
    import pandas as pd

    if table.ndim != 2:
        return None
    frame = pd.DataFrame(table).infer_objects()
    kinds = {pd.api.types.infer_dtype(column, skipna=True) for _, column in frame.items()}
    return None if {"mixed", "mixed-integer"} & kinds else frame


def _first_text(table: Any) -> tuple[int, int, str] | None:
    """Row, column and value of the first cell that is not a number."""
    cells = np.asarray(table, dtype=object)
    if cells.ndim != 2:
        return None
    for row, column in np.ndindex(cells.shape):
        try:
            float(cells[row, column])
        except ValueError:
            return row, column, str(cells[row, column])
        except TypeError:
            continue
    return None


def frame_columns(table: Any) -> list[str]:
    """Names of a data frame's columns, which must differ."""
    try:
        names = nw.from_native(table, eager_only=True).columns
    except nw.exceptions.DuplicateError:
        names = getattr(table, "column_names", table.columns)  # pyarrow has columns of another kind
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(
            f"Got column name {twice!r} more than once, expected names that differ; try to rename "
            "or drop columns."
        ) from None
    for name in names:
        with unicode_in(f"the column name {name!r}"):
            str(name).encode()
    return names
