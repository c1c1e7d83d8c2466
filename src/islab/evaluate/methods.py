"""Methods by name, each made when it is asked for: some need packages that are not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from islab.core import families

TASKS = ("classification", "regression", "counts")


@dataclass(frozen=True)
class Method:
    """Where a method is found."""

    meaning: str  # what it is, in a few words
    home: str  # module
    stem: str  # of its estimators' names, without ``Classifier`` or ``Regressor``
    params: dict[str, Any] = field(default_factory=dict)  # other than the estimators' defaults


_ISLAB, _BASELINES = "islab.estimators", "islab.baselines"
_FLOW = {"posterior": "flow"}

NETWORKS = {
    "islab": Method("input-skip network", _ISLAB, "ISLaB"),
    "islab-flow": Method("input-skip network, weights tied by a flow", _ISLAB, "ISLaB", _FLOW),
    "lbbnn": Method("the same without input skip", _ISLAB, "ISLaB", {"input_skip": False}),
    "islab-images": Method(
        "convolutional network with few weights, for images", f"{_ISLAB}.images", "ISLaBImage"
    ),
    "blr": Method("the same without hidden layers", _BASELINES, "BayesianLinear"),
    "blr-flow": Method("the same, weights tied by a flow", _BASELINES, "BayesianLinear", _FLOW),
    "l1-skip": Method("input-skip network with an L1 penalty", _BASELINES, "L1Skip"),
    "concrete-dropout": Method("network that learns its dropout", _BASELINES, "ConcreteDropout"),
    "horseshoe": Method("network with group horseshoe priors", _BASELINES, "Horseshoe"),
    "spam": Method("network pruned by its Laplace posterior", _BASELINES, "SpaM"),
}
REFERENCES = {
    "ridge": "linear or logistic regression with a ridge penalty",
    "lasso": "linear or logistic regression with an L1 penalty",
    "boosting": "gradient boosting of scikit-learn",
    "boosting-tuned": "the same, settings chosen by cross-validation",
    "forest": "random forest of 300 trees",
    "gp": "Gaussian process, at most 1,000 training rows",
    "ensemble": "deep ensemble of five networks",
    "ebm": "explainable boosting machine, needs interpret-core",
    "gam": "additive model of splines, needs pygam",
    "bart": "Bayesian additive regression trees, needs stochtree",
    "lassonet": "LassoNet, needs lassonet",
}
METHODS = {name: method.meaning for name, method in NETWORKS.items()} | REFERENCES
# Other names of the same method.
ALIASES = {"logistic": "ridge", "linear": "ridge"}
DEFAULT_METHODS = ("islab", "blr", "ridge", "lasso", "boosting")
IMAGE_METHODS = ("islab-images", "ridge", "boosting")


def check_names(names: Sequence[str]) -> None:
    """Refuses names of no method."""
    for name in names:
        if name not in METHODS and name not in ALIASES:
            near = get_close_matches(name, METHODS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"try one of {', '.join(METHODS)}"
            raise ValueError(f"Got method {name!r}, expected a known one; {hint}")


def method_name(name: str, task: str) -> str:
    """What a method is called in results: one name each."""
    known = name != "logistic" or task == "classification"
    return ALIASES.get(name, name) if known else name


def make_method(name: str, task: str) -> Any:
    """An estimator, not fitted.

    Parameters
    ----------
    name : str
        One of ``METHODS``.
    task : {"classification", "regression", "counts"}

    Raises
    ------
    ImportError
        If the method needs a package that is not installed.
    ValueError
        If it is of no use for the task.

    Examples
    --------
    >>> make_method("lbbnn", "regression")
    ISLaBRegressor(input_skip=False)
    """
    check_names([name])
    if task not in TASKS:
        raise ValueError(f"Got task={task!r}, expected one of {', '.join(TASKS)}.")
    return _network(name, task) if name in NETWORKS else _reference(name, task)


def _network(name: str, task: str) -> Any:
    method = NETWORKS[name]
    kind = "Classifier" if task == "classification" else "Regressor"
    try:
        estimator = getattr(import_module(method.home), method.stem + kind)
    except AttributeError as error:
        raise ImportError(f"{method.stem}{kind} is not part of this installation.") from error
    params = dict(method.params)
    if task == "counts":
        if "likelihood" not in estimator().get_params():
            raise ValueError(f"{name} has no likelihood for counts; try task 'regression'.")
        params["likelihood"] = families.likelihoods("counts")[0]
    return estimator(**params)


def _reference(name: str, task: str) -> Any:
    from islab.baselines.peers import make_peer
    from islab.baselines.references import ReferenceClassifier, ReferenceRegressor

    if task == "counts":
        raise ValueError(f"{name} has no likelihood for counts; try task 'regression'.")
    if name == "logistic" and task == "regression":
        raise ValueError("logistic regression predicts classes, not numbers; try 'ridge'.")
    inner = make_peer(method_name(name, task), task)
    return ReferenceClassifier(inner) if task == "classification" else ReferenceRegressor(inner)
