"""Convolution of numpy arrays and its transpose."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from islab.images.geometry import Convolution

Float = NDArray[np.floating]


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
