"""What a comparison found: every fit, a table as in the paper, and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from islab.core.names import printable, shortened
from islab.evaluate.runner import Record
from islab.scores import inclusion_rate, selection_stability

if TYPE_CHECKING:
    from collections.abc import Iterator

CLASS_SCORES = ("accuracy", "auc", "ece", "nll", "brier")
NUMBER_SCORES = (
    "rmse",
    "mae",
    "r2",
    "pearson",
    "nll",
    "pinball",
    "pinball_paper",
    "coverage",
    "width",
    "crps",
)
SIZES = ("used_weights", "density", "average_depth", "max_depth", "covariates")
SHOWN_SCORES = {
    "classification": ("accuracy", "ece", "nll"),
    "regression": ("rmse", "nll", "coverage"),
    "counts": ("rmse", "nll", "coverage"),
}
SHOWN_SIZES = ("used_weights", "covariates", "stability", "seconds")
NAME_LENGTH = 24
NOTHING = "-"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every fit of every method.

    Attributes
    ----------
    records : tuple of dict
        One for each method and seed: ``method``, ``seed``, ``seconds``, ``selected`` columns and
        ``models``, the scores of the full model and, if there is one, of the median network; or
        ``error``, why there are none.
    task : str
    columns : tuple of str
        Names of the table's columns.
    """

    records: tuple[Record, ...]
    task: str
    columns: tuple[str, ...]

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores."""
        return CLASS_SCORES if self.task == "classification" else NUMBER_SCORES

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(record["method"] for record in self.records))

    def to_frame(self) -> pd.DataFrame:
        """A line for each method, model and seed; for a fit that failed, its error."""
        names = ["method", "model", "seed", *self.scores, *SIZES, "seconds", "selected", "error"]
        return pd.DataFrame(list(self._lines()), columns=names)

    def table(self) -> pd.DataFrame:
        """Median (least, greatest) over seeds, by method and model.

        ``stability`` is the mean agreement of the columns that two seeds select
        (:func:`islab.evaluate.selection_stability`), ``failed`` the number of seeds without result.
        """
        frame, rows = self.to_frame(), {}
        for (method, model), part in frame.groupby(["method", "model"], sort=False):
            numbers = {name: _spread(part[name]) for name in (*self.scores, *SIZES, "seconds")}
            failed = frame.loc[frame["method"] == method, "error"].notna().sum()
            rows[method, model] = {
                **numbers,
                "stability": _number(self._stability(method), "stability"),
                "failed": str(failed),
            }
        for method in self.failures():
            if (method, "full") not in rows:
                failed = str((frame["method"] == method).sum())
                rows[method, NOTHING] = {"failed": failed}
        names = [*self.scores, *SIZES, "stability", "seconds", "failed"]
        index = pd.MultiIndex.from_tuples(rows, names=["method", "model"])
        found = pd.DataFrame(list(rows.values()), index=index, columns=names)
        return found.astype(object).fillna(NOTHING).loc[list(self.methods)]

    def inclusion(self) -> pd.DataFrame:
        """Share of seeds in which each method selects each column, (columns, methods)."""
        rates = {
            method: inclusion_rate(chosen, self.columns)
            for method in self.methods
            if (chosen := self._selections(method))
        }
        return pd.DataFrame(rates, index=list(self.columns))

    def failures(self) -> dict[str, str]:
        """For each method with a failure the seeds it failed on, and why the first time."""
        found = {}
        for method in self.methods:
            own = [record for record in self.records if record["method"] == method]
            errors = [record["error"] for record in own if record["error"] is not None]
            if errors:
                found[method] = f"failed on {len(errors)} of {len(own)} seeds: {errors[0]}"
        return found

    def to_csv(self, path: str | Path) -> None:
        """Writes :meth:`to_frame`, the selected columns separated by semicolons."""
        from islab.io.files import replacing

        frame = self.to_frame()
        frame["selected"] = [";".join(x) if isinstance(x, list) else "" for x in frame["selected"]]
        with replacing(path) as file:
            file.write(frame.to_csv(index=False).encode())

    def to_html(self, path: str | Path) -> None:
        """Writes tables and picture to one page that needs no other file."""
        from islab.io.files import replacing
        from islab.report.comparison import comparison_page

        with replacing(path) as file:
            file.write(comparison_page(self).encode())

    def plot(self, model: str = "median", ax: Any = None) -> Any:
        """Draws the score against the used weights, with the calibration as colour.

        Parameters
        ----------
        model : {"median", "full"}
            Of methods that have both.
        ax : matplotlib axes, optional
        """
        from islab.evaluate.picture import score_by_size

        return score_by_size(self, model, ax)

    def __str__(self) -> str:
        shown = self.table()
        parts = [_text(shown[list(SHOWN_SCORES[self.task])]), _text(shown[list(SHOWN_SIZES)])]
        failures = [
            f"{shortened(printable(m), NAME_LENGTH)} {why}" for m, why in self.failures().items()
        ]
        below = [*self.notes(), *failures]
        return "\n\n".join([*parts, *(["\n".join(below)] if below else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table().to_html(escape=True, border=0)

    def _lines(self) -> Iterator[dict[str, Any]]:
        for record in self.records:
            own = {"method": record["method"], "seed": record["seed"], "error": record["error"]}
            if record["error"] is not None:
                yield own
                continue
            selected = record["selected"]
            count = np.nan if selected is None else len(selected)
            for model, scores in record["models"].items():
                numbers = {k: np.nan if v is None else v for k, v in scores.items()}
                more = {"covariates": count, "seconds": record["seconds"], "selected": selected}
                yield {**own, "model": model, **numbers, **more}

    def notes(self) -> Iterator[str]:
        """How penalties were chosen, methods with the same folds on one line."""
        by_folds: dict[str, dict[str, None]] = {}
        for record in self.records:
            if record.get("folds"):
                methods = by_folds.setdefault(record["folds"], {})
                methods[shortened(printable(record["method"]), NAME_LENGTH)] = None
        for folds, methods in by_folds.items():
            yield f"settings of {', '.join(methods)} chosen within the training rows by {folds}"

    def _selections(self, method: str) -> list[list[str]]:
        own = (record for record in self.records if record["method"] == method)
        return [record["selected"] for record in own if record.get("selected") is not None]

    def _stability(self, method: str) -> float:
        chosen = self._selections(method)
        return selection_stability(chosen) if len(chosen) > 1 else float("nan")


def _spread(values: pd.Series) -> str:
    known = values.dropna().to_numpy(dtype=float)
    if not len(known):
        return NOTHING
    ends = [np.median(known), known.min(), known.max()]
    middle, low, high = (_number(float(value), str(values.name)) for value in ends)
    return middle if len(known) == 1 else f"{middle} ({low}, {high})"


def _number(value: float, name: str) -> str:
    """Three digits of a score, four of a share of weights, one of a count or of seconds."""
    if np.isnan(value):
        return NOTHING
    if name == "density":
        return f"{value:.4f}"
    if name in (*SIZES, "seconds"):
        return f"{value:.0f}" if value == round(value) or value >= 1000 else f"{value:.1f}"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.0f}"


def _text(table: pd.DataFrame) -> str:
    """A table for the terminal: two columns of names at the left, the others at the right."""
    head = ["method", "model", *(name.replace("_", " ") for name in table.columns)]
    names = [[shortened(printable(str(part)), NAME_LENGTH) for part in key] for key in table.index]
    rows = [head, *([*name, *cells] for name, cells in zip(names, table.to_numpy(), strict=True))]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < 2 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
