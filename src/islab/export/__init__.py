"""The median network at its posterior mean, in forms that need no islab.

Every form reads the covariates in the user's units and in the order of the data, and gives both
the predictor and the response (probabilities, rates, expectations).
"""

from typing import Any

from islab.core.dependencies import needed
from islab.core.sparse import SparseNetwork
from islab.export.formula import to_latex, to_text
from islab.export.graph import to_dot, to_graphml, to_networkx
from islab.export.onnx_model import to_onnx
from islab.export.source import to_python

__all__ = [
    "to_dot",
    "to_graphml",
    "to_latex",
    "to_networkx",
    "to_onnx",
    "to_python",
    "to_text",
    "to_torch",
]


def to_torch(network: SparseNetwork) -> Any:
    """A plain ``torch.nn.Module``; see :class:`islab.export.torch_module.TorchNetwork`."""
    needed("torch", "A torch module", "islab-bnn[torch]")
    from islab.export.torch_module import TorchNetwork

    return TorchNetwork(network)
