"""Data sets of images with their usual splits: MNIST, Fashion-MNIST, CIFAR-10 and FER2013."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.fetch import Published
from experiments.datasets.tables import tenth_for_testing
from islab.evaluate.runner import NoData

Pixels = NDArray[np.uint8]

IDX_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
CIFAR_NAMES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
CIFAR_SHAPE = (3, 32, 32)
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
FACES = {3: "happy", 5: "surprise", 6: "neutral"}
FACE_COLUMNS = ("emotion", "pixels", "Usage")
FACE_SIDE = 48


MNIST_HOME = "https://ossci-datasets.s3.amazonaws.com/mnist"
FASHION_HOME = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
CIFAR_HOME = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"

MNIST = Published(
    "mnist",
    {
        IDX_NAMES[0]: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        IDX_NAMES[1]: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        IDX_NAMES[2]: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        IDX_NAMES[3]: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    {
        f"{MNIST_HOME}/{IDX_NAMES[0]}.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
        f"{MNIST_HOME}/{IDX_NAMES[1]}.gz": "md5:d53e105ee54ea40749a09fcbcd1e9432",
        f"{MNIST_HOME}/{IDX_NAMES[2]}.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
        f"{MNIST_HOME}/{IDX_NAMES[3]}.gz": "md5:ec29112dd5afa0611ce80d1b7f02629c",
    },
)

FASHION_MNIST = Published(
    "fashion-mnist",
    {
        IDX_NAMES[0]: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        IDX_NAMES[1]: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        IDX_NAMES[2]: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        IDX_NAMES[3]: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    {
        f"{FASHION_HOME}/{IDX_NAMES[0]}.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        f"{FASHION_HOME}/{IDX_NAMES[1]}.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
        f"{FASHION_HOME}/{IDX_NAMES[2]}.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
        f"{FASHION_HOME}/{IDX_NAMES[3]}.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
    },
)

CIFAR10 = Published(
    "cifar10",
    {
        CIFAR_NAMES[0]: "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        CIFAR_NAMES[1]: "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        CIFAR_NAMES[2]: "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        CIFAR_NAMES[3]: "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        CIFAR_NAMES[4]: "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        CIFAR_NAMES[5]: "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    {CIFAR_HOME: "md5:c32a1d4ab5d03f1284b67883e8d87530"},
)


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


def load_mnist() -> ImageDataset:
    """MNIST: 70,000 handwritten digits of 28 by 28 pixels, the last 10,000 for testing."""
    return _load(MNIST, DIGITS)


def load_fashion_mnist() -> ImageDataset:
    """Fashion-MNIST: 70,000 garments of 28 by 28 pixels, the last 10,000 for testing."""
    return _load(FASHION_MNIST, GARMENTS)


def _load(published: Published, classes: tuple[str, ...]) -> ImageDataset:
    files = published.read()
    train_images, train_labels, test_images, test_labels = (
        idx_array(files[name]) for name in IDX_NAMES
    )
    return _with_test_last(
        published.name, [train_images, test_images], [train_labels, test_labels], classes
    )


def idx_array(content: bytes) -> Pixels:
    """The array in an idx file of bytes."""
    n_axes = content[3]
    shape = struct.unpack_from(f">{n_axes}I", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def load_cifar10() -> ImageDataset:
    """CIFAR-10: 60,000 coloured images of 32 by 32 pixels, the last 10,000 for testing."""
    files = CIFAR10.read()
    labels, images = zip(*(record_arrays(files[name]) for name in CIFAR_NAMES), strict=True)
    return _with_test_last("cifar10", list(images), list(labels), THINGS)


def record_arrays(content: bytes) -> tuple[Pixels, Pixels]:
    """Labels and images (images, 3, 32, 32) of a file."""
    records = np.frombuffer(content, np.uint8).reshape(-1, 1 + np.prod(CIFAR_SHAPE))
    return records[:, 0], records[:, 1:].reshape(-1, *CIFAR_SHAPE)


def load_fer2013(path: str | Path) -> ImageDataset:
    """FER2013: happy, surprised and neutral faces of 48 by 48 pixels, a tenth for testing.

    Parameters
    ----------
    path : path
        ``fer2013.csv`` of Kaggle's facial expression recognition challenge, with the columns
        ``emotion``, ``pixels`` and ``Usage``. It may not be passed on, hence is not fetched.
    """
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise NoData(
            f"Got path={str(path)!r}, expected the file fer2013.csv; try to download it from "
            "Kaggle's facial expression recognition challenge."
        )
    frame = pd.read_csv(path)
    if not set(FACE_COLUMNS) <= set(frame.columns):
        raise ValueError(
            f"Got {path} with columns {', '.join(map(str, frame.columns))}, expected "
            f"{', '.join(FACE_COLUMNS)}."
        )
    frame = frame[frame["emotion"].isin(list(FACES))]
    images = np.stack([_face(text, row) for row, text in frame["pixels"].items()])
    labels = np.searchsorted(list(FACES), frame["emotion"].to_numpy())
    # The paper splits its own way, not by Usage.
    train, test = tenth_for_testing(len(frame), labels)
    return ImageDataset("fer2013", images, labels, tuple(FACES.values()), train, test)


def _face(text: str, row: Any) -> Pixels:
    try:
        return np.array(text.split(), dtype=np.uint8).reshape(FACE_SIDE, FACE_SIDE)
    except (AttributeError, OverflowError, ValueError) as error:
        raise ValueError(
            f"Got pixels={text!r:.40} in row {row}, expected {FACE_SIDE**2} numbers from 0 to 255."
        ) from error


def _with_test_last(
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
