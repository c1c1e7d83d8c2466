"""Explanations of a fitted estimator, for tables as they are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from islab.core.arrays import Float
from islab.core.outputs import require_piecewise_linear
from islab.estimators.drawn_rows import Model
from islab.estimators.predictions import Predictions
from islab.tables.categories import Category
from islab.tables.columns import ColumnEncoder
from islab.tables.dates import Cycle, Moment
from islab.tables.frames import checked_table, is_frame
from islab.tables.numbers import Number
from islab.tables.offsets import OffsetColumns
from islab.tables.orders import Ordered
from islab.tables.rows import outside_range, shown_values

if TYPE_CHECKING:
    import pandas as pd

    from islab.estimators.base import NetworkEstimator
    from islab.explain import GlobalExplanation, LocalExplanation
    from islab.explain.grids import Grid


def explain_rows(
    estimator: NetworkEstimator,
    X: Any,
    model: Model | None,
    baseline: Any,
    *,
    n_draws: int | None = None,
    approximate: bool = False,
    **options: Any,
) -> LocalExplanation:
    """The local explanation of a table's rows."""
    from islab.core.outputs import baseline_values
    from islab.explain.drawn import ExplainedNetworks
    from islab.explain.local import explain_draws

    rows = estimator.predictions(X, n_draws=n_draws)
    source = rows.source(model)
    if not approximate:
        require_piecewise_linear(source, "approximate=True for integrals by quadrature")
    scale = estimator.network_.scale
    if baseline is None:
        baseline = "typical" if options.get("kind", "integrated") == "integrated" else "zero"
    start = baseline_values(scale, _row_of(estimator, baseline))
    networks = ExplainedNetworks.of(source, scale, rows.networks(model))
    _warn_of_other_classes(rows, model)
    return explain_draws(
        networks,
        rows.covariates,
        baseline=start,
        labels=row_labels(X, len(rows)),
        values=shown_values(estimator.columns_, rows.covariates, _table_of(estimator, X)),
        baseline_shown=shown_values(estimator.columns_, start[None])[0],
        **options,
    )


def explain_model(
    estimator: NetworkEstimator, X: Any, model: Model | None, n_draws: int = 200, **options: Any
) -> GlobalExplanation:
    """The global explanation, over a table's rows if there are any."""
    from islab.explain import explain_global

    check_is_fitted(estimator)
    rows = None if X is None else estimator.predictions(X)
    covariates = None if rows is None else rows.covariates
    content: dict[str, Any] = {
        "random_state": estimator.seed_,
        "grids": grids_of(estimator.columns_, covariates, estimator.network_.scale.typical),
        "model": model,
        "n_draws": n_draws,
    }
    if rows is not None:
        content["draws"] = partial(rows.thinned, n_draws, model)
    return explain_global(
        estimator.network_, covariates, estimator.posterior_, **content, **options
    )


def rows_outside(estimator: NetworkEstimator, X: Any) -> pd.DataFrame:
    """Which rows have values that training did not see, and of which variables."""
    import pandas as pd

    known = getattr(estimator, "offset_columns_", OffsetColumns())
    table = checked_table(estimator, known.without(X), reset=False)
    found = outside_range(estimator.columns_, table)
    marks = np.array(list(found.values())).reshape(len(found), -1).T
    names = np.array(list(found), dtype=object)
    variables = [tuple(names[row]) for row in marks]
    labels = getattr(X, "index", None) if is_frame(X) else None
    return pd.DataFrame(
        {"outside": marks.any(axis=1), "variables": variables},
        index=labels if isinstance(labels, pd.Index) else None,
    )


def _table_of(estimator: NetworkEstimator, X: Any) -> Any:
    """The data frame without what is no covariate; None for arrays."""
    known = getattr(estimator, "offset_columns_", OffsetColumns())
    return known.without(X) if is_frame(X) else None


