"""A fitted convolutional network in a few lines: its size, and what was pruned away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core.convolution.posterior import SparseImageNetwork
from islab.core.names import printable, shortened

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ImageSummary:
    """Facts about a model and a table of its layers.

    Attributes
    ----------
    title : str
    facts : dict
        Name and value of each fact, ready to read.
    layers : DataFrame
        A line for each convolution and each layer of the head: channels or units and weights
        before training, how many are used, how many kernels (one for each pair of channels) were
        pruned away whole.
    """

    title: str
    facts: dict[str, str]
    layers: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """The table of layers."""
        return self.layers.copy()

    def to_dict(self) -> dict[str, Any]:
        """Facts and table in JSON's types."""
        layers = self.layers.astype(object).where(self.layers.notna(), None)
        return {"title": self.title, "facts": self.facts, "layers": layers.to_dict("records")}

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        facts = [f"  {name:<{width}}  {value}" for name, value in self.facts.items()]
        table = self.layers.astype("string").fillna("-").to_string(index=False).splitlines()
        return "\n".join([self.title, *facts, "", *(f"  {line}" for line in table)])

    __repr__ = __str__


def summarise_images(title: str, network: SparseImageNetwork, elbo: float) -> ImageSummary:
    """The summary of a median network."""
    pixels = network.receptive_field()
    head_density = network.head.density
    facts = {
        "likelihood": network.likelihood,
        "outputs": shortened(printable(", ".join(network.head.scale.outputs)), 72),
        "used weights": f"{network.n_used_weights} of {network.n_weights_initial}",
        "density": f"{network.kernel_density:.2%} of kernels, {head_density:.2%} of the head",
        "used features": f"{len(network.head.covariates)} of {_n_features(network)}",
        "used pixels": f"{int(pixels.sum())} of {pixels.size}",
        "ELBO": f"{elbo:.2f}",
    }
    return ImageSummary(title, facts, _layers(network))


def _n_features(network: SparseImageNetwork) -> int:
    height, width, _ = network.architecture.feature_shape
    channels = network.n_channels[-1] if network.n_channels else network.architecture.image_shape[0]
    return height * width * channels


def _layers(network: SparseImageNetwork) -> pd.DataFrame:
    import pandas as pd

    lines = []
    below = network.architecture.image_shape[0]
    for number, kernel in enumerate(network.kernels):
        layer = network.architecture.convolutions[number]
        pairs = len(np.unique(kernel.edges // layer.kernel_size**2))
        total = below * network.n_channels[number]
        lines.append(
            {
                "layer": f"convolution {number + 1}",
                "units": network.n_channels[number],
                "used units": len(network.channels[number]),
                "weights": kernel.n_weights_initial,
                "used weights": kernel.n_used_weights,
                "kernels": total,
                "pruned kernels": total - pairs,
            }
        )
        below = network.n_channels[number]
    frame = pd.DataFrame([*lines, *_head_lines(network)])
    return frame.astype({name: "Int64" for name in frame.columns if name != "layer"})


def _head_lines(network: SparseImageNetwork) -> list[dict[str, object]]:
    head = network.head
    into = head.edge_layers()
    last = head.architecture.n_layers - 1
    return [
        {
            "layer": f"head {number + 1}" if number < last else "output",
            "used units": width,
            "used weights": int((into == number).sum()),
        }
        for number, width in enumerate(head.architecture.widths)
    ]
