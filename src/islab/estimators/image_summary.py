"""A fitted model of images in a few lines: its layers, and what was pruned away of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from islab.estimators.summary import Summary, facts_of_networks, facts_of_size, facts_of_training

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.convolution.posterior import SparseImageNetwork
    from islab.estimators.images import ISLaBImageClassifier


@dataclass(frozen=True, repr=False)
class ImageSummary(Summary):
    """Facts about a model of images and its layers.

    Attributes
    ----------
    layers : DataFrame
        A line for each convolution and each layer of the head: channels or units and weights
        before training, how many are used, how many kernels (one for each pair of channels) were
        pruned away whole.
    """

    layers: pd.DataFrame
    table_name = "layers"

    def _lines(self) -> list[str]:
        table = self.layers.astype("string").fillna("-").to_string(index=False).splitlines()
        return [f"  {line}" for line in table]

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        table = self.layers.astype("string").fillna("-")
        return tuple(table.columns), list(table.itertuples(index=False, name=None))


def summarise_images(estimator: ISLaBImageClassifier) -> ImageSummary:
    """The summary of a fitted classifier of images."""
    network = estimator.network_
    pixels = network.receptive_field()
    head_density = network.head.density
    facts = facts_of_size(network, network.head.scale.outputs) | {
        "density": f"{network.kernel_density:.2%} of kernels, {head_density:.2%} of the head",
        "used features": f"{len(network.head.covariates)} of {_n_features(network)}",
        "used pixels": f"{int(pixels.sum())} of {pixels.size}",
    }
    facts |= facts_of_training(estimator)
    facts |= facts_of_networks(estimator.posterior_)
    return ImageSummary(type(estimator).__name__, facts, _layers(network))


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