def row_labels(X: Any, n_rows: int) -> NDArray:
    """Names of rows: the index of a data frame that has one, or their positions."""
    index = getattr(X, "index", None) if is_frame(X) else None
    return np.arange(n_rows) if index is None else np.asarray(index)


def grids_of(encoder: ColumnEncoder, covariates: Float | None, typical: Float) -> list[Grid]:
    """Values of each variable at which effects are found.

    Numbers: where the rows have them, from the least to the greatest value in training.
    Categories: all levels. Missing values are a point of their own if the model knows them.
    """
    from islab.explain.grids import Grid, number_points

    grids, first = [], 0
    for variable in encoder.variables:
        columns = np.arange(first, first + len(variable.covariates))
        first += len(columns)
        if not len(columns):
            continue
        trend = variable.trend if isinstance(variable, Moment) else variable
        if isinstance(trend, Number):
            own = _known_numbers(trend, columns, covariates, typical)
            values = number_points(own, trend.low, trend.high)
            # Season and weekday of a date stay those of the typical row.
            codes = np.repeat(typical[columns][None], len(values), axis=0)
            codes[:, 0] = values
            shown = values if trend.tails is None else trend.tails.restore(values)
            mark = int(columns[1]) if trend.indicator else None
            if trend.indicator and isinstance(variable, Number):
                shown = np.append(shown, np.nan)
                codes = np.vstack([codes, [trend.fill, 1.0]])
            grid = Grid(variable.name, columns, shown, codes, is_category=False, mark=mark)
            if isinstance(variable, Moment):
                switches = _switches(variable, int(columns[0]))
                grid = replace(grid, start=variable.start, switches=switches)
            grids.append(grid)
        else:
            assert isinstance(trend, Category | Ordered)
            names, codes = trend.choices()
            levels = np.array(names[:-1], dtype=object)
            grids.append(Grid(variable.name, columns, levels, codes[:-1], is_category=True))
    return grids


def _switches(variable: Moment, first: int) -> tuple[Grid, ...]:
    """Month, hour and weekday of a date, whose first covariate is given."""
    from islab.explain.grids import Grid

    found, first = [], first + len(variable.trend.covariates)
    for part in variable.parts[1:]:
        assert isinstance(part, Category | Cycle)
        names, codes = part.choices()
        columns = np.arange(first, first + len(part.covariates))
        levels = np.array(names[:-1], dtype=object)
        found.append(Grid(part.name, columns, levels, codes[:-1], is_category=True))
        first += len(columns)
    return tuple(found)


def _known_numbers(
    variable: Number, columns: NDArray[np.intp], covariates: Float | None, typical: Float
) -> Float:
    """Values in the rows, or without rows points over the range and the typical value."""
    if covariates is None:
        return np.append(np.linspace(variable.low, variable.high, 39), typical[columns[0]])
    own = covariates[:, columns]
    return own[own[:, 1] == 0, 0] if variable.indicator else own[:, 0]


def _row_of(estimator: NetworkEstimator, baseline: Any) -> Any:
    """A baseline as covariates, if it is a row of a table; else as it is."""
    if isinstance(baseline, str) or not (is_frame(baseline) or np.ndim(baseline) == 2):
        return baseline
    covariates = estimator.predictions(baseline).covariates
    if len(covariates) != 1:
        raise ValueError(
            f"Got a baseline of {len(covariates)} rows, expected one row; try baseline[:1]."
        )
    return covariates[0]


def _warn_of_other_classes(rows: Predictions, model: Model | None) -> None:
    """Says that the readable network predicts other classes for some of the rows."""
    predicted = getattr(rows, "predicted", None)
    if model != "median" or rows.posterior is None or predicted is None:
        return
    differ = int((predicted("median") != predicted("full")).sum())
    if differ:
        warnings.warn(
            f"The class that is explained differs from the predicted class in {differ} of "
            f"{len(rows)} rows: predict averages over the posterior, this explains the readable "
            "network; try model='full'.",
            UserWarning,
            stacklevel=4,
        )
