"""Sampled posteriors in files: draws of all chains one after the other, and one network to read."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from msgspec import structs

from islab.core.architecture import Architecture
from islab.core.chain_draws import ChainDraws
from islab.core.sampled import AllRows, PredictionMixing, ReadingPrice, SampledPosterior
from islab.core.scale import Scale
from islab.io.networks import Arrays, architecture_of, arrays_of, check_size, n_noise, read_network
from islab.io.schema import AllRowsRecord, Held, SampledRecord

NETWORK = "network/"


def sampled_state(posterior: SampledPosterior) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a sampled posterior."""
    chains, network = posterior.chains, posterior.median()
    description = {
        "n_draws": [chain.n_draws for chain in chains],
        "moves": [{name: list(counts) for name, counts in c.moves.items()} for c in chains],
        "price": None if posterior.price is None else asdict(posterior.price),
        "mixing": {
            name: value if np.isfinite(value) else None
            for name, value in asdict(posterior.mixing).items()
        },
        "all_rows": _all_rows_state(posterior.all_rows),
        **({"stacked": True} if posterior.stacked else {}),
        "network": {
            "architecture": asdict(network.architecture),
            "likelihood": network.likelihood,
            "n_weights_initial": int(network.n_weights_initial),
        },
    }
    arrays = {
        "chain_weights": posterior.chain_weights,
        "slots": np.concatenate([chain.slots for chain in chains]).astype(np.int64),
        "weights": np.concatenate([chain.weights for chain in chains]),
        "sizes": np.concatenate([chain.sizes for chain in chains]).astype(np.int64),
        "biases": np.concatenate([chain.biases for chain in chains]),
        "noise": np.concatenate([chain.noise for chain in chains]),
        "tau2": np.concatenate([chain.tau2 for chain in chains]),
        "log_likelihood": np.concatenate([chain.log_likelihood for chain in chains]),
    }
    return description, arrays | {NETWORK + k: a for k, a in arrays_of(network).items()}


def read_sampled(
    record: SampledRecord, net: Architecture, likelihood: str, scale: Scale, held: Held
) -> SampledPosterior:
    """The sampled posterior of a record and its arrays, or ValueError."""
    n_edges, n_draws = held.length("weights"), sum(record.n_draws)
    check_size(net, n_edges)
    if not record.n_draws or min(record.n_draws) < 1 or len(record.moves) != len(record.n_draws):
        raise ValueError("its chains have no draws, or no moves")
    sizes = held.positions("sizes", (n_draws,), net.n_weights + 1, rising=False)
    if sizes.sum() != n_edges:
        raise ValueError("its draws and their weights differ in number")
    slots = held.positions("slots", (n_edges,), net.n_weights, rising=False)
    weights = held.numbers("weights", (n_edges,))
    by_draw = {
        "biases": held.numbers("biases", (n_draws, net.n_units)),
        "noise": held.numbers("noise", (n_draws, n_noise(net, likelihood))),
        "tau2": held.numbers("tau2", (n_draws, len(net.blocks))),
        "log_likelihood": held.numbers("log_likelihood", (n_draws,)),
    }
    shares = held.numbers("chain_weights", (len(record.n_draws),))
    if abs(shares.sum() - 1) > 1e-6:
        raise ValueError("the shares of its chains do not sum to 1")
    whole = ChainDraws(
        slots=slots.astype(np.intp),
        weights=weights,
        ends=np.cumsum(sizes).astype(np.intp),
        row_log_likelihood=np.zeros((n_draws, 0)),
        moves={},
        **by_draw,
    )
    ends = np.cumsum(record.n_draws)
    parts = [np.arange(end - n, end) for end, n in zip(ends, record.n_draws, strict=True)]
    chains = [
        replace(whole.take(part), moves=moves)
        for part, moves in zip(parts, record.moves, strict=True)
    ]
    network_record = record.network
    network = read_network(
        network_record, architecture_of(network_record), lambda: scale, held.part(NETWORK)
    )
    if (network.likelihood, network.architecture.n_outputs) != (likelihood, net.n_outputs):
        raise ValueError("its readable network is of another kind than its draws")
    if len(network.noise) != by_draw["noise"].shape[1]:
        raise ValueError("its readable network and its draws differ in their noise")
    return SampledPosterior(
        architecture=net,
        likelihood=likelihood,
        chains=tuple(chains),
        chain_weights=shares,
        network=network,
        price=None if record.price is None else ReadingPrice(**structs.asdict(record.price)),
        mixing=PredictionMixing(
            **{
                name: np.nan if value is None else value
                for name, value in structs.asdict(record.mixing).items()
            }
        ),
        all_rows=None if record.all_rows is None else _all_rows(record.all_rows),
        stacked=record.stacked,
        n_weights_initial=network.n_weights_initial,
        scale=scale,
    )


def _all_rows_state(found: AllRows | None) -> dict[str, Any] | None:
    if found is None:
        return None
    k = found.pareto_k if np.isfinite(found.pareto_k) else None
    return {**asdict(found), "pareto_k": k}


def _all_rows(record: AllRowsRecord) -> AllRows:
    k = np.inf if record.pareto_k is None else record.pareto_k
    return AllRows(**{**structs.asdict(record), "pareto_k": k})
