"""The network as a plain torch module, for torch tools and for further training."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from islab.export.portable import readable


class TorchNetwork(nn.Module):
    """The readable network at the mean of its weights, in float64.

    Calling it on covariates (rows, covariates) in the user's units, which :meth:`encode` makes of a
    table, gives the response (rows, outputs):
    probabilities, expectations or rates. :meth:`predictor` gives the linear predictor, which
    attribution tools explain.

    Parameters
    ----------
    source : fitted estimator, or SparseNetwork

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

    def __init__(self, source: Any) -> None:
        super().__init__()
        network, content = readable(source)
        if content.offset is not None:
            raise ValueError(
                "Got a model with an offset, expected one without for a torch module, which reads "
                "covariates only; try export('python'), export('sql') or export('onnx')."
            )
        self.columns = getattr(source, "columns_", None)
        shape, scale = network.architecture, network.scale
        self.activations = shape.activations
        self.likelihood = network.known_likelihood()
        self.n_covariates = network.n_covariates
        self.order = content.order
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

    def encode(self, table: Any) -> Tensor:
        """Covariates (rows, covariates) of a table as in ``fit``."""
        return _tensor(table if self.columns is None else self.columns.encode(table))

    def predictor(self, x: Tensor) -> Tensor:
        """The linear predictor in the user's units, (rows, outputs)."""
        columns = (x.to(self.x_center.dtype)[:, self.used] - self.x_center) / self.x_scale
        hidden = columns.new_zeros(columns.shape[0], 0)
        for layer, bias in enumerate(self.biases):
            z = bias.expand(columns.shape[0], -1)
            if layer < len(self.covariate_weights):
                z = z + columns @ self.covariate_weights[layer].T
            if layer:
                z = z + self.activations[layer - 1].torch(hidden) @ self.hidden_weights[layer - 1].T
            hidden = z
        return self.y_center + self.y_scale * hidden

    def forward(self, x: Tensor) -> Tensor:
        """The response, (rows, outputs); of an estimator's classes in their order."""
        response = self.likelihood.torch(self.predictor(x))
        return response if self.order is None else response[:, list(self.order)]

    def to_bytes(self) -> bytes:
        """A file for ``torch.export.load``, which needs no islab."""
        example = self.x_center.new_zeros(2, self.n_covariates)
        rows = {"x": {0: torch.export.Dim("rows", min=1)}}
        program = torch.export.export(self, (example,), dynamic_shapes=rows)
        buffer = BytesIO()
        torch.export.save(program, buffer)
        return buffer.getvalue()


def _tensor(values: Any) -> Tensor:
    return torch.tensor(np.array(values), dtype=torch.float64)
