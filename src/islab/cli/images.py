"""Images in files that numpy wrote: ``.npy`` with images alone, ``.npz`` with their labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from islab.cli.tables import DAMAGED

if TYPE_CHECKING:
    from numpy.typing import NDArray

LABELS = "labels"
ARCHIVE = b"PK"


def holds_images(path: str) -> bool:
    """Whether the name is that of an array, not of a table."""
    return Path(path).suffix.lower() in (".npy", ".npz")


def read_images(path: str) -> NDArray:
    """The images of a file; without labels beside them a memory map."""
    images, _ = _arrays(path, LABELS)
    if images.ndim == 0 or not len(images):
        raise ValueError(f"Got {path!r} without images, expected one array of them")
    return images


def read_labelled(path: str, labels: str | None = None) -> tuple[NDArray, NDArray]:
    """Images and their labels, two arrays of one file.

    Parameters
    ----------
    path : str
    labels : str, optional
        Name of the array of labels, ``labels`` if not given; the other array holds the images.
    """
    images, found = _arrays(path, labels or LABELS)
    if found is None:
        raise ValueError(
            f"Got {path!r} without an array {labels or LABELS!r}, expected the label of each "
            "image; try numpy.savez(path, images=..., labels=...), or --target NAME"
        )
    return images, found


def _arrays(path: str, labels: str) -> tuple[NDArray, NDArray | None]:
    """Images, and labels if there are any."""
    import numpy as np

    try:
        with open(path, "rb") as file:
            if file.read(len(ARCHIVE)) != ARCHIVE:
                return np.load(path, mmap_mode="r", allow_pickle=False), None
            file.seek(0)
            found = np.load(file, allow_pickle=False)
            others = [name for name in found if name != labels]
            if len(others) == 1:
                return found[others[0]], found.get(labels)
    except (OSError, ValueError, *DAMAGED) as error:
        raise ValueError(
            f"Got {path!r}, which cannot be read as an array of images ({error}), expected a file "
            "that numpy.save or numpy.savez wrote"
        ) from error
    raise ValueError(
        f"Got {path!r} with arrays {', '.join(others)}, expected one of images and one of {labels}"
    )
