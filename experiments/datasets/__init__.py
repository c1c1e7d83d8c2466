"""The paper's data sets with the paper's splits, tables as data frames and images as arrays.

Loaders look in a cache folder first (environment variable ``ISLAB_DATA``, else ``islab`` in the
user's cache directory), then fetch the files, verify their checksums and keep them. Nothing is
fetched on import.
"""

from experiments.datasets.cifar10 import load_cifar10
from experiments.datasets.fer2013 import load_fer2013
from experiments.datasets.fetch import cache_folder
from experiments.datasets.images import ImageDataset
from experiments.datasets.mnist import load_fashion_mnist, load_mnist
from experiments.datasets.tables import (
    Dataset,
    load_abalone,
    load_mice,
    load_wbc,
    simulate,
    tables_folder,
)

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
