"""What is asked of a whole module: its KL, its median network, its learning rates."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from torch import Tensor, nn

from islab.torch.layers import THRESHOLD, SpikeSlab


def layers_of(module: nn.Module) -> dict[str, SpikeSlab]:
    """The spike-and-slab layers inside a module, by name; an error if there are none."""
    found = {name: part for name, part in module.named_modules() if isinstance(part, SpikeSlab)}
    if not found:
        raise ValueError(
            f"Got a {type(module).__name__} without spike-and-slab layers, expected one or more; "
            "try SpikeSlabLinear in place of torch.nn.Linear."
        )
    return found


def kl(module: nn.Module) -> Tensor:
    """KL of all spike-and-slab layers of a module from their priors.

    The loss of a batch is the sum of its rows' negative log-likelihoods plus the KL times the share
    of all rows that are in the batch.
    """
    return sum((layer.kl() for layer in layers_of(module).values()), start=_zero(module))


def _zero(module: nn.Module) -> Tensor:
    return next(module.parameters()).new_zeros(())


def median(module: nn.Module, threshold: float = THRESHOLD) -> nn.Module:
    """A copy with plain layers: weights whose inclusion probability exceeds the threshold.

    They are at their means, all others are zero. The copy needs nothing of islab, and is in
    evaluation mode.
    """
    if not 0 <= threshold < 1:
        raise ValueError(f"Got threshold={threshold}, expected a probability below 1; try 0.5.")
    plain = {name: layer.median(threshold) for name, layer in layers_of(module).items()}
    if "" in plain:
        return plain[""].eval()
    copy = deepcopy(module)
    for name, layer in plain.items():
        copy.set_submodule(name, layer)
    return copy.eval()


def parameter_groups(
    module: nn.Module, rate: float, inclusion_rate: float | None = None, flow_step: float = 0.1
) -> list[dict[str, Any]]:
    """Parameters for an optimiser of torch, with learning rates of their own.

    Parameters
    ----------
    module : Module
    rate : float
        Of all that is named nowhere else.
    inclusion_rate : float, optional
        Of the inclusion parameters; ten times ``rate`` if not given.
    flow_step : float
        Factor on ``rate`` for the networks inside flows.
    """
    groups: dict[str, list[nn.Parameter]] = {"plain": [], "inclusion": [], "flow": []}
    layers = layers_of(module).values()
    inclusion = {id(own) for layer in layers for own in (layer.lam, layer.bias_lam)}
    flows = {id(p) for layer in layers if layer.flow is not None for p in layer.flow.parameters()}
    for parameter in module.parameters():
        kind = "inclusion" if id(parameter) in inclusion else "plain"
        groups["flow" if id(parameter) in flows else kind].append(parameter)
    rates = {
        "plain": rate,
        "inclusion": 10 * rate if inclusion_rate is None else inclusion_rate,
        "flow": flow_step * rate,
    }
    return [{"params": own, "lr": rates[kind]} for kind, own in groups.items() if own]
