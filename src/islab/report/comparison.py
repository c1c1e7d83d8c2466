"""The page of a comparison of methods: tables and one picture."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from islab.report.environment import render

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup


class Compared(Protocol):
    """What the page reads of a comparison; :class:`islab.evaluate.Comparison` is one."""

    @property
    def task(self) -> str: ...

    @property
    def methods(self) -> tuple[str, ...]: ...

    def table(self) -> pd.DataFrame: ...

    def inclusion(self) -> pd.DataFrame: ...

    def failures(self) -> dict[str, str]: ...

    def notes(self) -> Iterable[str]: ...

    def shown_differences(self) -> pd.DataFrame | None: ...

    def difference_words(self) -> str: ...

    def plot(self, *, ax: Any) -> Any: ...


def comparison_page(comparison: Compared) -> str:
    """The page's text."""
    scores, inclusion = comparison.table(), comparison.inclusion()
    scores.columns = [name.replace("_", " ") for name in scores.columns]
    differences = comparison.shown_differences()
    return render(
        "comparison.html",
        title="Comparison",
        n_methods=len(comparison.methods),
        task=comparison.task,
        scores=_table(scores),
        differences=None if differences is None else _table(differences),
        difference_words="" if differences is None else comparison.difference_words(),
        notes=list(comparison.notes()),
        failures=comparison.failures(),
        picture=_picture(comparison),
        inclusion=None if inclusion.empty else _table(inclusion, "{:.2f}".format),
    )


def _table(frame: pd.DataFrame, float_format: Any = None) -> Markup:
    """The frame as pandas writes it, its text escaped."""
    from markupsafe import Markup

    return Markup(frame.to_html(escape=True, border=0, float_format=float_format))


def _picture(comparison: Compared) -> Markup | None:
    """The plot as SVG; None where there is no matplotlib or nothing to draw."""
    from markupsafe import Markup

    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure, file = Figure(figsize=(6.4, 4.4), layout="constrained"), io.StringIO()
    try:
        comparison.plot(ax=figure.subplots())
    except ValueError:
        return None
    with rc_context({"svg.hashsalt": "islab"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return Markup(text[text.index("<svg") :])
