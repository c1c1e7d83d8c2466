"""Draws of networks, each with the few weights it uses: what predictions and explanations need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Float, Index
from islab.core.integration import integrated_contributions
from islab.core.native import compiled, instructions
from islab.core.network import forward, slopes
from islab.core.paths import active_weights

if TYPE_CHECKING:
    from islab.core.native._networks import Networks

NUMBERS_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class DrawnNetworks:
    """Networks of one architecture. The edges of all draws stand one after the other.

    Compiled code goes over the edges alone; without it, and for activations that it does not
    know, :mod:`islab.core.network` does the same on all weights. Results agree to rounding.

    Attributes
    ----------
    architecture : Architecture
    slots, weights : (edges of all draws,)
        Flat position in the architecture and value of each weight.
    ends : (draws,)
        Where the edges of each draw end.
    biases : (draws, units)
    """

    architecture: Architecture
    slots: Index
    weights: Float
    ends: Index
    biases: Float

    @classmethod
    def from_dense(cls, architecture: Architecture, weights: Float, biases: Float) -> DrawnNetworks:
        """Of flat weights (draws, weights), most of them 0, and biases (draws, units)."""
        draws, slots = np.nonzero(weights)
        ends = np.cumsum(np.bincount(draws, minlength=len(weights)))
        return cls(architecture, slots, weights[draws, slots], ends, biases)

    @classmethod
    def joined(cls, parts: Sequence[DrawnNetworks]) -> DrawnNetworks:
        """The draws of several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *(len(part.slots) for part in parts[:-1])])
        return cls(
            parts[0].architecture,
            np.concatenate([part.slots for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.ends + at for part, at in zip(parts, starts, strict=True)]),
            np.concatenate([part.biases for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, draws: slice) -> DrawnNetworks:
        """Some of the draws, neighbours."""
        first, last, step = draws.indices(len(self))
        if step != 1:
            raise ValueError(f"Got draws {draws}, expected neighbours.")
        bounds = np.concatenate([[0], self.ends])
        edges = slice(bounds[first], bounds[max(first, last)])
        return DrawnNetworks(
            self.architecture,
            self.slots[edges],
            self.weights[edges],
            self.ends[first:last] - bounds[first],
            self.biases[first:last],
        )

    def take(self, draws: Index) -> DrawnNetworks:
        """These draws, in their order."""
        own = np.diff(self.ends, prepend=0)[draws]
        within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
        edges = np.repeat(self.ends[draws] - own, own) + within
        return DrawnNetworks(
            self.architecture,
            self.slots[edges],
            self.weights[edges],
            np.cumsum(own),
            self.biases[draws],
        )

    def dense(self) -> tuple[Float, Float]:
        """All weights (draws, weights) and biases (draws, units)."""
        flat = np.zeros((len(self), self.architecture.n_weights))
        draws = np.repeat(np.arange(len(self)), np.diff(self.ends, prepend=0))
        flat[draws, self.slots] = self.weights
        return flat, self.biases

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code computes what is asked for."""
        return self._compiled is not None

    @cached_property
    def covariates(self) -> Index:
        """The covariates that some draw uses, rising: those on a path to an output."""
        if self._compiled is not None:
            return self._compiled.used.astype(np.intp)
        used = np.zeros(self.architecture.n_covariates, dtype=bool)
        for part in self._in_parts(self.architecture.n_weights):
            kept = part.dense()[0] != 0
            active = active_weights(self.architecture, kept)
            used |= self.architecture.covariate_matrix(active).any(axis=(0, 1))
        return np.flatnonzero(used)

    # -- over rows ------------------------------------------------------------------------

    def predictor(self, x: Float) -> Float:
        """Linear predictor for standardised rows (rows, covariates), (draws, rows, outputs)."""
        x = self._checked(x)
        if self._compiled is not None:
            return self._compiled.predictor(x)
        parts = self._in_parts(self.architecture.n_weights)
        return np.concatenate([forward(self.architecture, *part.dense(), x) for part in parts])

    def slopes(self, x: Float) -> tuple[Float, Float]:
        """The predictor (draws, rows, outputs) and its gradient by the used covariates.

        Returns
        -------
        predictor : (draws, rows, outputs)
        gradient : (draws, rows, outputs, used covariates)
            By standardised covariates, those of :attr:`covariates`.
        """
        x = self._checked(x)
        if self._compiled is not None:
            return self._compiled.slopes(x)
        net = self.architecture
        cost = net.n_weights + len(x) * (net.n_units + net.n_outputs * net.n_covariates)
        found = [slopes(net, *part.dense(), x) for part in self._in_parts(cost)]
        predictor, gradient = (np.concatenate(each) for each in zip(*found, strict=True))
        return predictor, gradient[..., self.covariates]

    def contributions(self, start: Float, end: Float) -> Float:
        """What each used covariate adds to the predictor on the straight way to each row.

        Parameters
        ----------
        start : (1, covariates) or (rows, covariates)
            Where the way begins, standardised.
        end : (rows, covariates)

        Returns
        -------
        (draws, rows, used covariates, outputs)
            ``(end - start)`` times the mean gradient on the way: exact integrated gradients, which
            add up to the difference of the predictors. Covariates are those of
            :attr:`covariates`.

        Notes
        -----
        On the way a piecewise-linear network is linear between bends, where a unit's sum passes a
        bend of its activation, so that the integral is a sum over the pieces. Of a curved one it is
        found by quadrature, an approximation.
        """
        start, end = self._checked(start), self._checked(end)
        if len(start) not in (1, len(end)):
            raise ValueError(
                f"Got {len(start)} starts for {len(end)} rows, expected one, or one for each row."
            )
        net = self.architecture
        if self._compiled is not None and net.piecewise_linear:
            return self._compiled.contributions(start, end)
        cost = net.n_weights + len(end) * net.n_outputs * net.n_covariates
        found = [
            integrated_contributions(net, *part.dense(), start, end)[..., self.covariates]
            for part in self._in_parts(cost)
        ]
        return np.swapaxes(np.concatenate(found), -1, -2)

    # -- sums over rows -------------------------------------------------------------------

    def newton_sums(self, x: Float, residuals: Float, roots: Float) -> tuple[Float, Float]:
        """Gradients and curvatures by the parameters, summed over standardised rows.

        Only in compiled code.

        Parameters
        ----------
        x : (rows, covariates)
        residuals : (any, draws, rows, outputs)
            Derivatives by the predictor. A gradient is the sum of J' r, with the Jacobian J of the
            predictor by the parameters.
        roots : (any, draws, rows, outputs)
            A curvature is the sum over roots and rows of the outer products of J' root.

        Returns
        -------
        gradients : (any, parameters of all draws)
        curvatures : (squared numbers of parameters of all draws,)
            One square after the other.
        """
        return self._compiled_or_raise().newton_sums(self._checked(x), residuals, roots)

    @cached_property
    def parameters(self) -> list[tuple[Index, Index]]:
        """For each draw its parameters as sums have them: edges, then units with their biases.

        Edges are positions in :attr:`slots`; those that lead to no output are left out.
        """
        compiled = self._compiled_or_raise()
        ends = np.cumsum(compiled.sizes.ravel())[:-1]
        parts = [part.astype(np.intp) for part in np.split(compiled.parameters, ends)]
        return list(zip(parts[::2], parts[1::2], strict=True))

    def _compiled_or_raise(self) -> Networks:
        if self._compiled is None:
            raise RuntimeError("Got no compiled module, expected one to sum over rows.")
        return self._compiled

    # -- how ------------------------------------------------------------------------------

    @cached_property
    def _compiled(self) -> Networks | None:
        kernel = self.architecture.kernel
        if compiled is None or kernel is None or kernel.name not in compiled.activations():
            return None
        return compiled.Networks(
            covariates=self.architecture.n_covariates,
            hidden=list(self.architecture.hidden),
            outputs=self.architecture.n_outputs,
            input_skip=self.architecture.input_skip,
            activation=kernel.name,
            constant=kernel.constant,
            slots=self.slots,
            weights=self.weights,
            ends=self.ends,
            biases=self.biases,
            instructions=instructions,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _checked(self, x: Float) -> Float:
        x = np.asarray(x, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != self.architecture.n_covariates:
            expected = f"(rows, {self.architecture.n_covariates})"
            raise ValueError(f"Got rows of shape {x.shape}, expected {expected}.")
        return x

    def _in_parts(self, cost: int) -> Iterator[DrawnNetworks]:
        """Few draws at a time, each of which costs so many numbers."""
        size = max(1, NUMBERS_AT_ONCE // max(cost, 1))
        for first, last in pairwise([*range(0, max(len(self), 1), size), len(self)]):
            yield self[first:last]
