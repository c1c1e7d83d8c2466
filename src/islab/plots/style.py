"""One look for all plots: colours, fresh axes, and names shown as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from islab.core.dependencies import needed
from islab.core.names import printable, shortened
from islab.io.files import replacing

POSITIVE = "#2c6fbb"
NEGATIVE = "#d9722e"
INK = "#22364d"
MUTED = "#7b8794"
FAINT = "#dfe4ea"
PAPER = "#eef2f7"

LONGEST_NAME = 32


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says what to install."""
    return needed("matplotlib.pyplot", "A plot", "islab-bnn[plots]")


def fresh_axes(ax: Any, width: float, height: float) -> Any:
    """The axes given, or new ones in a figure of that size in inches."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=(width, height), layout="constrained")[1]


def axes_grid(axes: Any, rows: int, columns: int, width: float, height: float) -> Any:
    """An array (rows, columns) of axes: those given, or new ones of that size each.

    Parameters
    ----------
    axes : axes or array of axes, optional
        As many as the grid has places.
    """
    import numpy as np

    if axes is None:
        return pyplot().subplots(
            rows,
            columns,
            figsize=(columns * width, rows * height),
            layout="constrained",
            squeeze=False,
        )[1]
    given = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(given) != rows * columns:
        raise ValueError(
            f"Got {len(given)} axes, expected {rows * columns} ({rows} x {columns}); "
            "leave ax out for a new figure."
        )
    return given.reshape(rows, columns)


def save_figure(figure: Any, path: str | Path, **options: Any) -> None:
    """Writes a figure whole or not at all, in the format that the name ends with, else PNG."""
    kind = Path(path).suffix[1:] or "png"
    with replacing(path) as file:
        figure.savefig(file, format=kind, **options)


def on_one_line(name: object, length: int = LONGEST_NAME) -> str:
    """A name on one line, not too long."""
    return shortened(printable(str(name)), length)


def shown(name: object, length: int = LONGEST_NAME) -> str:
    """A name for matplotlib: one line, not too long, its dollars no mathematics."""
    return on_one_line(name, length).replace("$", r"\$")


def number(value: float) -> str:
    """A number for a picture, in three digits and with a proper minus; years without a comma.

    Millions are told as such: ``50M``.
    """
    if value == 0:
        return "0"
    large = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.0f}"
    text = large if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    if 1e6 <= abs(value) < 1e9:
        text = f"{float(f'{value / 1e6:.3g}'):g}M"
    return text.replace("-", "\u2212")


def quiet(ax: Any, grid: str | None = None) -> None:
    """Takes away what carries no data; a faint grid along one axis if asked."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(colors=INK, labelcolor=INK)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, linewidth=0.8)


def heading(ax: Any, text: str, size: float = 10) -> None:
    """A title at the left."""
    ax.set_title(text, loc="left", fontsize=size, color=INK)


def diverging() -> Any:
    """Negative over white to positive."""
    colors = needed("matplotlib.colors", "A plot", "islab-bnn[plots]")
    return colors.LinearSegmentedColormap.from_list("islab", [NEGATIVE, "#ffffff", POSITIVE])


def sequential() -> Any:
    """From paper to ink."""
    colors = needed("matplotlib.colors", "A plot", "islab-bnn[plots]")
    return colors.LinearSegmentedColormap.from_list("islab", ["#f7f9fb", "#9dbce0", INK])
