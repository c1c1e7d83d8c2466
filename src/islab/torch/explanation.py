"""Exact local explanations of a module of spike-and-slab layers."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from islab.torch.layers import THRESHOLD
from islab.torch.modules import layers_of, median

if TYPE_CHECKING:
    import pandas as pd

BENT = 1e-8
LEVEL = 0.9


@dataclass(frozen=True, eq=False)
class TorchExplanation:
    """Rows taken apart: ``prediction = baseline + sum of contributions``, exactly.

    Attributes
    ----------
    x : (rows, ...)
    prediction, baseline : (rows, outputs)
        Of the median network's means.
    slopes : (rows, outputs, ...)
        Derivatives of the outputs by the inputs at each row.
    draws : (draws, rows, outputs, ...), optional
        Slopes of draws of the kept weights.
    """

    x: Tensor
    prediction: Tensor
    baseline: Tensor
    slopes: Tensor
    draws: Tensor | None = None

    @property
    def contributions(self) -> Tensor:
        """Slope times value, (rows, outputs, ...)."""
        return self.slopes * self.x[:, None]

    def to_frame(self, level: float = LEVEL) -> pd.DataFrame:
        """A line for each row, output and input: value, slope, contribution, interval of it."""
        import pandas as pd

        rows, outputs = self.slopes.shape[:2]
        slopes = self.slopes.reshape(rows, outputs, -1)
        x = self.x.reshape(rows, 1, -1).expand_as(slopes)
        index = np.indices(tuple(slopes.shape)).reshape(3, -1)
        columns = {"row": index[0], "output": index[1], "input": index[2]}
        columns |= {"value": x.reshape(-1).numpy(), "slope": slopes.reshape(-1).numpy()}
        frame = pd.DataFrame(columns)
        frame["contribution"] = frame["slope"] * frame["value"]
        if self.draws is not None:
            share = (1 - level) / 2
            drawn = self.draws.reshape(len(self.draws), -1).numpy() * frame["value"].to_numpy()
            frame["low"], frame["high"] = np.quantile(drawn, [share, 1 - share], axis=0)
        return frame


def explain_local(
    module: nn.Module,
    x: Tensor,
    *,
    n_draws: int = 0,
    threshold: float = THRESHOLD,
    random_state: int = 0,
) -> TorchExplanation:
    """Slopes and contributions of each row in the median network of a module.

    A network of linear layers and piecewise linear activations is linear around a row, and this
    is that linear function. Where a network bends (attention, sigmoids) it is the
    tangent, and a warning says so.

    Parameters
    ----------
    module : Module
        Maps (rows, ...) to (rows, outputs), each row by itself.
    x : (rows, ...)
    n_draws : int
        Draws of the kept weights for intervals; none if 0.
    threshold : float
        Weights with a larger inclusion probability are kept.
    random_state : int
    """
    plain = median(module, threshold).to(torch.float64)
    rows = x.detach().to(torch.float64)

    def predictor(own: dict[str, Tensor], row: Tensor) -> Tensor:
        return functional_call(plain, own, (row[None],))[0]

    def bend(own: dict[str, Tensor], row: Tensor) -> Tensor:
        slopes = jacrev(lambda at: predictor(own, at))
        return jacrev(lambda at: slopes(at).flatten(1).sum(1))(row)

    means = {name: value.detach() for name, value in plain.named_parameters()}
    with torch.no_grad():
        prediction = plain(rows)
        slopes = vmap(jacrev(predictor, argnums=1), in_dims=(None, 0))(means, rows)
        _say_bend(vmap(bend, in_dims=(None, 0))(means, rows), slopes)
        baseline = prediction - (slopes * rows[:, None]).flatten(2).sum(-1)
        draws = None
        if n_draws:
            drawn = _drawn(module, means, n_draws, threshold, random_state)
            by_row = vmap(jacrev(predictor, argnums=1), in_dims=(None, 0))
            draws = vmap(by_row, in_dims=(0, None))(drawn, rows)
    return TorchExplanation(rows, prediction, baseline, slopes, draws)


def _drawn(
    module: nn.Module, means: dict[str, Tensor], n_draws: int, threshold: float, seed: int
) -> dict[str, Tensor]:
    """The plain network's parameters, each (draws, ...)."""
    exact = deepcopy(module).to(torch.float64)
    layers = layers_of(exact)
    generator = torch.Generator(next(exact.parameters()).device).manual_seed(seed)
    drawn = {name: value.expand(n_draws, *value.shape) for name, value in means.items()}
    for name, layer in layers.items():
        kept = {"kept": layer.alpha > threshold, "kept_biases": layer.bias_alpha > threshold}
        weights, biases = layer.draw(n_draws, **kept, generator=generator)
        prefix = f"{name}." if name else ""
        drawn |= {f"{prefix}weight": weights, f"{prefix}bias": biases}
    return drawn


def _say_bend(bends: Tensor, slopes: Tensor) -> None:
    if bends.abs().max() > BENT * (1 + slopes.abs().max()):
        warnings.warn(
            "The network is not piecewise linear: slopes are those of its tangent at each row, and "
            "contributions need not be exact further away. Try ReLU activations for exact ones.",
            stacklevel=3,
        )
