"""What the estimators' parameters mean for a recipe, and which values they may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf
from numbers import Integral, Real
from typing import Any

import numpy as np

from islab.architecture import ACTIVATIONS
from islab.columns import MISSING
from islab.engines import EngineChoice
from islab.posterior import Initial, inclusion_bounds
from islab.recipe import Recipe, default_recipe
from islab.training import Plateau, Stage

NEVER = inf
MOST_DRAWS = 1_000_000


def make_recipe(params: dict[str, Any], n_rows: int, n_classes: int) -> Recipe:
    """The default recipe for data of this size with the user's wishes in it.

    Parameters
    ----------
    params : dict
        Of an estimator, checked.
    n_rows : int
    n_classes : int
        0 unless the target is categorical.
    """
    options: dict[str, Any] = {"sparsity": params["sparsity"]}
    if not isinstance(params["hidden_layer_sizes"], str):
        options["hidden"] = hidden_widths(params["hidden_layer_sizes"])
    recipe = default_recipe(n_rows, n_classes, **options)
    if params["activation"] != "auto":
        recipe = replace(recipe, activation=params["activation"])
    if params["n_restarts"] != "auto":
        recipe = replace(recipe, n_restarts=params["n_restarts"])
    stages: dict[str, Any] = {
        name: _stage(stage, recipe.network, params, n_rows)
        for name in ("linear", "network", "refine")
        if (stage := getattr(recipe, name)) is not None
    }
    return replace(
        recipe,
        input_skip=params["input_skip"],
        initial=_initial(recipe.initial, params),
        linear_initial=_initial(recipe.linear_initial, params),
        **stages,
    )


def engine_choice(params: dict[str, Any]) -> EngineChoice:
    """What computes."""
    return EngineChoice(params["engine"], params["posterior"], params["device"])


def hidden_widths(sizes: Any) -> tuple[int, ...]:
    """Widths of the hidden layers from a number or a sequence of them."""
    return (int(sizes),) if isinstance(sizes, Integral) else tuple(int(size) for size in sizes)


def check_params(params: dict[str, Any]) -> None:
    """Refuses values that no fit can use, with the parameter's name and its rule."""
    for name, (rule, expected) in _RULES.items():
        if name in params and not rule(params[name]):
            raise ValueError(f"Got {name}={params[name]!r}, expected {expected}.")
    if params["inclusion_init"] != "auto":
        inclusion_bounds(params["inclusion_init"])
    engine_choice(params)


def _stage(stage: Stage, network: Stage, params: dict[str, Any], n_rows: int) -> Stage:
    """A stage of the recipe as the user wants it.

    The user's epochs and learning rate are those of the network's stage; the other stages keep
    their proportion to it.
    """
    changes: dict[str, Any] = {}
    batch = stage.batch_size
    if params["batch_size"] != "auto":
        batch = changes["batch_size"] = min(int(params["batch_size"]), n_rows)
    if params["max_epochs"] != "auto":
        steps = params["max_epochs"] * ceil(n_rows / batch)
        changes["n_steps"] = max(1, round(steps * stage.n_steps / network.n_steps))
    if params["learning_rate_init"] != "auto":
        factor = params["learning_rate_init"] / network.rate
        changes["rate"] = stage.rate * factor
        changes["lambda_rate"] = stage.lambda_rate * factor
    learn = stage.empirical_bayes
    for parameter, name in (("prior_inclusion", "psi"), ("prior_scale", "tau")):
        if params[parameter] != "auto":
            changes[name] = float(params[parameter])
            fixed: dict[str, Any] = {f"{name}_from": NEVER}
            learn = learn and replace(learn, **fixed)
    if not params["shrink"]:
        changes["shrink"] = None
    if params["early_stopping"]:
        changes["plateau"] = Plateau()
    return replace(stage, empirical_bayes=learn, **changes)


def _initial(initial: Initial, params: dict[str, Any]) -> Initial:
    inclusion = params["inclusion_init"]
    if inclusion == "auto":
        return initial
    return replace(initial, covariate_inclusion=inclusion, hidden_inclusion=inclusion)


def _auto(rule: Any) -> Any:
    return lambda value: (isinstance(value, str) and value == "auto") or rule(value)


def _count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _positive(value: Any) -> bool:
    return _real(value) and 0 < value < inf


def _real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _widths(value: Any) -> bool:
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return all(_count(width) for width in value)
    return _count(value)


def _inclusion(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Sequence) and len(value) == 2)


def _one_of(*known: str) -> Any:
    return lambda value: isinstance(value, str) and value in known


_COUNT = "'auto' or a whole number of at least 1"
_POSITIVE = "'auto' or a positive number"
_FLAG = "True or False"
_RULES: dict[str, tuple[Any, str]] = {
    "hidden_layer_sizes": (_auto(_widths), "'auto' or widths such as (20, 20), or () for none"),
    "activation": (_auto(_one_of(*ACTIVATIONS)), f"'auto' or one of {', '.join(ACTIVATIONS)}"),
    "input_skip": (_flag, _FLAG),
    "sparsity": (
        _auto(lambda value: _real(value) and 0 <= value <= 1),
        "'auto' or a number from 0, the most accurate network, to 1, the easiest to read",
    ),
    "prior_inclusion": (
        _auto(lambda value: _real(value) and 0 < value < 1),
        "'auto' or a number between 0 and 1",
    ),
    "prior_scale": (_auto(_positive), _POSITIVE),
    "inclusion_init": (_inclusion, "'auto', a keyword such as 'dense', or (low, high)"),
    "batch_size": (_auto(_count), _COUNT),
    "learning_rate_init": (_auto(_positive), _POSITIVE),
    "max_epochs": (_auto(_count), _COUNT),
    "n_restarts": (_auto(_count), _COUNT),
    "n_draws": (
        lambda value: _count(value) and value <= MOST_DRAWS,
        f"a whole number from 1 to {MOST_DRAWS}; 1000 is plenty",
    ),
    "missing": (_one_of(*MISSING), f"one of {', '.join(MISSING)}"),
    "shrink": (_flag, _FLAG),
    "early_stopping": (_flag, _FLAG),
    "likelihood": (_one_of("gaussian", "poisson"), "'gaussian' or 'poisson'"),
}
