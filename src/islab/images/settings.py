"""Which values the parameters of an image classifier may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from islab.core import families
from islab.estimators.parameter_checks import Rules, count, one_of, positive, widths
from islab.learn.engines import EngineChoice
from islab.learn.engines.choice import current_posterior, warn_of_old_posterior

_COUNT = "a whole number of at least 1"
_EACH = "a whole number, or one for each layer"
_RULES: Rules = {
    "channels": (
        lambda value: isinstance(value, Sequence | np.ndarray) and widths(value),
        "whole numbers such as (32, 64)",
    ),
    "kernel_size": (widths, _EACH),
    "stride": (widths, _EACH),
    "pool": (widths, _EACH),
    "hidden_layer_sizes": (widths, "widths such as (32,), or ()"),
    "batch_size": (count, _COUNT),
    "max_epochs": (count, _COUNT),
    "learning_rate_init": (positive, "a positive number"),
    "n_draws": (count, _COUNT),
    "augment": (lambda value: value is None or callable(value), "a function of a batch, or None"),
}


def check_image_params(params: dict[str, Any]) -> None:
    """Refuses values that no fit can use, with the parameter's name and its rule."""
    linear = families.activations(piecewise_linear=True)
    activation = (one_of(*linear), f"one of {', '.join(linear)}")
    for name, (rule, expected) in {"activation": activation, **_RULES}.items():
        if not rule(params[name]):
            raise ValueError(f"Got {name}={params[name]!r}, expected {expected}.")
    engine_choice(params)
    warn_of_old_posterior(params["posterior"])


def engine_choice(params: dict[str, Any]) -> EngineChoice:
    """The torch engine on the chosen device."""
    return EngineChoice("torch", current_posterior(params["posterior"]), params["device"])
