"""A fitted model in a few lines: its size, and what it uses."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core import families
from islab.core.names import printable, shortened

if TYPE_CHECKING:
    import pandas as pd

    from islab.estimators.base import NetworkEstimator

NAME_LENGTH = 36
LINES_SHOWN = 30
HEAD = ("covariate", "weights", "inclusion", "used", "depth")
COLUMNS = [
    "covariate",
    "variable",
    "weights",
    "inclusion",
    "used_probability",
    "min_depth",
    "max_depth",
]


@dataclass(frozen=True)
class ModelSummary:
    """Facts about a model and a table of the covariates it uses.

    Attributes
    ----------
    title : str
    facts : dict
        Name and value of each fact, ready to read.
    covariates : DataFrame
        A line for each used covariate: its variable, how many used weights start at it, their
        mean inclusion probability, the posterior probability that some active path starts at it
        (NaN for sparse files), and the least and greatest depth from which it contributes.
    """

    title: str
    facts: dict[str, str]
    covariates: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """The table of used covariates."""
        return self.covariates.copy()

    def to_dict(self) -> dict[str, Any]:
        """Facts and table in JSON's types."""
        lines = self.covariates.to_dict(orient="records")
        covariates = [{k: None if v != v else v for k, v in line.items()} for line in lines]
        return {"title": self.title, "facts": self.facts, "covariates": covariates}

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        facts = [f"  {name:<{width}}  {value}" for name, value in self.facts.items()]
        return "\n".join([self.title, *facts, "", *self._lines()])

    __repr__ = __str__

    def _lines(self) -> list[str]:
        if self.covariates.empty:
            return ["  No covariate is kept: what is left predicts the same for all rows."]
        rows = self._rows()
        width = max(len(row[0]) for row in (HEAD, *rows))
        left = len(self.covariates) - len(rows)
        lines = [
            f"  {name:<{width}}  {weights:>7}  {inclusion:>9}  {used:>5}  {depth:>5}"
            for name, weights, inclusion, used, depth in (HEAD, *rows)
        ]
        return [*lines, f"  ... and {left} more"] if left else lines

    def _rows(self) -> list[tuple[str, ...]]:
        shown = self.covariates.head(LINES_SHOWN)
        return [tuple(_cells(line)) for line in shown.to_dict(orient="records")]

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self.facts.items()
        )
        body = "".join(_html_row("td", row) for row in self._rows())
        return (
            f"<div><h4>{escape(self.title)}</h4><table>{facts}</table>"
            f"<table><thead>{_html_row('th', HEAD)}</thead><tbody>{body}</tbody></table></div>"
        )


def _html_row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _cells(line: dict[str, Any]) -> list[str]:
    low, high, used = line["min_depth"], line["max_depth"], line["used_probability"]
    return [
        shortened(printable(line["covariate"]), NAME_LENGTH),
        str(line["weights"]),
        "-" if np.isnan(line["inclusion"]) else f"{line['inclusion']:.2f}",
        "-" if np.isnan(used) else f"{used:.2f}",
        str(low) if low == high else f"{low}-{high}",
    ]


def summarise_model(estimator: NetworkEstimator) -> ModelSummary:
    """The summary of a fitted estimator."""
    network = estimator.network_
    facts = {
        "likelihood": network.likelihood,
        "outputs": shortened(printable(", ".join(network.scale.outputs)), 2 * NAME_LENGTH),
        "used weights": f"{estimator.n_used_weights_} of {network.n_weights_initial}",
        "used covariates": f"{len(network.covariates)} of {network.n_covariates}",
        "depth": f"{network.average_depth:.2f} on average, {network.max_depth} at most",
    }
    if estimator.interrupted_:
        facts["training"] = "interrupted before its end; the best model so far"
    if estimator.elbo_ is not None:
        facts["ELBO"] = f"{estimator.elbo_:.2f}"
    facts |= {name: f"{value:.4g}" for name, value in estimator.chosen_.items()}
    if families.likelihood(network.likelihood).learns_noise:
        sds = network.noise_in_units() ** 0.5
        facts["noise sd"] = ", ".join(f"{sd:.4g}" for sd in sds)
    if estimator.disagreement_ is not None:
        facts["caution"] = estimator.disagreement_
    return ModelSummary(type(estimator).__name__, facts, _used_covariates(estimator))


def _used_covariates(estimator: NetworkEstimator) -> pd.DataFrame:
    """The used lines of the global explanation, the surest first."""
    network = estimator.network_
    frame = estimator.explain_global().covariates
    start = network.from_covariate()
    columns = network.edge_ends()[0][start]
    total = np.bincount(columns, weights=network.alpha[start], minlength=len(frame))
    frame = frame.assign(weights=frame["count"], inclusion=total / np.maximum(frame["count"], 1))
    used = frame[frame["weights"] > 0].astype({"min_depth": int, "max_depth": int})
    order = ["used_probability", "inclusion", "weights"]
    return used[COLUMNS].sort_values(order, ascending=False, ignore_index=True)
