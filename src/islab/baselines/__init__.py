"""The paper's other methods, with the same interface as ISLaB."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from islab.io.kinds import register

# Imported when first asked for.
_HOMES = {
    "BayesianLinearClassifier": "linear",
    "BayesianLinearRegressor": "linear",
    "L1SkipClassifier": "l1",
    "L1SkipRegressor": "l1",
    "ConcreteDropoutClassifier": "concrete",
    "ConcreteDropoutRegressor": "concrete",
    "HorseshoeClassifier": "horseshoe",
    "HorseshoeRegressor": "horseshoe",
    "SpaMClassifier": "spam",
    "SpaMRegressor": "spam",
}

__all__ = [*_HOMES]

register(
    {name: f"islab.baselines.{home}" for name, home in _HOMES.items()},
    state="islab.estimators.state",
)


def __getattr__(name: str) -> Any:
    if name == "ESTIMATORS":
        return tuple(__getattr__(home) for home in _HOMES)
    if name in _HOMES:
        return getattr(import_module(f"islab.baselines.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'islab.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "ESTIMATORS"})
