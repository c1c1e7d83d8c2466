"""What every regressor does with a distribution over networks."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from islab.core import families
from islab.core.families import Likelihood
from islab.estimators.base import DRAWS_COMPARED, ROWS_COMPARED, NetworkEstimator
from islab.estimators.drawn_rows import Model
from islab.estimators.predictions import NumberPredictions, Predictions
from islab.estimators.streams import NumberTargets, Stream
from islab.tables.batches import is_batched, sampled_rows
from islab.tables.frames import all_or_nothing, checked_table, row_index
from islab.tables.offsets import Given, OffsetColumns, read_offset
from islab.tables.targets import (
    checked_numbers,
    in_order,
    interval_levels,
    output_names,
    possible_likelihoods,
    warn_of_constants,
)

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.certificate import Certificate

Float = NDArray[np.floating]

# Counts that vary so much more than their likelihood allows are said.
MOST_DISPERSION, FEWEST_COMPARED = 2.0, 20
# Nats a row that another likelihood of the same predictions would gain.
MOST_GAIN, NOISE_STEPS = 0.25, 50


class NetworkRegressor(RegressorMixin, NetworkEstimator):
    """Numbers in, numbers with their uncertainty out, whatever method learns the weights.

    A class that inherits may have a parameter ``likelihood``.
    """

    n_outputs_: int
    likelihood: str = "gaussian"
    offset_columns_: OffsetColumns = OffsetColumns()
    _flat: bool  # whether y was (rows,)

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: Given = None,
        exposure: Given = None,
    ) -> Self:
        """Learns from rows and their targets.

        Parameters
        ----------
        X : DataFrame, (rows, columns), Batches or pyarrow Dataset
            Numbers, booleans, text, categories and dates; values may be missing.
        y : (rows,) or (rows, outputs)
            Of batches the name of its column.
        sample_weight : (rows,), optional
            How often each row counts.
        offset : (rows,), (rows, outputs) or str, optional
            Added to the predictor, with no weight to learn: an array, or the name of a column of
            X, which is then no covariate.
        exposure : (rows,), (rows, outputs) or str, optional
            How long, or how many, each count was counted over: its logarithm is an offset. Only
            with likelihoods whose predictor is the logarithm of the expected target.
        """
        self._check_params()
        self._check_offset(offset, exposure)
        sampled = sampled_rows(X, y, sample_weight, self.random_state) if is_batched(X) else None
        if sampled is not None:
            X, y = sampled.table, sampled.y
        columns = OffsetColumns.among(offset, exposure)
        table = checked_table(self, columns.without(X), reset=True)
        values = checked_numbers(self, y, table)
        candidates = self._candidates(values, exposure)
        families.likelihood(candidates[0]).check_target(values)
        weight = self._checked_weight(sample_weight, table)
        target = values.reshape(len(values), -1)
        outputs = output_names(y, target.shape[1])
        shift = read_offset(X, offset, exposure, target.shape[1])
        targets = NumberTargets(candidates[0])
        self._learn(
            table,
            target,
            likelihood=candidates[0],
            candidates=candidates,
            outputs=outputs,
            sample_weight=weight,
            table_weight=weight,
            offset=shift,
            stream=None if sampled is None else Stream(sampled, targets, columns),
        )
        self.offset_columns_ = columns
        self._warn_of_misfit(table, target, shift, weight)
        warn_of_constants(target, outputs, weight)
        self.n_outputs_ = target.shape[1]
        self._flat = values.ndim == 1
        return self

    def _warn_of_misfit(
        self, table: Any, target: Float, offset: Float | None, weight: Float | None
    ) -> None:
        """Says that targets lie farther out than the likelihood allows, if another one would do."""
        family = families.likelihood(self.network_.likelihood)
        other = family.overdispersed or family.with_outliers
        if other is None or not self.compares_median or self.likelihood == "auto":
            return
        counted = np.arange(len(target)) if weight is None else np.flatnonzero(weight > 0)
        rows = counted[:: 1 + len(counted) // ROWS_COMPARED]
        target = target[rows]
        found = self._predictions(
            covariates=self.columns_.encode(table)[rows],
            network=self.network_,
            posterior=self.posterior_,
            n_draws=DRAWS_COMPARED,
            seed=self.seed_,
            offset=None if offset is None else offset[rows],
        )
        if len(target) < FEWEST_COMPARED:
            return
        if family.overdispersed:
            words = _words_of_dispersion(found, target)
        else:
            words = _words_of_outliers(found, target, families.likelihood(other))
        if words:
            warnings.warn(
                f"The targets {words}; try likelihood={other!r}.",
                UserWarning,
                stacklevel=4,  # past fit and all_or_nothing
            )

    def _candidates(self, values: Float, exposure: Given) -> tuple[str, ...]:
        """The likelihoods to choose from: the one that was asked for, or all that may fit."""
        if self.likelihood != "auto":
            return (self.likelihood,)
        found = possible_likelihoods(values)
        if exposure is not None and not families.likelihood(found[0]).log_link:
            raise ValueError(
                "Got exposure and targets that are no counts, expected whole numbers, 0 or more; "
                "try offset=."
            )
        return found

    def _check_offset(self, offset: Given, exposure: Given) -> None:
        if offset is None and exposure is None:
            return
        if not self.takes_offset:
            raise ValueError(
                f"Got an offset or exposure for {type(self).__name__}, expected none; try "
                "ISLaBRegressor."
            )
        fitted = getattr(self, "network_", None)
        name = self.likelihood if fitted is None else fitted.likelihood
        if exposure is not None and name != "auto" and not families.likelihood(name).log_link:
            raise ValueError(
                f"Got exposure with likelihood={name!r}, expected a likelihood of "
                "counts; try likelihood='poisson', or offset=."
            )

    def predictions(
        self,
        X: Any,
        *,
        n_draws: int | None = None,
        offset: Given = None,
        exposure: Given = None,
    ) -> NumberPredictions:
        """All that the model predicts for these rows, encoded once and drawn once.

        Parameters
        ----------
        X : DataFrame or (rows, columns)
            Or what this method gave before, which comes back as it is: every method that takes
            rows to predict takes these too, and does not encode or draw them again.
        n_draws : int, optional
            As many as the estimator's ``n_draws`` if not given.
        offset, exposure : (rows,), (rows, outputs), str or None
            Of these rows, as in :meth:`fit`. Columns that were named there are found by themselves;
            without arrays that were given there, predictions are for offset 0 and exposure 1.

        Returns
        -------
        NumberPredictions
            ``mean``, ``quantiles``, ``interval``, ``uncertainty``, ``log_score`` and ``samples``
            of the full model and of the median network.
        """
        check_is_fitted(self)
        self._check_offset(offset, exposure)
        known = self.offset_columns_
        if not isinstance(X, Predictions):
            offset = known.offset if offset is None else offset
            exposure = known.exposure if exposure is None else exposure
        shift = read_offset(X, offset, exposure, self.n_outputs_)
        found = super().predictions(known.without(X), n_draws=n_draws)
        assert isinstance(found, NumberPredictions)
        return found if shift is None else replace(found, offset=shift)

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        *,
        model: Model | None = None,
        offset: Given = None,
        exposure: Given = None,
    ) -> Float | tuple[Float, Float]:
        """Expected target of each row, (rows,) or (rows, outputs).

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        return_std : bool
            Return also the standard deviation of the target, noise included.
        model : {"full", "median"}, optional
            Average over the full posterior, which is the default and mostly predicts better, or
            over the median network, which is the one that the graph and exports show. A file
            saved with ``sparse=True`` holds the median network only.
        offset, exposure : (rows,), (rows, outputs), str or None
            Of these rows, as in :meth:`fit`. Columns that were named there are found by themselves;
            without arrays that were given there, predictions are for offset 0 and exposure 1.
        """
        found = self.predictions(X, offset=offset, exposure=exposure)
        mean = self._shaped(found.mean(model))
        return (mean, self._shaped(found.sd(model))) if return_std else mean

    def predict_quantiles(
        self,
        X: Any,
        levels: ArrayLike,
        *,
        model: Model | None = None,
        offset: Given = None,
        exposure: Given = None,
    ) -> Float:
        """Quantiles of each row's target, noise included, (rows, levels).

        With targets (rows, outputs) in training they are (rows, outputs, levels).
        """
        found = self.predictions(X, offset=offset, exposure=exposure)
        return self._shaped(found.quantiles(levels, model))

    def predict_interval(
        self,
        X: Any,
        level: float = 0.9,
        *,
        method: Literal["posterior", "conformal"] = "posterior",
        model: Model | None = None,
        offset: Given = None,
        exposure: Given = None,
    ) -> Float:
        """Lower and upper end of a predictive interval, (rows, 2).

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        level : float
        method : {"posterior", "conformal"}
            Central intervals of the predictive distribution, which hold their level if the
            likelihood is right; or intervals that hold it on average over rows like those of
            training, whatever their distribution, from the ranks of training rows.
        model : {"full", "median"}, optional
            As in :meth:`predict`; conformal intervals are those of the full model.
        offset, exposure : (rows,), (rows, outputs), str or None
            Of these rows, as in :meth:`fit`.

        Returns
        -------
        (rows, 2)
            With targets (rows, outputs) in training it is (rows, outputs, 2).

        Notes
        -----
        Conformal intervals follow Fong and Holmes (2021): draws are weighted as if the new row had
        been seen with each candidate target, so that no training rows are held out. At most 400
        training rows are ranked, under 200 draws.
        """
        if method == "conformal":
            from islab.estimators.conformal import conformal_interval, n_draws_of

            kept = self.conformity_
            draws = n_draws_of(kept)
            found = self.predictions(X, n_draws=draws, offset=offset, exposure=exposure)
            return conformal_interval(found, kept, level, model)
        if method != "posterior":
            raise ValueError(f"Got method={method!r}, expected 'posterior' or 'conformal'.")
        return self.predict_quantiles(
            X, interval_levels(level), model=model, offset=offset, exposure=exposure
        )

    def residuals(
        self,
        X: Any,
        y: ArrayLike,
        *,
        model: Model | None = None,
        offset: Given = None,
        exposure: Given = None,
    ) -> pd.DataFrame:
        """How far each target lies from its prediction.

        Returns
        -------
        DataFrame
            ``output``, ``observed``, ``predicted``, ``sd`` of the prediction, ``residual``
            (observed - predicted) and ``standardised`` (residual / sd), with the index of X.
        """
        import pandas as pd

        found = self.predictions(X, offset=offset, exposure=exposure)
        observed, predicted, sd = found.observed(y), found.mean(model), found.sd(model)
        residual = observed - predicted
        outputs = np.array(found.targets, dtype=object)
        return pd.DataFrame(
            {
                "output": np.tile(outputs, len(predicted)),
                "observed": observed.ravel(),
                "predicted": predicted.ravel(),
                "sd": sd.ravel(),
                "residual": residual.ravel(),
                "standardised": (residual / sd).ravel(),
            },
            index=row_index(X, len(outputs)),
        )

    def certificate(
        self,
        X: Any,
        y: ArrayLike,
        level: float = 0.95,
        *,
        size: float | None = None,
        offset: Given = None,
        exposure: Given = None,
    ) -> Certificate:
        """The largest mean absolute error on new rows, with a stated confidence.

        Parameters
        ----------
        X : DataFrame or (rows, columns)
            Rows that had no part in training, drawn like the rows to come. For rows that the
            model was fitted to, or chosen by, the bounds do not hold.
        y : (rows,)
        level : float
            Confidence.
        size : float, optional
            Larger errors count as this one, in units of the target; the standard deviation of
            the target in training if not given. It must not be chosen by these rows.
        offset, exposure : (rows,), str or None
            Of these rows, as in :meth:`fit`.

        Returns
        -------
        Certificate
            Bounds of the averaged prediction, by Chernoff, and of a network drawn at random, by
            PAC-Bayes; they hold together, whatever the data are like.
        """
        from islab.estimators.certificates import certificate_of_numbers

        found = self.predictions(X, offset=offset, exposure=exposure)
        return certificate_of_numbers(found, y, level, size)

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: Given = None,
        exposure: Given = None,
    ) -> float:
        """The share of the targets' variance that is predicted (R squared), mean over outputs."""
        check_is_fitted(self)
        found = self.predictions(X, offset=offset, exposure=exposure)
        return super().score(found, in_order(y, found.targets), sample_weight)

    def _predictions(self, **content: Any) -> NumberPredictions:
        return NumberPredictions(**content)

    def _shaped(self, values: Float) -> Float:
        return values[:, 0] if self._flat else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        if self.likelihood == "auto":
            return tags
        family = families.likelihood(self.likelihood)
        tags.target_tags.positive_only = family.support[0] >= 0
        # Real numbers between 1 and 6, read as counts, say little: their noise is large.
        tags.regressor_tags.poor_score = family.target == "counts"
        return tags


