"""MNIST, Fashion-MNIST and CIFAR-10, with made-up files of the published formats."""

import hashlib
import struct

import numpy as np
import pytest

from experiments.datasets import from_packages, images, load_cifar10, load_fashion_mnist, load_mnist
from experiments.datasets.fetch import Published


def made_up(published, files):
    """The same data set with other contents, which are in the cache folder."""
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    data = Published(published.name, checksums)
    data.keep(files)
    return data


def idx_bytes(array):
    """The array as an idx file of bytes."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.tobytes()


@pytest.fixture
def digits(rng):
    """Files of six images for learning and two for testing, and the images themselves."""
    pixels = rng.integers(0, 256, (8, 28, 28), dtype=np.uint8)
    labels = np.array([5, 0, 4, 1, 9, 2, 7, 7], dtype=np.uint8)
    arrays = pixels[:6], labels[:6], pixels[6:], labels[6:]
    return dict(zip(images.IDX_NAMES, map(idx_bytes, arrays), strict=True)), pixels, labels


@pytest.fixture
def things(rng, monkeypatch):
    """Files of two images each, and the images themselves."""
    monkeypatch.setattr(from_packages, "PER_FILE", 2)
    pixels = rng.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, 12).astype(np.uint8)
    return from_packages.cifar_files(labels, pixels), pixels, labels


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4)])
def test_an_idx_file_gives_its_array_back(rng, shape):
    array = rng.integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(images.idx_array(idx_bytes(array)), array)


def test_mnist_holds_images_labels_and_classes(digits, monkeypatch):
    files, pixels, labels = digits
    monkeypatch.setattr(images, "MNIST", made_up(images.MNIST, files))
    data = load_mnist()
    np.testing.assert_array_equal(data.images, pixels)
    np.testing.assert_array_equal(data.labels, labels)
    assert data.classes == tuple("0123456789")


def test_the_last_images_are_for_testing(digits, monkeypatch):
    monkeypatch.setattr(images, "MNIST", made_up(images.MNIST, digits[0]))
    data = load_mnist()
    assert (data.train.tolist(), data.test.tolist()) == ([0, 1, 2, 3, 4, 5], [6, 7])


def test_fashion_mnist_has_ten_garments(digits, monkeypatch):
    monkeypatch.setattr(images, "FASHION_MNIST", made_up(images.FASHION_MNIST, digits[0]))
    data = load_fashion_mnist()
    assert (data.name, len(set(data.classes)), data.classes[9]) == (
        "fashion-mnist",
        10,
        "ankle boot",
    )


def test_mnist_and_fashion_mnist_are_kept_apart(digits, monkeypatch, cache):
    for name in ("MNIST", "FASHION_MNIST"):
        monkeypatch.setattr(images, name, made_up(getattr(images, name), digits[0]))
    load_mnist(), load_fashion_mnist()
    assert sorted(folder.name for folder in cache.iterdir()) == ["fashion-mnist", "mnist"]


def test_a_file_of_cifar_is_records_of_a_label_and_planes_of_pixels(things):
    files, pixels, labels = things
    content = files["data_batch_1.bin"]
    assert len(content) == 2 * 3073
    assert (content[0], content[3073]) == (labels[0], labels[1])
    assert content[1 + 1024] == pixels[0, 1, 0, 0]


def test_cifar_holds_images_labels_and_classes(things, monkeypatch):
    files, pixels, labels = things
    monkeypatch.setattr(images, "CIFAR10", made_up(images.CIFAR10, files))
    data = load_cifar10()
    np.testing.assert_array_equal(data.images, pixels)
    np.testing.assert_array_equal(data.labels, labels)
    assert len(data.classes) == 10


def test_the_test_batch_of_cifar_is_for_testing(things, monkeypatch):
    monkeypatch.setattr(images, "CIFAR10", made_up(images.CIFAR10, things[0]))
    data = load_cifar10()
    assert (data.train.tolist(), data.test.tolist()) == (list(range(10)), [10, 11])
