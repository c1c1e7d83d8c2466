"""A fitted estimator of tables as a description in JSON's types and a few arrays, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.sampled import SampledPosterior
from islab.core.scale import Scale
from islab.estimators.base import NetworkEstimator
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.column_state import columns_of_record
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.training_fit import Quality, TrainingFit
from islab.estimators.weight_distribution import WeightDistribution
from islab.io.networks import (
    architecture_of,
    arrays_of,
    read_network,
    read_weights,
    require_families,
)
from islab.io.sampled import read_sampled, sampled_state
from islab.io.schema import (
    CLASS_TYPES,
    Held,
    TableRecord,
    TargetRecord,
    TrainingRecord,
    as_record,
    classes_of,
    params_of,
    plain_param,
)
from islab.learn.history import COLUMNS, History
from islab.tables.columns import ColumnEncoder
from islab.tables.offsets import OffsetColumns
from islab.tables.targets import codes_of

Arrays = dict[str, NDArray]

_SCALE = ("x_center", "x_scale", "y_center", "y_scale")


def state_of(estimator: NetworkEstimator, *, sparse: bool) -> tuple[dict[str, Any], Arrays]:
    """Description and arrays of a fitted estimator."""
    network, posterior = estimator.network_, estimator.posterior_
    model = network if sparse or posterior is None else posterior
    names = getattr(estimator, "feature_names_in_", None)
    description = {
        "params": {name: plain_param(name, value) for name, value in _params(estimator).items()},
        "n_features": int(estimator.n_features_in_),
        "features": None if names is None else [str(name) for name in names],
        "columns": estimator.columns_.to_dict(),
        "outputs": list(network.scale.outputs),
        "sparse": sparse,
        "architecture": asdict(model.architecture),
        "likelihood": network.likelihood,
        "n_weights_initial": int(network.n_weights_initial),
        "elbo": estimator.elbo_,
        **({} if estimator.elbo_error_ is None else {"elbo_error": estimator.elbo_error_}),
        "chosen": estimator.chosen_,
        **({"interrupted": True} if estimator.interrupted_ else {}),
        **({"disagreement": estimator.disagreement_} if estimator.disagreement_ else {}),
        "seed": int(estimator.seed_),
        "target": _target_of(estimator),
        **_offset_of(estimator),
        **({} if sparse else _training_of(estimator)),
    }
    if isinstance(model, SampledPosterior):
        description["sampled"], arrays = sampled_state(model)
    else:
        arrays = arrays_of(model)
    arrays |= {name: getattr(network.scale, name) for name in _SCALE}
    if network.scale.x_typical is not None:
        arrays["x_typical"] = network.scale.x_typical
    if not sparse:
        arrays["history"] = estimator.history_.to_array()
        if estimator.conformity_ is not None:
            arrays["conformity"] = estimator.conformity_
    return description, arrays


def _offset_of(estimator: NetworkEstimator) -> dict[str, Any]:
    columns = getattr(estimator, "offset_columns_", OffsetColumns())
    return {"offset": asdict(columns)} if columns.names else {}


def _training_of(estimator: NetworkEstimator) -> dict[str, Any]:
    """What is known of the fit to the training rows; JSON has no NaN."""
    known = estimator.training_fit_
    if known is None:
        return {}
    explained = [share if np.isfinite(share) else None for share in known.quality.explained]
    rates = list(known.quality.base_rates)
    shares = {term: list(numbers) for term, numbers in known.shares.items()}
    return {"training": {"explained": explained, "base_rates": rates, "shares": shares}}


def _training_fit(estimator: NetworkEstimator, record: TrainingRecord) -> TrainingFit:
    explained = tuple(np.nan if share is None else share for share in record.explained)
    classes = getattr(estimator, "classes_", ())
    n_explained = 1 if len(classes) else getattr(estimator, "n_outputs_", 0)
    if (len(explained), len(record.base_rates)) != (n_explained, len(classes)):
        raise ValueError("targets and what is explained of them differ in number")
    numbers = [*explained, *(number for each in record.shares.values() for number in each)]
    if np.isinf(numbers).any() or np.isnan(numbers[len(explained) :]).any():
        raise ValueError("what it explains of its training rows is no number")
    return TrainingFit(Quality(explained, tuple(record.base_rates)), record.shares)


def _conformity(estimator: NetworkEstimator, held: Held) -> NDArray[np.float32]:
    """What conformal prediction needs of training rows."""
    found = held.numbers("conformity", (None, None)).astype(np.float32)
    shares = hasattr(estimator, "classes_")
    if not found.size or (shares and (found.min() < 0 or found.max() > 1)):
        raise ValueError("array 'conformity' holds no rows, or no probabilities")
    return found


def _params(estimator: NetworkEstimator) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    # Where a fit kept its state is no part of the model, and says something of the machine.
    params.pop("checkpoint", None)
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = None
    return params


def _target_of(estimator: NetworkEstimator) -> dict[str, Any]:
    """What the estimator knows of its target besides the outputs' names and scales."""
    if isinstance(estimator, NetworkRegressor):
        return {"flat": estimator._flat}
    assert isinstance(estimator, NetworkClassifier)
    classes = estimator.classes_
    levels = estimator.levels_
    return {
        "type": CLASS_TYPES[classes.dtype.kind],
        "classes": classes.tolist(),
        **({} if levels is None else {"levels": codes_of(levels, classes).tolist()}),
    }


