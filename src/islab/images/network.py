"""Forward and backward through convolutional networks whose weights are known numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core import network as dense
from islab.images.convolve import convolve, spread
from islab.images.geometry import ImageArchitecture
from islab.images.pooling import pool, unpool, winners

Float = NDArray[np.floating]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Numbers:
    """The weights and biases of one network.

    Attributes
    ----------
    kernels : list of (out_channels * patch,)
    biases : list of (out_channels,) or (places down, places across, out_channels)
    head_weights, head_biases : (weights,), (units,)
    """

    kernels: list[Float]
    biases: list[Float]
    head_weights: Float
    head_biases: Float

    @classmethod
    def of(cls, drawn: Sequence[tuple[Float, Float]]) -> Numbers:
        """From single draws (1, weights), (1, biases) of each convolution and the head."""
        *kernels, (head_weights, head_biases) = [(w[0], b[0]) for w, b in drawn]
        return cls([w for w, _ in kernels], [b for _, b in kernels], head_weights, head_biases)

    def astype(self, dtype: Any) -> Numbers:
        """The same numbers in another precision."""
        return Numbers(
            [weights.astype(dtype) for weights in self.kernels],
            [biases.astype(dtype) for biases in self.biases],
            self.head_weights.astype(dtype),
            self.head_biases.astype(dtype),
        )


def preactivations(net: ImageArchitecture, numbers: Numbers, images: Float) -> list[Float]:
    """What every place of every map sums up, one array for each convolution.

    Parameters
    ----------
    images : (rows, height, width, channels)
    """
    found, maps, activation = [], images, families.activation(net.activation)
    for layer, weights, biases in zip(
        net.convolutions, numbers.kernels, numbers.biases, strict=True
    ):
        z = convolve(maps, weights, layer)
        z += biases
        found.append(z)
        maps = pool(activation.value(z), layer)
    return found


def forward(
    net: ImageArchitecture, numbers: Numbers, images: Float, columns: Index | None = None
) -> Float:
    """The linear predictor, (rows, outputs).

    Parameters
    ----------
    images : (rows, height, width, channels)
    columns : (used features,), optional
        Features that the head reads; all if not given.
    """
    read = _read(net, preactivations(net, numbers, images), images, columns)
    return dense.forward(net.head, numbers.head_weights, numbers.head_biases, read)


def slopes(
    net: ImageArchitecture, numbers: Numbers, images: Float, columns: Index | None = None
) -> tuple[Float, Float]:
    """The predictor (rows, outputs) and its gradient by the pixels (rows, outputs, pixels).

    With a piecewise-linear activation the gradient is the exact slope of the linear piece that
    contains the image: on it each window of a pooling layer has the same winner.
    """
    z = preactivations(net, numbers, images)
    read = _read(net, z, images, columns)
    eta, by_read = dense.slopes(net.head, numbers.head_weights, numbers.head_biases, read)
    lead, activation = eta.shape, families.activation(net.activation)
    gradient = np.zeros((*lead, prod(net.feature_shape)))
    gradient[..., slice(None) if columns is None else columns] = by_read
    for layer, weights, own in zip(
        reversed(net.convolutions), reversed(numbers.kernels), reversed(z), strict=True
    ):
        slope = activation.slope(own)
        if layer.pool > 1:
            # Activations keep the order, so the largest sum becomes the largest number.
            slope = slope * winners(own, layer)
        gradient = gradient.reshape(*lead, layer.pooled_height, layer.pooled_width, -1)
        gradient = unpool(gradient, layer) * slope[:, None]
        gradient = spread(gradient.reshape(-1, *own.shape[1:]), weights, layer)
    return eta, gradient.reshape(*lead, -1)


def _read(net: ImageArchitecture, z: list[Float], images: Float, columns: Index | None) -> Float:
    """What the head reads, (rows, features)."""
    maps = images
    if z:
        maps = pool(families.activation(net.activation).value(z[-1]), net.convolutions[-1])
    flat = maps.reshape(len(maps), -1)
    return flat if columns is None else flat[:, columns]
