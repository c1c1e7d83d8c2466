"""The median network and draws of it in JSON's types, for the page to evaluate."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import LEAKY_SLOPE
from islab.core.likelihoods import LARGEST_LOG_RATE
from islab.core.names import printable
from islab.core.sparse import SparseNetwork
from islab.explain.choices import is_piecewise_linear

Float = NDArray[np.floating]

LARGEST_DRAWS = 1_000_000
FEWEST_DRAWS = 20
BISECTIONS = 60


def draws_that_fit(network: SparseNetwork, n_draws: int) -> int:
    """As many draws as asked for, or fewer of a network so large that the page would be heavy."""
    per_draw = (network.n_used_weights + len(network.bias_mu)) * 8 * 4 / 3
    return min(n_draws, max(FEWEST_DRAWS, int(LARGEST_DRAWS / per_draw)))


def network_data(network: SparseNetwork, n_draws: int, seed: int, level: float) -> dict[str, Any]:
    """Everything the page's own evaluation needs.

    Draws are those of :func:`islab.explain.explain_local` with the same number and seed. They are
    packed as base64 of little-endian doubles, which loses nothing; the first is the posterior
    mean.
    """
    from scipy.special import ndtri

    weights, biases = network.draw(n_draws, np.random.default_rng(seed))
    weights = np.vstack([network.edge_means(), weights[:, network.edges]])
    biases = np.vstack([network.bias_mu, biases])
    sources, targets = network.edge_ends()
    start = network.from_covariate()
    places = {int(column): place for place, column in enumerate(network.covariates)}
    # Sorted by layer, so that every unit is complete before it sends.
    order = np.argsort(network.edge_layers(), kind="stable")
    edges = [
        [int(start[e]), places[int(sources[e])] if start[e] else int(sources[e]), int(targets[e])]
        for e in order
    ]
    scale, used = network.scale, network.covariates
    return {
        "likelihood": network.likelihood,
        "activation": network.architecture.activation,
        "leaky_slope": LEAKY_SLOPE,
        "largest_log_rate": LARGEST_LOG_RATE,
        "bisections": BISECTIONS,
        "exact": is_piecewise_linear(network),
        "level": level,
        "normal_ends": ndtri([(1 - level) / 2, (1 + level) / 2]).tolist(),
        "n_units": network.architecture.n_units,
        "outputs": [printable(name) for name in scale.outputs],
        "covariates": [printable(scale.names[column]) for column in used],
        "x_center": scale.x_center[used].tolist(),
        "x_scale": scale.x_scale[used].tolist(),
        "y_center": scale.y_center.tolist(),
        "y_scale": scale.y_scale.tolist(),
        "noise": network.noise_in_units().tolist(),
        "edges": edges,
        "n_draws": n_draws,
        "weights": _packed(weights[:, order]),
        "biases": _packed(biases),
    }


def _packed(values: Float) -> str:
    return b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()
