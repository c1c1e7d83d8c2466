"""What a comparison found: every fit, a table as in the paper, and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from islab.core.names import printable, shortened
from islab.evaluate.differences import USUAL_SHARE, paired_differences, sign_of
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
COMPARED = "nll"


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

    def of_model(self, model: str = "full") -> pd.DataFrame:
        """The lines of :meth:`to_frame` of one model of each method, fits that failed left out.

        Parameters
        ----------
        model : {"full", "median"}
            Of methods that have both.
        """
        if model not in ("full", "median"):
            raise ValueError(f"Got model={model!r}, expected 'full' or 'median'.")
        frame = self.to_frame()
        both = set(frame.loc[frame["model"] == "median", "method"])
        own = frame["method"].map(lambda name: model if name in both else "full")
        return frame[frame["model"] == own]

    def differences(
        self, score: str = "nll", reference: str | tuple[str, str] | None = None
    ) -> pd.DataFrame:
        """How much each method's score differs from that of a reference, on the same splits.

        Parameters
        ----------
        score : str
            One with a good end, such as ``"nll"``, ``"accuracy"`` or ``"rmse"``.
        reference : str or (str, str), optional
            A method, or a method and which of its models; the first method with a result if not
            given.

        Returns
        -------
        DataFrame
            By method and model: ``difference`` (mean over splits, method - reference) and its
            standard error ``se``; the splits on which the method is ``better`` and ``worse``, and
            of how many ``splits``.

        Notes
        -----
        The unit is the split, not the row: a new training set changes the order of methods as new
        test rows do. Splits overlap, so the standard error is that of Nadeau and Bengio (2003),
        ``s sqrt(1 / J + n_test / n_train)`` for J splits. A difference of two standard errors is
        clear.
        """
        sign_of(score)
        if score not in self.scores:
            raise ValueError(f"Got score={score!r} for {self.task}, expected one it has.")
        frame = self.to_frame()
        known = frame.loc[frame["error"].isna(), ["method", "model"]].drop_duplicates()
        keys = list(known.itertuples(index=False, name=None))
        if reference is None:
            chosen = keys[0] if keys else ("", "")
        else:
            chosen = (reference, "full") if isinstance(reference, str) else reference
        if chosen not in keys:
            raise ValueError(f"Got reference={reference!r}, expected a method with a result.")
        shares = [record.get("test_by_train", USUAL_SHARE) for record in self.records]
        return paired_differences(frame, score, chosen, float(np.mean(shares)))

    def means(self, score: str, model: str = "full") -> pd.Series:
        """Mean of a score over splits, by method."""
        return self.of_model(model).groupby("method", sort=False)[score].mean()

    def errors(self, score: str, model: str = "full") -> dict[str, pd.Series]:
        """For each method as the reference, the standard errors of the others' differences."""
        chosen = self.of_model(model)
        own = chosen.drop_duplicates("method").set_index("method")["model"]
        found = {}
        for method, which in own.items():
            compared = self.differences(score, (method, which))["se"]
            wanted = [(name, each) for name, each in own.items() if name != method]
            found[method] = compared.reindex(wanted).droplevel("model")
        return found

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
        differences = self.shown_differences()
        if differences is not None:
            parts += [f"{self.difference_words()}:", _text(differences)]
        return "\n\n".join([*parts, *(["\n".join(below)] if below else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table().to_html(escape=True, border=0)

    def shown_differences(self) -> pd.DataFrame | None:
        """Differences in words for people; None where there is nothing to compare."""
        try:
            found = self.differences(COMPARED)
        except ValueError:
            return None
        if not len(found):
            return None
        cells = [
            {
                "difference": NOTHING if np.isnan(row.difference) else f"{row.difference:+.3f}",
                "standard error": _number(row.se, "se"),
                "better on": f"{row.better} of {row.splits}",
            }
            for row in found.itertuples()
        ]
        return pd.DataFrame(cells, index=found.index)

    def difference_words(self) -> str:
        """What the differences are differences of."""
        first = next(record["method"] for record in self.records if record["error"] is None)
        name = shortened(printable(first), NAME_LENGTH)
        return f"{COMPARED} minus that of {name} (full) on the same splits"

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
