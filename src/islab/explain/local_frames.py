"""Local explanations as long tables, for notebooks, and for shap."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.core.dependencies import needed
from islab.core.names import printable
from islab.core.outputs import baseline_name
from islab.core.summary import Summary

if TYPE_CHECKING:
    import pandas as pd

    from islab.explain.local_explanation import LocalExplanation

MOST_LINES = 60
PARTS = ("sd", "lower", "upper", "lower_error", "upper_error")


def variable_frame(explanation: LocalExplanation) -> pd.DataFrame:
    """A line for each row, output and used variable."""
    import pandas as pd

    names, outputs = explanation.variables, explanation.outputs
    columns = _long_index(explanation.labels, names, outputs, "variable")
    values, start = variable_values(explanation)
    columns["value"] = np.repeat(values.ravel(), len(outputs))
    columns["baseline"] = np.tile(np.repeat(start, len(outputs)), len(values))
    columns |= _statistics(explanation.variable_summary, "contribution")
    columns["exact"] = np.full(len(columns["value"]), explanation.exact)
    return pd.DataFrame(columns)


def covariate_frame(explanation: LocalExplanation) -> pd.DataFrame:
    """A line for each row, output and used covariate."""
    import pandas as pd

    used, outputs, rows = explanation.used, explanation.outputs, len(explanation.x)
    columns = _long_index(explanation.labels, explanation.covariates, outputs, "covariate")
    names = np.array([explanation.scale.variables[column] for column in used], dtype=object)
    columns["variable"] = np.tile(np.repeat(names, len(outputs)), rows)
    columns["value"] = np.repeat(explanation.x[:, used].ravel(), len(outputs))
    columns["baseline"] = np.tile(np.repeat(explanation.baseline[used], len(outputs)), rows)
    columns |= _statistics(explanation.slope_summary, "slope")
    for name, distance in zip(("below", "above"), explanation.reach, strict=True):
        columns[f"linear_{name}"] = np.repeat(distance.ravel(), len(outputs))
    columns |= _statistics(explanation.contribution_summary, "contribution")
    columns["exact"] = np.full(len(columns["value"]), explanation.exact)
    return pd.DataFrame(columns)


def prediction_frame(explanation: LocalExplanation) -> pd.DataFrame:
    """A line for each row and output."""
    import pandas as pd

    rows, outputs = explanation.predictor.shape
    columns: dict[str, Any] = {
        "row": np.repeat(np.asarray(explanation.labels), outputs),
        "output": np.tile(np.array(explanation.outputs, dtype=object), rows),
    }
    for name in ("intercept", "predictor", "response"):
        columns |= _statistics(getattr(explanation, f"{name}_summary"), name)
    columns["exact"] = np.full(rows * outputs, explanation.exact)
    return pd.DataFrame(columns)


FRAMES: dict[str, Callable[[LocalExplanation], pd.DataFrame]] = {
    "variables": variable_frame,
    "covariates": covariate_frame,
    "predictions": prediction_frame,
}


def variable_values(
    explanation: LocalExplanation,
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Values of the used variables of all rows (rows, used variables), and of the baseline.

    Those that the estimator gave, or what the covariates say.
    """
    every = explanation.scale.variable_names
    places = [every.index(name) for name in explanation.variables]
    values, start = explanation.values, explanation.baseline_shown
    if values is None:
        values = _from_covariates(explanation, explanation.x)
    if start is None:
        start = _from_covariates(explanation, explanation.baseline[None])[0]
    return values[:, places], start[places]


def _from_covariates(explanation: LocalExplanation, x: NDArray) -> NDArray[np.object_]:
    """A number for a variable of one covariate; of several, the name of the largest."""
    scale = explanation.scale
    owners = np.array(scale.variables, dtype=object)
    found = np.empty((len(x), len(scale.variable_names)), dtype=object)
    for place, variable in enumerate(scale.variable_names):
        columns = np.flatnonzero(owners == variable)
        if len(columns) == 1:
            found[:, place] = x[:, columns[0]]
        else:
            names = [scale.names[column].removeprefix(f"{variable}=") for column in columns]
            found[:, place] = np.array(names, dtype=object)[x[:, columns].argmax(axis=1)]
    return found


def as_html(explanation: LocalExplanation) -> str:
    """A heading and the table of variables, of the first rows if there are many."""
    frame = variable_frame(explanation)
    shown = [c for c in frame if not c.endswith(("_error", "_sd", "exact"))]
    start = baseline_name(explanation.scale, explanation.baseline)
    heading = f"{explanation!r}; contributions counted from {start}"
    text = frame.select_dtypes(exclude=["number", "bool"]).columns
    frame = frame.assign(**{name: frame[name].map(_harmless) for name in text})
    table = frame[shown].head(MOST_LINES).to_html(index=False, float_format="{:.4g}".format)
    left = len(frame) - MOST_LINES
    more = f"<p>... and {left} more lines</p>" if left > 0 else ""
    return f"<div><p>{escape(heading)}</p>{table}{more}</div>"


def as_shap(explanation: LocalExplanation) -> Any:
    """The contributions of variables as a ``shap.Explanation``."""
    shap = needed("shap", "A shap.Explanation")
    summary = explanation.variable_summary
    values, lower, upper = summary.mean, summary.lower, summary.upper
    base = explanation.intercept
    outputs = explanation.outputs
    if len(outputs) == 1:
        values, lower, upper, base = (part[..., 0] for part in (values, lower, upper, base))
    display = variable_values(explanation)[0]
    return shap.Explanation(
        values=values,
        base_values=base,
        data=_as_numbers(display),
        display_data=display,
        lower_bounds=lower,
        upper_bounds=upper,
        feature_names=list(explanation.variables),
        output_names=list(outputs) if len(outputs) > 1 else outputs[0],
    )


def _as_numbers(display: NDArray[np.object_]) -> NDArray[np.floating]:
    """Numbers as they are, text by its position among the column's sorted values."""
    found = np.empty(display.shape)
    for place in range(display.shape[1]):
        column = display[:, place]
        text = any(isinstance(value, str) for value in column)
        codes = np.unique(column.astype(str), return_inverse=True)[1] if text else column
        found[:, place] = codes
    return found


def _statistics(summary: Summary, name: str) -> dict[str, Any]:
    """Mean under the name itself, then sd, interval and the errors of its ends."""
    parts = {name: "mean"} | {f"{name}_{part}": part for part in PARTS}
    # A zero has no sign.
    return {column: getattr(summary, part).ravel() + 0.0 for column, part in parts.items()}


def _long_index(
    labels: NDArray, names: tuple[str, ...], outputs: tuple[str, ...], what: str
) -> dict[str, Any]:
    """The columns row, output and what it is about, names within rows, outputs within names."""
    each, every = np.array(names, dtype=object), np.array(outputs, dtype=object)
    return {
        "row": np.repeat(np.asarray(labels), len(each) * len(every)),
        "output": np.tile(every, len(labels) * len(each)),
        what: np.tile(np.repeat(each, len(every)), len(labels)),
    }


def _harmless(cell: Any) -> Any:
    return printable(cell) if isinstance(cell, str) else cell
