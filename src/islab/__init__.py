"""Bayesian neural networks that learn their own structure and explain every prediction exactly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from islab.core.posterior import Posterior
    from islab.core.sparse import SparseNetwork
    from islab.estimators import ISLaBClassifier, ISLaBRegressor
    from islab.evaluate import compare
    from islab.explain import explain_global, explain_local
    from islab.features import FeatureExtractor
    from islab.images import ISLaBImageClassifier
    from islab.io.store import load
    from islab.tables.batches import Batches
    from islab.tables.check import check
    from islab.tables.columns import TableWarning

__all__ = [
    "Batches",
    "FeatureExtractor",
    "ISLaBClassifier",
    "ISLaBImageClassifier",
    "ISLaBRegressor",
    "Posterior",
    "SparseNetwork",
    "TableWarning",
    "__version__",
    "check",
    "compare",
    "explain_global",
    "explain_local",
    "load",
]

# Imported when first asked for, so that the command line starts at once.
_HOMES = {
    "Batches": "islab.tables.batches",
    "FeatureExtractor": "islab.features",
    "ISLaBClassifier": "islab.estimators",
    "ISLaBImageClassifier": "islab.images",
    "ISLaBRegressor": "islab.estimators",
    "Posterior": "islab.core.posterior",
    "SparseNetwork": "islab.core.sparse",
    "TableWarning": "islab.tables.columns",
    "check": "islab.tables.check",
    "compare": "islab.evaluate",
    "explain_global": "islab.explain",
    "explain_local": "islab.explain",
    "load": "islab.io.store",
}
_MODULES = (
    "baselines",
    "evaluate",
    "explain",
    "export",
    "features",
    "images",
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
