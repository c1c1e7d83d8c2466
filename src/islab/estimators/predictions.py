"""What a model predicts for some rows: the table is encoded once, each model drawn once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core import families
from islab.core.drawn import DrawnNetworks
from islab.core.families import ClassLikelihood, Likelihood, Uncertainty
from islab.core.families.mixtures import scattered_normals
from islab.core.sampled import SampledPosterior
from islab.core.sparse import SparseNetwork
from islab.estimators.weight_distribution import WeightDistribution
from islab.tables.targets import (
    checked_labels,
    checked_levels,
    checked_numbers,
    codes_of,
    in_order,
    interval_levels,
)

Float = NDArray[np.floating]
Model = Literal["full", "median"]

NUMBERS_AT_ONCE = 5_000_000
NUMBERS_IN_CACHE = 100_000
WEIGHTS_KEPT = 500_000
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
class Predictions:
    """Predictions of the full model and of its median network for the same rows.

    Draws of the weights are made when they are first asked for, and kept for later predictions of
    the same model where they fit in memory. Tables are gone through in parts, so that memory does
    not depend on the number of draws. The same seed gives the same draws, and a row the same
    numbers whichever rows stand beside it.

    Attributes
    ----------
    covariates : (rows, covariates)
        The rows, encoded, on the scale of the data.
    network : SparseNetwork
    posterior : WeightDistribution, optional
        None for a model from a sparse file.
    n_draws, seed : int
    offset : (rows, outputs), optional
        Added to the predictor of every draw, on the scale of the data.
    ranges : (2, covariates), optional
        Least and greatest values in training: intervals of rows outside are wider.

    Notes
    -----
    Beyond the training data straight lines go on as they were, which nothing in the data supports.
    Quantiles, intervals and epistemic variances of a row x outside therefore take the change
    beyond the edge as uncertain by its own size. With c the row x whose numbers are clipped to the
    range of training, the predictor of draw d is f_d(x) + z_d (f_d(x) - f_d(c)), where z_d are
    fixed values of a standard normal variable, evenly spread over the draws. Inside the range the
    second term is 0. Means are those of f_d(x).
    """

    covariates: Float
    network: SparseNetwork
    posterior: WeightDistribution | None
    n_draws: int
    seed: int
    offset: Float | None = None
    ranges: Float | None = None
    _draws: dict[str, DrawnNetworks | None] = field(default_factory=dict, repr=False, init=False)
    _means: dict[str, Float] = field(default_factory=dict, repr=False, init=False)

    def __len__(self) -> int:
        return len(self.covariates)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets, which may have an output for each of several predictors."""
        outputs = self.network.scale.outputs
        return outputs[: len(outputs) // self.likelihood.n_predictors]

    @property
    def models(self) -> tuple[Model, ...]:
        """What there is to predict with: the median network and, unless left out, the full."""
        return ("median",) if self.posterior is None else ("median", "full")

    def of_rows(self, rows: Sequence[int]) -> Self:
        """The same for some of the rows, with the draws that there are."""
        offset = None if self.offset is None else self.offset[list(rows)]
        found = replace(self, covariates=self.covariates[list(rows)], offset=offset)
        found._draws.update(self._draws)
        return found

    # -- what is predicted ----------------------------------------------------------------

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

    @cached_property
    def outside(self) -> NDArray[np.bool_]:
        """Rows with a number beyond its least or greatest value in training, (rows,)."""
        if self.ranges is None:
            return np.zeros(len(self), dtype=bool)
        low, high = self.ranges
        return ((self.covariates < low) | (self.covariates > high)).any(axis=1)

    def samples(self, model: Model | None = None) -> Float:
        """Expected targets under each draw, (draws, rows, outputs)."""
        return self.response(self.predictor(model), model)

    def disagreement(self) -> Disagreement | None:
        """How far the median network is from the full model, None if there is no full model."""
        return None if self.posterior is None else self._disagreement()

    def _disagreement(self) -> Disagreement:
        raise NotImplementedError

    # -- draws ----------------------------------------------------------------------------

    def predictor(self, model: Model | None = None) -> Float:
        """Linear predictor of coherent draws on the scale of the data, (draws, rows, outputs)."""
        return self._predictor(self._chosen(model), slice(0, len(self)))

    def networks(self, model: Model | None = None) -> DrawnNetworks:
        """All draws of the networks; the median network's covariates are those that it uses."""
        return DrawnNetworks.joined(list(self._networks(self._chosen(model))))

    def thinned(self, n_draws: int, model: Model | None = None) -> tuple[DrawnNetworks, Float]:
        """So many of the draws, evenly spaced, or all if there are fewer; and their noise."""
        chosen, kept = self._chosen(model), min(n_draws, self.n_draws)
        numbers = ((np.arange(kept) + 0.5) / kept * self.n_draws).astype(np.intp)
        parts, first = [], 0
        for networks in self._networks(chosen):
            last = first + len(networks)
            parts.append(networks.take(numbers[(numbers >= first) & (numbers < last)] - first))
            first = last
        noise = self.noise(chosen)
        return DrawnNetworks.joined(parts), noise[numbers] if noise.ndim == 3 else noise

    def source(self, model: Model | None = None) -> WeightDistribution | SparseNetwork:
        """What draws are made from."""
        return self._source(self._chosen(model))

    def reduce(
        self,
        statistic: Callable[..., Any],
        model: Model | None = None,
        *beside: Float,
        widened: bool = False,
    ) -> Any:
        """A statistic of the draws of the predictor, for all rows, with memory bounded.

        Parameters
        ----------
        statistic : callable
            Takes draws (draws, rows, outputs) of some rows and the same rows of ``beside``, and
            returns an array (rows, ...), or a tuple of such arrays.
        model : {"full", "median"}, optional
        *beside : (rows, ...)
        widened : bool
            Spread draws out for rows outside the range of training.
        """
        chosen = self._chosen(model)
        predictor = self._widened if widened else self._predictor
        numbers_per_row = self.n_draws * self.network.architecture.n_outputs
        found = [
            statistic(predictor(chosen, rows), *(values[rows] for values in beside))
            for rows in _parts(len(self), numbers_per_row, self._numbers_at_once(chosen))
        ]
        if isinstance(found[0], tuple):
            return tuple(np.concatenate(part) for part in zip(*found, strict=True))
        return np.concatenate(found)

    # -- how ------------------------------------------------------------------------------

    @property
    def likelihood(self) -> Likelihood:
        return families.likelihood(self.network.likelihood)

    def noise(self, model: Model | None = None) -> Float:
        """What the likelihood learned besides: noise variances on the scale of the data.

        (numbers,), or (draws, 1, numbers) if each draw has its own.
        """
        source = self._kept(self._chosen(model))
        if source is None:
            return self.network.noise_in_units()
        noise = source.noise_of(source.numbers(self.n_draws))
        return self.network.noise_to_units(noise[:, None])

    def response(self, predictor: Float, model: Model | None = None) -> Float:
        """Expected targets for predictors of draws, (draws, rows, outputs)."""
        response = self.likelihood.given(self.noise(model)).mean(predictor)
        return response[..., : len(self.targets)]

    def _mean(self, draws: Float, model: Model) -> Float:
        known = self.likelihood.given(self.noise(model))
        return known.predictive_mean(draws)[..., : len(self.targets)]

    def _chosen(self, model: Model | None) -> Model:
        if model is None:
            return self.models[-1]
        if model not in ("full", "median"):
            raise ValueError(f"Got model={model!r}, expected 'full' or 'median'.")
        if model not in self.models:
            raise ValueError(
                "Got model='full' for a model that was saved with sparse=True, which holds the "
                "median network only; try model='median', or save it without sparse=True."
            )
        return model

    def _predictor(self, model: Model, rows: slice) -> Float:
        """The predictor of some rows under each draw, (draws, rows, outputs)."""
        draws = self._computed(model, self.covariates[rows])
        if self.offset is not None:
            draws[..., : self.offset.shape[1]] += self.offset[rows]
        return draws

    def _widened(self, model: Model, rows: slice) -> Float:
        """The same, spread out by the change beyond the range of training."""
        draws, outside = self._predictor(model, rows), np.flatnonzero(self.outside[rows])
        if len(outside):
            assert self.ranges is not None
            own = self.covariates[rows][outside]
            beyond = self._computed(model, own)
            beyond -= self._computed(model, np.clip(own, *self.ranges))
            draws[:, outside] += beyond * scattered_normals(self.n_draws)[:, None, None]
        return draws

    def _computed(self, model: Model, covariates: Float) -> Float:
        used = self.network.covariates if model == "median" else slice(None)
        x = self.network.scale.standardise(covariates, used)
        draws = [networks.predictor(x) for networks in self._networks(model)]
        return self.network.scale.restore(draws[0] if len(draws) == 1 else np.concatenate(draws))

    def _numbers_at_once(self, model: Model) -> int:
        """Draws of the predictor that are in memory at once.

        Few, if it costs nothing to take up the networks again for each part of the rows.
        """
        whole = self._remembered(model)
        quick = whole is not None and whole.is_compiled
        return NUMBERS_IN_CACHE if quick else NUMBERS_AT_ONCE

    def _networks(self, model: Model) -> Iterator[DrawnNetworks]:
        """Draws of the networks: all at once if their weights fit in memory, or in parts."""
        whole = self._remembered(model)
        if whole is None:
            yield from self._drawn(model)
        else:
            yield whole

    def _remembered(self, model: Model) -> DrawnNetworks | None:
        """All draws, made when they are first asked for; None if they do not fit in memory."""
        source, key = self._source(model), (self.n_draws, self.seed, NUMBERS_AT_ONCE)
        if model not in self._draws:
            last, found = _LAST_DRAWS.get(source, (None, None))
            if last != key:
                found = _joined(self._drawn(model))
                if found is not None and len(found.slots) <= WEIGHTS_KEPT:
                    _LAST_DRAWS[source] = key, found
            self._draws[model] = found
        return self._draws[model]

    def _drawn(self, model: Model) -> Iterator[DrawnNetworks]:
        """Draws of the networks in parts, made anew."""
        source, kept = self._source(model), self._kept(model)
        if kept is not None:
            yield kept.networks(kept.numbers(self.n_draws))
            return
        rng, net = np.random.default_rng(self.seed), source.architecture
        # How the draws are split must not depend on the rows: it decides the random numbers.
        for part in _parts(self.n_draws, net.n_weights, NUMBERS_AT_ONCE):
            yield DrawnNetworks.from_dense(net, *source.draw(part.stop - part.start, rng))

    def _kept(self, model: Model) -> SampledPosterior | SparseNetwork | None:
        """What has drawn already, in chains; None if draws are made when they are needed."""
        source = self._source(model)
        if isinstance(source, SparseNetwork):
            return None if source.kept is None else source
        return source if isinstance(source, SampledPosterior) else None

    def _source(self, model: Model) -> WeightDistribution | SparseNetwork:
        if model == "median" or self.posterior is None:
            return self.network
        return self.posterior


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


def _parts(total: int, cost: int, at_once: int) -> Iterator[slice]:
    """Slices of a range, each of which costs at most so many numbers."""
    size = max(1, at_once // max(cost, 1))
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))


def _joined(parts: Iterator[DrawnNetworks]) -> DrawnNetworks | None:
    """All draws, or None if their weights do not fit in memory."""
    found: list[DrawnNetworks] = []
    for part in parts:
        found.append(part)
        if len(found) > 1 and sum(len(each.slots) for each in found) > NUMBERS_AT_ONCE:
            return None
    return DrawnNetworks.joined(found)


# The last draws of each distribution, for as long as it lives: predictions of one row after the
# other, as a service makes them, draw once.
_LAST_DRAWS: WeakKeyDictionary[Any, tuple[tuple[int, ...], DrawnNetworks]] = WeakKeyDictionary()
