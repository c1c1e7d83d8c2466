"""The methods of the paper, ready to be fitted."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from experiments.paper.names import METHODS, family
from experiments.paper.settings import CHOSEN, HIDDEN, PRUNED, STRENGTH, Setting, setting
from experiments.paper.tasks import Task

QUICK_EPOCHS = 5

# The images have many rows and wide networks; a mean over draws needs fewer of them there.
DRAWS = {"mnist": 100, "fer2013": 100}


def make_estimator(
    method: str, task: Task, recipe: str, seed: int, quick: bool = False, **changes: Any
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
    **changes
        Parameters of the estimator that shall be other than the recipe's.
    """
    maker = _MAKERS.get(method)
    if maker is None:
        raise ValueError(f"Got method={method!r}, expected one of {', '.join(METHODS)}.")
    return maker(task, recipe, seed, quick, changes)


def _spike_and_slab(posterior: str, linear: bool) -> Callable[..., Any]:
    def make(task: Task, recipe: str, seed: int, quick: bool, changes: dict[str, Any]) -> Any:
        own = {"posterior": posterior, "random_state": seed, **_draws(task)}
        if recipe == "paper":
            return _by_hand(task, posterior, linear, quick, {**own, **changes})
        if quick:
            own |= {"max_epochs": QUICK_EPOCHS} | ({} if linear else {"n_restarts": 1})
        if linear:
            return _baseline("BayesianLinear", task)(**{**own, **changes})
        from islab import ISLaBClassifier, ISLaBRegressor

        return (ISLaBClassifier if task.classes else ISLaBRegressor)(**{**own, **changes})

    return make


def _by_hand(task: Task, posterior: str, linear: bool, quick: bool, params: dict[str, Any]) -> Any:
    from experiments.paper.by_hand import HandTunedClassifier, HandTunedRegressor, recipe_of

    method = f"{'blr' if linear else 'islab'}-{posterior}"
    params = {
        "recipe": recipe_of(
            setting(task.name, method),
            () if linear else HIDDEN[family(task.name)],
            posterior,
            len(task.y_train),
            QUICK_EPOCHS if quick else None,
        ),
        **params,
    }
    return (HandTunedClassifier if task.classes else HandTunedRegressor)(**params)


def _with_hidden_layers(method: str, name: str) -> Callable[..., Any]:
    def make(task: Task, recipe: str, seed: int, quick: bool, changes: dict[str, Any]) -> Any:
        params: dict[str, Any] = {"random_state": seed, **_draws(task)}
        if recipe == "paper":
            tuned = setting(task.name, method)
            params |= {
                "hidden_layer_sizes": HIDDEN[family(task.name)],
                "activation": "sigmoid",
                "batch_size": ceil(len(task.y_train) / tuned.batches),
                "learning_rate_init": tuned.rate,
                "max_epochs": tuned.epochs,
                **_own_settings(method, task),
            }
            if method == "is-ann-l1":
                return _l1_by_hand(task, tuned, quick, {**params, **changes})
        if quick:
            params["max_epochs"] = QUICK_EPOCHS
        return _baseline(name, task)(**{**params, **changes})

    return make


def _own_settings(method: str, task: Task) -> dict[str, Any]:
    """What a method needs besides the training."""
    own: dict[str, Any] = {}
    if method == "laplace-spam":
        own = {"sparsity": PRUNED[family(task.name)]}
    return own | CHOSEN.get((family(task.name), method), {})


def _l1_by_hand(task: Task, tuned: Setting, quick: bool, params: dict[str, Any]) -> Any:
    from experiments.paper.by_hand import HandTunedL1Classifier, HandTunedL1Regressor, l1_training

    # The penalty stands beside the sum over a batch: of log losses, or of squared errors.
    penalty = STRENGTH / params["batch_size"] / (1 if task.classes else 2)
    params = {"zeros": "threshold", "penalty": penalty, **params}
    if quick:
        params["max_epochs"] = QUICK_EPOCHS
    estimator = (HandTunedL1Classifier if task.classes else HandTunedL1Regressor)(**params)
    estimator._training = l1_training(tuned)
    return estimator


def _draws(task: Task) -> dict[str, int]:
    return {"n_draws": DRAWS[task.name]} if task.name in DRAWS else {}


def _baseline(name: str, task: Task) -> Any:
    from islab import baselines

    full = f"{name}{'Classifier' if task.classes else 'Regressor'}"
    try:
        return getattr(baselines, full)
    except AttributeError as error:
        raise ImportError(f"This version of islab has no {full}.") from error


_MAKERS: dict[str, Callable[..., Any]] = {
    "islab-lrt": _spike_and_slab("lrt", linear=False),
    "islab-flow": _spike_and_slab("flow", linear=False),
    "blr-lrt": _spike_and_slab("lrt", linear=True),
    "blr-flow": _spike_and_slab("flow", linear=True),
    "is-ann-l1": _with_hidden_layers("is-ann-l1", "L1Skip"),
    "bnn-horse": _with_hidden_layers("bnn-horse", "Horseshoe"),
    "bnn-concrete": _with_hidden_layers("bnn-concrete", "ConcreteDropout"),
    "laplace-spam": _with_hidden_layers("laplace-spam", "SpaM"),
}
