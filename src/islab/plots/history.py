"""How training went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from islab.plots.style import INK, POSITIVE, axes_grid, heading, quiet, shown

if TYPE_CHECKING:
    import pandas as pd


def training_history(history: pd.DataFrame, *, step: str = "step", ax: Any = None) -> Any:
    """Draws every numeric column of a history against its steps.

    Parameters
    ----------
    history : DataFrame
        With a column of steps (or epochs) and others to draw.
    step : str
        Name of the column of steps.
    ax : axes or array of axes, optional
        One for each column drawn.

    Returns
    -------
    array of axes
    """
    if step not in history:
        raise ValueError(
            f"Got step={step!r}, expected a column of the history: {list(history.columns)}."
        )
    numeric = history.select_dtypes(include=["number", "bool"]).columns
    columns = [column for column in numeric if column != step and history[column].notna().any()]
    if not columns:
        raise ValueError("Got a history without numbers, expected a column other than the steps.")
    if ax is None:
        across = min(len(columns), 3)
        axes = axes_grid(None, -(-len(columns) // across), across, 3.6, 2.4).ravel()
    else:
        axes = axes_grid(ax, 1, len(columns), 0, 0).ravel()
    for panel, column in zip(axes, columns, strict=False):
        line = history[[step, column]].dropna()
        # A single point makes no line: show it as a dot.
        marker = "o" if len(line) == 1 else None
        panel.plot(line[step], line[column], color=POSITIVE, linewidth=1.4, marker=marker)
        panel.set_xlabel(shown(step), color=INK, fontsize=8.5)
        panel.tick_params(labelsize=8)
        heading(panel, shown(column), 9.5)
        quiet(panel, grid="y")
    for panel in axes[len(columns) :]:
        panel.set_axis_off()
    return axes[: len(columns)]
