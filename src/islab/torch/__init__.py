"""Layers with spike-and-slab weights for networks that people build themselves in PyTorch."""

from islab.core.dependencies import needed

needed("torch", "islab.torch", "islab-bnn[torch]")

from islab.torch.explanation import TorchExplanation, explain_local  # noqa: E402
from islab.torch.layers import SpikeSlabConv2d, SpikeSlabLinear  # noqa: E402
from islab.torch.modules import kl, median, parameter_groups  # noqa: E402
from islab.torch.paths import ActivePaths, active_paths  # noqa: E402

__all__ = [
    "ActivePaths",
    "SpikeSlabConv2d",
    "SpikeSlabLinear",
    "TorchExplanation",
    "active_paths",
    "explain_local",
    "kl",
    "median",
    "parameter_groups",
]
