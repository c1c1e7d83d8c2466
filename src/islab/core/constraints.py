"""What a network may do with its covariates: only lines, certainly used, only up or down."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture
from islab.core.arrays import Float, Index

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Limits:
    """Constraints of covariates on the predictors of the first ``n_outputs`` outputs.

    A covariate has a sign if the product of the weights of each path from it to these outputs has
    it, where all such covariates move a hidden unit the same way: activations never fall, so that
    neither do predictors. Negative weights before and behind a unit allow curves that level off.

    Attributes
    ----------
    linear, include : (covariates,) bool
        Whether a covariate enters no hidden unit; whether it has a weight of its own into these
        outputs.
    sign : (covariates,) int
        1 or -1 where predictors may not fall or rise with a covariate, else 0.
    n_outputs : int
        Outputs that are constrained; the first ones.
    apart : (covariates, covariates) bool, optional
        Pairs that may not meet in a hidden unit, at once or over units before it.
    """

    linear: Mask
    include: Mask
    sign: NDArray[np.int8]
    n_outputs: int = 1
    apart: Mask | None = None

    @property
    def need_chains(self) -> bool:
        """Whether only draws of chains keep to them: a variational posterior has no such draws."""
        return bool(self.sign.any()) or self.apart is not None

    @property
    def arrays(self) -> list[NDArray]:
        """What tells them from others, for checkpoints."""
        known = [self.linear, self.include, self.sign]
        return known if self.apart is None else [*known, self.apart]

    def take(self, columns: Mask) -> Limits:
        """Those of some covariates."""
        apart = None if self.apart is None else self.apart[np.ix_(columns, columns)]
        return replace(
            self,
            linear=self.linear[columns],
            include=self.include[columns],
            sign=self.sign[columns],
            apart=apart,
        )

    def forbidden(self, net: Architecture) -> Index:
        """Flat positions of weights that no network may use."""
        sources, targets = net.ends
        bent = targets < net.n_units - net.n_outputs
        return np.flatnonzero((sources < net.n_covariates) & bent & self._of(self.linear, sources))

    def forced(self, net: Architecture) -> Index:
        """Flat positions of weights that every network uses."""
        sources, targets = net.ends
        return np.flatnonzero(
            (sources < net.n_covariates)
            & self._constrained(net, targets)
            & self._of(self.include, sources)
        )

    def allow(self, net: Architecture, slots: Index, weights: Float) -> bool:
        """Whether a network of these weights, at these flat positions, keeps to them."""
        if np.isin(slots, self.forbidden(net)).any() or not np.isin(self.forced(net), slots).all():
            return False
        if self.apart is not None and self._meet(net, slots):
            return False
        if not self.sign.any():
            return True
        sources, targets = (ends[slots] for ends in net.ends)
        own = np.where(sources < net.n_covariates, self._of(self.sign, sources), 0)
        senders = np.maximum(sources - net.n_covariates, 0)
        rises, falls = np.zeros((2, net.n_units), dtype=bool)  # units, as covariates go their way
        for _ in range(net.n_layers):
            way = rises.astype(int) - falls
            moved = np.sign(weights) * np.where(sources < net.n_covariates, own, way[senders])
            rises[targets[moved > 0]] = True
            falls[targets[moved < 0]] = True
        hidden, units = net.n_units - net.n_outputs, np.arange(net.n_units)
        both = (rises & falls)[:hidden]
        return not (both.any() or falls[self._constrained(net, units)].any())

    def _meet(self, net: Architecture, slots: Index) -> bool:
        """Whether a hidden unit reads two covariates that are to stay apart."""
        assert self.apart is not None
        sources, targets = (ends[slots] for ends in net.ends)
        reads = np.zeros((net.n_units, net.n_covariates), dtype=bool)
        direct = sources < net.n_covariates
        reads[targets[direct], sources[direct]] = True
        for _ in range(net.n_layers):
            np.logical_or.at(reads, targets[~direct], reads[sources[~direct] - net.n_covariates])
        hidden = reads[: net.n_units - net.n_outputs]
        return bool(((hidden @ self.apart) & hidden).any())

    def nearest(self, net: Architecture, slots: Index, weights: Float) -> tuple[Index, Float]:
        """The network itself if it keeps to the limits, or as much of its linear part as does."""
        if self.allow(net, slots, weights):
            return slots, weights
        sources, targets = net.ends
        direct = sources < net.n_covariates
        direct &= targets >= net.n_units - net.n_outputs
        flat = np.zeros(net.n_weights)
        flat[slots] = weights
        sign = np.where(self._constrained(net, targets), self._of(self.sign, sources), 0)
        kept = direct & (flat != 0) & (sign * flat >= 0)
        kept[self.forced(net)] = True
        small = np.where(sign == 0, 1, sign) * 1e-3
        flat = np.where((flat == 0) | (sign * flat < 0), small, flat)
        used = np.flatnonzero(kept)
        return used, flat[used]

    def _constrained(self, net: Architecture, targets: Index) -> Mask:
        first = net.n_units - net.n_outputs
        return (targets >= first) & (targets < first + self.n_outputs)

    def _of(self, values: NDArray, sources: Index) -> NDArray:
        """Values of covariates for sources, which may be others."""
        return values[np.minimum(sources, len(values) - 1)] if len(values) else 0 * sources
