"""A fitted model in a few lines: its effects with intervals, how sure they are, and its size."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from islab.core import families
from islab.core.diagnostics import diagnose
from islab.core.names import in_figures, printable, shortened
from islab.core.posterior import Posterior
from islab.core.sampled import SampledPosterior
from islab.estimators.training_fit import NAME_LENGTH

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.convolution.posterior import SparseImageNetwork
    from islab.core.sparse import SparseNetwork
    from islab.estimators.posterior import PosteriorEstimator
    from islab.explain import GlobalExplanation

LINES_SHOWN = 30
CHANGES_SHOWN = 5  # of one variable
TERM_LENGTH = 48
LEAST_NEGATIVE = -0.005  # a share that needs a word
EFFECT_NOTE = (
    "if nothing else changes: numbers by one unit (within the range that is named, where their "
    "slope changes), categories from their typical level"
)
INTERCEPT_NOTE = (
    "The intercept is the predictor where numbers are 0 and categories at their typical level."
)


@dataclass(frozen=True)
class Summary:
    """Facts about a model and a table of its parts.

    Attributes
    ----------
    title : str
    facts : dict
        Name and value of each fact, ready to read.
    """

    title: str
    facts: dict[str, str]
    table_name: ClassVar[str]

    def to_frame(self) -> pd.DataFrame:
        """The table."""
        return getattr(self, self.table_name).copy()

    def to_dict(self) -> dict[str, Any]:
        """Facts and table in JSON's types."""
        lines = _records(self.to_frame())
        return {"title": self.title, "facts": self.facts, self.table_name: lines}

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        facts = [f"  {name:<{width}}  {value}" for name, value in self.facts.items()]
        return "\n".join([self.title, *facts, "", *self._lines()])

    __repr__ = __str__

    @property
    def notes(self) -> list[str]:
        """Sentences on how to read the table."""
        return []

    @property
    def _n_left(self) -> int:
        """Lines of the table that are not shown."""
        return 0

    def _lines(self) -> list[str]:
        """The table as text."""
        raise NotImplementedError

    def _more(self) -> list[str]:
        """That lines are left out, if some are."""
        return [f"... and {self._n_left} more; see to_frame()"] if self._n_left else []

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The table's head and its rows, ready to read."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self.facts.items()
        )
        head, rows = self._cells()
        body = "".join(_html_row("td", row) for row in rows)
        below = "".join(f"<p>{escape(sentence)}</p>" for sentence in [*self._more(), *self.notes])
        return (
            f"<div><h4>{escape(self.title)}</h4><table>{facts}</table><table>"
            f"<thead>{_html_row('th', head)}</thead><tbody>{body}</tbody></table>{below}</div>"
        )


