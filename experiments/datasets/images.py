"""What a data set of images consists of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Images, their labels and the usual split.

    Attributes
    ----------
    images : uint8 array
        Grey (images, height, width) or coloured (images, 3, height, width), 0 to 255.
    labels : int array
        Positions in ``classes``, (images,).
    classes : tuple of str
    train, test : int arrays
        Numbers of images.
    """

    name: str
    images: Pixels
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    train: NDArray[np.intp]
    test: NDArray[np.intp]


def with_test_last(
    name: str, images: list[Pixels], labels: list[Pixels], classes: tuple[str, ...]
) -> ImageDataset:
    """The parts one after the other; the last of them is for testing."""
    numbers = np.arange(sum(map(len, images)))
    n_train = len(numbers) - len(images[-1])
    return ImageDataset(
        name,
        np.concatenate(images),
        np.concatenate(labels).astype(np.int64),
        classes,
        numbers[:n_train],
        numbers[n_train:],
    )
