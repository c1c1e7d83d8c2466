"""Networks and their posteriors from the records and arrays of a file, sizes checked first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.folding import FoldedUnits
from islab.core.posterior import Posterior
from islab.core.scale import Scale
from islab.core.sparse import KeptDraws, SparseNetwork
from islab.io.schema import Held, NetworkRecord

Arrays = dict[str, NDArray]

# A median network is used as a matrix: this many weights, and so many for each one used.
FREE_WEIGHTS, WEIGHTS_PER_EDGE, MOST_WEIGHTS = 2**20, 4096, 50_000_000
NETWORK_ARRAYS = (
    "covariates",
    "unit_labels",
    "edges",
    "mu",
    "sigma",
    "alpha",
    "bias_mu",
    "bias_sigma",
    "noise",
    "multipliers",
    "input_index",
)
KEPT_ARRAYS = ("weights", "biases", "noise")
FOLDED_ARRAYS = ("units", "edges", "mu", "sigma", "bias_mu", "bias_sigma", "input_index")
FLOW_ARRAYS = ("multipliers", "input_index")
OPTIONAL_ARRAYS = ("bias_lam",)


def arrays_of(model: Any) -> Arrays:
    """What a file holds of a median network or of a distribution of weights."""
    names = NETWORK_ARRAYS if isinstance(model, SparseNetwork) else tuple(model.ARRAYS)
    found = {name: getattr(model, name) for name in names}
    if isinstance(model, SparseNetwork) and model.kept is not None:
        found |= {f"kept_{name}": getattr(model.kept, name) for name in KEPT_ARRAYS}
    if isinstance(model, SparseNetwork) and model.folded is not None:
        found |= {f"folded_{name}": getattr(model.folded, name) for name in FOLDED_ARRAYS}
        found["folded_hidden"] = np.array(model.folded.architecture.hidden, dtype=np.int64)
    return {name: array for name, array in found.items() if array is not None}


def require_families(record: NetworkRecord) -> None:
    """Refuses a file whose likelihood or activations nobody has registered."""
    _likelihood(record.likelihood)
    names = record.architecture.activation
    for name in [names] if isinstance(names, str) else names:
        _require_registered("activation", name, families.activations())


def architecture_of(record: NetworkRecord) -> Architecture:
    require_families(record)
    shape, names = record.architecture, record.architecture.activation
    return Architecture(
        n_covariates=shape.n_covariates,
        hidden=tuple(shape.hidden),
        n_outputs=shape.n_outputs,
        input_skip=shape.input_skip,
        activation=names if isinstance(names, str) else tuple(names),
    )


def n_noise(net: Architecture, likelihood: str) -> int | None:
    """How many numbers a likelihood learns besides the weights; None if a file may say."""
    return families.likelihood(_likelihood(likelihood)).n_noise(net.n_outputs)


def read_weights(kind: Any, net: Architecture, likelihood: str, held: Held, **others: Any) -> Any:
    """A distribution of all weights, each array of the shape that the kind says.

    Parameters
    ----------
    kind : type
        A :class:`~islab.estimators.weight_distribution.WeightDistribution`.
    **others
        What the distribution knows besides.
    """
    sizes: dict[str, int | None] = {
        "weights": net.n_weights,
        "units": net.n_units,
        "outputs": net.n_outputs,
        "noise": n_noise(net, likelihood),
        "layers": net.n_layers,
        "covariates": net.n_covariates,
        "inputs": sum(net.n_inputs(layer) for layer in range(net.n_layers)),
    }
    left = {*FLOW_ARRAYS, *(name for name in OPTIONAL_ARRAYS if name not in held)}
    shapes = {n: words for n, words in kind.ARRAYS.items() if n not in left}
    read = {
        name: held.numbers(name, tuple(sizes[word] for word in words))
        for name, words in shapes.items()
    }
    if kind is Posterior:
        read |= _flow(held, net.n_weights)
    return kind(
        architecture=net,
        likelihood=_likelihood(likelihood),
        **read,
        **others,
    )


def check_size(net: Architecture, n_edges: int) -> None:
    """Refuses a network that is far too large for the weights that a file holds."""
    if net.n_weights > min(max(FREE_WEIGHTS, WEIGHTS_PER_EDGE * n_edges), MOST_WEIGHTS):
        raise ValueError(f"its network has {net.n_weights} weights and uses {n_edges}")


def read_network(
    record: NetworkRecord, net: Architecture, scale: Callable[[], Scale], held: Held
) -> SparseNetwork:
    """A median network.

    Parameters
    ----------
    record : NetworkRecord
    net : Architecture
        That of the record.
    scale : callable
        Makes names and scales once the arrays are known to fit.
    """
    n_edges = held.length("mu")
    check_size(net, n_edges)
    if record.n_weights_initial < n_edges:
        raise ValueError("its network has more weights than before training")
    edges, biases = (n_edges,), (net.n_units,)
    found: dict[str, Any] = {name: held.numbers(name, edges) for name in ("mu", "sigma", "alpha")}
    found |= {name: held.numbers(name, biases) for name in ("bias_mu", "bias_sigma")}
    found |= {
        "noise": held.numbers("noise", (n_noise(net, record.likelihood),)),
        "edges": held.positions("edges", edges, net.n_weights, rising=True),
        "unit_labels": held.positions("unit_labels", biases, 2**53, rising=False),
    }
    shape = (net.n_covariates,)
    covariates = held.positions("covariates", shape, 2**53, rising=True)
    found |= _flow(held, n_edges) | _kept(held, net, n_edges, len(found["noise"]))
    found |= _folded(held, net, found.get("multipliers"))
    named = scale()
    if len(named.outputs) != net.n_outputs:
        raise ValueError("architecture and outputs differ in number")
    if covariates.max(initial=-1) >= len(named.names):
        raise ValueError("array 'covariates' points outside the network")
    return SparseNetwork(
        architecture=net,
        covariates=covariates,
        likelihood=_likelihood(record.likelihood),
        n_weights_initial=record.n_weights_initial,
        scale=named,
        **found,
    )


def _flow(held: Held, n_weights: int) -> Arrays:
    """The draws of a flow and where the weights find theirs, if there is a flow."""
    if "multipliers" not in held:
        return {}
    bank = held.numbers("multipliers", (None, None))
    if not len(bank):
        raise ValueError(f"array 'multipliers' has shape {bank.shape}")
    index = held.positions("input_index", (n_weights,), bank.shape[1], rising=False)
    return {"multipliers": bank, "input_index": index.astype(np.intp)}


def _kept(held: Held, net: Architecture, n_edges: int, n_noise: int) -> dict[str, KeptDraws]:
    """The draws that a chain has made of a network, if there are any."""
    if "kept_weights" not in held:
        return {}
    weights = held.numbers("kept_weights", (None, n_edges))
    if not len(weights):
        raise ValueError("array 'kept_weights' has no draws")
    biases = held.numbers("kept_biases", (len(weights), net.n_units))
    noise = held.numbers("kept_noise", (len(weights), n_noise))
    return {"kept": KeptDraws(weights, biases, noise)}


def _folded(held: Held, net: Architecture, bank: NDArray | None) -> dict[str, FoldedUnits]:
    """The units whose constants the biases hold, if there are any."""
    if "folded_hidden" not in held:
        return {}
    part = held.part("folded_")
    hidden = part.positions("hidden", (len(net.hidden),), 2**31, rising=False)
    shape = replace(net, n_covariates=0, hidden=tuple(hidden.tolist()))
    n_edges = part.length("mu")
    check_size(shape, n_edges)
    edges = part.positions("edges", (n_edges,), shape.n_weights, rising=True)
    units = part.positions("units", (net.n_units,), shape.n_units, rising=True)
    if np.isin(shape.ends[0][edges], units).any():
        raise ValueError("array 'folded_edges' starts at units that remain")
    index = None
    if bank is not None:
        index = part.positions("input_index", (n_edges,), bank.shape[1], rising=False)
    biases = (shape.n_units,)
    folded = FoldedUnits(
        architecture=shape,
        units=units,
        edges=edges,
        mu=part.numbers("mu", (n_edges,)),
        sigma=part.numbers("sigma", (n_edges,)),
        bias_mu=part.numbers("bias_mu", biases),
        bias_sigma=part.numbers("bias_sigma", biases),
        input_index=index,
    )
    return {"folded": folded}


def _likelihood(name: str) -> str:
    _require_registered("likelihood", name, families.likelihoods())
    return name


def _require_registered(kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(
            f"it needs the {kind} {name!r}, which is not registered; call "
            "islab.core.families.register with it before loading"
        )