def from_state(
    cls: type[NetworkEstimator], description: dict[str, Any], arrays: Arrays
) -> NetworkEstimator:
    """The estimator of a description that may come from a stranger, or ValueError."""
    record, held = as_record(description, TableRecord), Held(arrays)
    require_families(record)
    # A file must not say where a later fit writes.
    known = set(cls().get_params(deep=False)) - {"checkpoint"}
    estimator = cls(**params_of(record.params, known))
    estimator._check_params()
    columns = columns_of_record(record.columns)
    if record.n_features != len(columns.variables):
        raise ValueError("columns and features differ in number")
    scale = _scale(columns, tuple(record.outputs), held)
    estimator.n_features_in_ = record.n_features
    if record.features is not None:
        if record.features != [variable.name for variable in columns.variables]:
            raise ValueError("columns and features differ in name")
        estimator.feature_names_in_ = np.array(record.features, dtype=object)
    estimator.columns_ = columns
    estimator.posterior_ = None if record.sparse else _weights(cls, record, scale, held)
    if estimator.posterior_ is not None:
        estimator.network_ = estimator._median(estimator.posterior_)
    else:
        estimator.network_ = read_network(record, architecture_of(record), lambda: scale, held)
    estimator.history_ = history_of(held)
    estimator.elbo_, estimator.elbo_error_ = record.elbo, record.elbo_error
    if set(record.chosen) - set(estimator.get_params(deep=False)):
        raise ValueError("it has chosen an unknown parameter")
    estimator.chosen_ = record.chosen
    estimator.interrupted_ = record.interrupted
    estimator.disagreement_ = record.disagreement
    estimator.seed_ = record.seed
    _set_target(estimator, record.target)
    _set_offset(estimator, record)
    if record.training is not None:
        estimator.training_fit_ = _training_fit(estimator, record.training)
    if "conformity" in held and not record.sparse:
        estimator.conformity_ = _conformity(estimator, held)
    held.require_no_others()
    return estimator


def _scale(columns: ColumnEncoder, outputs: tuple[str, ...], held: Held) -> Scale:
    covariates, targets = (len(columns.names),), (len(outputs),)
    return Scale(
        x_center=held.numbers("x_center", covariates),
        x_scale=held.numbers("x_scale", covariates),
        y_center=held.numbers("y_center", targets),
        y_scale=held.numbers("y_scale", targets),
        names=columns.names,
        outputs=outputs,
        variables=columns.owners,
        x_typical=held.numbers("x_typical", covariates) if "x_typical" in held else None,
    )


def _weights(
    cls: type[NetworkEstimator], record: TableRecord, scale: Scale, held: Held
) -> WeightDistribution:
    net = architecture_of(record)
    if (net.n_covariates, net.n_outputs) != (len(scale.names), len(scale.outputs)):
        raise ValueError("architecture, columns and outputs differ in number")
    if record.sampled is not None:
        return read_sampled(record.sampled, net, record.likelihood, scale, held)
    others = {"n_weights_initial": record.n_weights_initial, "scale": scale}
    return read_weights(cls.weights_type, net, record.likelihood, held, **others)


def history_of(held: Held) -> History:
    """What a file tells of training, which a sparse one does not."""
    if "history" not in held:
        return History()
    return History.from_array(held.numbers("history", (None, len(COLUMNS))))


def _set_offset(estimator: NetworkEstimator, record: TableRecord) -> None:
    if record.offset is None:
        return
    columns = OffsetColumns(record.offset.offset, record.offset.exposure)
    features = record.features or []
    if not isinstance(estimator, NetworkRegressor) or not estimator.takes_offset:
        raise ValueError("it has an offset, which such a model has not")
    if any(name in features for name in columns.names):
        raise ValueError("a column is both a covariate and an offset")
    estimator.offset_columns_ = columns


def _levels(target: TargetRecord, estimator: NetworkClassifier) -> NDArray | None:
    """The classes in their order, if a file says that they have one."""
    if target.levels is None:
        return None
    n_classes = len(estimator.classes_)
    if sorted(target.levels) != list(range(n_classes)):
        raise ValueError("its levels are not its classes")
    if n_classes < 3 or len(estimator.network_.noise) != n_classes - 2:
        raise ValueError("its classes and the gaps between them differ in number")
    return estimator.classes_[target.levels]


def _set_target(estimator: NetworkEstimator, target: TargetRecord) -> None:
    n_outputs = len(estimator.network_.scale.outputs)
    likelihood = estimator.network_.likelihood
    if isinstance(estimator, NetworkRegressor):
        if target.flat is None:
            raise ValueError("its target is that of a classifier")
        n_outputs //= families.likelihood(likelihood).n_predictors
        estimator._flat, estimator.n_outputs_ = target.flat, n_outputs
        kinds = families.likelihoods("numbers", "counts")
        asked = kinds if estimator.likelihood == "auto" else (estimator.likelihood,)
        fits = likelihood in asked and (n_outputs == 1 or not estimator._flat)
    else:
        assert isinstance(estimator, NetworkClassifier)
        estimator.classes_ = classes_of(target.type, target.classes)
        estimator.levels_ = _levels(target, estimator)
        ordered = estimator.levels_ is not None
        expected = families.likelihood_of_classes(len(estimator.classes_), ordered=ordered)
        outputs = expected.class_outputs(tuple(map(str, estimator.classes_)))
        fits = (likelihood, n_outputs) == (expected.name, len(outputs))
    if not fits:
        raise ValueError(f"its target does not fit {n_outputs} {likelihood} outputs")
