"""What the estimators' parameters mean for a recipe, and which values they may have."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf
from numbers import Integral
from typing import Any

from islab.core import families
from islab.core.posterior import Initial, inclusion_bounds
from islab.estimators.constraints import valid_constraints
from islab.estimators.parameter_checks import (
    Rules,
    auto,
    count,
    flag,
    one_of,
    positive,
    real,
    widths,
)
from islab.estimators.sampling import POSTERIORS
from islab.learn.engines import EngineChoice
from islab.learn.engines.choice import current_posterior, warn_of_old_posterior
from islab.learn.engines.flows import KINDS
from islab.learn.recipe import Recipe, default_recipe
from islab.learn.stage import Plateau, Stage
from islab.tables.columns import MISSING

NEVER = inf
MOST_DRAWS = 1_000_000
ON_INTERRUPT = ("auto", "raise", "keep")


def make_recipe(
    params: dict[str, Any],
    n_rows: int,
    n_classes: int = 0,
    n_covariates: int = 1,
    n_outputs: int = 1,
) -> Recipe:
    """The default recipe for data of this size with the user's parameters in it.

    Parameters
    ----------
    params : dict
        Of an estimator, checked.
    n_rows : int
    n_classes : int
        0 unless the target is categorical.
    n_covariates, n_outputs : int
    """
    options: dict[str, Any] = {"sparsity": params["sparsity"]}
    if not isinstance(params["hidden_layer_sizes"], str):
        options["hidden"] = hidden_widths(params["hidden_layer_sizes"])
    recipe = default_recipe(n_rows, n_classes, n_covariates, n_outputs, **options)
    if params["activation"] != "auto":
        recipe = replace(recipe, activation=params["activation"])
    if params["n_restarts"] != "auto":
        recipe = replace(recipe, n_restarts=params["n_restarts"])
    if not params["input_skip"]:
        # A linear model has covariates in its output layer, which such a network has not.
        recipe = replace(recipe, linear=None, network=replace(recipe.network, linear_ends=False))
    stages: dict[str, Any] = {
        name: _stage(stage, recipe.network, params, n_rows)
        for name in ("linear", "network", "refine", "flow")
        if (stage := getattr(recipe, name)) is not None
    }
    if recipe.prune is not None:
        stage = _stage(recipe.prune.stage, recipe.network, params, n_rows)
        stages["prune"] = replace(recipe.prune, stage=stage)
    return replace(
        recipe,
        input_skip=params["input_skip"],
        initial=_initial(recipe.initial, params),
        linear_initial=_initial(recipe.linear_initial, params),
        **stages,
    )


def engine_choice(params: dict[str, Any]) -> EngineChoice:
    """What computes."""
    posterior, options = current_posterior(params["posterior"]), {}
    if posterior in ("auto", "sampled"):
        # Chains start from what independent weights find.
        posterior = "independent"
    if posterior == "flow":
        options = {"flow": params["flow"], "n_transforms": int(params["n_transforms"])}
    return EngineChoice(params["engine"], posterior, params["device"], options)


def keeps_interrupted(on_interrupt: str, verbose: bool) -> bool:
    """Whether a fit that is interrupted keeps the best model so far.

    Unless it is asked for, only where a person watches a progress bar and presses Ctrl-C.
    """
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    return on_interrupt == "keep" or (on_interrupt == "auto" and bool(verbose) and interactive)


def hidden_widths(sizes: Any) -> tuple[int, ...]:
    """Widths of the hidden layers from a number or a sequence of them."""
    return (int(sizes),) if isinstance(sizes, Integral) else tuple(int(size) for size in sizes)


def check_params(params: dict[str, Any], rules: Rules | None = None) -> None:
    """Refuses values that no fit can use, with the parameter's name and its rule.

    Parameters
    ----------
    params : dict
        Of an estimator.
    rules : dict, optional
        For parameters of its own: a test of the value, and what is expected in words.
    """
    for name, (rule, expected) in {**_RULES, **_family_rules(), **(rules or {})}.items():
        if name in params and not rule(params[name]):
            raise ValueError(f"Got {name}={params[name]!r}, expected {expected}.")
    if params.get("inclusion_init", "auto") != "auto":
        inclusion_bounds(params["inclusion_init"])
    if "engine" in params:
        engine_choice(params)
        warn_of_old_posterior(params["posterior"])


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
    if params["slab_df"] is not None:
        changes["df"] = float(params["slab_df"])
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


def _family_rules() -> Rules:
    """Rules of parameters that name families, which may be registered at any time."""
    activations = families.activations()
    likelihoods = families.likelihoods("numbers", "counts")
    return {
        "activation": (auto(one_of(*activations)), f"'auto' or one of {', '.join(activations)}"),
        "likelihood": (one_of(*likelihoods), " or ".join(map(repr, likelihoods))),
    }


def _inclusion(value: Any) -> bool:
    pair = isinstance(value, Sequence) and len(value) == 2 and all(map(real, value))
    return isinstance(value, str) or pair


_COUNT = "'auto' or a whole number of at least 1"
_POSITIVE = "'auto' or a positive number"
_FLAG = "True or False"
_RULES: Rules = {
    "hidden_layer_sizes": (auto(widths), "'auto' or widths such as (20, 20), or () for none"),
    "input_skip": (flag, _FLAG),
    "sparsity": (
        auto(lambda value: real(value) and 0 <= value <= 1),
        "'auto' or a number from 0, the most accurate network, to 1, the easiest to read",
    ),
    "prior_inclusion": (
        auto(lambda value: real(value) and 0 < value < 1),
        "'auto' or a number between 0 and 1",
    ),
    "prior_scale": (auto(positive), _POSITIVE),
    "slab_df": (
        lambda value: value is None or positive(value),
        "None for a Gaussian slab, or a positive number of degrees of freedom such as 3",
    ),
    "posterior": (
        one_of(*POSTERIORS, "lrt"),
        f"one of {', '.join(POSTERIORS)}",
    ),
    "constraints": (
        valid_constraints,
        "None or a dict such as {'age': 'increasing', 'id': 'exclude'}",
    ),
    "flow": (one_of(*KINDS), f"one of {', '.join(KINDS)}"),
    "n_transforms": (count, "a whole number of at least 1"),
    "inclusion_init": (_inclusion, "'auto', a keyword such as 'dense', or (low, high)"),
    "batch_size": (auto(count), _COUNT),
    "learning_rate_init": (auto(positive), _POSITIVE),
    "max_epochs": (auto(count), _COUNT),
    "n_restarts": (auto(count), _COUNT),
    "n_draws": (
        lambda value: count(value) and value <= MOST_DRAWS,
        f"a whole number from 1 to {MOST_DRAWS}; 1000 is plenty",
    ),
    "missing": (one_of(*MISSING), f"one of {', '.join(MISSING)}"),
    "shrink": (flag, _FLAG),
    "early_stopping": (flag, _FLAG),
    "checkpoint": (
        lambda value: value is None or (isinstance(value, str | os.PathLike) and str(value) != ""),
        "None or the path of a folder",
    ),
    "on_interrupt": (one_of(*ON_INTERRUPT), f"one of {', '.join(ON_INTERRUPT)}"),
}
