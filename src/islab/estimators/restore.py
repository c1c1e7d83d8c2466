"""An estimator from a description and arrays that may come from a stranger.

Sizes, types and ranges are checked against each other before anything is built from them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork
from islab.estimators.base import NetworkEstimator
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.islab import ISLaBClassifier, ISLaBRegressor
from islab.estimators.learned import WeightDistribution
from islab.estimators.regressor import NetworkRegressor
from islab.learn.history import COLUMNS, History
from islab.tables.columns import KINDS, MISSING, Category, ColumnEncoder, Number, Variable

Arrays = dict[str, NDArray]

MOST_LAYERS = 1000
MOST_COMPACT_WEIGHTS = 50_000_000


class BadState(ValueError):
    """A description and arrays that are no estimator."""


def from_state(description: dict[str, Any], arrays: Arrays) -> NetworkEstimator:
    """The estimator of a description, or :class:`BadState`."""
    try:
        return _estimator(Reader(description), arrays)
    except BadState:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, ArithmeticError) as error:
        raise BadState(f"its parts do not fit together ({error})") from error


class Reader:
    """A JSON object whose entries are asked for by name and type."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise BadState("its description is not an object")
        self.values = values

    def get(self, name: str, *types: type) -> Any:
        value = self.values.get(name)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise BadState(f"{name!r} is missing or of the wrong type")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        values = self.get(name, list)
        if not all(isinstance(value, str) for value in values):
            raise BadState(f"{name!r} is not a list of names")
        return tuple(values)

    def number(self, name: str) -> float:
        return _finite(self.get(name, float, int))

    def size(self, name: str) -> int:
        value = self.get(name, int)
        if not 0 <= value < 2**53:
            raise BadState(f"{name!r} is {value}")
        return value


def _finite(value: Any) -> float:
    if not math.isfinite(value):
        raise BadState("it holds a number that is not finite")
    return float(value)


def _estimator(state: Reader, arrays: Arrays) -> NetworkEstimator:
    estimator = _unfitted(_kind(state.get("estimator", str)), Reader(state.get("params", dict)))
    columns = _columns(Reader(state.get("columns", dict)))
    n_features = state.size("n_features")
    if n_features != len(columns.variables):
        raise BadState("columns and features differ in number")
    scale = _scale(columns, state.texts("outputs"), arrays)
    sparse = state.get("sparse", bool)
    posterior = None if sparse else _weights(estimator.weights_type, state, scale, arrays)
    network = posterior.median() if posterior else read_network(state, scale, arrays)

    estimator.n_features_in_ = n_features
    if state.values.get("features") is not None:
        features = state.texts("features")
        if features != tuple(variable.name for variable in columns.variables):
            raise BadState("columns and features differ in name")
        estimator.feature_names_in_ = np.array(features, dtype=object)
    estimator.columns_ = columns
    estimator.posterior_ = posterior
    estimator.network_ = network
    estimator.history_ = History() if sparse else _history(arrays)
    estimator.elbo_ = None if state.values.get("elbo") is None else state.number("elbo")
    estimator.chosen_ = _chosen(estimator, Reader(state.values.get("chosen", {})))
    estimator.seed_ = state.size("seed")
    _set_target(estimator, Reader(state.get("target", dict)))
    return estimator


def _kind(name: str) -> type[NetworkEstimator]:
    kinds: dict[str, type[NetworkEstimator]] = {
        kind.__name__: kind for kind in (ISLaBClassifier, ISLaBRegressor)
    }
    if name not in kinds:
        from islab.baselines import ESTIMATORS

        kinds |= {kind.__name__: kind for kind in ESTIMATORS}
    if name not in kinds:
        raise BadState(f"it holds a {name!r}, expected one of {', '.join(kinds)}")
    return kinds[name]


def _unfitted(cls: type[NetworkEstimator], params: Reader) -> NetworkEstimator:
    known = set(cls().get_params(deep=False))
    unknown = set(params.values) - known
    if unknown:
        raise BadState(f"it holds an unknown parameter, {min(unknown)!r}")
    values = {name: _unplain(value) for name, value in params.values.items()}
    estimator = cls(**values)
    estimator._check_params()
    return estimator


def _chosen(estimator: NetworkEstimator, chosen: Reader) -> dict[str, float]:
    unknown = set(chosen.values) - set(estimator.get_params(deep=False))
    if unknown:
        raise BadState(f"it has chosen an unknown parameter, {min(unknown)!r}")
    return {name: chosen.number(name) for name in chosen.values}


