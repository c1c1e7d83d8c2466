"""What all estimators share: tables in, weights learned, draws and explanations out."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from islab.core import families
from islab.core.posterior import Posterior
from islab.core.sampled import SampledPosterior
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork
from islab.estimators.coefficients import CoefficientsMixin
from islab.estimators.conformal import can_keep, kept_of_training
from islab.estimators.constraints import read_constraints
from islab.estimators.drawn_rows import NUMBERS_AT_ONCE, Model
from islab.estimators.explanations import explain_model, explain_rows, rows_outside
from islab.estimators.exporting import ExportMixin
from islab.estimators.learnable_covariates import clearly_correlated
from islab.estimators.model_summary import summarise_model
from islab.estimators.settings import check_params
from islab.estimators.streams import Stream
from islab.estimators.summary import ModelSummary
from islab.estimators.training_fit import TrainingFit, training_fit
from islab.estimators.weight_distribution import Learned, WeightDistribution
from islab.learn.engines import Problem
from islab.learn.parallel import end_with_parent
from islab.tables.columns import ColumnEncoder
from islab.tables.frames import (
    FEWEST_ROWS,
    checked_table,
    column_names,
    columns_where,
    in_memory,
    is_frame,
    n_rows,
    rows_where,
)
from islab.tables.rows import typical_row
from islab.tables.targets import target_scale

if TYPE_CHECKING:
    import pandas as pd

    from islab.explain import GlobalExplanation, LocalExplanation

Float = NDArray[np.floating]
Mask = NDArray[np.bool_]

SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-12, 1e12
ROWS_COMPARED, DRAWS_COMPARED = 1000, 200


class NetworkEstimator(SelectorMixin, ExportMixin, CoefficientsMixin):
    """Fitting, draws, selection, explanations and files, whatever method learns the weights.

    A class that inherits says how in ``_learn_weights`` and has the parameters ``missing``,
    ``n_draws`` and ``random_state``.
    """

    weights_type: ClassVar[type] = Posterior
    """What ``_learn_weights`` learns, to read it back from a file."""
    takes_offset: ClassVar[bool] = False
    """Whether ``_learn_weights`` heeds the offset of its problem."""
    learns_from_streams: ClassVar[bool] = False
    """Whether ``_learn_weights`` heeds all rows of its problem, where it has a sample of them."""
    compares_median: ClassVar[bool] = False
    """Whether ``fit`` looks at its result: warns of a median network that is unlike the full
    model, and keeps what it explains of the training rows."""

    posterior_: WeightDistribution | None
    network_: SparseNetwork
    columns_: ColumnEncoder
    chosen_: dict[str, float]
    disagreement_: str | None = None
    training_fit_: TrainingFit | None = None
    conformity_: NDArray[np.float32] | None = None  # (draws, rows), what conformal prediction needs
    n_draws: int
    n_features_in_: int
    missing: str
    constraints: dict[Any, Any] | None = None

    def _learn_weights(self, problem: Problem, likelihood: str, varies: Mask, seed: int) -> Learned:
        """Learns from standardised data; ``varies`` says which covariates are not constant."""
        raise NotImplementedError

    def _best_likelihood(
        self, problem: Problem, candidates: tuple[str, ...], varies: Mask, seed: int
    ) -> str:
        """The likelihood under which the data are most probable."""
        raise NotImplementedError

    def _median(self, weights: WeightDistribution) -> SparseNetwork:
        """The readable network."""
        return weights.median()

    @property
    def _standardizes(self) -> bool:
        """Whether networks see standardised columns and numeric targets."""
        return True

    # -- learning -------------------------------------------------------------------------

    def _learn(
        self,
        X: Any,
        target: Float,
        likelihood: str,
        outputs: tuple[str, ...],
        sample_weight: Float | None,
        table_weight: Float | None,
        offset: Float | None = None,
        candidates: tuple[str, ...] = (),
        labels: NDArray | None = None,
        stream: Stream | None = None,
    ) -> None:
        """Learns from a checked table, targets and offsets (rows, outputs).

        ``labels`` are the classes (rows,) that targets stand for. The table may be a sample of the
        rows of a ``stream``.

        Of several ``candidates``, which standardise targets alike, the best likelihood is taken.

        ``sample_weight`` multiplies the rows' log likelihood, ``table_weight`` says how often
        a row stands in the data when columns are standardised.
        """
        end_with_parent()
        if table_weight is not None and sample_weight is not None:
            counts = table_weight > 0
            X, target = rows_where(X, counts), target[counts]
            labels = None if labels is None else labels[counts]
            offset = None if offset is None else offset[counts]
            sample_weight, table_weight = sample_weight[counts], table_weight[counts]
        columns, covariates = ColumnEncoder.learn(
            X, column_names(self), self.missing, table_weight, target if labels is None else labels
        )
        own = target if offset is None else target - offset  # of likelihoods that scale it
        scale = self._scale(columns, covariates, own, outputs, table_weight, likelihood)
        whole = None
        if stream is not None and not stream.sampled.are_all and self.learns_from_streams:
            whole = stream.rows(columns, scale).with_ranges_of_all(covariates, target)
            columns, scale = whole.reader.columns, whole.reader.scale
        x, y = scale.standardise(covariates), (target - scale.y_center) / scale.y_scale
        shift = None if offset is None else offset / scale.y_scale
        excluded, limits = read_constraints(self.constraints, columns, y.shape[1])
        problem = replace(
            _weighted(x, y, sample_weight, shift), limits=limits, groups=columns.groups, whole=whole
        )
        varies = columns.varies & ~excluded
        seed = self._new_seed()
        if len(candidates) > 1:
            likelihood = self._best_likelihood(problem, candidates, varies, seed)
        family = families.likelihood(likelihood)
        scale = scale.with_predictors(family)
        learned = self._learn_weights(problem.with_predictors(family), likelihood, varies, seed)
        if stream is not None and not stream.sampled.are_all and not _saw_all(learned.weights):
            stream.sampled.warn()
        learned.weights.scale = scale
        self.columns_ = columns
        self.posterior_ = learned.weights
        self.network_ = self._median(learned.weights)
        self.history_ = learned.history
        self.elbo_, self.elbo_error_ = learned.elbo, learned.elbo_error
        self.chosen_ = learned.chosen
        self.interrupted_ = learned.interrupted
        self.seed_ = seed
        self.disagreement_ = (
            self._checked_median(covariates, offset) if self.compares_median else None
        )
        self.training_fit_ = self.conformity_ = None
        if self.compares_median:
            observed = target if labels is None else labels
            self.training_fit_ = training_fit(self, covariates, observed, offset)
            if can_keep(self, sample_weight):
                self.conformity_ = kept_of_training(self, covariates, observed, offset)
        self._warn_of_chains()
        if not len(self.network_.covariates):
            self._warn_of_nothing(x, _beside_offset(y, shift, likelihood))

    def _checked_median(self, covariates: Float, offset: Float | None) -> str | None:
        """Warns if the median network does not predict as the full model does; None if it does."""
        if isinstance(self.posterior_, SampledPosterior):
            return self._checked_price(self.posterior_)
        n_weights = max(self.network_.n_weights_initial, 1)
        rows = slice(None, None, 1 + len(covariates) // ROWS_COMPARED)
        found = self._predictions(
            covariates=covariates[rows],
            offset=None if offset is None else offset[rows],
            network=self.network_,
            posterior=self.posterior_,
            n_draws=max(20, min(DRAWS_COMPARED, NUMBERS_AT_ONCE // n_weights)),
            seed=self.seed_,
        ).disagreement()
        if found is None or not found.large:
            return None
        warnings.warn(
            f"Got a median network unlike the full model: {found.words}, so the graph and exports, "
            "which show the median network, do not describe the output of predict; try "
            "model='median' to predict with what they show, a lower sparsity, or more epochs.",
            UserWarning,
            stacklevel=2,
        )
        return found.words

    def _checked_price(self, posterior: SampledPosterior) -> str | None:
        """Warns if the readable network predicts clearly worse than all draws."""
        price = posterior.price
        if price is None or not price.large:
            return None
        words = f"readable network: {price.words}"
        warnings.warn(
            f"Got a readable network that predicts worse than the full model: {price.words}; "
            "predict uses the full model; try a lower sparsity for a larger network.",
            UserWarning,
            stacklevel=2,
        )
        return words

    def _warn_of_chains(self) -> None:
        """Warns of chains that disagree, if the method has any."""

    def _warn_of_nothing(self, x: Float, y: Float) -> None:
        """Says that no covariate is used, if one of them should be."""
        clear = clearly_correlated(x, y)
        if clear is not None:
            name = self.columns_.names[clear[0]]
            warnings.warn(
                f"No covariate is used, although {name!r} is correlated with the target "
                f"({clear[1]:.2f}): training did not find it; try more max_epochs, a lower "
                "sparsity, or fewer columns.",
                UserWarning,
                stacklevel=6,
            )

    def _scale(
        self,
        columns: ColumnEncoder,
        covariates: Float,
        target: Float,
        outputs: tuple[str, ...],
        table_weight: Float | None,
        likelihood: str,
    ) -> Scale:
        """What standardises covariates and targets, with their names."""
        if not self._standardizes:
            plain = Scale.plain(len(columns.names), len(outputs))
            typical = typical_row(columns, covariates, table_weight)
            return replace(
                plain,
                names=columns.names,
                outputs=outputs,
                variables=columns.owners,
                x_typical=typical,
            )
        x_center, x_scale = columns.center_and_scale(covariates, table_weight)
        y_center, y_scale = target_scale(target, table_weight, likelihood)
        return Scale(
            x_center=x_center,
            x_scale=x_scale,
            y_center=y_center,
            y_scale=y_scale,
            names=columns.names,
            outputs=outputs,
            variables=columns.owners,
            x_typical=typical_row(columns, covariates, table_weight),
        )

    def _checked_weight(self, sample_weight: ArrayLike | None, X: Any) -> Float | None:
        if sample_weight is None:
            return None
        rows = np.empty((n_rows(X), 0))
        weight = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        if (weight > 0).sum() < FEWEST_ROWS:
            raise ValueError(
                f"Got {int((weight > 0).sum())} rows with a positive sample_weight, expected at "
                f"least {FEWEST_ROWS}."
            )
        if not SMALLEST_WEIGHT <= weight.max() <= LARGEST_WEIGHT:
            raise ValueError(
                f"Got sample_weight up to {weight.max():.3g}, expected how often rows count: a "
                f"largest weight from {SMALLEST_WEIGHT:g} to {LARGEST_WEIGHT:g}; try weights whose "
                "mean is 1."
            )
        return weight

    def _check_params(self) -> None:
        check_params(self.get_params(deep=False))

    def _ranges(self) -> Float:
        return self.columns_.ranges

    def _encoded(self, X: Any) -> Float:
        return self.columns_.encode(checked_table(self, X, reset=False))

    # -- reading --------------------------------------------------------------------------

    def summary(self, X: Any = None, y: Any = None, *, level: float = 0.95) -> ModelSummary:
        """Effects of the variables with intervals, how sure they are, and facts about the fit.

        Parameters
        ----------
        X : DataFrame or (rows, columns), optional
            Rows over which effects are averaged, with each variable's share of the predictor's
            variance; without them effects are those of changes of the typical row, and shares
            those of the training rows.
        y : (rows,) or (rows, outputs), optional
            Their targets, for the variance or deviance that is explained, and base rates;
            without X those of the training rows are told.
        level : float
            Of the intervals.
        """
        check_is_fitted(self)
        return summarise_model(self, X, y, level)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.columns_.owner_index[self.network_.covariates]] = True
        return mask

    def transform(self, X: Any) -> Any:
        """The columns that the readable network uses; an array, or as ``set_output`` asks for.

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        """
        mask, table = self._get_support_mask(), in_memory(X)
        if not is_frame(table) or not mask.any():
            return super().transform(table)
        output = _get_output_config("transform", self)["dense"]
        return columns_where(checked_table(self, table, reset=False), mask, output)

    def explain_global(
        self, X: Any = None, *, model: Model | None = None, **options: Any
    ) -> GlobalExplanation:
        """The whole model: used weights, covariates, depths; effects, interactions, importance.

        Parameters
        ----------
        X : DataFrame or (rows, columns), optional
            Rows over which effects and contributions are averaged.
        model : {"full", "median"}, optional
            Effects and contributions of the posterior average, which is the default and what
            ``predict`` gives, or of the readable network.
        **options
            Those of :func:`islab.explain.explain_global`: ``output``, ``n_draws``, ``level``.
        """
        return explain_model(self, X, model, **options)

    def explain_local(
        self, X: Any, *, model: Model | None = None, baseline: Any = None, **options: Any
    ) -> LocalExplanation:
        """What each variable adds to the prediction of each row, and slopes, with intervals.

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        model : {"full", "median"}, optional
            The posterior average, which is the default and what ``predict`` gives, or the readable
            network. A file saved with ``sparse=True`` holds the latter only.
        baseline : {"typical", "center", "zero"}, DataFrame, (1, columns) or (covariates,), optional
            Where contributions are counted from: by default the typical row of the training
            data, else any row.
        **options
            Those of :func:`islab.explain.explain_local`: ``output``, ``level``, ``n_draws``,
            ``kind``, ``approximate``, ``reference``.
        """
        return explain_rows(self, X, model, baseline, **options)

    def outside_range(self, X: Any) -> pd.DataFrame:
        """Rows whose values training did not see, where predictions are extrapolations.

        Parameters
        ----------
        X : DataFrame or (rows, columns)

        Returns
        -------
        DataFrame
            A line for each row, with the index of X: ``outside``, and ``variables``, the names of
            the variables outside. A number is outside below its least or above its greatest value
            in training, a category if it has a level that training did not have, and a value that
            is missing if none was missing in training.
        """
        check_is_fitted(self)
        return rows_outside(self, X)

    # -- keeping --------------------------------------------------------------------------

    def report(self, path: str | Path, X: Any, y: ArrayLike | None = None, **options: Any) -> None:
        """Writes the model and what it makes of these rows to one HTML file.

        Parameters
        ----------
        path : path
        X : DataFrame or (rows, columns)
        y : (rows,) or (rows, outputs), optional
        **options
            Those of :func:`islab.report.write_report`: ``rows``, ``n_draws``, ``level``, ``title``.
        """
        from islab.report import write_report

        check_is_fitted(self)
        write_report(path, self, X, y, **options)

    # -- showing --------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags


def _saw_all(weights: WeightDistribution) -> bool:
    """Whether weights were learned from more rows than the sample."""
    return isinstance(weights, SampledPosterior) and weights.all_rows is not None


def _weighted(x: Float, y: Float, sample_weight: Float | None, offset: Float | None) -> Problem:
    """The rows that count; one of weight 0 must not change the size of a batch."""
    if sample_weight is None or (sample_weight == 1).all():
        return Problem(x, y, offset=offset)
    counts = sample_weight > 0
    offset = None if offset is None else offset[counts]
    return Problem(x[counts], y[counts], sample_weight[counts], offset)


def _beside_offset(y: Float, offset: Float | None, likelihood: str) -> Float:
    """What of the targets an offset and a constant do not explain."""
    if offset is None:
        return y
    family = families.likelihood(likelihood)
    if family.scales_target:
        return y - offset
    known = family.given(family.start_noise(y))
    constant = family.initial_bias(y) - family.initial_bias(family.mean(offset))
    return y - known.mean(offset + constant)
