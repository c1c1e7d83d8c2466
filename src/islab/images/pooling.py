"""Max pooling of numpy arrays: the largest number of each window, and which place it came from.

Windows lie side by side; those at the lower and right border are smaller where the size of the maps
is no multiple, so that no place is left out.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from islab.images.geometry import Convolution

Float = NDArray[np.floating]
Mask = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)


def pool(maps: Float, layer: Convolution) -> Float:
    """The largest number of each window, (rows, pooled height, pooled width, channels)."""
    return maps if layer.pool == 1 else _windows(maps, layer).max(axis=3)


def winners(maps: Float, layer: Convolution) -> Mask:
    """Where each window has its largest number: one place, the first of several equal ones."""
    found = _windows(maps, layer)
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


def _windows(maps: Float, layer: Convolution) -> Float:
    """Places by window, (rows, pooled height, pooled width, places, channels)."""
    rows, height, width, channels = maps.shape
    size, down, across = layer.pool, layer.pooled_height, layer.pooled_width
    missing = ((0, 0), (0, down * size - height), (0, across * size - width), (0, 0))
    whole = np.pad(maps, missing, constant_values=-np.inf)
    split = whole.reshape(rows, down, size, across, size, channels).swapaxes(2, 3)
    return split.reshape(rows, down, across, size * size, channels)
