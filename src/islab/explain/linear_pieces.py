"""The linear piece of the network around each row, for many draws, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from islab.core.network import slopes
from islab.core.sparse import SparseNetwork

Float = NDArray[np.floating]

NUMBERS_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Pieces:
    """What each draw of the network is around each row.

    Attributes
    ----------
    predictor, response : (draws, rows, outputs)
    slope : (draws, rows, used covariates, outputs)
    """

    predictor: Float
    response: Float
    slope: Float


def linear_pieces(
    network: SparseNetwork,
    weights: Float,
    biases: Float,
    x: Float,
    outputs: list[int],
    contrast: Float | None = None,
) -> Pieces:
    """Predictor, response and slopes of each draw at each row.

    Parameters
    ----------
    weights, biases : (draws, weights), (draws, units)
    x : (rows, covariates)
    outputs : list of int
        The outputs wanted.
    contrast : (outputs, outputs), optional
        Predictors and slopes are multiplied by it; the response is not.
    """
    likelihood = network.known_likelihood()
    shape, scale = network.architecture, network.scale
    columns = network.standardise(x)
    n_draws, n_rows, n_used, n_wanted = len(weights), len(x), shape.n_covariates, len(outputs)
    combine = (np.eye(shape.n_outputs) if contrast is None else contrast)[outputs].T
    predictor = np.empty((n_draws, n_rows, n_wanted))
    response = np.empty((n_draws, n_rows, n_wanted))
    slope = np.empty((n_draws, n_rows, n_used, n_wanted))
    rescale = scale.y_scale[:, None] * combine  # (outputs, outputs wanted)
    per_draw = n_rows * (shape.n_units + shape.n_outputs * (n_used + max(shape.widths)))
    step = max(1, NUMBERS_AT_ONCE // max(per_draw, 1))
    for start in range(0, n_draws, step):
        some = slice(start, start + step)
        eta, gradient = slopes(shape, weights[some], biases[some], columns)
        eta = scale.y_center + scale.y_scale * eta
        predictor[some] = eta @ combine
        response[some] = likelihood.mean(eta)[..., outputs]
        slope[some] = np.swapaxes(gradient, -1, -2) @ rescale
    slope /= scale.x_scale[network.covariates, None]
    return Pieces(predictor, response, slope)
