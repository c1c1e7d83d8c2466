"""What a model predicts for some rows: the table is encoded once, each model drawn once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core.families import ClassLikelihood, Uncertainty
from islab.estimators.drawn_rows import DrawnRows, Float, Model
from islab.tables.targets import (
    checked_labels,
    checked_levels,
    checked_numbers,
    codes_of,
    in_order,
    interval_levels,
)

MOST_OTHER_CLASSES = 0.05
MOST_RESIDUAL_SDS = 1.0
SAME_PROBABILITY = 0.1


@dataclass(frozen=True)
class Disagreement:
    """How far the median network is from the full model.

    Attributes
    ----------
    size : float
        Share of rows whose predicted class differs, each by more than 0.1 in probability; of
        numbers, the root mean squared difference in residual SDs.
    limit : float
        Above it the median network does not stand for the full model.
    words : str
        One line to print.
    """

    size: float
    limit: float
    words: str

    @property
    def large(self) -> bool:
        return self.size > self.limit


@dataclass(frozen=True, eq=False)
class Predictions(DrawnRows):
    """Predictions of the full model and of its median network for the same rows.

    Attributes, and how intervals of rows outside the training data are found, are those of
    :class:`~islab.estimators.drawn_rows.DrawnRows`.
    """

    _means: dict[str, Float] = field(default_factory=dict, repr=False, init=False)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets, which may have an output for each of several predictors."""
        outputs = self.network.scale.outputs
        return outputs[: len(outputs) // self.likelihood.n_predictors]

    def mean(self, model: Model | None = None) -> Float:
        """Expected targets, (rows, outputs); of classes the probability of each."""
        chosen = self._chosen(model)
        if chosen not in self._means:
            self._means[chosen] = self.reduce(lambda draws: self._mean(draws, chosen), chosen)
        return self._means[chosen]

    def uncertainty(self, model: Model | None = None) -> Uncertainty:
        """Variance of the targets, split into what stays and what more data would remove."""

        noise = self.noise(model)

        def parts(draws: Float) -> tuple[Float, Float]:
            found = self.likelihood.uncertainty(draws, noise)
            return found.aleatoric, found.epistemic

        found = Uncertainty(*self.reduce(parts, model))
        if not self.outside.any():
            return found
        return replace(found, epistemic=self.reduce(parts, model, widened=True)[1])

    def samples(self, model: Model | None = None) -> Float:
        """Expected targets under each draw, (draws, rows, outputs)."""
        return self.response(self.predictor(model), model)

    def disagreement(self) -> Disagreement | None:
        """How far the median network is from the full model, None if there is no full model."""
        return None if self.posterior is None else self._disagreement()

    def _disagreement(self) -> Disagreement:
        raise NotImplementedError

    def response(self, predictor: Float, model: Model | None = None) -> Float:
        """Expected targets for predictors of draws, (draws, rows, outputs)."""
        response = self.likelihood.given(self.noise(model)).mean(predictor)
        return response[..., : len(self.targets)]

    def _mean(self, draws: Float, model: Model) -> Float:
        known = self.likelihood.given(self.noise(model))
        return known.predictive_mean(draws)[..., : len(self.targets)]


@dataclass(frozen=True, eq=False)
class NumberPredictions(Predictions):
    """Predictions of a regressor."""

    kind: ClassVar[Literal["numbers"]] = "numbers"

    def sd(self, model: Model | None = None) -> Float:
        """Standard deviation of the targets, noise included, (rows, outputs)."""
        return np.sqrt(self.uncertainty(model).total)

    def quantiles(self, levels: ArrayLike, model: Model | None = None) -> Float:
        """Quantiles of the targets, noise included, (rows, outputs, levels)."""
        wanted, noise = checked_levels(levels), self.noise(model)

        def quantiles(draws: Float) -> Float:
            return np.moveaxis(self.likelihood.predictive_quantiles(draws, noise, wanted), 0, -1)

        return self.reduce(quantiles, model, widened=True)

    def interval(self, level: float = 0.9, model: Model | None = None) -> Float:
        """Ends of central predictive intervals, (rows, outputs, 2)."""
        return self.quantiles(interval_levels(level), model)

    def log_score(self, y: ArrayLike, model: Model | None = None) -> Float:
        """Minus the log predictive density of each row's targets, (rows,)."""
        noise = self.noise(model)
        return self.reduce(
            lambda draws, own: self.likelihood.log_score(own, draws, noise),
            model,
            self.observed(y),
        )

    def _disagreement(self) -> Disagreement:
        difference = self.mean("full") - self.mean("median")
        variance = self.uncertainty("full").aleatoric.mean(axis=0)
        size = float(np.sqrt((difference**2).mean(axis=0) / variance).max())
        words = f"median network and full model differ by {size:.2g} residual SDs on average"
        return Disagreement(size, MOST_RESIDUAL_SDS, words)

    def observed(self, y: ArrayLike) -> Float:
        """The targets of the rows, checked, (rows, outputs)."""
        outputs = self.targets
        targets = in_order(y, outputs)
        found = checked_numbers(self, targets, self.covariates, self.network.likelihood)
        if found.size != len(self) * len(outputs):
            expected = (len(self), len(outputs))[: 1 + (len(outputs) > 1)]
            raise ValueError(f"Got y of shape {found.shape}, expected {expected}: as in training.")
        return found.reshape(len(self), len(outputs))


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassPredictions(Predictions):
    """Predictions of a classifier.

    Attributes
    ----------
    classes : (classes,)
        In the order of the columns of :meth:`mean`.
    levels : (classes,), optional
        The classes from the lowest to the highest, if they have an order.
    """

    classes: NDArray
    levels: NDArray | None = None
    kind: ClassVar[Literal["classes"]] = "classes"

    def predicted(self, model: Model | None = None) -> NDArray:
        """The most probable class of each row, (rows,)."""
        return self.classes[self.mean(model).argmax(axis=1)]

    def quantiles(self, levels: ArrayLike, model: Model | None = None) -> Float:
        """Posterior quantiles of the class probabilities, (rows, classes, levels)."""
        wanted = checked_levels(levels)

        def quantiles(draws: Float) -> Float:
            found = self._known(model).class_quantiles(draws, wanted)
            return np.moveaxis(self._in_order(found), 0, -1)

        return self.reduce(quantiles, model, widened=True)

    def interval(self, level: float = 0.9, model: Model | None = None) -> Float:
        """Ends of credible intervals of the class probabilities, (rows, classes, 2)."""
        return self.quantiles(interval_levels(level), model)

    def probability_of(self, y: ArrayLike, model: Model | None = None) -> Float:
        """Probability of each row's own class, (rows,)."""
        codes = np.searchsorted(self.classes, self.observed(y))
        return self.mean(model)[np.arange(len(self)), codes]

    def log_score(self, y: ArrayLike, model: Model | None = None) -> Float:
        """Minus the log probability of each row's own class, (rows,)."""
        return -np.log(np.maximum(self.probability_of(y, model), np.finfo(float).tiny))

    def _disagreement(self) -> Disagreement:
        full, median = self.mean("full"), self.mean("median")
        rows, best = np.arange(len(self)), full.argmax(axis=1)
        # Rows on the border between classes change sides by chance.
        clear = full[rows, best] - median[rows, best] > SAME_PROBABILITY
        size = float(((best != median.argmax(axis=1)) & clear).mean())
        words = f"median network and full model predict different classes in {size:.0%} of rows"
        return Disagreement(size, MOST_OTHER_CLASSES, words)

    def observed(self, y: ArrayLike) -> NDArray:
        """The classes of the rows, checked, (rows,)."""
        found = self._labels(y)
        unknown = found[~np.isin(found, self.classes)]
        if len(unknown):
            raise ValueError(
                f"Got class {unknown.tolist()[0]!r} in y, expected those of the training: "
                f"{', '.join(map(str, self.classes))}."
            )
        return found

    def _labels(self, y: ArrayLike) -> NDArray:
        return checked_labels(self, y, self.covariates)

    def response(self, predictor: Float, model: Model | None = None) -> Float:
        """Class probabilities for predictors of draws, (draws, rows, classes)."""
        return self._in_order(self._known(model).class_probabilities(predictor))

    def _mean(self, draws: Float, model: Model) -> Float:
        # Of every class by itself: what is left of a mean near 1 has few digits.
        return self.response(draws, model).mean(axis=0)

    def _known(self, model: Model | None) -> ClassLikelihood:
        """The likelihood with what was learned besides the weights."""
        likelihood = self.likelihood.given(self.noise(model))
        assert isinstance(likelihood, ClassLikelihood)
        return likelihood

    def _in_order(self, values: Float) -> Float:
        """Numbers of levels (..., classes) in the order of the classes."""
        if self.levels is None:
            return values
        return values[..., codes_of(self.classes, self.levels)]
