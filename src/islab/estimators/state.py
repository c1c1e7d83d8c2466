"""A fitted estimator as a description in JSON's types and a few arrays."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core.sparse import SparseNetwork
from islab.estimators.base import NetworkEstimator
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.regressor import NetworkRegressor

Arrays = dict[str, NDArray]

CLASS_TYPES = {"i": "int64", "u": "int64", "f": "float64", "b": "bool", "U": "str", "O": "object"}
_SCALE = ("x_center", "x_scale", "y_center", "y_scale")
NETWORK_ARRAYS = (
    "covariates",
    "unit_labels",
    "edges",
    "mu",
    "sigma",
    "alpha",
    "bias_mu",
    "bias_sigma",
    "noise",
    "multipliers",
    "input_index",
)


def state_of(estimator: NetworkEstimator, *, sparse: bool) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a fitted estimator."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    network, posterior = estimator.network_, estimator.posterior_
    if posterior is None and not sparse:
        raise ValueError(
            "Got sparse=False for a model without its full posterior, which a sparse file does not "
            "hold; try sparse=True."
        )
    model = network if sparse or posterior is None else posterior
    fields = NETWORK_ARRAYS if isinstance(model, SparseNetwork) else tuple(model.ARRAYS)
    names = getattr(estimator, "feature_names_in_", None)
    description = {
        "estimator": type(estimator).__name__,
        "params": {name: _plain(name, value) for name, value in _params(estimator).items()},
        "n_features": int(estimator.n_features_in_),
        "features": None if names is None else [str(name) for name in names],
        "columns": estimator.columns_.to_dict(),
        "outputs": list(network.scale.outputs),
        "sparse": sparse,
        "architecture": asdict(model.architecture),
        "likelihood": network.likelihood,
        "n_weights_initial": int(network.n_weights_initial),
        "elbo": estimator.elbo_,
        "chosen": estimator.chosen_,
        "seed": int(estimator.seed_),
        "target": _target_of(estimator),
    }
    arrays = {name: getattr(model, name) for name in fields if getattr(model, name) is not None}
    arrays |= {name: getattr(network.scale, name) for name in _SCALE}
    if not sparse:
        arrays["history"] = estimator.history_.to_array()
    return description, {name: _stored(array) for name, array in arrays.items()}


def _stored(array: NDArray) -> NDArray:
    array = np.asarray(array)
    return array if array.dtype.kind == "f" else array.astype(np.int64)


def _params(estimator: NetworkEstimator) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = None
    return params


def _plain(name: str, value: Any) -> Any:
    """A parameter in JSON's types; tuples and dicts are marked, so that they come back."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        value = tuple(value.tolist())
    if isinstance(value, tuple | list):
        return {"tuple": [_plain(name, item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_plain(name, k), _plain(name, v)] for k, v in value.items()]}
    raise ValueError(
        f"Got {name}={value!r}, expected a value that a file can hold: numbers, text, tuples and "
        "dicts of these."
    )


def _target_of(estimator: NetworkEstimator) -> dict[str, Any]:
    """What the estimator knows of its target besides the outputs' names and scales."""
    if isinstance(estimator, NetworkRegressor):
        return {"flat": estimator._flat}
    assert isinstance(estimator, NetworkClassifier)
    classes = estimator.classes_
    return {"type": CLASS_TYPES[classes.dtype.kind], "classes": classes.tolist()}
