"""What reports, files and commands need of a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from islab.core.sampled import SampledPosterior
from islab.core.sparse import SparseNetwork

if TYPE_CHECKING:
    import pandas as pd


class FittedModel(Protocol):
    """A fitted estimator, for the rooms that may not import estimators."""

    network_: SparseNetwork
    posterior_: SampledPosterior | Any
    columns_: Any
    history_: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def predictions(self, X: Any, *, n_draws: int | None = None) -> Any:
        """The rows encoded once, and the posterior drawn once."""

    def predict(self, X: Any, *, return_std: bool = False, model: str | None = None) -> Any: ...

    @property
    def predict_proba(self) -> Any:
        """Of classifiers only."""

    def predict_interval(self, X: Any, level: float = 0.9, *, model: str | None = None) -> Any: ...

    def summary(self, X: Any = None, y: Any = None, *, level: float = 0.95) -> Any: ...

    def explain_global(self, X: Any = None, **options: Any) -> Any: ...

    def explain_local(self, X: Any, **options: Any) -> Any: ...

    def outside_range(self, X: Any) -> pd.DataFrame: ...

    def report(self, path: Any, X: Any, y: Any = None, **options: Any) -> None: ...
