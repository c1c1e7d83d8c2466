"""Integrated gradients without quadrature: the path is cut where the network bends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core import families
from islab.core.names import former_name
from islab.core.network import preactivations
from islab.core.outputs import (
    Baseline,
    baseline_values,
    checked_rows,
    require_piecewise_linear,
)
from islab.core.sparse import SparseNetwork
from islab.explain.linear_pieces import linear_pieces

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]


@dataclass(frozen=True)
class IntegratedGradients:
    """How much each covariate adds on the straight way from a baseline to each row.

    Attributes
    ----------
    covariates, outputs : tuple of str
    x : (rows, covariates)
    baseline : (covariates,)
    attribution : (rows, covariates, outputs)
        Adds up over covariates to ``predictor - baseline_predictor``.
    predictor : (rows, outputs)
    baseline_predictor : (outputs,)
    n_pieces : (rows,)
        Linear pieces of the network on the way; with one, attributions are the contributions of
        the local explanation from the same baseline.
    """

    covariates: tuple[str, ...]
    outputs: tuple[str, ...]
    x: Float
    baseline: Float
    attribution: Float
    predictor: Float
    baseline_predictor: Float
    n_pieces: NDArray[np.intp]

    link = former_name("link", "predictor")
    baseline_link = former_name("baseline_link", "baseline_predictor")

    def to_frame(self) -> pd.DataFrame:
        """One line for each row, output and covariate."""
        import pandas as pd

        rows, covariates, outputs = self.attribution.shape
        names = np.array(self.covariates, dtype=object)
        return pd.DataFrame(
            {
                "row": np.repeat(np.arange(rows), covariates * outputs),
                "output": np.tile(np.array(self.outputs, dtype=object), rows * covariates),
                "covariate": np.tile(np.repeat(names, outputs), rows),
                "value": np.repeat(self.x.ravel(), outputs),
                "attribution": self.attribution.ravel(),
            }
        )

    def plot(self, **options: Any) -> Any:
        """Bars of the attributions; see :func:`islab.plots.attribution_bars`."""
        from islab.plots import attribution_bars

        return attribution_bars(self, **options)


def integrated_gradients(
    network: SparseNetwork, x: ArrayLike, baseline: Baseline = "center"
) -> IntegratedGradients:
    """Exact integrated gradients of the predictor at the posterior mean of the weights.

    Parameters
    ----------
    network : SparseNetwork
        With a piecewise-linear activation.
    x : (rows, covariates)
    baseline : {"center", "zero"} or (covariates,)
        Where the way to each row starts.

    Notes
    -----
    On a segment such a network is piecewise linear. Layer by layer, the units' zeros between
    known bends are new bends; between neighbouring bends the gradient is constant, so the
    integral is the sum of gradients at midpoints, times the lengths of the pieces.
    """
    require_piecewise_linear(network, "explain_local with approximate=True")
    rows = checked_rows(network, x)
    start = baseline_values(network.scale, baseline)
    bends = _bends(network, rows, start)
    middle, length = (bends[:, 1:] + bends[:, :-1]) / 2, np.diff(bends, axis=1)
    points = _along(rows, start, middle).reshape(-1, rows.shape[1])
    at_mean = network.mean_weights()[None], network.bias_mu[None]
    outputs = list(range(len(network.scale.outputs)))
    slope = linear_pieces(network, *at_mean, points, outputs).slope[0]
    mean_slope = np.einsum("rk,rkjo->rjo", length, slope.reshape(*middle.shape, *slope.shape[1:]))
    attribution = np.zeros((*rows.shape, len(outputs)))
    used = network.covariates
    attribution[:, used] = mean_slope * (rows - start)[:, used, None]
    return IntegratedGradients(
        covariates=network.scale.names,
        outputs=network.scale.outputs,
        x=rows,
        baseline=start,
        attribution=attribution,
        predictor=network.predictor(rows),
        baseline_predictor=network.predictor(start[None])[0],
        n_pieces=(length > 0).sum(axis=1),
    )


def _along(rows: Float, start: Float, shares: Float) -> Float:
    """Points at shares (rows, points) of the way, (rows, points, covariates)."""
    return start + shares[:, :, None] * (rows - start)[:, None]


def _bends(network: SparseNetwork, rows: Float, start: Float) -> Float:
    """Shares of the way at which the network may bend, (rows, bends), from 0 to 1.

    Rows with fewer bends than others repeat the last: pieces of length 0.
    """
    shape = network.architecture
    at = np.array(families.activation(shape.activation).bends or ())
    bends = np.broadcast_to(np.array([0.0, 1.0]), (len(rows), 2))
    for units in shape.units[:-1]:
        points = _along(rows, start, bends).reshape(-1, rows.shape[1])
        z = preactivations(
            shape, network.mean_weights(), network.bias_mu, network.standardise(points)
        )
        z = z[:, units].reshape(*bends.shape, -1)
        z = (z[..., None] - at).reshape(*bends.shape, -1)
        before, after = z[:, :-1], z[:, 1:]
        crosses = before * after < 0
        share = np.divide(before, before - after, out=np.ones(before.shape), where=crosses)
        left, length = bends[:, :-1, None], np.diff(bends, axis=1)[:, :, None]
        # What is no bend goes to the end of the way, where it makes pieces of length 0.
        found = np.where(crosses, left + share * length, 1.0).reshape(len(rows), -1)
        bends = np.sort(np.concatenate([bends, found], axis=1), axis=1)
        n_inside = int((bends < 1).sum(axis=1).max(initial=1))
        bends = bends[:, : n_inside + 1]
    return bends
