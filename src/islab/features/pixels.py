"""Images as pixels from 0 to 1, a few at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
