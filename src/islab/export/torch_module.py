"""The network as a plain torch module, for torch tools and for further training."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from islab.core import families
from islab.core.sparse import SparseNetwork


class TorchNetwork(nn.Module):
    """The median network at its posterior mean, in float64.

    Calling it on rows (rows, covariates) in the user's units gives the response (rows, outputs):
    probabilities, expectations or rates. :meth:`predictor` gives the linear predictor, which
    attribution tools explain.

    Attributes
    ----------
    covariate_weights : list of (width, used covariates)
        For each layer that reads covariates.
    hidden_weights : list of (width, previous width)
        For each layer after the first.
    biases : list of (width,)
    """

    used: Tensor
    x_center: Tensor
    x_scale: Tensor
    y_center: Tensor
    y_scale: Tensor

    def __init__(self, network: SparseNetwork) -> None:
        super().__init__()
        shape, scale = network.architecture, network.scale
        self.activation = shape.activation
        self.likelihood = network.known_likelihood()
        self.register_buffer("used", torch.tensor(network.covariates))
        self.register_buffer("x_center", _tensor(scale.x_center[network.covariates]))
        self.register_buffer("x_scale", _tensor(scale.x_scale[network.covariates]))
        self.register_buffer("y_center", _tensor(scale.y_center))
        self.register_buffer("y_scale", _tensor(scale.y_scale))
        flat = network.mean_weights()
        blocks: dict[str, list[nn.Parameter]] = {source: [] for source in ("covariate", "hidden")}
        for block in shape.blocks:
            blocks[block.source].append(nn.Parameter(_tensor(block.view(flat))))
        self.covariate_weights = nn.ParameterList(blocks["covariate"])
        self.hidden_weights = nn.ParameterList(blocks["hidden"])
        self.biases = nn.ParameterList(
            nn.Parameter(_tensor(network.bias_mu[layer])) for layer in shape.units
        )

    def predictor(self, x: Tensor) -> Tensor:
        """The linear predictor in the user's units, (rows, outputs)."""
        columns = (x.to(self.x_center.dtype)[:, self.used] - self.x_center) / self.x_scale
        activation = families.activation(self.activation)
        hidden = columns.new_zeros(len(columns), 0)
        for layer, bias in enumerate(self.biases):
            z = bias.expand(len(columns), -1)
            if layer < len(self.covariate_weights):
                z = z + columns @ self.covariate_weights[layer].T
            if layer:
                z = z + activation.torch(hidden) @ self.hidden_weights[layer - 1].T
            hidden = z
        return self.y_center + self.y_scale * hidden

    def forward(self, x: Tensor) -> Tensor:
        """The response, (rows, outputs)."""
        return self.likelihood.torch(self.predictor(x))


def _tensor(values: np.ndarray) -> Tensor:
    return torch.tensor(np.array(values), dtype=torch.float64)
