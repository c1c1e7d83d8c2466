"""Targets, what task they mean, and the levels that predictions may be asked for, checked."""

from __future__ import annotations

import warnings
from datetime import date, time, timedelta
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d

from islab.core import families
from islab.core.arrays import Float
from islab.core.names import is_number, shortened, unicode_in
from islab.tables.columns import LEAST_SPREAD, SMALLEST_SCALE
from islab.tables.frames import frame_columns, is_frame, n_rows

LABEL_KINDS = "biufU"
TIMES = (date, time, timedelta, np.datetime64, np.timedelta64, pd.Period)
FEW_VALUES = 10
MOST_ERRORS = 4.0  # standard errors
LARGEST_CLASS = 2.0**53
LARGEST_SCALE = 1e150
MOST_LEVELS = 256
LONGEST_SHOWN = 30


def detected_task(y: pd.Series) -> str:
    """Classification for text, booleans and a few whole numbers, else regression."""
    if not is_numeric_dtype(y):
        _refuse_text_among_numbers(y)
    if is_bool_dtype(y) or not is_numeric_dtype(y):
        return "classification"
    # Beyond this all floats are whole, and none of them names a class.
    whole = bool((y == y.round()).all()) and bool((y.abs() < LARGEST_CLASS).all())
    return "classification" if whole and y.nunique() <= FEW_VALUES else "regression"


def _refuse_text_among_numbers(y: pd.Series) -> None:
    """Refuses a target of numbers that a few cells of text have turned into text."""
    values = [str(value) for value in y.unique()]
    text = [value for value in values if not is_number(value)]
    if text and len(text) < len(values) / 2 and len(values) > FEW_VALUES:
        raise ValueError(
            f"Got {shortened(text[0], LONGEST_SHOWN)!r} in column {y.name!r}, where other values "
            "are numbers, expected numbers only; try to leave such cells empty, or to name the "
            "task, classification"
        )


