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
from islab.core.architecture import Architecture
from islab.core.posterior import Initial, inclusion_bounds
from islab.estimators.blocks import SOURCES, Place, by_block, dense_places, valid_blocks
from islab.estimators.constraints import valid_constraints
from islab.estimators.parameter_checks import (
    Rules,
    auto,
    count,
    flag,
    one_of,
    one_or_each,
    positive,
    real,
    widths,
)
from islab.estimators.sampling import POSTERIORS
from islab.estimators.training import Training, check_training, valid_training
from islab.learn.engines import EngineChoice
from islab.learn.engines.choice import current_posterior, warn_of_old_posterior
from islab.learn.engines.flows import KINDS
from islab.learn.recipe import Recipe, default_recipe, paper_recipe
from islab.learn.stage import Plateau, Stage
from islab.tables.columns import MISSING

NEVER = inf
PAPER_EPOCHS = 200
REFINE_STEP = 0.2  # of the network's learning rate
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
    training = Training.of(params["training"])
    if training.recipe == "paper":
        recipe = _paper(recipe, params, n_rows)
    if params["activation"] != "auto":
        net = Architecture(n_covariates, recipe.hidden, n_outputs, activation=params["activation"])
        recipe = replace(recipe, activation=net.activation)
    if params["n_restarts"] != "auto":
        recipe = replace(recipe, n_restarts=params["n_restarts"])
    if not params["input_skip"]:
        # A linear model has covariates in its output layer, which such a network has not.
        recipe = replace(recipe, linear=None, network=replace(recipe.network, linear_ends=False))
    places = dense_places(recipe.hidden, params["input_skip"])
    stages: dict[str, Any] = {
        name: _stage(stage, recipe.network, params, n_rows, places)
        for name in ("network", "flow")
        if (stage := getattr(recipe, name)) is not None
    }
    if recipe.linear is not None:
        # It stands in for the output layer's covariate weights.
        own = _stage(recipe.linear, recipe.network, params, n_rows, places)
        stages["linear"] = _of_block(own, places.index((len(recipe.hidden), "covariates")))
    if recipe.prune is not None:
        stage = _stage(recipe.prune.stage, recipe.network, params, n_rows, places)
        stages["prune"] = replace(recipe.prune, stage=stage)
    if training.refine:
        network = stages["network"]
        n_steps = training.refine * ceil(n_rows / network.batch_size)
        rate = REFINE_STEP * network.rate
        stages["refine"] = replace(network, n_steps=n_steps, rate=rate, linear_ends=False)
    return replace(
        recipe,
        input_skip=params["input_skip"],
        initial=_initial(recipe.initial, params, training),
        linear_initial=_initial(recipe.linear_initial, params, training),
        threshold=float(params["threshold"]),
        noise=training.noise,
        **stages,
    )


def _paper(recipe: Recipe, params: dict[str, Any], n_rows: int) -> Recipe:
    """The paper's recipe for a network and batches of the same sizes."""
    batch = recipe.network.batch_size
    if params["batch_size"] != "auto":
        batch = min(int(params["batch_size"]), n_rows)
    return paper_recipe(
        hidden=recipe.hidden,
        n_steps=PAPER_EPOCHS * ceil(n_rows / batch),
        batch_size=batch,
        rate=0.01,
        tau=1.0,
        psi=0.1,
        covariate_inclusion=(5.0, 5.0),
        hidden_inclusion=(-9.0, -5.0),
    )


def engine_choice(params: dict[str, Any]) -> EngineChoice:
    """What computes."""
    posterior, options = current_posterior(params["posterior"]), {}
    if posterior in ("auto", "sampled", "stacked"):
        # Chains start from what independent weights find; the same is stacked.
        posterior = "independent"
    if posterior == "flow":
        options = {"flow": params["flow"], "n_transforms": int(params["n_transforms"])}
        # Linear models have no such parameter.
        width = Training.of(params.get("training", "auto")).flow_width
        options |= {} if width is None else {"flow_width": int(width)}
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
    inclusion = params.get("inclusion_init", "auto")
    for own in inclusion.values() if isinstance(inclusion, dict) else (inclusion,):
        if own != "auto":
            inclusion_bounds(own)
    check_training(params.get("training", "auto"))
    if "engine" in params:
        engine_choice(params)
        warn_of_old_posterior(params["posterior"])


