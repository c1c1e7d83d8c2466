"""A fitted classifier of images in a file, and back."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.estimators.state import CLASS_TYPES
from islab.images.posterior import ImagePosterior
from islab.images.settings import check_image_params
from islab.images.small_file import small_network, small_state
from islab.io.files import replacing
from islab.io.store import read, to_bytes
from islab.learn.history import COLUMNS, History

if TYPE_CHECKING:
    from islab.images.classifier import ISLaBImageClassifier

Arrays = dict[str, NDArray]

NOT_KEPT = ("augment", "random_state")


def save_images(model: ISLaBImageClassifier, path: str | Path, *, sparse: bool) -> None:
    """Writes a fitted classifier; what it was augmented and seeded with is not kept."""
    if model.posterior_ is None and not sparse:
        raise ValueError(
            "Got sparse=False for a model without its full posterior, which a sparse file does not "
            "hold; try sparse=True."
        )
    params = model.get_params(deep=False)
    classes = model.classes_
    description = {
        "estimator": type(model).__name__,
        "params": {name: _plain(value) for name, value in params.items() if name not in NOT_KEPT},
        "image_shape": [int(size) for size in model.image_shape_],
        "classes": {"type": CLASS_TYPES[classes.dtype.kind], "values": classes.tolist()},
        "elbo": float(model.elbo_),
        "seed": int(model.seed_),
    }
    if sparse:
        description["network"], arrays = small_state(model.network_)
    else:
        assert model.posterior_ is not None
        arrays = {"history": model.history_.to_array()}
        for number, part in enumerate(model.posterior_.layers):
            arrays |= {f"part{number}.{name}": array for name, array in _arrays_of(part).items()}
    with replacing(path) as file:
        file.write(to_bytes(description, {name: _stored(array) for name, array in arrays.items()}))


def load_images(cls: type[ISLaBImageClassifier], path: str | Path) -> ISLaBImageClassifier:
    """The classifier in a file.

    Raises
    ------
    ValueError
        If the file is truncated, altered, too new or holds something else.
    """
    description, arrays = read(path)
    name = description.get("estimator")
    if name != cls.__name__:
        _refuse(path, f"it holds a {name!r}, expected an {cls.__name__!r}; try islab.load")
    try:
        return _model(cls, description, arrays)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, ArithmeticError) as error:
        _refuse(path, f"its parts do not fit together ({error})")


def _model(
    cls: type[ISLaBImageClassifier], description: dict[str, Any], arrays: Arrays
) -> ISLaBImageClassifier:
    kept_params = description["params"].items()
    params: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in kept_params}
    model = cls(**params)
    check_image_params(model.get_params(deep=False))
    kept = description["classes"]
    if kept["type"] not in CLASS_TYPES.values():
        raise ValueError(f"its classes are of type {kept['type']!r}")
    model.classes_ = np.array(kept["values"], dtype=kept["type"])
    if len(model.classes_) < 2:
        raise ValueError("it has less than two classes")
    channels, height, width = (int(size) for size in description["image_shape"])
    if min(channels, height, width) < 1:
        raise ValueError("its images have no size")
    model.image_shape_ = (channels, height, width)
    model.elbo_, model.seed_ = float(description["elbo"]), int(description["seed"])
    net = model._architecture(model.image_shape_, len(model.classes_))
    if "network" in description:
        wide = {name: a.astype(float) if a.dtype.kind == "f" else a for name, a in arrays.items()}
        network = small_network(net, description["network"], wide, model._output_names())
        model.posterior_, model.network_, model.history_ = None, network, History()
        return model
    model.history_ = History.from_array(arrays["history"].reshape(-1, len(COLUMNS)))
    shapes = [*(layer.dense for layer in net.convolutions), net.head]
    likelihood = families.likelihood_of_classes(len(model.classes_)).name
    parts = [
        _posterior(shape, _own(arrays, f"part{number}."), likelihood)
        for number, shape in enumerate(shapes)
    ]
    model._take(ImagePosterior(net, tuple(parts[:-1]), parts[-1]))
    return model


def _posterior(net: Architecture, arrays: Arrays, likelihood: str) -> Posterior:
    weights, units = (net.n_weights,), (net.n_units,)
    expected: dict[str, tuple[int, ...]] = dict.fromkeys(("mu", "rho", "lam"), weights)
    expected |= {"bias_mu": units, "bias_rho": units, "noise": (net.n_outputs,)}
    if "multipliers" in arrays:
        bank, inputs = arrays["multipliers"].shape
        expected |= {"multipliers": (bank, inputs), "input_index": weights}
        index = arrays["input_index"]
        if index.dtype.kind != "i" or index.min(initial=0) < 0 or index.max(initial=0) >= inputs:
            raise ValueError("its multipliers do not fit its weights")
    found = {name: array.shape for name, array in arrays.items()}
    if found != expected:
        raise ValueError(f"it has arrays of shapes {found}, expected {expected}")
    values: dict[str, Any] = {
        n: a if n == "input_index" else a.astype(float) for n, a in arrays.items()
    }
    return Posterior(architecture=net, likelihood=likelihood, **values)


def _own(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


def _arrays_of(part: Posterior) -> Arrays:
    named = {field.name: getattr(part, field.name) for field in fields(part)}
    return {name: value for name, value in named.items() if isinstance(value, np.ndarray)}


def _stored(array: NDArray) -> NDArray:
    """Training works in single precision: half the bytes hold the same numbers."""
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    single = array.astype(np.float32)
    return single if (single == array).all() else array


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _refuse(path: str | Path, reason: str) -> NoReturn:
    raise ValueError(f"Got path={str(path)!r}, which cannot be loaded: {reason}.")