def _unplain(value: Any) -> Any:
    if isinstance(value, dict):
        marked = Reader(value)
        if "tuple" in value:
            return tuple(_unplain(item) for item in marked.get("tuple", list))
        return {_unplain(k): _unplain(v) for k, v in marked.get("dict", list)}
    if isinstance(value, list):
        raise BadState("a parameter is a bare list")
    return value


def _columns(state: Reader) -> ColumnEncoder:
    variables = tuple(_variable(Reader(entry)) for entry in state.get("variables", list))
    missing = state.get("missing", str)
    if missing not in MISSING:
        raise BadState(f"'missing' is {missing!r}")
    return ColumnEncoder(variables, missing)


def _variable(entry: Reader) -> Variable:
    kind = entry.get("kind", str)
    if kind not in KINDS:
        raise BadState(f"a column is of kind {kind!r}")
    name = entry.get("name", str)
    if KINDS[kind] is Number:
        low, fill, high = (entry.number(part) for part in ("low", "fill", "high"))
        if not low <= fill <= high:
            raise BadState(f"column {name!r} has a mean outside its range")
        return Number(name, fill, low, high, entry.get("indicator", bool))
    shares = tuple(_finite(share) for share in entry.get("shares", list))
    levels = entry.texts("levels")
    if not levels or len(levels) != len(shares):
        raise BadState(f"column {name!r} has {len(levels)} levels and {len(shares)} shares")
    return Category(name, levels, shares)


def _scale(columns: ColumnEncoder, outputs: tuple[str, ...], arrays: Arrays) -> Scale:
    covariates, shape = (len(columns.names),), (len(outputs),)
    return Scale(
        x_center=_array(arrays, "x_center", covariates),
        x_scale=_positive(arrays, "x_scale", covariates),
        y_center=_array(arrays, "y_center", shape),
        y_scale=_positive(arrays, "y_scale", shape),
        names=columns.names,
        outputs=outputs,
        variables=columns.owners,
    )


def _architecture(state: Reader, n_outputs: int) -> Architecture:
    shape = Reader(state.get("architecture", dict))
    hidden = shape.get("hidden", list)
    if len(hidden) > MOST_LAYERS or not all(type(h) is int and 0 <= h < 2**31 for h in hidden):
        raise BadState("its hidden layers are not a short list of widths")
    net = Architecture(
        n_covariates=shape.size("n_covariates"),
        hidden=tuple(hidden),
        n_outputs=shape.size("n_outputs"),
        input_skip=shape.get("input_skip", bool),
        activation=shape.get("activation", str),
    )
    if net.n_outputs != n_outputs:
        raise BadState("architecture and outputs differ in number")
    return net


def _likelihood(state: Reader) -> str:
    name = state.get("likelihood", str)
    if name not in families.likelihoods():
        raise BadState(f"its likelihood is {name!r}")
    return name


def _weights(kind: type, state: Reader, scale: Scale, arrays: Arrays) -> WeightDistribution:
    net = _architecture(state, len(scale.outputs))
    if net.n_covariates != len(scale.names):
        raise BadState("architecture and columns differ in number")
    read = _posterior_arrays if kind is Posterior else _arrays_of
    return kind(
        architecture=net,
        likelihood=_likelihood(state),
        n_weights_initial=state.size("n_weights_initial"),
        scale=scale,
        **read(kind, net, arrays),
    )


def _arrays_of(kind: type[WeightDistribution], net: Architecture, arrays: Arrays) -> Arrays:
    """The arrays of a distribution, each of the shape that it says."""
    sizes = {
        "weights": net.n_weights,
        "units": net.n_units,
        "outputs": net.n_outputs,
        "layers": net.n_layers,
        "covariates": net.n_covariates,
        "inputs": sum(net.n_inputs(layer) for layer in range(net.n_layers)),
    }
    shapes = {name: tuple(sizes[word] for word in words) for name, words in kind.ARRAYS.items()}
    read = {name: _array(arrays, name, shape) for name, shape in shapes.items()}
    return {**read, "noise": _positive(arrays, "noise", (net.n_outputs,))}


def _posterior_arrays(_: type, net: Architecture, arrays: Arrays) -> Arrays:
    weights, biases = (net.n_weights,), (net.n_units,)
    found = {
        "mu": _array(arrays, "mu", weights),
        "rho": _array(arrays, "rho", weights),
        "lam": _array(arrays, "lam", weights),
        "bias_mu": _array(arrays, "bias_mu", biases),
        "bias_rho": _array(arrays, "bias_rho", biases),
        "noise": _positive(arrays, "noise", (net.n_outputs,)),
    }
    return found | _multipliers(arrays, weights)