@dataclass(frozen=True, repr=False)
class ModelSummary(Summary):
    """Facts about a model of tables, and the effects of its variables.

    Attributes
    ----------
    effects : DataFrame
        A line for each number and each level of a category, and output: its effect with interval,
        see :func:`islab.explain.effect_table.effect_table`; and ``share``, the variable's share of
        the predictor's variance over the rows given, or those of training.
    covariates : DataFrame
        A line for each covariate of the readable network: its variable, how many used weights
        start at it, their mean inclusion probability, the posterior probability that some active
        path starts at it (NaN for sparse files), and the least and greatest depth from which it
        contributes.
    level : float
        Of the intervals.
    ratio : str, optional
        What the exponential of an effect is called.
    explanation : GlobalExplanation, optional
        Where the tables come from.
    linear : bool
        Whether the model reads as a linear regression: its effects are coefficients.
    """

    effects: pd.DataFrame
    covariates: pd.DataFrame
    level: float = 0.95
    ratio: str | None = None
    explanation: GlobalExplanation | None = None
    linear: bool = False
    table_name = "effects"

    def to_frame(self, table: str = "effects") -> pd.DataFrame:
        """``"effects"`` or ``"covariates"``, all lines."""
        if table not in ("effects", "covariates"):
            raise ValueError(f"Got table={table!r}, expected 'effects' or 'covariates'.")
        return getattr(self, table).copy()

    def to_dict(self) -> dict[str, Any]:
        """Facts and both tables in JSON's types."""
        return {**super().to_dict(), "covariates": _records(self.covariates)}

    def _lines(self) -> list[str]:
        nothing = "  No covariate is kept: what is left predicts the same for all rows."
        lines = [nothing] if self.covariates.empty else []
        if self.effects.empty:
            return lines
        head, rows = self._cells()
        columns = list(zip(head, *rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        lines += ["  " + "  ".join(_aligned(cells, widths)).rstrip() for cells in (head, *rows)]
        lines += [f"  {words}" for words in self._more()]
        return [*lines, "", *(f"  {sentence}" for sentence in self.notes)]

    @property
    def _n_left(self) -> int:
        shown = self.shown_effects(LINES_SHOWN)
        left = len(self.effects) - sum(line is not None for line, _ in shown)
        return left - sum(count for line, count in shown if line is None)

    @property
    def notes(self) -> list[str]:
        curves = None if self.explanation is None else self.explanation.curves
        where = "of the typical row" if curves is None or curves.x is None else "averaged over rows"
        what = "Coefficients" if self.linear else "Effects"
        found = [f"{what} with {self.level:.0%} intervals, {where}, {EFFECT_NOTE}."]
        if self.linear:
            found.append(INTERCEPT_NOTE)
        elif curves is not None and curves.x is None:
            found.append(
                "Given rows, as in summary(X), effects are averaged over them"
                + (", and have shares of the variance." if "share" not in self.effects else ".")
            )
        if (
            curves is not None
            and families.likelihood(curves.networks.likelihood).relative_predictor
        ):
            found.append("Classes are scored against the mean over classes.")
        if "share" in self.effects:
            note = "Shares are a variable's part of the variance of the predictor over rows"
            offset = (self.effects["share"] < LEAST_NEGATIVE).any()
            end = ", negative where correlated variables offset each other." if offset else "."
            found.append(note + end)
        return found

    def shown_effects(self, most: int) -> list[tuple[dict[str, Any] | None, int]]:
        """Lines to show: all but the smallest changes of variables that have many.

        Each is a line of ``effects`` with 0, or None with the number of changes left out after the
        variable's last line.
        """
        found: list[tuple[dict[str, Any] | None, int]] = []
        each = CHANGES_SHOWN * max(1, self.effects["output"].nunique())
        for _, lines in self.effects.groupby("variable", sort=False):
            own = lines.head(each).to_dict(orient="records")
            found += [(line, 0) for line in own[: most - len(found)]]
            if len(found) >= most:
                break
            if len(lines) > len(own):
                found.append((None, len(lines) - len(own)))
        return found

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        several = len(set(self.effects["output"])) > 1
        head = ["variable", *(["output"] if several else [])]
        head += ["coefficient", "sd"] if self.linear else ["effect"]
        head += ["interval", *([self.ratio, "interval"] if self.ratio else [])]
        head += ["P(used)", "P(not linear)"]
        head += ["share"] if "share" in self.effects else []
        rows, last = [], None
        for line, left_out in self.shown_effects(LINES_SHOWN):
            if line is None:
                rows.append((f"  ... {left_out} smaller", *[""] * (len(head) - 1)))
                continue
            cells = [shortened(printable(line["term"]), TERM_LENGTH)]
            cells += [shortened(printable(line["output"]), NAME_LENGTH)] if several else []
            effect = _estimate(line, "effect")
            cells += (
                [effect[0], in_figures(line["effect_sd"]), effect[1]] if self.linear else effect
            )
            cells += _estimate(line, "ratio") if self.ratio else []
            cells += [_probability(line["p_used"]), _probability(line["p_nonlinear"])]
            if "share" in line:
                cells.append("" if line["variable"] == last else f"{line['share']:.1%}")
            last = line["variable"]
            rows.append(tuple(cells))
        return tuple(head), rows


@dataclass(frozen=True, repr=False)
class CovariateSummary(Summary):
    """Facts about a model whose effects are not known, and the covariates it uses.

    Attributes
    ----------
    covariates : DataFrame
        A line for each, with the number of used weights that start at it.
    """

    covariates: pd.DataFrame
    table_name = "covariates"

    def _lines(self) -> list[str]:
        head, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ["  " + "  ".join(_aligned(cells, widths)) for cells in (head, *rows)]
        return [*lines, *(f"  {words}" for words in self._more())]

    @property
    def _n_left(self) -> int:
        return max(len(self.covariates) - LINES_SHOWN, 0)

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        shown = self.covariates.head(LINES_SHOWN)
        names = [shortened(printable(name), NAME_LENGTH) for name in shown["covariate"]]
        counts = shown["weights"].astype(str)
        rows: list[tuple[str, ...]] = list(zip(names, counts, strict=True))
        return ("covariate", "weights"), rows


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _aligned(cells: tuple[str, ...], widths: list[int]) -> list[str]:
    """Names to the left, numbers to the right."""
    first, *others = zip(cells, widths, strict=True)
    return [f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in others)]


def _estimate(line: dict[str, Any], name: str) -> list[str]:
    low, high = line[f"{name}_lower"], line[f"{name}_upper"]
    return [in_figures(line[name]), f"[{in_figures(low)}, {in_figures(high)}]"]


def _probability(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict(orient="records")


def facts_of_size(
    network: SparseNetwork | SparseImageNetwork, outputs: tuple[str, ...]
) -> dict[str, str]:
    return {
        "likelihood": network.likelihood,
        "outputs": shortened(printable(", ".join(outputs)), 2 * NAME_LENGTH),
        "used weights": f"{network.n_used_weights} of {network.n_weights_initial}",
    }


def facts_of_training(estimator: PosteriorEstimator) -> dict[str, str]:
    facts = {}
    if estimator.interrupted_:
        facts["training"] = "interrupted before its end; the best model so far"
    # Of a sampled posterior it is the bound of the run that its chains started from.
    if estimator.elbo_ is not None and not isinstance(estimator.posterior_, SampledPosterior):
        error = estimator.elbo_error_
        facts["ELBO"] = f"{estimator.elbo_:.2f}" + (f" ± {error:.2f}" if error else "")
    posterior = estimator.posterior_
    asked = getattr(estimator, "posterior", None) == "flow"
    if asked and isinstance(posterior, Posterior) and posterior.multipliers is None:
        facts["flow"] = "left out: it does not raise the bound of independent weights"
    return facts


def facts_of_networks(posterior: Any) -> dict[str, str]:
    """Whether chains have mixed or how runs are stacked, and what reading one network costs."""
    facts = {}
    if stacking := getattr(posterior, "stacking", None):
        facts["restarts"] = stacking
    elif isinstance(posterior, SampledPosterior):
        facts["chains"] = diagnose(posterior).words
    if all_rows := getattr(posterior, "all_rows", None):
        facts["rows"] = all_rows.words
    if price := getattr(posterior, "price", None):
        facts["readable network"] = price.words
    return facts
