"""Bars for single rows: contributions with intervals, attributions, drivers of uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.explain.drivers import Drivers
from islab.explain.integrated import IntegratedGradients
from islab.explain.local import LocalExplanation
from islab.explain.summary import summarise
from islab.plots.style import (
    INK,
    MUTED,
    NEGATIVE,
    POSITIVE,
    axes_grid,
    chosen_outputs,
    chosen_rows,
    heading,
    number,
    quiet,
    shown,
)

Float = NDArray[np.floating]

BAR = 0.27
SCALES = {"bernoulli": "logit", "categorical": "class score", "poisson": "log rate"}


@dataclass(frozen=True)
class _Bars:
    """One panel: bars from the largest to the smallest, with intervals if there are any."""

    names: list[str]
    sizes: Float
    lower: Float | None
    upper: Float | None
    title: str
    label: str


def local_bars(
    explanation: LocalExplanation,
    *,
    rows: int | Sequence[int] | None = None,
    outputs: str | int | Sequence[str | int] | None = None,
    top: int = 10,
    by_variable: bool = False,
    axes: Any = None,
) -> Any:
    """Draws the largest contributions of each row to each output, with credible intervals.

    Parameters
    ----------
    explanation : LocalExplanation
    rows : int or sequence of int, optional
        Rows of the explanation; all if not given.
    outputs : name, position or several of them, optional
        Outputs of the explanation; all if not given.
    top : int
        Bars shown at most; what is left is added up in one more.
    by_variable : bool
        One bar for each variable: its one-hot columns together.
    axes : axes or array of axes, optional
        One for each row and output.

    Returns
    -------
    array of axes, (rows, outputs)
    """
    where, which = chosen_rows(rows, len(explanation.x)), chosen_outputs(outputs, explanation)
    names: Sequence[str]
    if by_variable:
        names, point, draws = explanation.by_variable()
        point, draws = point[where][..., which], draws[:, where][..., which]
    else:
        names = explanation.covariates
        distance = (explanation.x - explanation.baseline)[:, explanation.used]
        point = explanation.contribution_used[where][..., which]
        draws = explanation.draws_slope_used[:, where][..., which] * distance[where, :, None]
    panels = []
    for i, row in enumerate(where):
        for k, output in enumerate(which):
            values = None if by_variable else explanation.x[row, explanation.used]
            panels.append(
                _contribution_bars(
                    _with_values(names, values),
                    point[i, :, k],
                    draws[:, i, :, k],
                    top,
                    explanation.level,
                    _prediction(explanation, row, output),
                    _predictor(explanation, row, output),
                )
            )
    return _draw(panels, len(where), len(which), axes)


def attribution_bars(
    attributions: IntegratedGradients,
    *,
    rows: int | Sequence[int] | None = None,
    outputs: str | int | Sequence[str | int] | None = None,
    top: int = 10,
    axes: Any = None,
) -> Any:
    """Draws the largest integrated gradients of each row and output.

    Parameters and returned axes are those of :func:`local_bars`.
    """
    where, which = chosen_rows(rows, len(attributions.x)), chosen_outputs(outputs, attributions)
    panels = []
    for row in where:
        names = _with_values(attributions.covariates, attributions.x[row])
        for output in which:
            sizes = attributions.attribution[row, :, output]
            kept, sizes = _largest([*names], sizes, top)
            start, end = attributions.baseline_link[output], attributions.link[row, output]
            title = f"row {row}, {shown(attributions.outputs[output])}"
            label = f"from {number(start)} at the baseline to {number(end)} at the row"
            panels.append(_Bars(kept, sizes, None, None, title, label))
    return _draw(panels, len(where), len(which), axes)


def driver_bars(
    drivers: Drivers,
    *,
    rows: int | Sequence[int] | None = None,
    outputs: str | int | Sequence[str | int] | None = None,
    top: int = 10,
    axes: Any = None,
) -> Any:
    """Draws the largest shares of the variance of each row's predictor, in percent.

    Parameters and returned axes are those of :func:`local_bars`.
    """
    where, which = chosen_rows(rows, len(drivers.share)), chosen_outputs(outputs, drivers)
    names = [*(shown(name) for name in drivers.covariates), "(intercept)"]
    panels = []
    for row in where:
        for output in which:
            share = np.append(drivers.share[row, :, output], drivers.intercept_share[row, output])
            kept, sizes = _largest(names, 100 * np.nan_to_num(share), top)
            title = f"row {row}, {shown(drivers.outputs[output])}: what makes it uncertain"
            label = f"% of the variance, sd {number(drivers.variance[row, output] ** 0.5)}"
            if drivers.noise is not None:
                label += f"; noise apart, sd {number(drivers.noise[output] ** 0.5)}"
            panels.append(_Bars(kept, sizes, None, None, title, label))
    return _draw(panels, len(where), len(which), axes)


def _contribution_bars(
    names: list[str], point: Float, draws: Float, top: int, level: float, title: str, label: str
) -> _Bars:
    order, rest = _order(point, top)
    point, drawn = point[order], draws[:, order]
    names = [names[index] for index in order]
    if len(rest):
        names.append(f"{len(rest)} others")
        total = draws[:, rest].sum(axis=1, keepdims=True)
        everything = draws.shape[1] - len(rest)
        assert len(point) == everything
        drawn = np.concatenate([drawn, total], axis=1)
        point = np.append(point, 0.0)
    summary = summarise(drawn, level)
    return _Bars(names, point, summary.lower, summary.upper, title, label)


def _order(sizes: Float, top: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the largest, and those of the rest; a rest of one is shown by itself."""
    order = np.argsort(-np.abs(sizes), kind="stable")
    if len(order) <= top + 1:
        return order, order[:0]
    return order[:top], order[top:]
