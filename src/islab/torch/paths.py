"""Active paths through any module of spike-and-slab layers, skips included."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from islab.torch.layers import THRESHOLD
from islab.torch.modules import layers_of, median

if TYPE_CHECKING:
    import pandas as pd

PROBES = 8
ATTEMPTS = 4
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
        Any network of spike-and-slab layers; whatever else it does with numbers is followed:
        other layers, attention, normalisation, pooling, skips.
    x : tensor
        One or more rows of input; only their shape counts.
    threshold : float
        Weights with a larger inclusion probability are kept.

    Raises
    ------
    ValueError
        If numbers go on where no gradient does (rounding, ``argmax``, ``detach``), so that paths
        cannot be followed.

    Notes
    -----
    Kept weights are replaced by random numbers, biases by zero, and random inputs are sent
    through in double precision. A layer's input is reached by a path if it differs between two of
    them, its output leads on if the gradient of the module's outputs by it is not zero.
    Once all weights and inputs are positive, so that
    no activation cuts a path off, and once they have either sign. What no path leads to is
    exactly constant, so a weight is never called used that is not. That none was overlooked is
    tried: weights that are reached but do not lead on get other numbers, which must not move the
    outputs. Channels are judged as a whole. Normalisation over channels makes each of them depend
    on all others, and attention each token on those that it looks at: those are paths too.
    """
    kept = {name: layer.alpha > threshold for name, layer in layers_of(module).items()}
    generator = torch.Generator().manual_seed(SEED)
    found: list[_Probe] = []
    for attempt in range(ATTEMPTS):
        found += [_probe(module, x, kept, positive, generator) for positive in (True, False)]
        used = {name: kept[name] & _either(p.joined[name] for p in found) for name in kept}
        silent = {name: _either(p.fed[name] for p in found) & ~used[name] for name in kept}
        if not any(bool((mask & kept[name]).any()) for name, mask in silent.items()):
            break
        if all(_unmoved(module, x, kept, silent, p, generator) for p in (True, False)):
            break
        if attempt + 1 == ATTEMPTS:
            raise ValueError(
                f"Got a {type(module).__name__} whose outputs follow weights without a gradient, "
                "expected operations that can be differentiated; try it without rounding, argmax "
                "or detach."
            )
    return ActivePaths(kept, used, _either(probe.reached for probe in found))


@dataclass(frozen=True, eq=False)
class _Probe:
    """What random numbers have shown: by layer, which weights read an input that varies, and which
    of them join it with an output that leads on; and the inputs that lead on."""

    fed: dict[str, Tensor]
    joined: dict[str, Tensor]
    reached: Tensor


def _either(masks: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(masks)).any(0)


def _filled(
    module: nn.Module, kept: dict[str, Tensor], positive: bool, generator: torch.Generator
) -> nn.Module:
    """The median network with random numbers in the place of its weights."""
    copy = median(module).to("cpu", torch.float64).requires_grad_(False)
    for name, mask in kept.items():
        layer: Any = copy.get_submodule(name)
        drawn = _random(tuple(mask.shape), positive, generator)
        layer.weight.copy_(drawn * mask.cpu() / mask[0].numel())
        layer.bias.zero_()
    return copy


def _probe(
    module: nn.Module,
    x: Tensor,
    kept: dict[str, Tensor],
    positive: bool,
    generator: torch.Generator,
) -> _Probe:
    copy = _filled(module, kept, positive, generator)
    seen: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in kept}
    for name, calls in seen.items():
        copy.get_submodule(name).register_forward_hook(_noting(calls))
    rows = _random((PROBES, *x.shape[1:]), positive, generator).requires_grad_()
    outputs = copy(rows)
    places = [out for calls in seen.values() for _, out in calls]
    if not isinstance(outputs, Tensor) or not outputs.requires_grad:
        raise ValueError(
            f"Got a {type(module).__name__} whose outputs have no gradient, expected one tensor of "
            "real numbers; try it without rounding, argmax or detach at its end."
        )
    weighted = (outputs * _random(tuple(outputs.shape), positive, generator)).sum()
    by = torch.autograd.grad(weighted, [rows, *places], allow_unused=True)
    gradients = iter(by[1:])
    fed, joined = {}, {}
    for name, mask in kept.items():
        fed[name], joined[name] = torch.zeros_like(mask), torch.zeros_like(mask)
        for inputs, out in seen[name]:
            varies, both = _joined(inputs, out, next(gradients), mask)
            fed[name] |= varies.to(mask.device)
            joined[name] |= both.to(mask.device)
    reached = torch.zeros(x.shape[1:], dtype=torch.bool) if by[0] is None else (by[0] != 0).any(0)
    return _Probe(fed, joined, reached)


@torch.no_grad()
def _unmoved(
    module: nn.Module,
    x: Tensor,
    kept: dict[str, Tensor],
    silent: dict[str, Tensor],
    positive: bool,
    generator: torch.Generator,
) -> bool:
    """Whether other numbers in these weights leave all outputs what they are."""
    copy = _filled(module, kept, positive, generator)
    rows = _random((PROBES, *x.shape[1:]), positive, generator)
    before = copy(rows)
    for name, mask in kept.items():
        layer: Any = copy.get_submodule(name)
        changed = (mask & silent[name]).cpu()
        layer.weight.mul_(torch.where(changed, 3.0, 1.0))
    return torch.allclose(copy(rows), before, rtol=1e-9, atol=1e-12)


def _noting(calls: list[tuple[Tensor, Tensor]]) -> Callable[..., Tensor]:
    def note(layer: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> Tensor:
        # A leaf of its own where nothing before it needs a gradient.
        out = out if out.requires_grad else out.requires_grad_()
        calls.append((inputs[0].detach(), out))
        return out

    return note


def _joined(inputs: Tensor, out: Tensor, by: Tensor | None, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (outputs, inputs, ...) that read an input that varies; those that also lead on."""
    channel = -1 if mask.ndim == 2 else 1
    fed = _by_channel(inputs != inputs[:1], channel)[None]
    heard = torch.zeros(len(mask), dtype=torch.bool)
    if by is not None:
        heard = _by_channel(by != 0, channel)
    ends = [1] * (mask.ndim - 2)
    varies = fed.view(*fed.shape, *ends).expand(mask.shape)
    return varies, varies & heard.view(-1, 1, *ends)


def _by_channel(mask: Tensor, channel: int) -> Tensor:
    return mask.movedim(channel, 0).flatten(1).any(1)


def _random(shape: tuple[int, ...], positive: bool, generator: torch.Generator) -> Tensor:
    if positive:
        return 0.5 + torch.rand(shape, dtype=torch.float64, generator=generator)
    return torch.randn(shape, dtype=torch.float64, generator=generator)
