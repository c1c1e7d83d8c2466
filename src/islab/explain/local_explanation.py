"""What is told of single rows: contributions, slopes and predictions, over draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from islab.core.names import counted, former_name
from islab.core.outputs import Baseline, baseline_values
from islab.core.scale import Scale
from islab.core.summary import Summary, summarise

if TYPE_CHECKING:
    import pandas as pd

    from islab.explain.variance_shares import Drivers

Float = NDArray[np.floating]
Index = NDArray[np.intp]
Kind = Literal["integrated", "linear"]

LARGEST_DRAWS = 500_000_000
NUMBERS_AT_ONCE = 5_000_000
SAME_LINE = 1e-8  # of what is added up, for rounding


@dataclass(frozen=True, eq=False)
class LocalExplanation:
    """Contributions, slopes and predictions of rows, over draws of the network.

    ``intercept + sum of contributions`` is the predictor of the row, in every draw and for the
    means over draws. All numbers are means over draws; summaries hold their intervals. They are
    found when they are first asked for, a few rows at a time, so that memory stays bounded; only
    the attributes that start with ``draws_`` hold all draws.

    Everything is in the user's units: the predictor is in the unit of y, or the log odds, log rate
    or class score; a slope is its change for one unit of the covariate as it stands in the data.

    Attributes
    ----------
    draws : RowDraws
        The networks explained, and what each gives for the rows.
    x : (rows, covariates)
    baseline : (covariates,)
        Where contributions are counted from.
    kind : {"integrated", "linear"}
        Integrated contributions follow the network all the way from the baseline to the row, and
        the intercept is the network's own value at the baseline. Linear ones follow the row's own
        line: ``slope_j * (x_j - baseline_j)``.
    used : (used covariates,)
        Columns that some draw reads.
    outputs : tuple of str
        The outputs explained.
    likelihood : str
    level : float
        Of the credible intervals.
    exact : bool
        False for curved networks: integrals are then numerical, and slopes hold at the row only.
    reference : str, optional
        ``"center"`` if predictors are given against the mean over classes, or the class they are
        given against.
    noise : (outputs,)
        Noise variance of Gaussian outputs, which no draw includes.
    scale : Scale
    labels : (rows,)
        Names of the rows: the index of the user's data frame, or their positions.
    values : (rows, variables), optional
        Values of all variables, as people know them; without them covariates are shown.
    baseline_shown : (variables,), optional
        The same of the baseline.
    """

    draws: Any
    x: Float
    baseline: Float
    kind: Kind
    used: Index
    outputs: tuple[str, ...]
    likelihood: str
    level: float
    exact: bool
    reference: str | None
    noise: Float
    scale: Scale
    labels: NDArray
    values: NDArray[np.object_] | None = None
    baseline_shown: NDArray[np.object_] | None = None

    # -- means over draws -----------------------------------------------------------------

    @property
    def predictor(self) -> Float:
        """(rows, outputs)"""
        return self.predictor_summary.mean

    @property
    def response(self) -> Float:
        """Expected targets or probabilities: what is predicted, (rows, outputs)."""
        return self.response_summary.mean

    @property
    def intercept(self) -> Float:
        """Predictor at the baseline, or for linear ones what the row's line has there."""
        return self.intercept_summary.mean

    @property
    def slope(self) -> Float:
        """(rows, covariates, outputs)"""
        return self._all_covariates(self.slope_summary.mean)

    @property
    def contribution(self) -> Float:
        """(rows, covariates, outputs)"""
        return self._all_covariates(self.contribution_summary.mean)

    @cached_property
    def baseline_predictor(self) -> Float:
        """What the networks give at the baseline, (outputs,)."""
        return self.draws.predictor_at(self.baseline).mean(axis=0)

    @property
    def bends(self) -> NDArray[np.bool_]:
        """Whether a linear explanation leaves the network on the way to the baseline.

        (rows, outputs); False for integrated ones.
        """
        way = np.abs(self.intercept) + np.abs(self.contribution).sum(axis=1)
        return np.abs(self.intercept - self.baseline_predictor) > SAME_LINE * way

    # -- summaries of draws ---------------------------------------------------------------

    @property
    def contribution_summary(self) -> Summary:
        """Of the contributions of used covariates, (rows, used covariates, outputs)."""
        return self._contribution_summaries[0]

    @property
    def variable_summary(self) -> Summary:
        """Of the contributions of used variables, (rows, used variables, outputs)."""
        return self._contribution_summaries[1]

    @cached_property
    def _contribution_summaries(self) -> tuple[Summary, Summary]:
        of_covariates, of_variables = [], []
        for rows in self._row_blocks():
            drawn = self._contributions(rows)
            of_covariates.append(summarise(drawn, self.level))
            if len(self.variables) < len(self.used):
                of_variables.append(summarise(self._added(drawn), self.level))
        covariates = joined(of_covariates)
        return covariates, joined(of_variables) if of_variables else covariates

    @cached_property
    def slope_summary(self) -> Summary:
        """Of the slopes of used covariates, (rows, used covariates, outputs)."""
        return self._by_rows(self.draws.slopes)

    @cached_property
    def predictor_summary(self) -> Summary:
        """(rows, outputs)"""
        return self._by_rows(self.draws.predictor)

    @cached_property
    def response_summary(self) -> Summary:
        """(rows, outputs)"""
        return self._by_rows(self.draws.response)

    @cached_property
    def intercept_summary(self) -> Summary:
        """(rows, outputs)"""
        return self._by_rows(self._intercepts)

    @cached_property
    def reach(self) -> tuple[Float, Float]:
        """How far the slopes of a row hold, below and above it, (rows, used covariates).

        In half of the draws the predictor is linear in the covariate at least that far, if
        nothing else changes; infinite where it is linear throughout.
        """
        found = []
        for rows in self._row_blocks():
            ends = self.draws.reach(rows)
            found.append([np.quantile(end, 0.5, axis=0, method="higher") for end in ends])
        below, above = (np.concatenate(part) for part in zip(*found, strict=True))
        return below, above

    # -- draws ----------------------------------------------------------------------------

    @property
    def draws_predictor(self) -> Float:
        """(draws, rows, outputs)"""
        return self.draws.predictor(self._every)

    @property
    def draws_response(self) -> Float:
        """(draws, rows, outputs)"""
        return self.draws.response(self._every)

    @property
    def draws_intercept(self) -> Float:
        """(draws, rows, outputs)"""
        return self._intercepts(self._every)

    @property
    def draws_slope(self) -> Float:
        """(draws, rows, covariates, outputs)"""
        self._check_memory(len(self.scale.names))
        return self._all_covariates(self.draws.slopes(self._every))

    @property
    def draws_contribution(self) -> Float:
        """(draws, rows, covariates, outputs)"""
        self._check_memory(len(self.scale.names))
        return self._all_covariates(self._contributions(self._every))

    def variable_draws(self, row: int) -> Float:
        """Contributions of the used variables to one row, (draws, used variables, outputs)."""
        return self._added(self.covariate_draws(row)[:, None])[:, 0]

    def covariate_draws(self, row: int) -> Float:
        """Contributions of the used covariates to one row, (draws, used covariates, outputs)."""
        return self._contributions(slice(row, row + 1))[:, 0]

    def variable_blocks(self) -> Iterator[tuple[slice, Float]]:
        """Rows a few at a time, with their (draws, rows, used variables, outputs)."""
        for rows in self._row_blocks():
            yield rows, self._added(self._contributions(rows))

    # -- names of version 0.1 --------------------------------------------------------------

    link = former_name("link", "predictor")
    link_summary = former_name("link_summary", "predictor_summary")
    draws_link = former_name("draws_link", "draws_predictor")
    baseline_link = former_name("baseline_link", "baseline_predictor")
    attribution = former_name("attribution", "contribution")

    # -- what to do with it ---------------------------------------------------------------

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the used covariates."""
        return tuple(self.scale.names[column] for column in self.used)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Names of the used variables: one-hot columns share theirs."""
        return tuple(dict.fromkeys(self.scale.variables[column] for column in self.used))

    def shown_values(self, row: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        """Values of the used variables of a row and of the baseline, as people know them."""
        from islab.explain.local_frames import variable_values

        values, start = variable_values(self)
        return values[row], start

    def relative_to(self, baseline: Baseline) -> LocalExplanation:
        """The same explanation with contributions counted from another baseline."""
        values = baseline_values(self.scale, baseline)
        if np.array_equal(values, self.baseline):
            return self
        return replace(self, baseline=values, baseline_shown=None)

    def to_frame(self, table: str = "variables") -> pd.DataFrame:
        """The explanation as a long frame.

        Parameters
        ----------
        table : {"variables", "covariates", "predictions"}
            ``"variables"`` has a line for each row, output and used variable: its value, the
            baseline's, and the contribution with sd and interval over draws, and the Monte Carlo
            errors of the interval's ends. ``"covariates"`` has the same for each covariate, with
            its slope and how far below and above the row the slope holds. ``"predictions"``
            has a line for each row and output with intercept, predictor and response.
        """
        from islab.explain.local_frames import FRAMES

        if table not in FRAMES:
            raise ValueError(f"Got table={table!r}, expected one of {', '.join(FRAMES)}.")
        return FRAMES[table](self)

    def drivers(self, baseline: Baseline | None = None) -> Drivers:
        """Which variables' effects make the prediction uncertain.

        Parameters
        ----------
        baseline : {"typical", "center", "zero"} or (covariates,), optional
            The explanation's own if not given.
        """
        from islab.explain.variance_shares import drivers_of

        return drivers_of(self if baseline is None else self.relative_to(baseline))

    def plot(self, *, baseline: Baseline | None = None, **options: Any) -> Any:
        """Bars of the contributions.

        Parameters
        ----------
        baseline : {"typical", "center", "zero"} or (covariates,), optional
            The explanation's own if not given.
        **options
            Those of :func:`islab.plots.local_bars`: ``rows``, ``outputs``, ``top``, ...

        Returns
        -------
        axes, or array of axes (rows, outputs)
            One panel is plain axes, as everywhere; several are an array.
        """
        from islab.plots import local_bars

        return local_bars(self if baseline is None else self.relative_to(baseline), **options)

    def to_shap(self, baseline: Baseline | None = None) -> Any:
        """A ``shap.Explanation``: contributions of variables, the baseline's value as base value.

        Base value and values add up to :attr:`predictor`. With one output the axis of outputs is
        left out, as shap's plots expect.

        Parameters
        ----------
        baseline : {"typical", "center", "zero"} or (covariates,), optional
            The explanation's own if not given.
        """
        from islab.explain.local_frames import as_shap

        return as_shap(self if baseline is None else self.relative_to(baseline))

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "approximate"
        return (
            f"{type(self).__name__}({counted(len(self.x), 'row')}, "
            f"{counted(len(self.variables), 'used variable')}, "
            f"{counted(len(self.outputs), 'output')}, {self.draws.n_draws} draws, {kind})"
        )

    def _repr_html_(self) -> str:
        from islab.explain.local_frames import as_html

        return as_html(self)

    # -- how ------------------------------------------------------------------------------

    @property
    def _every(self) -> slice:
        return slice(0, len(self.x))

    def _contributions(self, rows: slice) -> Float:
        """(draws, rows, used covariates, outputs)"""
        if self.kind == "integrated":
            return self.draws.contributions(rows, self.baseline)
        distance = (self.x[rows] - self.baseline)[:, self.used, None]
        return self.draws.slopes(rows) * distance

    def _intercepts(self, rows: slice) -> Float:
        """(draws, rows, outputs)"""
        if self.kind == "linear":
            return self.draws.predictor(rows) - self._contributions(rows).sum(axis=2)
        start = self.draws.predictor_at(self.baseline)[:, None]
        return np.broadcast_to(start, (len(start), len(self.x[rows]), start.shape[-1]))

    def _added(self, drawn: Float) -> Float:
        """Contributions (draws, rows, used covariates, outputs) added up by variable."""
        owners = [self.scale.variables[column] for column in self.used]
        place = {name: number for number, name in enumerate(self.variables)}
        numbers = np.array([place[owner] for owner in owners], dtype=np.intp)
        if len(place) == len(owners):
            return drawn
        member = np.zeros((len(place), len(owners)))
        member[numbers, np.arange(len(owners))] = 1.0
        return member @ drawn

    def _by_rows(self, of: Any) -> Summary:
        return joined([summarise(of(rows), self.level) for rows in self._row_blocks()])

    def _row_blocks(self) -> list[slice]:
        """Rows in blocks whose draws fit in memory."""
        per_row = self.draws.n_draws * max(len(self.used), 1) * len(self.outputs)
        step = max(1, NUMBERS_AT_ONCE // per_row)
        return [slice(row, row + step) for row in range(0, max(len(self.x), 1), step)]

    def _all_covariates(self, values: Float) -> Float:
        """(..., used covariates, outputs) with zeros for the covariates that are not used."""
        shape = (*values.shape[:-2], len(self.scale.names), values.shape[-1])
        every = np.zeros(shape)
        every[..., self.used, :] = values
        return every

    def _check_memory(self, n_covariates: int) -> None:
        check_memory(self.draws.n_draws, len(self.x), n_covariates, len(self.outputs))


def check_memory(n_draws: int, n_rows: int, n_used: int, n_outputs: int) -> None:
    """Refuses draws that no memory would hold."""
    numbers = n_draws * n_rows * n_used * n_outputs
    if numbers > LARGEST_DRAWS:
        raise ValueError(
            f"Got {n_draws} draws x {n_rows} rows x {n_used} covariates or weights x {n_outputs} "
            f"outputs, {numbers * 8 / 1e9:.0f} GB, expected at most {LARGEST_DRAWS * 8 / 1e9:.0f} "
            "GB; try fewer rows at a time, fewer draws, or one output."
        )


def joined(parts: list[Summary]) -> Summary:
    """Summaries of some rows after the other."""
    names = ("mean", "sd", "lower", "upper", "lower_error", "upper_error")
    return Summary(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
