"""Active paths through any module of spike-and-slab layers, skips included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from islab.torch.layers import THRESHOLD
from islab.torch.modules import layers_of, median

if TYPE_CHECKING:
    import pandas as pd

PROBES = 8
SEED = 0


@dataclass(frozen=True, eq=False)
class ActivePaths:
    """Which weights lie on a chain of kept weights from an input to an output.

    Attributes
    ----------
    kept, used : dict of tensors
        By the layer's name, of the shape of its weights.
    inputs : tensor of bool
        Entries of one row of the input that lead to an output.
    """

    kept: dict[str, Tensor]
    used: dict[str, Tensor]
    inputs: Tensor

    @property
    def n_used_weights(self) -> int:
        return sum(int(mask.sum()) for mask in self.used.values())

    def to_frame(self) -> pd.DataFrame:
        """A row for each layer: weights, kept weights, used weights and their share."""
        import pandas as pd

        rows = [
            (name, mask.numel(), int(mask.sum()), int(self.used[name].sum()))
            for name, mask in self.kept.items()
        ]
        frame = pd.DataFrame(rows, columns=["layer", "weights", "kept", "used"])
        return frame.assign(density=frame["used"] / frame["weights"])


def active_paths(module: nn.Module, x: Tensor, threshold: float = THRESHOLD) -> ActivePaths:
    """The active paths of a module's median network.

    Parameters
    ----------
    module : Module
        Any network of spike-and-slab layers; whatever else it does with numbers is followed.
    x : tensor
        One or more rows of input; only their shape counts.
    threshold : float
        Weights with a larger inclusion probability are kept.

    Notes
    -----
    Kept weights are replaced by random numbers, biases by zero, and random inputs are sent
    through in double precision. A layer's input is reached by a path if it differs between two of
    them, its output leads on if the gradient of the module's outputs by it is not zero.
    Once all weights and inputs are positive, so that
    no activation cuts a path off, and once they have either sign. What no path leads to is
    exactly constant, so a weight is never called used that is not. Channels are judged as a
    whole.
    """
    kept = {name: layer.alpha > threshold for name, layer in layers_of(module).items()}
    generator = torch.Generator().manual_seed(SEED)
    found = [_probe(module, x, kept, positive, generator) for positive in (True, False)]
    used = {name: kept[name] & (found[0][0][name] | found[1][0][name]) for name in kept}
    return ActivePaths(kept, used, found[0][1] | found[1][1])


def _probe(
    module: nn.Module,
    x: Tensor,
    kept: dict[str, Tensor],
    positive: bool,
    generator: torch.Generator,
) -> tuple[dict[str, Tensor], Tensor]:
    """By layer, which weights join a reached input with an output that leads on; the inputs."""
    copy = median(module).to("cpu", torch.float64).requires_grad_(False)
    seen: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in kept}
    for name, mask in kept.items():
        layer: Any = copy.get_submodule(name)
        drawn = _random(tuple(mask.shape), positive, generator)
        layer.weight.copy_(drawn * mask.cpu() / mask[0].numel())
        layer.bias.zero_()
        layer.register_forward_hook(_noting(seen[name]))
    rows = _random((PROBES, *x.shape[1:]), positive, generator).requires_grad_()
    outputs = copy(rows)
    weighted = (outputs * _random(tuple(outputs.shape), positive, generator)).sum()
    places = [out for calls in seen.values() for _, out in calls]
    by = torch.autograd.grad(weighted, [rows, *places], allow_unused=True)
    gradients = iter(by[1:])
    joined = {}
    for name, mask in kept.items():
        joined[name] = torch.zeros_like(mask)
        for inputs, out in seen[name]:
            joined[name] |= _joined(inputs, out, next(gradients), mask).to(mask.device)
    reached = torch.zeros(x.shape[1:], dtype=torch.bool) if by[0] is None else (by[0] != 0).any(0)
    return joined, reached


def _noting(calls: list[tuple[Tensor, Tensor]]) -> Callable[..., Tensor]:
    def note(layer: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> Tensor:
        # A leaf of its own where nothing before it needs a gradient.
        out = out if out.requires_grad else out.requires_grad_()
        calls.append((inputs[0].detach(), out))
        return out

    return note


def _joined(inputs: Tensor, out: Tensor, by: Tensor | None, mask: Tensor) -> Tensor:
    """Weights (outputs, inputs, ...) from inputs that vary to outputs that lead on."""
    if by is None:
        return torch.zeros_like(mask, device="cpu")
    channel = -1 if mask.ndim == 2 else 1
    fed = _by_channel(inputs != inputs[:1], channel)
    heard = _by_channel(by != 0, channel)
    both = heard[:, None] & fed[None]
    return both.view(*both.shape, *[1] * (mask.ndim - 2)).expand(mask.shape)


def _by_channel(mask: Tensor, channel: int) -> Tensor:
    return mask.movedim(channel, 0).flatten(1).any(1)


def _random(shape: tuple[int, ...], positive: bool, generator: torch.Generator) -> Tensor:
    if positive:
        return 0.5 + torch.rand(shape, dtype=torch.float64, generator=generator)
    return torch.randn(shape, dtype=torch.float64, generator=generator)
