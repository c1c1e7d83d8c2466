"""A fitted classifier of images as a description in JSON's types and arrays, and back.

A convolution is stored as the dense layer on patches that it is.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from islab.core import families
from islab.core.convolution.geometry import Convolution, ImageArchitecture
from islab.core.convolution.posterior import ImagePosterior, SparseImageNetwork, read_names
from islab.core.convolution.stacked import StackedImagePosterior
from islab.core.posterior import Posterior
from islab.core.sampled import ReadingPrice
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork
from islab.estimators.images import ISLaBImageClassifier
from islab.estimators.state import history_of
from islab.io.networks import architecture_of, arrays_of, read_network, read_weights
from islab.io.schema import (
    CLASS_TYPES,
    Held,
    ImageNetworkRecord,
    ImageRecord,
    ImageStackRecord,
    as_record,
    classes_of,
    params_of,
    plain_param,
)

Arrays = dict[str, NDArray]

NOT_KEPT = ("augment", "random_state", "checkpoint")
# A median network names its features: this many, and so many for each byte of the file.
FREE_FEATURES, FEATURES_PER_BYTE = 2**18, 16
# Numbers that the kernels of one layer see in one image.
FREE_PATCHES, PATCHES_PER_BYTE, MOST_PATCHES = 2**22, 512, 2**28


def state_of(model: ISLaBImageClassifier, *, sparse: bool) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays; what a model was augmented and seeded with is not kept."""
    params = model.get_params(deep=False)
    kept = {name: plain_param(name, params[name]) for name in params if name not in NOT_KEPT}
    classes = model.classes_
    description = {
        "params": kept,
        "image_shape": [int(size) for size in model.image_shape_],
        "classes": {"type": CLASS_TYPES[classes.dtype.kind], "values": classes.tolist()},
        "elbo": float(model.elbo_),
        **({} if model.elbo_error_ is None else {"elbo_error": model.elbo_error_}),
        **({"interrupted": True} if model.interrupted_ else {}),
        "seed": int(model.seed_),
    }
    if sparse:
        description["network"], arrays = _small_state(model.network_)
        return description, arrays
    posterior = model.posterior_
    assert posterior is not None
    arrays = {"history": model.history_.to_array()}
    if isinstance(posterior, StackedImagePosterior):
        shares, price = posterior.shares.tolist(), asdict(posterior.price)
        description["stack"] = {"shares": shares, "best": posterior.best, "price": price}
        for number, run in enumerate(posterior.runs):
            parts = _by_part(run.layers)
            arrays |= {f"run{number}.{name}": array for name, array in parts.items()}
    else:
        arrays |= _by_part(posterior.layers)
    return description, {name: _single(array) for name, array in arrays.items()}


def _small_state(network: SparseImageNetwork) -> tuple[dict[str, Any], Arrays]:
    parts = [
        {
            "architecture": asdict(part.architecture),
            "likelihood": part.likelihood,
            "n_weights_initial": int(part.n_weights_initial),
        }
        for part in network.layers
    ]
    constants = {f"constant{n}": each for n, each in enumerate(network.constants) if each.any()}
    description = {"n_channels": list(network.n_channels), "parts": parts}
    return description, _by_part(network.layers) | constants


def _by_part(parts: tuple[Any, ...]) -> Arrays:
    return {
        f"part{number}.{name}": array
        for number, part in enumerate(parts)
        for name, array in arrays_of(part).items()
    }


def _single(array: NDArray) -> NDArray:
    """Training works in single precision: half the bytes hold the same numbers."""
    single = array.astype(np.float32)
    return single if array.dtype.kind == "f" and (single == array).all() else array


def from_state(
    cls: type[ISLaBImageClassifier], description: dict[str, Any], arrays: Arrays
) -> ISLaBImageClassifier:
    """The classifier of a description that may come from a stranger, or ValueError."""
    record = as_record(description, ImageRecord)
    wide = {name: a.astype(float) if a.dtype.kind == "f" else a for name, a in arrays.items()}
    held = Held(wide)
    model = cls(**params_of(record.params, set(cls().get_params(deep=False)) - {*NOT_KEPT}))
    model._check_params()
    model.classes_ = classes_of(record.classes.type, record.classes.values)
    model.image_shape_ = record.image_shape
    model.elbo_, model.seed_, model.interrupted_ = record.elbo, record.seed, record.interrupted
    model.elbo_error_ = record.elbo_error
    net = model._architecture(model.image_shape_, len(model.classes_))
    if record.network is not None:
        model.posterior_ = None
        model.network_ = _small_network(net, record.network, held, model._output_names())
    else:
        _require_small(net, held)
        n_classes = len(model.classes_)
        if record.stack is None:
            model._take(_posterior(net, n_classes, held))
        else:
            model._take(_stacked(net, n_classes, record.stack, held))
    model.history_ = history_of(held)
    held.require_no_others()
    return model