def _stage(
    stage: Stage, network: Stage, params: dict[str, Any], n_rows: int, places: list[Place]
) -> Stage:
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
        if not isinstance(params[parameter], str):
            own = by_block(parameter, params[parameter], places, getattr(stage, name))
            changes[name] = own.values if len(set(own.values)) > 1 else own.values[0]
            fixed: dict[str, Any] = {f"{name}_fixed": own.given}
            if all(own.given):
                fixed = {f"{name}_from": NEVER}
            learn = learn and replace(learn, **fixed)
    if params["slab_df"] is not None:
        changes["df"] = float(params["slab_df"])
    if not params["shrink"]:
        changes["shrink"] = None
    if params["early_stopping"]:
        changes["plateau"] = Plateau()
    share = stage.lambda_rate / network.lambda_rate
    changed = replace(stage, empirical_bayes=learn, **changes)
    return Training.of(params["training"]).stage(changed, share)


def _of_block(stage: Stage, block: int) -> Stage:
    """A stage of a network that has nothing but this block."""
    learn = stage.empirical_bayes
    for name in ("tau", "psi"):
        value = getattr(stage, name)
        if isinstance(value, tuple):
            stage = replace(stage, **{name: value[block]})  # type: ignore[arg-type]
        fixed = getattr(learn, f"{name}_fixed", ())
        if learn is not None and fixed:
            never: dict[str, Any] = {f"{name}_from": NEVER} if fixed[block] else {}
            learn = replace(learn, **{f"{name}_fixed": ()}, **never)  # type: ignore[arg-type]
    return replace(stage, empirical_bayes=learn)


def _initial(initial: Initial, params: dict[str, Any], training: Training) -> Initial:
    inclusion = params["inclusion_init"]
    if inclusion != "auto":
        own = inclusion if isinstance(inclusion, dict) else dict.fromkeys(SOURCES, inclusion)
        initial = replace(
            initial,
            covariate_inclusion=own.get("covariates", initial.covariate_inclusion),
            hidden_inclusion=own.get("hidden", initial.hidden_inclusion),
        )
    return training.initial(initial)


def _family_rules() -> Rules:
    """Rules of parameters that name families, which may be registered at any time."""
    activations = families.activations()
    likelihoods = families.likelihoods("numbers", "counts")
    return {
        "activation": (
            auto(one_or_each(*activations)),
            f"'auto', one of {', '.join(activations)}, or one for each hidden layer such as "
            "('tanh', 'relu')",
        ),
        "likelihood": (one_of(*likelihoods), " or ".join(map(repr, likelihoods))),
    }


def _inclusion(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(k in SOURCES and _inclusion(v) for k, v in value.items())
    pair = isinstance(value, Sequence) and len(value) == 2 and all(map(real, value))
    return isinstance(value, str) or pair


_COUNT = "'auto' or a whole number of at least 1"
_POSITIVE = "'auto' or a positive number"
_FLAG = "True or False"
_BY_BLOCK = "or a dict of them such as {'hidden': 0.1, (0, 'covariates'): 0.5}"
_RULES: Rules = {
    "hidden_layer_sizes": (auto(widths), "'auto' or widths such as (20, 20), or () for none"),
    "input_skip": (flag, _FLAG),
    "sparsity": (
        auto(lambda value: real(value) and 0 <= value <= 1),
        "'auto' or a number from 0, the most accurate network, to 1, the easiest to read",
    ),
    "prior_inclusion": (
        auto(valid_blocks(lambda value: real(value) and 0 < value < 1)),
        f"'auto' or a number between 0 and 1, {_BY_BLOCK}",
    ),
    "prior_scale": (auto(valid_blocks(positive)), f"{_POSITIVE}, {_BY_BLOCK}"),
    "training": (
        valid_training,
        "'auto', 'paper', or a dict such as {'recipe': 'paper', 'inclusion_rate': 0.1}",
    ),
    "threshold": (
        lambda value: real(value) and 0 <= value < 1,
        "a probability from 0 to below 1; try 0.5",
    ),
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
    "inclusion_init": (
        _inclusion,
        "'auto', a keyword such as 'dense', (low, high), or a dict of them for 'covariates' and "
        "'hidden'",
    ),
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
