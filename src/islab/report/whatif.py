"""The median network and draws of it in JSON's types, for the page to evaluate."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import numpy as np

from islab.core import families
from islab.core.arrays import Float
from islab.core.integration import QUADRATURE_POINTS
from islab.core.names import printable
from islab.core.outputs import is_piecewise_linear
from islab.core.sparse import SparseNetwork

LARGEST_DRAWS = 1_000_000
FEWEST_DRAWS = 20


def draws_that_fit(network: SparseNetwork, n_draws: int) -> int:
    """As many draws as asked for, or fewer of a network so large that the page would be heavy."""
    per_draw = (network.n_used_weights + len(network.bias_mu)) * 8 * 4 / 3
    return min(n_draws, max(FEWEST_DRAWS, int(LARGEST_DRAWS / per_draw)))


def network_data(
    network: SparseNetwork, drawn: tuple[Float, Float], level: float
) -> dict[str, Any]:
    """Everything the page's own evaluation needs.

    ``drawn`` are weights and biases as :meth:`SparseNetwork.draw` gives them. They are packed as
    base64 of little-endian doubles, which loses nothing; the first is the posterior mean.
    """
    weights, biases = drawn
    n_draws = len(weights)
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
    likelihood = families.likelihood(network.likelihood)
    return {
        "likelihood": network.likelihood,
        "activation": network.architecture.activation,
        "relative": likelihood.relative_predictor,
        "symbol": likelihood.words.symbol,
        "bends": _bends(network),
        "hidden": [[part.start, part.stop] for part in network.architecture.units[:-1]],
        "quadrature": None if is_piecewise_linear(network) else _quadrature(),
        "level": level,
        "n_units": network.architecture.n_units,
        "outputs": [
            f"{likelihood.words.response} ({printable(name)})"
            if likelihood.ordered
            else printable(name)
            for name in scale.outputs
        ],
        "covariates": [printable(scale.names[column]) for column in used],
        "x_center": scale.x_center[used].tolist(),
        "x_typical": scale.typical[used].tolist(),
        "x_scale": scale.x_scale[used].tolist(),
        "y_center": scale.y_center.tolist(),
        "y_scale": scale.y_scale.tolist(),
        "noise": network.noise_in_units().tolist(),
        "edges": edges,
        "n_draws": n_draws,
        "weights": _packed(weights[:, order]),
        "biases": _packed(biases),
    }


def _bends(network: SparseNetwork) -> list[float] | None:
    """Where units change their slope, None if they do everywhere."""
    if not is_piecewise_linear(network):
        return None
    return list(families.activation(network.architecture.activation).bends or ())


def _quadrature() -> list[list[float]]:
    """Shares of a way and their weights, by which curved networks are integrated."""
    nodes, lengths = np.polynomial.legendre.leggauss(QUADRATURE_POINTS)
    return np.column_stack([(nodes + 1) / 2, lengths / 2]).tolist()


def family_script(likelihoods: Iterable[str], activations: Iterable[str]) -> str:
    """The families' own JavaScript by their names, for ``network.js``.

    It comes from the registered objects alone; a model's file holds nothing but names.
    """
    objects = {
        "LIKELIHOODS": {name: families.likelihood(name).javascript for name in likelihoods},
        "ACTIVATIONS": {name: families.activation(name).javascript for name in activations},
    }
    return "".join(
        f"const {kind} = {{{', '.join(f'{name}: {source}' for name, source in each.items())}}};\n"
        for kind, each in objects.items()
    )


def _packed(values: Float) -> str:
    return b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()
