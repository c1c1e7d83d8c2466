"""Many tables, many methods: who wins how often, and which mean ranks chance explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from islab.core.arrays import Float
from islab.evaluate.differences import sign_of

if TYPE_CHECKING:
    from islab.evaluate.result import Comparison

TIE = 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class Ranking:
    """Scores of methods on tables.

    Attributes
    ----------
    scores : (tables, methods)
        Means over splits; NaN where a method has no result.
    se : dict of str to (tables, methods)
        For each method as the reference, standard errors of the differences from it.
    score : str
    """

    scores: pd.DataFrame
    se: dict[str, pd.DataFrame]
    score: str

    @property
    def losses(self) -> pd.DataFrame:
        """The scores with a sign so that low is good."""
        return sign_of(self.score) * self.scores

    @property
    def complete(self) -> list[str]:
        """Methods with a result on all tables; only these have ranks."""
        return [name for name in self.scores if self.scores[name].notna().all()]

    def mean_ranks(self) -> pd.Series:
        """Mean rank of each complete method, 1 is best; equal scores share their ranks."""
        return self.losses[self.complete].rank(axis=1).mean().sort_values()

    def critical_difference(self, level: float = 0.95) -> float:
        """Mean ranks that lie further apart differ by more than chance explains (Nemenyi).

        Notes
        -----
        ``q sqrt(k (k + 1) / (6 N))`` for k methods on N tables, with q the quantile of the
        studentised range for k groups by the root of 2 (Demsar, 2006).
        """
        from scipy.stats import studentized_range

        k, n = len(self.complete), len(self.scores)
        if k < 2:
            raise ValueError(f"Got {k} methods with a result on all tables, expected at least 2.")
        q = studentized_range.ppf(level, k, np.inf) / np.sqrt(2)
        return float(q * np.sqrt(k * (k + 1) / (6 * n)))

    def against(self, reference: str) -> pd.DataFrame:
        """Tables on which ``reference`` wins, ties and loses against each other method.

        Returns
        -------
        DataFrame
            ``wins``, ``ties``, ``losses`` of the reference and ``tables`` with results of both. A
            tie is a difference of at most two standard errors; where they are not known, of 0.
        """
        if reference not in self.scores:
            known = ", ".join(map(str, self.scores))
            raise ValueError(f"Got reference={reference!r}, expected one of {known}.")
        ahead = self.losses.drop(columns=reference).sub(self.losses[reference], axis=0)
        errors = self.se.get(reference)
        width = 0.0 if errors is None else TIE * errors[ahead.columns].fillna(0.0)
        found = {
            "wins": (ahead > width).sum(),
            "ties": (ahead.abs() <= width).sum(),
            "losses": (ahead < -width).sum(),
            "tables": ahead.notna().sum(),
        }
        return pd.DataFrame(found).rename_axis("method")

    def to_frame(self) -> pd.DataFrame:
        """``mean_rank`` of each method, and on how many ``tables`` it has a result and is
        ``first``."""
        first = self.losses.eq(self.losses.min(axis=1), axis=0).sum()
        found = pd.DataFrame(
            {
                "mean_rank": self.mean_ranks().reindex(self.scores.columns),
                "first": first,
                "tables": self.scores.notna().sum(),
            }
        ).rename_axis("method")
        return found.sort_values("mean_rank", kind="stable", na_position="last")

    def __str__(self) -> str:
        lines = [self.to_frame().round(2).to_string(na_rep="-")]
        if len(self.complete) > 1:
            words = f"ranks by {self.score} differ by chance up to {self.critical_difference():.2f}"
            lines.append(f"{words} (Nemenyi, 95 %, {len(self.scores)} tables)")
        return "\n\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_frame().round(2).to_html(escape=True, border=0, na_rep="-")

    def plot(self, ax: Any = None) -> Any:
        """Draws mean ranks on a line, with bars over methods that chance explains.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        from islab.plots.style import INK, POSITIVE, fresh_axes, heading, quiet, shown

        ranks, width = self.mean_ranks(), self.critical_difference()
        ax = fresh_axes(ax, 6.4, 0.8 + 0.34 * len(ranks))
        places = np.arange(len(ranks))
        ax.scatter(ranks, places, color=POSITIVE, s=40, zorder=2)
        for start, end in groups_within(ranks.to_numpy(), width):
            at = ranks.iloc[end] + 0.12 + 0.12 * (start % 3)
            ax.plot([at, at], [start, end], color=INK, linewidth=2.5, solid_capstyle="round")
        ax.set_yticks(places, [shown(name, 24) for name in ranks.index])
        ax.invert_yaxis()
        ax.set_xlabel(f"mean rank by {self.score}, 1 is best")
        heading(ax, f"Methods on {len(self.scores)} tables; bars join what chance explains")
        quiet(ax, grid="x")
        return ax


def groups_within(ranks: Float, width: float) -> list[tuple[int, int]]:
    """First and last of each longest run of sorted ranks that lie within a width."""
    ends = np.searchsorted(ranks, ranks + width, side="right") - 1
    runs = [(start, int(end)) for start, end in enumerate(ends) if end > start]
    return [run for k, run in enumerate(runs) if k == 0 or run[1] > runs[k - 1][1]]


def rank_methods(
    tables: Mapping[str, Comparison] | pd.DataFrame, score: str = "nll", model: str = "full"
) -> Ranking:
    """Ranks of methods over tables.

    Parameters
    ----------
    tables : dict of Comparison, or DataFrame
        Comparisons by the name of their table; or scores, (tables, methods).
    score : str
        One that both kinds of comparisons have, if there are both: ``"nll"`` or ``"ece"``.
    model : {"full", "median"}
        Of methods that have both.

    Examples
    --------
    >>> scores = pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.3]}, index=["one", "two"])
    >>> rank_methods(scores).mean_ranks().to_dict()
    {'a': 1.0, 'b': 2.0}
    """
    sign_of(score)
    if model not in ("full", "median"):
        raise ValueError(f"Got model={model!r}, expected 'full' or 'median'.")
    if not len(tables):
        raise ValueError("Got no tables, expected at least one.")
    if isinstance(tables, pd.DataFrame):
        return Ranking(tables.astype(float), {}, score)
    names = list(dict.fromkeys(name for found in tables.values() for name in found.methods))
    means, errors = {}, {}
    for table, found in tables.items():
        means[table] = found.means(score, model)
        errors[table] = found.errors(score, model)
    scores = pd.DataFrame(means).T.reindex(columns=names).astype(float)
    se = {
        name: pd.DataFrame({t: each[name] for t, each in errors.items() if name in each})
        .T.reindex(index=scores.index, columns=names)
        .astype(float)
        for name in names
    }
    return Ranking(scores, se, score)
