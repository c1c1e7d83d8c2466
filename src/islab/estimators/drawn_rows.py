"""Rows under draws of a model's networks: their predictors, with memory bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.drawn import DrawnNetworks
from islab.core.families import Likelihood
from islab.core.families.mixtures import scattered_normals
from islab.core.sampled import SampledPosterior
from islab.core.sparse import SparseNetwork
from islab.estimators.weight_distribution import WeightDistribution

Float = NDArray[np.floating]
Model = Literal["full", "median"]

NUMBERS_AT_ONCE = 5_000_000
NUMBERS_IN_CACHE = 100_000
WEIGHTS_KEPT = 500_000


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows, and the draws of the full model and of its median network.

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
        Least and greatest values in training: rows outside have wider intervals.

    Notes
    -----
    Beyond the training data straight lines go on as they were, which nothing in the data supports.
    Quantiles, intervals and epistemic variances of a row x outside therefore take the change
    beyond the edge as uncertain by its size. With c the row x whose numbers are clipped to the
    range of training, and b the row as far inside, 2c - x (clipped as well), the predictor of draw
    d is f_d(x) + z_d g_d, where g_d is the larger of the changes f_d(x) - f_d(c) and
    f_d(c) - f_d(b), and z_d are fixed values of a standard normal variable, evenly spread over the
    draws. A curve that has just become flat is thus as uncertain as one that goes on. Inside the
    range g_d is 0. Means are those of f_d(x).
    """

    covariates: Float
    network: SparseNetwork
    posterior: WeightDistribution | None
    n_draws: int
    seed: int
    offset: Float | None = None
    ranges: Float | None = None
    _draws: dict[str, DrawnNetworks | None] = field(default_factory=dict, repr=False, init=False)

    def __len__(self) -> int:
        return len(self.covariates)

    @property
    def models(self) -> tuple[Model, ...]:
        """What there is to predict with: the median network and, unless left out, the full."""
        return ("median",) if self.posterior is None else ("median", "full")

    @property
    def likelihood(self) -> Likelihood:
        return families.likelihood(self.network.likelihood)

    def of_rows(self, rows: Sequence[int]) -> Self:
        """The same for some of the rows, with the draws that there are."""
        offset = None if self.offset is None else self.offset[list(rows)]
        found = replace(self, covariates=self.covariates[list(rows)], offset=offset)
        found._draws.update(self._draws)
        return found

    @cached_property
    def outside(self) -> NDArray[np.bool_]:
        """Rows with a number beyond its least or greatest value in training, (rows,)."""
        if self.ranges is None:
            return np.zeros(len(self), dtype=bool)
        low, high = self.ranges
        return ((self.covariates < low) | (self.covariates > high)).any(axis=1)

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

    def noise(self, model: Model | None = None) -> Float:
        """What the likelihood learned besides: noise variances on the scale of the data.

        (numbers,), or (draws, 1, numbers) if each draw has its own.
        """
        source = self._kept(self._chosen(model))
        if source is None:
            return self.network.noise_in_units()
        noise = source.noise_of(source.numbers(self.n_draws))
        return self.network.noise_to_units(noise[:, None])

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
        """The same, spread out by the change at the edge of the range of training."""
        draws, outside = self._predictor(model, rows), np.flatnonzero(self.outside[rows])
        if len(outside):
            assert self.ranges is not None
            own = self.covariates[rows][outside]
            edge = np.clip(own, *self.ranges)
            inside = np.clip(2 * edge - own, *self.ranges)
            there, at_edge, before = (self._computed(model, x) for x in (own, edge, inside))
            change, earlier = there - at_edge, at_edge - before
            change = np.where(np.abs(earlier) > np.abs(change), earlier, change)
            draws[:, outside] += change * scattered_normals(self.n_draws)[:, None, None]
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
