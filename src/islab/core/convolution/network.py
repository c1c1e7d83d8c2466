"""Forward and backward through convolutional networks whose weights are known numbers.

Max pooling has windows side by side; those at the lower and right border are smaller where the size
of the maps is no multiple, so that no place is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from islab.core import families
from islab.core import network as dense
from islab.core.arrays import Float, Index, Mask
from islab.core.convolution.geometry import Convolution, ImageArchitecture

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Numbers:
    """The weights and biases of one network."""

    kernels: list[Float]  # (out_channels * patch,) each
    biases: list[Float]  # (out_channels,) or (places down, places across, out_channels) each
    head_weights: Float  # (weights,)
    head_biases: Float  # (units,)

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
        Features, and pixels after them, that the head reads; all if not given.
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
    whole = np.zeros((*lead, net.n_read))
    whole[..., slice(None) if columns is None else columns] = by_read
    gradient, by_pixel = np.split(whole, [net.n_features], axis=-1)
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
    gradient = gradient.reshape(*lead, -1)
    return eta, gradient + by_pixel if net.pixel_skip else gradient


def _read(net: ImageArchitecture, z: list[Float], images: Float, columns: Index | None) -> Float:
    """What the head reads, (rows, features)."""
    maps = images
    if z:
        maps = pool(families.activation(net.activation).value(z[-1]), net.convolutions[-1])
    flat = maps.reshape(len(maps), -1)
    if net.pixel_skip:
        flat = np.concatenate([flat, images.reshape(len(images), -1)], axis=1)
    return flat if columns is None else flat[:, columns]


# -- convolution ------------------------------------------------------------------------------


def patches(maps: Float, layer: Convolution) -> Float:
    """What the kernel sees at each place: (rows, places down, places across, patch)."""
    seen = _windows(maps, layer)
    return seen.reshape(*seen.shape[:3], -1)


def convolve(maps: Float, weights: Float, layer: Convolution) -> Float:
    """Maps (rows, height, width, channels) seen through kernels, without biases.

    Parameters
    ----------
    weights : (out_channels, patch) or flat
    """
    # Channels lie together in memory: patches are copied fastest when they end with them.
    seen = np.moveaxis(_windows(maps, layer), 3, -1)
    size = layer.kernel_size
    kernels = weights.reshape(layer.out_channels, layer.in_channels, size, size)
    wires = np.transpose(kernels, (2, 3, 1, 0)).reshape(-1, layer.out_channels)
    return seen.reshape(*seen.shape[:3], -1) @ wires


def spread(values: Float, weights: Float, layer: Convolution) -> Float:
    """The transpose of :func:`convolve`: what each place of the output sends back to the input."""
    size, pad, step = layer.kernel_size, layer.padding, layer.stride
    kernels = weights.reshape(layer.out_channels, layer.in_channels, size, size)
    shape = (len(values), layer.height + 2 * pad, layer.width + 2 * pad, layer.in_channels)
    padded = np.zeros(shape, dtype=np.result_type(values, weights))
    for row in range(size):
        down = slice(row, row + step * layer.out_height, step)
        for column in range(size):
            across = slice(column, column + step * layer.out_width, step)
            padded[:, down, across] += values @ kernels[:, :, row, column]
    return padded[:, pad : pad + layer.height, pad : pad + layer.width]


def _windows(maps: Float, layer: Convolution) -> Float:
    """A view: (rows, places down, places across, channels, kernel rows, kernel columns)."""
    size, pad = layer.kernel_size, layer.padding
    padded = np.pad(maps, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    seen = sliding_window_view(padded, (size, size), axis=(1, 2))
    return seen[:, :: layer.stride, :: layer.stride]


# -- pooling ----------------------------------------------------------------------------------


def pool(maps: Float, layer: Convolution) -> Float:
    """The largest number of each window, (rows, pooled height, pooled width, channels)."""
    return maps if layer.pool == 1 else _pool_windows(maps, layer).max(axis=3)


def winners(maps: Float, layer: Convolution) -> Mask:
    """Where each window has its largest number: one place, the first of several equal ones."""
    found = _pool_windows(maps, layer)
    places = np.arange(layer.pool**2)[:, None]
    won = found.argmax(axis=3)[:, :, :, None] == places
    rows, height, width, _, channels = won.shape
    split = won.reshape(rows, height, width, layer.pool, layer.pool, channels).swapaxes(2, 3)
    whole = split.reshape(rows, height * layer.pool, width * layer.pool, channels)
    return whole[:, : layer.out_height, : layer.out_width]


def unpool(values: NDArray[Number], layer: Convolution) -> NDArray[Number]:
    """The number of each window at all its places, (..., out height, out width, channels)."""
    wide = values.repeat(layer.pool, axis=-3).repeat(layer.pool, axis=-2)
    return wide[..., : layer.out_height, : layer.out_width, :]


def _pool_windows(maps: Float, layer: Convolution) -> Float:
    """Places by window, (rows, pooled height, pooled width, places, channels)."""
    rows, height, width, channels = maps.shape
    size, down, across = layer.pool, layer.pooled_height, layer.pooled_width
    missing = ((0, 0), (0, down * size - height), (0, across * size - width), (0, 0))
    whole = np.pad(maps, missing, constant_values=-np.inf)
    split = whole.reshape(rows, down, size, across, size, channels).swapaxes(2, 3)
    return split.reshape(rows, down, across, size * size, channels)
