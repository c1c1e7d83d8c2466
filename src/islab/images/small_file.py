"""The median network of images as a description in JSON's types and a few arrays, and back.

A convolution is stored as the dense layer on patches that it is, like all median networks.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.scale import Scale
from islab.estimators.restore import BadState, Reader, read_network
from islab.estimators.state import NETWORK_ARRAYS
from islab.images.geometry import Convolution, ImageArchitecture
from islab.images.sparse import SparseImageNetwork, feature_names

Arrays = dict[str, NDArray]


def small_state(network: SparseImageNetwork) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a median network."""
    description = {
        "n_channels": list(network.n_channels),
        "parts": [
            {
                "architecture": asdict(part.architecture),
                "likelihood": part.likelihood,
                "n_weights_initial": int(part.n_weights_initial),
            }
            for part in network.layers
        ],
    }
    arrays: Arrays = {}
    for number, part in enumerate(network.layers):
        named = {name: getattr(part, name) for name in NETWORK_ARRAYS}
        arrays |= {f"part{number}.{n}": a for n, a in named.items() if a is not None}
    for number, constant in enumerate(network.constants):
        if constant.any():
            arrays[f"constant{number}"] = constant
    return description, arrays


def small_network(
    net: ImageArchitecture, state: dict[str, Any], arrays: Arrays, outputs: tuple[str, ...]
) -> SparseImageNetwork:
    """The median network of a description.

    Parameters
    ----------
    net : ImageArchitecture
        Before training.
    """
    n_channels = [layer.out_channels for layer in net.convolutions]
    if state.get("n_channels") != n_channels or len(state["parts"]) != len(n_channels) + 1:
        raise BadState("its parts do not fit its layers")
    *parts, last = map(Reader, state["parts"])
    kernels, constants, layers = [], [], []
    below = net.image_shape[0]
    for number, (part, full) in enumerate(zip(parts, net.convolutions, strict=True)):
        out = Reader(part.get("architecture", dict)).size("n_outputs")
        layer = replace(full, in_channels=below, out_channels=out)
        kernel = read_network(part, _patch_scale(layer), _own(arrays, number))
        if kernel.architecture != layer.dense:
            raise BadState("its kernels do not fit its layers")
        constants.append(_constant(arrays, number, layer))
        kernels.append(kernel)
        layers.append(layer)
        below = out
    labels = kernels[-1].unit_labels if kernels else np.arange(below)
    names = feature_names(len(layers), net.feature_shape, labels)
    plain = Scale.plain(len(names), len(outputs))
    scale = replace(plain, names=names, variables=names, outputs=outputs)
    head = read_network(last, scale, _own(arrays, len(layers)))
    compact = ImageArchitecture(net.image_shape, tuple(layers), head.architecture)
    return SparseImageNetwork(compact, tuple(kernels), tuple(constants), head, tuple(n_channels))


def _patch_scale(layer: Convolution) -> Scale:
    return Scale.plain(layer.dense.n_covariates, layer.out_channels)


def _constant(arrays: Arrays, number: int, layer: Convolution) -> NDArray:
    shape = (layer.out_height, layer.out_width, layer.out_channels)
    found = arrays.get(f"constant{number}", np.zeros(shape))
    if found.shape != shape:
        raise BadState(f"its constants have shape {found.shape}, expected {shape}")
    return found


def _own(arrays: Arrays, number: int) -> Arrays:
    prefix = f"part{number}."
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