def _words_of_dispersion(found: NumberPredictions, target: Float) -> str:
    """How much more the targets vary than their likelihood says, if much more."""
    error = (target - found.mean()) ** 2
    ratio = float((error / found.uncertainty().aleatoric).mean())
    if not ratio > MOST_DISPERSION:
        return ""
    return (
        f"vary {ratio:.1f} times as much as likelihood={found.network.likelihood!r} says "
        "(Pearson's chi squared by the number of rows), so that intervals are too narrow"
    )


def _words_of_outliers(found: NumberPredictions, target: Float, other: Likelihood) -> str:
    """What another likelihood with the same predictions would gain, if much."""
    predictor = found.reduce(lambda draws: draws.mean(axis=0))
    nll = []
    for family in (found.likelihood, other):
        noise = np.maximum(((target - predictor) ** 2).mean(axis=0), np.finfo(float).tiny)
        for _ in range(NOISE_STEPS):
            terms = family.noise_terms(target, predictor, noise)
            noise = np.maximum(terms.mean(axis=0), np.finfo(float).tiny)
        nll.append(float(family.nll(target, predictor, noise).mean()) / target.shape[1])
    gain = nll[0] - nll[1]
    if not gain > MOST_GAIN:
        return ""
    return (
        f"have outliers: the same predictions with {other.name!r} noise would make them "
        f"{gain:.1f} nats a row more probable than with {found.network.likelihood!r}"
    )
