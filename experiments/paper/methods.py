"""The methods of the paper, ready to be fitted: those of `islab compare`, with its settings."""

from __future__ import annotations

from math import ceil
from typing import Any

from experiments.paper.settings import (
    CHOSEN,
    EVERY_METHOD,
    HIDDEN,
    PRUNED,
    SPIKE_AND_SLAB,
    STRENGTH,
    WEAKER,
    family,
    setting,
)
from experiments.paper.tasks import Task
from islab.evaluate import make_method

QUICK_EPOCHS = 5

# The images have many rows and wide networks; a mean over draws needs fewer of them there.
DRAWS = {"mnist": 100, "fer2013": 100}


def make_estimator(
    method: str,
    task: Task,
    recipe: str,
    seed: int,
    quick: bool = False,
    epochs: int | None = None,
    **changes: Any,
) -> Any:
    """The estimator of a cell, not yet fitted.

    Parameters
    ----------
    method : str
    task : Task
    recipe : {"paper", "default"}
    seed : int
    quick : bool
        A few epochs, to see that everything runs.
    epochs : int, optional
        Other than the recipe's.
    **changes
        Parameters of the estimator that shall be other than the recipe's.
    """
    if method not in EVERY_METHOD:
        raise ValueError(f"Got method={method!r}, expected one of {', '.join(EVERY_METHOD)}.")
    strength, method = (WEAKER[method], "l1-skip") if method in WEAKER else (STRENGTH, method)
    params: dict[str, Any] = {"random_state": seed}
    epochs = QUICK_EPOCHS if quick else epochs
    if task.name in DRAWS:
        params["n_draws"] = DRAWS[task.name]
    if recipe == "paper" and method in SPIKE_AND_SLAB:
        return _by_hand(method, task, epochs, {**params, **changes})
    if recipe == "paper":
        params |= _training(method, task)
    default = make_method(method, "classification" if task.classes else "regression")
    if "posterior" in default.get_params():
        params["posterior"] = posterior_of(method)
    if epochs is not None:
        params["max_epochs"] = epochs
    if quick:
        params |= {"n_restarts": 1} if "n_restarts" in default.get_params() else {}
    if recipe == "paper" and method == "l1-skip":
        return _l1_by_hand(task, strength, {**params, **changes})
    return default.set_params(**{**params, **changes})


def posterior_of(method: str) -> str:
    """Its kind of posterior, as the estimators' parameter says it: the paper's are variational."""
    return "flow" if method.endswith("-flow") else "independent"


def _by_hand(method: str, task: Task, epochs: int | None, params: dict[str, Any]) -> Any:
    from experiments.paper.hand_tuned import HandTunedClassifier, HandTunedRegressor, recipe_of

    posterior = posterior_of(method)
    recipe = recipe_of(
        setting(task.name, method),
        () if method.startswith("blr") else HIDDEN[family(task.name)],
        posterior,
        len(task.y_train),
        epochs,
    )
    kind = HandTunedClassifier if task.classes else HandTunedRegressor
    return kind(**{"recipe": recipe, "posterior": posterior, **params})


def _training(method: str, task: Task) -> dict[str, Any]:
    """What the paper says of the training, and what a method needs besides."""
    tuned, own = setting(task.name, method), {}
    if method == "spam":
        own = {"sparsity": PRUNED[family(task.name)]}
    return {
        "hidden_layer_sizes": HIDDEN[family(task.name)],
        "activation": "sigmoid",
        "batch_size": ceil(len(task.y_train) / tuned.batches),
        "learning_rate_init": tuned.rate,
        "max_epochs": tuned.epochs,
        **own,
        **CHOSEN.get((family(task.name), method), {}),
    }


def _l1_by_hand(task: Task, strength: float, params: dict[str, Any]) -> Any:
    from experiments.paper.hand_tuned import (
        HandTunedL1Classifier,
        HandTunedL1Regressor,
        l1_training,
    )

    # The penalty stands beside the sum over a batch: of log losses, or of squared errors.
    penalty = strength / params["batch_size"] / (1 if task.classes else 2)
    kind = HandTunedL1Classifier if task.classes else HandTunedL1Regressor
    estimator = kind(**{"zeros": "threshold", "penalty": penalty, **params})
    estimator._training = l1_training(setting(task.name, "l1-skip"))
    return estimator