def _require_small(net: ImageArchitecture, held: Held) -> None:
    """Refuses patches that take far more memory than the file: reading a network visits them."""
    patches = [c.out_height * c.out_width * c.dense.n_covariates for c in net.convolutions]
    most = FREE_PATCHES + PATCHES_PER_BYTE * held.n_bytes
    if max(patches, default=0) > min(most, MOST_PATCHES):
        raise ValueError("its images are too large for its weights")


def _posterior(net: ImageArchitecture, n_classes: int, held: Held) -> ImagePosterior:
    likelihood = families.likelihood_of_classes(n_classes).name
    parts = []
    for number, shape in enumerate([*(layer.dense for layer in net.convolutions), net.head]):
        own = held.part(f"part{number}.")
        parts.append(read_weights(Posterior, shape, likelihood, own))
    return ImagePosterior(net, tuple(parts[:-1]), parts[-1])


def _stacked(
    net: ImageArchitecture, n_classes: int, record: ImageStackRecord, held: Held
) -> StackedImagePosterior:
    """The runs of a record and their arrays."""
    shares = np.array(record.shares)
    if abs(shares.sum() - 1) > 1e-6 or record.best >= len(shares):
        raise ValueError("the shares of its runs do not sum to 1, or none of them is the best")
    runs = [_posterior(net, n_classes, held.part(f"run{n}.")) for n in range(len(shares))]
    price = ReadingPrice(**structs.asdict(record.price))
    return StackedImagePosterior(tuple(runs), shares, record.best, price)


def _small_network(
    net: ImageArchitecture, record: ImageNetworkRecord, held: Held, outputs: tuple[str, ...]
) -> SparseImageNetwork:
    """The median network of images whose network before training was ``net``."""
    n_channels = [layer.out_channels for layer in net.convolutions]
    if record.n_channels != n_channels or len(record.parts) != len(n_channels) + 1:
        raise ValueError("its parts do not fit its layers")
    kernels: list[SparseNetwork] = []
    layers: list[Convolution] = []
    below = net.image_shape[0]
    for full, part in zip(net.convolutions, record.parts, strict=False):
        shape = architecture_of(part)
        layer = replace(full, in_channels=below, out_channels=shape.n_outputs)
        if shape != layer.dense or shape.n_outputs > full.out_channels:
            raise ValueError("its kernels do not fit its layers")
        scale = partial(Scale.plain, shape.n_covariates, shape.n_outputs)
        kernels.append(read_network(part, shape, scale, held.part(f"part{len(layers)}.")))
        layers.append(layer)
        below = shape.n_outputs
    constants = tuple(_constant(held, number, layer) for number, layer in enumerate(layers))
    labels = kernels[-1].unit_labels if kernels else np.arange(below)
    head = _small_head(net, record, held, labels, outputs)
    compact = ImageArchitecture(net.image_shape, tuple(layers), head.architecture, net.pixel_skip)
    return SparseImageNetwork(compact, tuple(kernels), constants, head, tuple(n_channels))


def _small_head(
    net: ImageArchitecture,
    record: ImageNetworkRecord,
    held: Held,
    labels: NDArray,
    outputs: tuple[str, ...],
) -> SparseNetwork:
    """The head of a median network, whose features are places of the labelled channels."""
    part, shape = record.parts[-1], architecture_of(record.parts[-1])
    if (shape.activation, shape.n_layers) != (net.activation, net.head.n_layers):
        raise ValueError("its head does not fit its parameters")
    n_pixels = net.n_read - net.n_features
    n_read = prod(net.feature_shape[:2]) * len(labels) + n_pixels
    if n_read > FREE_FEATURES + FEATURES_PER_BYTE * held.n_bytes:
        raise ValueError("it has too many features for its weights")

    def scale() -> Scale:
        names = read_names(net, labels)
        plain = Scale.plain(len(names), len(outputs))
        return replace(plain, names=names, variables=names, outputs=outputs)

    return read_network(part, shape, scale, held.part(f"part{len(net.convolutions)}."))


def _constant(held: Held, number: int, layer: Convolution) -> NDArray:
    shape = (layer.out_height, layer.out_width, layer.out_channels)
    name = f"constant{number}"
    return held.numbers(name, shape) if name in held else np.broadcast_to(0.0, shape)
