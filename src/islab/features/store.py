"""Features on disk, found by what is in an image and in a backbone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from islab.io.files import replacing

if TYPE_CHECKING:
    from islab.features.backbones import Backbone

KEY_BYTES = 16


def image_keys(images: NDArray) -> NDArray[np.bytes_]:
    """A key for each image, from its pixels, shape and type, (images,)."""
    kind = f"{images.dtype} {images.shape[1:]}".encode()
    keys = [
        hashlib.blake2b(kind + np.ascontiguousarray(image).tobytes(), digest_size=KEY_BYTES)
        for image in images
    ]
    return np.array([key.hexdigest() for key in keys], dtype=np.bytes_)


def backbone_key(backbone: Backbone) -> str:
    """A key from the network's text and weights and what is done to pixels before it."""
    import torch

    digest = hashlib.blake2b(digest_size=KEY_BYTES)
    expects = (backbone.channels, backbone.size, backbone.mean, backbone.std)
    module = backbone.module
    digest.update(f"{expects} {backbone.interpolation} {type(module)} {module}".encode())
    for name, tensor in module.state_dict().items():
        digest.update(name.encode())
        # As bytes, because numpy does not know all of torch's types.
        digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


class FeatureStore:
    """Features of one backbone in a folder, in as many files as there were additions.

    Parameters
    ----------
    folder : path
        The cache of all backbones.
    backbone : Backbone
    """

    def __init__(self, folder: str | Path, backbone: Backbone) -> None:
        self.folder = Path(folder) / backbone_key(backbone)

    def add(self, keys: NDArray[np.bytes_], features: NDArray[np.float32]) -> None:
        """Keeps features (images, features) under keys (images,)."""
        from safetensors.numpy import save

        self.folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.blake2b(keys.tobytes(), digest_size=KEY_BYTES).hexdigest()
        content = save({"keys": _as_bytes(keys), "features": np.ascontiguousarray(features)})
        with replacing(self.folder / f"{name}.safetensors") as file:
            file.write(content)

    def fill(self, keys: NDArray[np.bytes_], features: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Writes what is known into the rows of ``features``; says which rows were known."""
        known = np.zeros(len(keys), dtype=bool)
        for path in sorted(self.folder.glob("*.safetensors")):
            with _opened(path) as file:
                stored = _as_keys(file.get_tensor("keys"))
                order = np.argsort(stored)
                place = np.searchsorted(stored, keys, sorter=order).clip(max=len(stored) - 1)
                rows = np.flatnonzero((stored[order[place]] == keys) & ~known)
                if len(rows):
                    features[rows] = file.get_tensor("features")[order[place[rows]]]
                    known[rows] = True
        return known


def _opened(path: Path) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        return safe_open(path, framework="numpy")
    except SafetensorError as error:
        raise ValueError(
            f"Got {path}, which is not a file of features; try to delete it."
        ) from error


def _as_bytes(keys: NDArray[np.bytes_]) -> NDArray[np.uint8]:
    return np.frombuffer(keys.tobytes(), np.uint8).reshape(len(keys), -1)


def _as_keys(content: NDArray[np.uint8]) -> NDArray[np.bytes_]:
    return np.frombuffer(content.tobytes(), f"S{content.shape[1]}")
