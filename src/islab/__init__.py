"""Bayesian neural networks that learn their own structure and explain every prediction exactly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from islab.comparison import compare
    from islab.estimators import ISLaBClassifier, ISLaBRegressor
    from islab.explain import explain_global, explain_local
    from islab.features import FeatureExtractor
    from islab.images import ISLaBImageClassifier
    from islab.posterior import Posterior
    from islab.sparse import SparseNetwork
    from islab.store import load

__all__ = [
    "FeatureExtractor",
    "ISLaBClassifier",
    "ISLaBImageClassifier",
    "ISLaBRegressor",
    "Posterior",
    "SparseNetwork",
    "__version__",
    "compare",
    "explain_global",
    "explain_local",
    "load",
]

# Imported when first asked for, so that the command line starts at once.
_HOMES = {
    "FeatureExtractor": "islab.features",
    "ISLaBClassifier": "islab.estimators",
    "ISLaBImageClassifier": "islab.images",
    "ISLaBRegressor": "islab.estimators",
    "Posterior": "islab.posterior",
    "SparseNetwork": "islab.sparse",
    "compare": "islab.comparison",
    "explain_global": "islab.explain",
    "explain_local": "islab.explain",
    "load": "islab.store",
}
_MODULES = (
    "baselines",
    "datasets",
    "explain",
    "export",
    "features",
    "images",
    "metrics",
    "plots",
    "report",
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("islab-bnn")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"islab.{name}")
    raise AttributeError(f"module 'islab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
