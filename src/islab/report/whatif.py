"""Draws of the posterior and of the median network in JSON's types, for the page to evaluate."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.arrays import Float, Index
from islab.core.drawn import DrawnNetworks
from islab.core.families.mixtures import scattered_normals
from islab.core.integration import QUADRATURE_POINTS
from islab.core.names import printable
from islab.core.outputs import is_piecewise_linear
from islab.core.sparse import SparseNetwork

LARGEST_DRAWS = 1_000_000
FEWEST_DRAWS = 20


@dataclass(frozen=True, eq=False)
class PageModel:
    """Draws for the page.

    Attributes
    ----------
    networks : DrawnNetworks
    columns : (covariates of the networks,)
        Where their covariates stand among all.
    noise : (numbers,), (draws, numbers) or (draws, 1, numbers)
        On the scale of the data.
    """

    networks: DrawnNetworks
    columns: Index
    noise: Float

    @classmethod
    def of(cls, predictions: Any, model: str, n_draws: int) -> PageModel | None:
        """As many draws of ``"full"`` or ``"median"`` as the page can hold, at most these.

        None if it cannot hold the full model; the median network is always there.
        """
        networks, noise = predictions.thinned(n_draws, model)
        n_fit = draws_that_fit(networks)
        if model == "full" and not n_fit:
            return None
        if n_fit < len(networks):
            networks, noise = predictions.thinned(max(n_fit, FEWEST_DRAWS), model)
        network = predictions.network
        every = np.arange(network.n_covariates)
        return cls(networks, every if model == "full" else network.covariates, noise)

    @property
    def covariates(self) -> Index:
        """Covariates that some draw uses, among all."""
        return self.columns[self.networks.covariates]


def page_models(predictions: Any, n_draws: int) -> dict[str, PageModel]:
    """What the page can evaluate: the full model first, as ``predict`` does."""
    found = {
        name: PageModel.of(predictions, name, n_draws) for name in reversed(predictions.models)
    }
    return {name: each for name, each in found.items() if each is not None}


def draws_that_fit(networks: DrawnNetworks) -> int:
    """How many of the draws the page can hold, 0 if even a few would make it heavy."""
    n_units = len(np.unique(networks.architecture.ends[1][networks.slots]))
    size = 8 * n_units * len(networks) + (8 + 4) * len(networks.slots)
    per_draw = max(1, size * 4 / 3 / len(networks))
    if FEWEST_DRAWS * per_draw > 4 * LARGEST_DRAWS:
        return 0
    return min(len(networks), max(FEWEST_DRAWS, int(LARGEST_DRAWS / per_draw)))


def network_data(
    network: SparseNetwork,
    models: dict[str, PageModel],
    level: float,
    ranges: Float | None = None,
) -> dict[str, Any]:
    """Everything the page's own evaluation needs.

    Parameters
    ----------
    models : dict
        What can be evaluated, by name; the page begins with the first.
    ranges : (2, covariates), optional
        Least and greatest values in training: intervals are wider outside.
    """
    scale, used = network.scale, used_covariates(models)
    likelihood = families.likelihood(network.likelihood)
    return {
        "likelihood": network.likelihood,
        "activations": network.architecture.activation_names,
        "relative": likelihood.relative_predictor,
        "symbol": likelihood.words.symbol,
        "bends": _bends(network),
        "quadrature": None if is_piecewise_linear(network) else _quadrature(),
        "level": level,
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
        "x_range": None if ranges is None else [_finite(ends[used]) for ends in ranges],
        "y_center": scale.y_center.tolist(),
        "y_scale": scale.y_scale.tolist(),
        "models": {name: _drawn_data(model, used) for name, model in models.items()},
    }


def used_covariates(models: dict[str, PageModel]) -> Index:
    """Covariates that some draw of some model uses, rising."""
    return np.unique(np.concatenate([model.covariates for model in models.values()]))


def _drawn_data(model: PageModel, used: Index) -> dict[str, Any]:
    """The draws: distinct edges, and for each draw which of them it has, with what weights.

    Numbers are packed as base64 of little-endian doubles, which loses nothing.
    """
    networks, net = model.networks, model.networks.architecture
    sources, targets = (ends[networks.slots] for ends in net.ends)
    draws = np.repeat(np.arange(len(networks)), np.diff(networks.ends, prepend=0))
    # By target within a draw, so that every unit is complete before it sends.
    order = np.lexsort((targets, draws))
    unused = np.setdiff1d(np.arange(net.n_covariates), networks.covariates)
    order = order[~np.isin(sources[order], unused)]
    slots, numbers = np.unique(networks.slots[order], return_inverse=True)
    sources, targets = (ends[slots] for ends in net.ends)
    start, outputs = sources < net.n_covariates, np.arange(net.n_units)[net.units[-1]]
    units = np.unique(np.concatenate([targets, sources[~start] - net.n_covariates, outputs]))
    places = np.searchsorted(used, model.columns)
    origins = np.searchsorted(units, sources - net.n_covariates)
    origins[start] = places[sources[start]]
    edges = np.column_stack([start, origins, np.searchsorted(units, targets)])
    hidden = [np.searchsorted(units, [part.start, part.stop]).tolist() for part in net.units[:-1]]
    n_noise = model.noise.shape[-1]
    noise = np.broadcast_to(model.noise.reshape(-1, n_noise), (len(networks), n_noise))
    return {
        "hidden": hidden,
        "n_units": len(units),
        "edges": edges.astype(int).tolist(),
        "sizes": np.bincount(draws[order], minlength=len(networks)).tolist(),
        "numbers": _packed(numbers, "i4"),
        "weights": _packed(networks.weights[order]),
        "biases": _packed(networks.biases[:, units]),
        "noise": _packed(noise),
        "normals": _packed(scattered_normals(len(networks))),
    }


def _finite(values: Float) -> list[float | None]:
    """The numbers, and None for what JSON has no number for."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _bends(network: SparseNetwork) -> list[list[float]] | None:
    """Where units of each hidden layer change their slope, None if they do everywhere."""
    if not is_piecewise_linear(network):
        return None
    return [list(activation.bends or ()) for activation in network.architecture.activations]


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


def _packed(values: NDArray, kind: str = "f8") -> dict[str, str]:
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"kind": kind, "text": b64encode(data).decode()}
