"""The long tables of a local explanation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core.summary import summarise

if TYPE_CHECKING:
    import pandas as pd

    from islab.explain.local import LocalExplanation


def covariate_frame(explanation: LocalExplanation) -> pd.DataFrame:
    """A line for each row, output and used covariate."""
    import pandas as pd

    rows, used, outputs = explanation.slope_used.shape
    columns = _long_index(rows, explanation.covariates, explanation.outputs)
    names = [explanation.scale.variables[column] for column in explanation.used]
    columns["variable"] = np.tile(np.repeat(np.array(names, dtype=object), outputs), rows)
    columns["value"] = np.repeat(explanation.x[:, explanation.used].ravel(), outputs)
    columns["slope"] = explanation.slope_used.ravel()
    columns |= explanation.slope_summary.columns("slope")
    columns["contribution"] = explanation.contribution_used.ravel()
    columns |= explanation.contribution_summary.columns("contribution")
    columns["exact"] = np.full(rows * used * outputs, explanation.exact)
    return pd.DataFrame(columns)


def variable_frame(explanation: LocalExplanation) -> pd.DataFrame:
    """A line for each row, output and variable: its one-hot columns together."""
    import pandas as pd

    names, point, draws = explanation.by_variable()
    columns = _long_index(len(explanation.x), names, explanation.outputs)
    columns["variable"] = columns.pop("covariate")
    columns["contribution"] = point.ravel()
    columns |= summarise(draws, explanation.level).columns("contribution")
    columns["exact"] = np.full(point.size, explanation.exact)
    return pd.DataFrame(columns)


def prediction_frame(explanation: LocalExplanation) -> pd.DataFrame:
    """A line for each row and output."""
    import pandas as pd

    rows, outputs = explanation.predictor.shape
    columns: dict[str, Any] = {
        "row": np.repeat(np.arange(rows), outputs),
        "output": np.tile(np.array(explanation.outputs, dtype=object), rows),
    }
    for name in ("intercept", "predictor", "response"):
        columns[name] = getattr(explanation, name).ravel()
        columns |= getattr(explanation, f"{name}_summary").columns(name)
    columns["exact"] = np.full(rows * outputs, explanation.exact)
    return pd.DataFrame(columns)


FRAMES: dict[str, Callable[[LocalExplanation], pd.DataFrame]] = {
    "covariates": covariate_frame,
    "variables": variable_frame,
    "predictions": prediction_frame,
}


def _long_index(rows: int, covariates: tuple[str, ...], outputs: tuple[str, ...]) -> dict[str, Any]:
    """The columns row, output and covariate of a long frame, covariates within rows."""
    names, labels = np.array(covariates, dtype=object), np.array(outputs, dtype=object)
    return {
        "row": np.repeat(np.arange(rows), len(names) * len(labels)),
        "output": np.tile(labels, rows * len(names)),
        "covariate": np.tile(np.repeat(names, len(labels)), rows),
    }