def checked_labels(estimator: BaseEstimator, y: ArrayLike, table: Any) -> NDArray:
    """Classes, one for each row of the table."""
    _require(estimator, y)
    if isinstance(y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        y = y.to_numpy()  # nullable types become what they are if nothing is missing
    labels = column_or_1d(y, warn=True)
    _check_rows(labels, table)
    missing = pd.isna(labels)
    if labels.dtype.kind == "f":
        missing |= np.isinf(labels)
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(
            f"Got {labels[row]} in y (row {row}; NaN and inf are not allowed), expected a class "
            "for each row; try to drop rows without one."
        )
    return plain_labels(labels, "y")


def levels_of(y: Any, classes: NDArray, likelihood: str) -> NDArray | None:
    """The classes from the lowest to the highest, None if they have no order, or are two."""
    categories = _ordered_categories(y)
    if likelihood == "auto":
        ordered = categories is not None
    else:
        ordered = families.likelihood(likelihood).ordered
    if not ordered or len(classes) < 3:
        return None
    if len(classes) > MOST_LEVELS:
        raise ValueError(
            f"Got {len(classes)} ordered classes, expected at most {MOST_LEVELS}; try "
            "ISLaBRegressor."
        )
    if categories is not None:
        return classes[np.argsort([categories.index(name) for name in classes.tolist()])]
    if classes.dtype.kind in "OU":
        raise ValueError(
            f"Got likelihood={likelihood!r} with classes such as {classes.tolist()[0]!r}, whose "
            "order is not known, expected numbers or an ordered Categorical; try "
            "pd.Categorical(y, categories=[...], ordered=True) with the lowest class first."
        )
    return classes


def _ordered_categories(y: Any) -> list[Any] | None:
    """The categories of an ordered Categorical, from the lowest."""
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        return dtype.categories.tolist()
    return None


def codes_of(labels: NDArray, classes: NDArray) -> NDArray[np.intp]:
    """Position of each label among the classes, which need not be sorted."""
    order = np.argsort(classes, kind="stable")
    return order[np.minimum(np.searchsorted(classes[order], labels), len(classes) - 1)]


def plain_labels(labels: NDArray, name: str) -> NDArray:
    """Labels that are text, numbers or booleans; others are refused."""
    classes = _of_one_type(labels, name) if labels.dtype.kind == "O" else labels
    text = classes.dtype.kind == "O" and isinstance(labels[0], str)
    if not (text or classes.dtype.kind in LABEL_KINDS) or classes.ndim > 1:
        raise ValueError(
            f"Got classes such as {labels[0]!r} in {name}, expected text, whole numbers or "
            f"booleans; try {name}.astype(str)."
        )
    if text or classes.dtype.kind == "U":
        with unicode_in(f"the classes of {name}"):
            "".join(set(classes.tolist())).encode()
    return classes


def _of_one_type(labels: NDArray, name: str) -> NDArray:
    """Labels of unknown type as text, booleans or numbers, whichever they are."""
    kinds = sorted({type(label).__name__ for label in labels})
    if all(isinstance(label, str) for label in labels):
        return labels
    if any(isinstance(label, str) for label in labels) or len(kinds) > 1:
        raise ValueError(
            f"Got classes of different types in {name} ({', '.join(kinds)}), expected one type; "
            f"try {name}.astype(str)."
        )
    try:
        return np.array(labels.tolist())
    except ValueError:  # lists of different lengths
        return labels[:, None]


def possible_likelihoods(values: Float) -> tuple[str, ...]:
    """Likelihoods of counts for whole numbers none of which is negative, else of real numbers.

    Counts whose variance is their expectation or more, given covariates, vary as much altogether:
    whole numbers that vary less, such as grades, are real numbers.
    """
    error = MOST_ERRORS * np.sqrt(2 / len(values))
    grades = (values.var(axis=0) < (1 - error) * values.mean(axis=0)).any()
    if (values < 0).any() or (values != np.round(values)).any() or grades:
        return families.likelihoods("numbers")
    names = families.likelihoods("counts")
    if (values == 0).any():
        return names
    return tuple(name for name in names if not families.likelihood(name).inflates_zeros)


def checked_numbers(
    estimator: BaseEstimator, y: ArrayLike, table: Any, likelihood: str | None = None
) -> Float:
    """Targets of a regression, (rows,) or (rows, outputs), that a likelihood allows."""
    _require(estimator, y)
    try:
        if _has_times(y):
            raise ValueError(
                "Got dates or times in y, expected numbers; try days since some date, such as "
                "(y - y.min()) / pd.Timedelta('1D')."
            )
        values = check_array(
            y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="y"
        )
    except OverflowError as error:
        raise ValueError(f"Got {error} in y, expected finite numbers; try another unit.") from error
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(
            f"Got text in y ({error}), expected numbers; try ISLaBClassifier for classes."
        ) from error
    if values.ndim > 2:
        raise ValueError(f"Got y of shape {values.shape}, expected (rows,) or (rows, outputs).")
    _check_rows(values, table)
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(
            f"Got {values[wrong][0]} in y (row {row}; NaN and inf are not allowed), "
            "expected a finite number for each row; try to drop rows without one."
        )
    if likelihood is not None:
        families.likelihood(likelihood).check_target(values)
    return values


def _has_times(y: Any) -> bool:
    """Whether a column of targets begins, but for missing values, with a date or a time."""
    columns = [y[name] for name in frame_columns(y)] if is_frame(y) else [y]
    for column in columns:
        values = np.atleast_1d(np.asarray(column))
        if values.dtype.kind in "mM":
            return True
        if values.dtype.kind == "O":
            known = values[~pd.isna(values)]
            if any(isinstance(value, TIMES) for value in known.flat[:1]):
                return True
    return False


def target_scale(target: Float, weight: Float | None, likelihood: str) -> tuple[Float, Float]:
    """Center and scale on which targets (rows, outputs) are learned.

    Others than 0 and 1 have only those that vary, with a likelihood that scales its target.
    """
    if not families.likelihood(likelihood).scales_target:
        return np.zeros(target.shape[1]), np.ones(target.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.average(target, axis=0, weights=weight)
        reach = np.abs(target - center).max(axis=0)
        share = (target - center) / np.where(reach > 0, reach, 1.0)
        scale = reach * np.sqrt(np.average(share**2, axis=0, weights=weight))
    varies = ~(scale <= LEAST_SPREAD * np.abs(center))
    wrong = varies & ~((scale > SMALLEST_SCALE) & (scale < LARGEST_SCALE))
    if wrong.any():
        raise ValueError(
            f"Got y from {target.min():.3g} to {target.max():.3g}, expected a standard deviation "
            f"from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}; try another unit or a logarithm."
        )
    if (~varies & (reach > 1)).any():
        raise ValueError(
            f"Got y from {target.min():.3g} to {target.max():.3g}, numbers so large that they "
            "differ by their rounding only, expected some that vary; try another unit, or to "
            "subtract a constant."
        )
    return center, np.where(varies, scale, 1.0)


def warn_of_constants(target: Float, outputs: tuple[str, ...], weight: Float | None) -> None:
    """Says which targets (rows, outputs) are the same in all rows that count."""
    counted = target if weight is None else target[weight > 0]
    for name, column in zip(outputs, counted.T, strict=True):
        if (column == column[0]).all():
            warnings.warn(
                f"The target {name!r} is {column[0]:g} in all rows: there is nothing to learn.",
                UserWarning,
                stacklevel=4,  # past fit and all_or_nothing
            )


def output_names(y: Any, n_outputs: int) -> tuple[str, ...]:
    """Names of the targets: the user's if there are any."""
    if is_frame(y):
        return tuple(str(name) for name in frame_columns(y))
    name = getattr(y, "name", None)
    if n_outputs == 1:
        named = str(name) if isinstance(name, str) and name else "y"
        with unicode_in(f"the name {named!r} of y"):
            named.encode()
        return (named,)
    return tuple(f"y{number}" for number in range(n_outputs))


def in_order(y: Any, outputs: tuple[str, ...]) -> Any:
    """Targets in the order of training, if they are a frame with the same columns in another."""
    if not is_frame(y):
        return y
    names = [str(name) for name in frame_columns(y)]
    if set(names) != set(outputs):
        return y
    return np.asarray(y)[:, [names.index(name) for name in outputs]]


def checked_levels(levels: ArrayLike) -> Float:
    """Quantile levels, (levels,)."""
    values = np.atleast_1d(np.asarray(levels, dtype=float))
    if values.ndim != 1 or not len(values) or not ((values > 0) & (values < 1)).all():
        raise ValueError(f"Got levels={levels!r}, expected numbers between 0 and 1.")
    return values


def interval_levels(level: float) -> tuple[float, float]:
    """Levels of the ends of a central interval."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"Got level={level!r}, expected a number between 0 and 1; try 0.9.")
    return (1 - level) / 2, (1 + level) / 2


def _require(estimator: BaseEstimator, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None; try "
            "fit(X, y)."
        )
    if isinstance(y, str):
        raise ValueError(
            f"Got y={y!r}, expected a target for each row; try y=X[{y!r}], and X without it."
        )
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError("Got masked values in y, expected a target for each row.")


def _check_rows(y: NDArray, table: Any) -> None:
    if len(y) != n_rows(table):
        raise ValueError(
            f"Got {n_rows(table)} rows of X and {len(y)} of y, expected as many of each; found "
            "input variables with inconsistent numbers of samples."
        )
