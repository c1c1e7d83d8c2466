"""Images as people give them, checked and made into pixels from 0 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def checked_images(images: Any) -> NDArray:
    """The images as an array whose shape and type are in order; a memory map stays one.

    Parameters
    ----------
    images : (images, height, width) or (images, channels, height, width)
        Bytes, or floats from 0 to 1.
    """
    images = np.asanyarray(images)
    if images.ndim not in (3, 4) or 0 in images.shape:
        raise ValueError(
            f"Got images of shape {images.shape}, expected (images, height, width) or "
            "(images, channels, height, width) and at least one image."
        )
    if images.dtype != np.uint8 and not np.issubdtype(images.dtype, np.floating):
        raise ValueError(
            f"Got images of type {images.dtype}, expected uint8, or floats from 0 to 1; try "
            "images.astype('uint8')."
        )
    return images


def n_channels(images: NDArray) -> int:
    """Channels of checked images; 1 if they have no axis for them."""
    return 1 if images.ndim == 3 else images.shape[1]


def unit_pixels(images: NDArray, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Some of the images as floats from 0 to 1, (images, channels, height, width)."""
    pixels: NDArray[np.float32] = images[rows].astype(np.float32)
    if images.dtype == np.uint8:
        pixels /= 255
    else:
        # A comparison with NaN is false, so that those are found as well.
        within = ((pixels >= 0) & (pixels <= 1)).reshape(len(rows), -1).all(axis=1)
        if not within.all():
            wrong = int(np.argmin(within))
            low, high = float(pixels[wrong].min()), float(pixels[wrong].max())
            raise ValueError(
                f"Got pixels from {low:g} to {high:g} in image {rows[wrong]}, expected floats "
                "from 0 to 1; try images / 255 or images without missing pixels."
            )
    return pixels[:, None] if pixels.ndim == 3 else pixels