def _multipliers(arrays: Arrays, weights: tuple[int]) -> Arrays:
    """The draws of a flow and where the weights find theirs, if there is a flow."""
    if "multipliers" not in arrays:
        return {}
    bank = _array(arrays, "multipliers", None)
    if bank.ndim != 2 or not len(bank):
        raise BadState(f"array 'multipliers' has shape {bank.shape}")
    index = _indices(arrays, "input_index", weights, bank.shape[1])
    return {"multipliers": bank, "input_index": index}


def read_network(state: Reader, scale: Scale, arrays: Arrays) -> SparseNetwork:
    """The small network of a description, its arrays checked against it."""
    net = _architecture(state, len(scale.outputs))
    if net.n_weights > MOST_COMPACT_WEIGHTS:
        raise BadState(f"its network has {net.n_weights} weights")
    n_edges = len(_array(arrays, "mu", None))
    edges, biases = (n_edges,), (net.n_units,)
    return SparseNetwork(
        architecture=net,
        covariates=_indices(arrays, "covariates", (net.n_covariates,), len(scale.names)),
        unit_labels=_indices(arrays, "unit_labels", biases, 2**53),
        edges=_indices(arrays, "edges", edges, net.n_weights),
        mu=_array(arrays, "mu", edges),
        sigma=_positive(arrays, "sigma", edges),
        alpha=_positive(arrays, "alpha", edges),
        bias_mu=_array(arrays, "bias_mu", biases),
        bias_sigma=_positive(arrays, "bias_sigma", biases),
        likelihood=_likelihood(state),
        noise=_positive(arrays, "noise", (net.n_outputs,)),
        n_weights_initial=state.size("n_weights_initial"),
        scale=scale,
        **_multipliers(arrays, edges),
    )


def _history(arrays: Arrays) -> History:
    history = arrays.get("history", np.zeros((0, len(COLUMNS))))
    return History.from_array(_array(arrays, "history", (len(history), len(COLUMNS))))


def _set_target(estimator: NetworkEstimator, target: Reader) -> None:
    n_outputs = len(estimator.network_.scale.outputs)
    likelihood = estimator.network_.likelihood
    if isinstance(estimator, NetworkRegressor):
        estimator._flat = target.get("flat", bool)
        estimator.n_outputs_ = n_outputs
        fits = likelihood == estimator.likelihood and (n_outputs == 1 or not estimator._flat)
    else:
        assert isinstance(estimator, NetworkClassifier)
        estimator.classes_ = _classes(target)
        expected = families.likelihood_of_classes(len(estimator.classes_))
        outputs = expected.class_outputs(tuple(map(str, estimator.classes_)))
        fits = (likelihood, n_outputs) == (expected.name, len(outputs))
    if not fits:
        raise BadState(f"its target does not fit {n_outputs} {likelihood} outputs")


def _classes(target: Reader) -> NDArray:
    kind, values = target.get("type", str), target.get("classes", list)
    types = {"int64": int, "float64": float, "bool": bool, "str": str, "object": str}
    if kind not in types or len(values) < 2 or any(type(v) is not types[kind] for v in values):
        raise BadState("its classes are not two or more values of one type")
    classes = np.array(values, dtype=kind)
    if len(np.unique(classes)) != len(classes) or (np.sort(classes) != classes).any():
        raise BadState("its classes are not in order")
    return classes


def _array(arrays: Arrays, name: str, shape: tuple[int, ...] | None) -> NDArray:
    array = arrays.get(name)
    if array is None or array.dtype.kind != "f" or array.ndim == 0:
        raise BadState(f"array {name!r} is missing or of the wrong type")
    if shape is not None and array.shape != shape:
        raise BadState(f"array {name!r} has shape {array.shape}, expected {shape}")
    return array


def _positive(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray:
    array = _array(arrays, name, shape)
    if not (array >= 0).all() or (name.endswith("scale") and not (array > 0).all()):
        raise BadState(f"array {name!r} holds negative numbers")
    return array


def _indices(arrays: Arrays, name: str, shape: tuple[int, ...], below: int) -> NDArray:
    """Whole numbers in ascending order where they are positions."""
    array = arrays.get(name)
    if array is None or array.dtype != np.int64 or array.shape != shape:
        raise BadState(f"array {name!r} is missing or of the wrong type or shape")
    if ((array < 0) | (array >= below)).any():
        raise BadState(f"array {name!r} points outside the network")
    if name in ("covariates", "edges") and (np.diff(array) <= 0).any():
        raise BadState(f"array {name!r} is not in order")
    return array
