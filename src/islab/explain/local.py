"""Why the network predicts what it predicts for one row: its linear piece there, with draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.dependencies import needed
from islab.core.names import counted, former_name
from islab.core.outputs import (
    Baseline,
    Output,
    baseline_values,
    checked_rows,
    contrast_matrix,
    current_reference,
    is_piecewise_linear,
    output_numbers,
    reference_name,
    require_piecewise_linear,
)
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork
from islab.core.summary import Summary, summarise
from islab.explain.linear_pieces import linear_pieces

if TYPE_CHECKING:
    import pandas as pd

    from islab.explain.variance_shares import Drivers

Float = NDArray[np.floating]
Index = NDArray[np.intp]

LARGEST_DRAWS = 500_000_000
SAME_LINE = 1e-8  # of what is added up, for rounding


@dataclass(frozen=True)
class LocalExplanation:
    """Slopes, contributions and predictions of rows, at the posterior mean and over draws.

    Around a row the predictor is ``intercept + sum_j slope_j * (x_j - baseline_j)``: its
    contributions are ``slope_j * (x_j - baseline_j)``, and the intercept is what the row's own
    linear piece gives at the baseline. Both are exact for every draw and any baseline.

    Everything is in the user's units: a slope is the change of the predictor (for Gaussian
    outputs the unit of y, else the log odds, log rate or class score) for one unit of the covariate
    as it stands in the data. Arrays have one column for each covariate of the data; those the
    network does not use have slope 0.

    Attributes
    ----------
    source : SparseNetwork or SparseImageNetwork
        The network explained.
    x : (rows, covariates)
    baseline : (covariates,)
    used : (used covariates,)
        Columns that the network reads.
    outputs : tuple of str
        The outputs explained.
    likelihood : str
    level : float
        Of the credible intervals.
    exact : bool
        False where slopes are the gradient of a curved network: a local approximation.
    reference : str, optional
        ``"center"`` if predictors are given against the mean over classes, or the class they are
        given against.
    noise : (outputs,)
        Noise variance of Gaussian outputs, which no draw includes.
    scale : Scale
    slope_used : (rows, used covariates, outputs)
        At the posterior mean of the weights.
    predictor, response : (rows, outputs)
        At the posterior mean of the weights.
    draws_slope_used : (draws, rows, used covariates, outputs)
    draws_predictor, draws_response : (draws, rows, outputs)
        Predictor, and expectation of y (probabilities, rates).
    """

    source: Any
    x: Float
    baseline: Float
    used: Index
    outputs: tuple[str, ...]
    likelihood: str
    level: float
    exact: bool
    reference: str | None
    noise: Float
    scale: Scale
    slope_used: Float
    predictor: Float
    response: Float
    draws_slope_used: Float
    draws_predictor: Float
    draws_response: Float

    # -- the point explanation ----------------------------------------------------------

    @property
    def slope(self) -> Float:
        """Slopes at the posterior mean of the weights, (rows, covariates, outputs)."""
        return self._all_covariates(self.slope_used)

    @property
    def contribution(self) -> Float:
        """Contributions at the posterior mean of the weights, (rows, covariates, outputs)."""
        return self._all_covariates(self.contribution_used)

    @property
    def contribution_used(self) -> Float:
        """The same for used covariates only."""
        return self.slope_used * self._distance

    @property
    def intercept(self) -> Float:
        """Intercepts at the posterior mean of the weights, (rows, outputs)."""
        return self.predictor - self.contribution_used.sum(axis=1)

    @cached_property
    def baseline_predictor(self) -> Float:
        """What the network gives at the baseline, at the posterior mean of the weights, (outputs,).

        The intercept of a row is the same, unless the network bends between row and baseline.
        """
        predictor = self._predictor(self.baseline[None])[0]
        if self.reference is not None:
            predictor = contrast_matrix(self.source, self.reference) @ predictor
        return predictor[output_numbers(self.scale.outputs, self.outputs)]

    @property
    def bends(self) -> NDArray[np.bool_]:
        """Whether the network leaves a row's line on the way to the baseline, (rows, outputs)."""
        way = np.abs(self.intercept) + np.abs(self.contribution_used).sum(axis=1)
        return np.abs(self.intercept - self.baseline_predictor) > SAME_LINE * way

    # -- draws ----------------------------------------------------------------------------

    @property
    def draws_slope(self) -> Float:
        """(draws, rows, covariates, outputs)"""
        return self._all_covariates(self.draws_slope_used)

    @property
    def draws_contribution(self) -> Float:
        """(draws, rows, covariates, outputs)"""
        return self._all_covariates(self.draws_slope_used * self._distance)

    @cached_property
    def draws_intercept(self) -> Float:
        """(draws, rows, outputs)"""
        distance = self._distance[..., 0]
        return self.draws_predictor - np.einsum("drjo,rj->dro", self.draws_slope_used, distance)

    # -- summaries of the draws -----------------------------------------------------------

    @cached_property
    def slope_summary(self) -> Summary:
        """Of the slopes of used covariates, (rows, used covariates, outputs)."""
        return summarise(self.draws_slope_used, self.level)

    @property
    def contribution_summary(self) -> Summary:
        """Of the contributions of used covariates, (rows, used covariates, outputs)."""
        return self.slope_summary * self._distance

    @cached_property
    def intercept_summary(self) -> Summary:
        """(rows, outputs)"""
        return summarise(self.draws_intercept, self.level)

    @cached_property
    def predictor_summary(self) -> Summary:
        """(rows, outputs)"""
        return summarise(self.draws_predictor, self.level)

    @cached_property
    def response_summary(self) -> Summary:
        """(rows, outputs)"""
        return summarise(self.draws_response, self.level)

    # -- names of version 0.1 --------------------------------------------------------------

    link = former_name("link", "predictor")
    link_summary = former_name("link_summary", "predictor_summary")
    draws_link = former_name("draws_link", "draws_predictor")
    baseline_link = former_name("baseline_link", "baseline_predictor")

    # -- what to do with it ---------------------------------------------------------------

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the used covariates."""
        return tuple(self.scale.names[column] for column in self.used)

    def relative_to(self, baseline: Baseline) -> LocalExplanation:
        """The same explanation with contributions counted from another baseline."""
        return replace(self, baseline=baseline_values(self.scale, baseline))

    def to_frame(self, table: str = "covariates") -> pd.DataFrame:
        """The explanation as a long frame.

        Parameters
        ----------
        table : {"covariates", "variables", "predictions"}
            ``"covariates"`` has a line for each row, output and used covariate: its value, slope
            and contribution at the posterior mean of the weights, and for both the mean, sd,
            interval and the Monte Carlo errors of its ends over the draws. ``"variables"`` adds
            up the contributions of one-hot columns under their variable. ``"predictions"`` has a
            line for each row and output with intercept, predictor and response.
        """
        from islab.explain.local_frames import FRAMES

        if table not in FRAMES:
            raise ValueError(f"Got table={table!r}, expected one of {', '.join(FRAMES)}.")
        return FRAMES[table](self)

    def drivers(self, baseline: Baseline = "center") -> Drivers:
        """Which coefficients make the prediction uncertain, counted from the center of the data.

        Parameters
        ----------
        baseline : {"center", "zero"} or (covariates,)
            An intercept far from the data varies against its slopes: use the center.
        """
        from islab.explain.variance_shares import drivers_of

        return drivers_of(self.relative_to(baseline))

    def plot(self, *, baseline: Baseline = "center", **options: Any) -> Any:
        """Bars of the contributions, counted from the center of the training data.

        Parameters
        ----------
        baseline : {"center", "zero"} or (covariates,)
            From zero a covariate that hardly varies may have the longest bar.
        **options
            Those of :func:`islab.plots.local_bars`: ``rows``, ``outputs``, ``top``, ...

        Returns
        -------
        axes, or array of axes (rows, outputs)
            One panel is plain axes, as everywhere; several are an array.
        """
        from islab.plots import local_bars

        return local_bars(self.relative_to(baseline), **options)

    def to_shap(self, baseline: Baseline = "center") -> Any:
        """A ``shap.Explanation``: contributions, intercept as base value, interval as bounds.

        Values are those at the posterior mean of the weights, so that base value and values add
        up to :attr:`predictor`. With one output the axis of outputs is left out, as shap's plots
        expect.

        Parameters
        ----------
        baseline : {"center", "zero"} or (covariates,)
            Where values are counted from; shap's own are counted from a mean as well.
        """
        shap = needed("shap", "A shap.Explanation")
        counted = self.relative_to(baseline)
        summary = counted.contribution_summary
        parts = [counted.contribution_used, summary.lower, summary.upper]
        values, lower, upper = (self._all_covariates(part) for part in parts)
        base = counted.intercept
        if len(self.outputs) == 1:
            values, lower, upper, base = (part[..., 0] for part in (values, lower, upper, base))
        return shap.Explanation(
            values=values,
            base_values=base,
            data=self.x,
            lower_bounds=lower,
            upper_bounds=upper,
            feature_names=list(self.scale.names),
            output_names=list(self.outputs) if len(self.outputs) > 1 else self.outputs[0],
        )

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "local approximation"
        return (
            f"LocalExplanation({counted(len(self.x), 'row')}, {len(self.used)} used covariates, "
            f"{len(self.outputs)} outputs, {len(self.draws_predictor)} draws, {kind})"
        )

    def _predictor(self, x: Float) -> Float:
        return self.source.predictor(x)

    @property
    def _distance(self) -> Float:
        """How far each row lies from the baseline, (rows, used covariates, 1)."""
        return (self.x - self.baseline)[:, self.used, None]

    def _all_covariates(self, values: Float) -> Float:
        """(..., used covariates, outputs) with zeros for the covariates that are not used."""
        shape = (*values.shape[:-2], len(self.scale.names), values.shape[-1])
        every = np.zeros(shape)
        every[..., self.used, :] = values
        return every

    def by_variable(self) -> tuple[tuple[str, ...], Float, Float]:
        """Contributions added up by variable: names, point (rows, ...), draws (draws, rows, ...).

        The one-hot columns of a variable share its name.
        """
        owners = [self.scale.variables[column] for column in self.used]
        names = tuple(dict.fromkeys(owners))
        member = np.array([[owner == name for owner in owners] for name in names], dtype=float)
        member = member.reshape(len(names), len(owners))
        point = np.einsum("vj,rjo->rvo", member, self.contribution_used)
        draws = np.einsum(
            "vj,rj,drjo->drvo", member, self._distance[..., 0], self.draws_slope_used, optimize=True
        )
        return names, point, draws


def explain_local(
    network: SparseNetwork,
    x: ArrayLike,
    *,
    output: Output | Sequence[Output] | None = None,
    level: float = 0.95,
    n_draws: int = 1000,
    random_state: int | np.random.Generator | None = None,
    approximate: bool = False,
    reference: Output | None = None,
    baseline: Baseline = "zero",
    draws: tuple[Float, Float] | None = None,
) -> LocalExplanation:
    """Exact slopes and contributions of every used covariate for each row, with draws.

    Parameters
    ----------
    network : SparseNetwork
    x : (rows, covariates)
        In the user's units.
    output : name, position or several of them, optional
        Outputs to explain; all if not given.
    level : float
        Of the credible intervals.
    n_draws : int
        Coherent draws of the network: each draw is the same network for all rows.
    random_state : int or Generator, optional
    approximate : bool
        Allow curved activations: slopes are then the gradient, exact only at the row itself.
    reference : "center", or the name or position of a class, optional
        Softmax scores have no origin of their own: give them against the mean over classes or
        against one class, whose own scores are then 0.
    baseline : {"center", "zero"} or (covariates,)
        Where contributions are counted from. Zero gives ``beta_j x_j`` for the covariates as they
        stand in the data; the center of the training data gives it for the standardised
        covariates that the network reads.
    draws : (weights, biases), optional
        Draws of the network made before, by :meth:`SparseNetwork.draw`, in place of new ones.

    Notes
    -----
    Section 3.3 of the paper. Within the linear region of a row the gradient of the predictor is
    the coefficient vector ``beta``; draws change both weights and regions, so the slopes of a row
    are found anew in each draw.

    Examples
    --------
    >>> import numpy as np
    >>> from islab.core.architecture import Architecture
    >>> from islab.core.posterior import Posterior
    >>> rng = np.random.default_rng(0)
    >>> posterior = Posterior.initialise(Architecture(3, (2,), 1), rng)
    >>> explanation = explain_local(posterior.median(), np.ones((5, 3)), random_state=0)
    >>> explanation
    LocalExplanation(5 rows, 3 used covariates, 1 outputs, 1000 draws, exact)
    >>> total = explanation.draws_intercept + explanation.draws_contribution.sum(axis=2)
    >>> bool(np.allclose(total, explanation.draws_predictor, rtol=1e-12))
    True
    """
    rows = checked_rows(network, x)
    if not 0 < level < 1:
        raise ValueError(f"Got level={level}, expected a number between 0 and 1; try 0.95.")
    if n_draws < 1:
        raise ValueError(f"Got n_draws={n_draws}, expected at least 1; try 1000.")
    if not approximate:
        require_piecewise_linear(network, "approximate=True for the gradient at the row")
    chosen = output_numbers(network.scale.outputs, output)
    n_draws = n_draws if draws is None else len(draws[0])
    check_memory(n_draws, len(rows), len(network.covariates), len(chosen))
    draws = draws or network.draw(n_draws, np.random.default_rng(random_state))
    reference = current_reference(reference)
    contrast = contrast_matrix(network, reference)
    drawn = linear_pieces(network, *draws, rows, chosen, contrast)
    at_mean = network.mean_weights()[None], network.bias_mu[None]
    mean = linear_pieces(network, *at_mean, rows, chosen, contrast)
    return LocalExplanation(
        source=network,
        x=rows,
        baseline=baseline_values(network.scale, baseline),
        used=network.covariates,
        outputs=tuple(network.scale.outputs[number] for number in chosen),
        likelihood=network.likelihood,
        level=level,
        exact=is_piecewise_linear(network),
        reference=reference_name(network.scale, reference),
        noise=network.noise_in_units()[chosen],
        scale=network.scale,
        slope_used=mean.slope[0],
        predictor=mean.predictor[0],
        response=mean.response[0],
        draws_slope_used=drawn.slope,
        draws_predictor=drawn.predictor,
        draws_response=drawn.response,
    )


def check_memory(n_draws: int, n_rows: int, n_used: int, n_outputs: int) -> None:
    """Refuses explanations that no memory would hold."""
    numbers = n_draws * n_rows * n_used * n_outputs
    if numbers > LARGEST_DRAWS:
        raise ValueError(
            f"Got {n_draws} draws x {n_rows} rows x {n_used} used covariates x {n_outputs} "
            f"outputs, {numbers * 8 / 1e9:.0f} GB, expected at most {LARGEST_DRAWS * 8 / 1e9:.0f} "
            "GB; try fewer rows at a time, fewer draws, or one output."
        )
