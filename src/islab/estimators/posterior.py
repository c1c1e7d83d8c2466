"""What every estimator does with draws of its networks: predictions, summary, files."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from islab.core.families import Uncertainty
from islab.estimators.drawn_rows import Model
from islab.estimators.predictions import Predictions
from islab.estimators.summary import Summary
from islab.learn.history import History

Float = NDArray[np.floating]


class PosteriorEstimator(BaseEstimator):
    """Predictions from draws, summary and files, whatever the network reads.

    A class that inherits says in ``_encoded`` how rows come to its network and in ``_predictions``
    what is predicted, and has the parameters ``n_draws`` and ``random_state``.
    """

    posterior_: Any
    network_: Any
    history_: History
    elbo_: float | None
    elbo_error_: float | None
    interrupted_: bool
    seed_: int
    n_draws: int
    random_state: Any

    def _new_seed(self) -> int:
        """What decides all random numbers of a fit and of its predictions."""
        checkpoint = getattr(self, "checkpoint", None)
        if checkpoint is not None and self.random_state is None:
            warnings.warn(
                "Got a checkpoint without a random_state: each fit has a seed of its own, and "
                "none continues another; try random_state=0.",
                UserWarning,
                stacklevel=4,
            )
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    # -- predicting -----------------------------------------------------------------------

    def predictions(self, X: Any, *, n_draws: int | None = None) -> Predictions:
        """All that the model predicts for these rows, encoded once and drawn once.

        Parameters
        ----------
        X : table or images, as in ``fit``
            Or what this method gave before, which comes back as it is: every method that takes
            rows to predict takes these too, and does not encode or draw them again.
        n_draws : int, optional
            As many as the estimator's ``n_draws`` if not given.

        Returns
        -------
        Predictions
            ``mean``, ``quantiles``, ``interval``, ``uncertainty``, ``log_score`` and ``samples``
            of the full model and of the median network.
        """
        check_is_fitted(self)
        if isinstance(X, Predictions):
            if X.network is not self.network_:
                raise ValueError("Got predictions of another model, expected rows; try the table.")
            return X if n_draws in (None, X.n_draws) else replace(X, n_draws=n_draws)
        n_draws = self.n_draws if n_draws is None else n_draws
        if n_draws < 1:
            raise ValueError(f"Got n_draws={n_draws}, expected at least 1; try {self.n_draws}.")
        return self._predictions(
            covariates=self._encoded(X),
            network=self.network_,
            posterior=self.posterior_,
            n_draws=n_draws,
            seed=self.seed_,
            ranges=self._ranges(),
        )

    def _ranges(self) -> Float | None:
        """Least and greatest value of each covariate in training, if rows have any."""
        return None

    def _encoded(self, X: Any) -> Any:
        """Rows to predict, checked, as the networks take them."""
        raise NotImplementedError

    def _predictions(self, **content: Any) -> Predictions:
        raise NotImplementedError

    def sample_posterior(
        self, X: Any, n_draws: int | None = None, *, model: Model | None = None
    ) -> Float:
        """Expected targets under coherent draws of the model, (draws, rows, outputs).

        Each draw is one network, the same for all rows: curves drawn from it are whole curves.
        The mean over draws is the prediction.

        Parameters
        ----------
        X : table or images, as in ``fit``
        n_draws : int, optional
            As many as the estimator's ``n_draws`` if not given.
        model : {"full", "median"}, optional
        """
        return self.predictions(X, n_draws=n_draws).samples(model)

    def decompose_uncertainty(self, X: Any, *, model: Model | None = None) -> Uncertainty:
        """Variance of each row's target, split into what stays and what more data would remove.

        Parameters
        ----------
        X : table or images, as in ``fit``
        model : {"full", "median"}, optional

        Returns
        -------
        Uncertainty
            ``aleatoric``, ``epistemic`` and their sum ``total``, each (rows, outputs).
        """
        return self.predictions(X).uncertainty(model)

    # -- reading --------------------------------------------------------------------------

    @property
    def n_used_weights_(self) -> int:
        """Weights on active paths of the median network."""
        check_is_fitted(self)
        return self.network_.n_used_weights

    def summary(self) -> Summary:
        """What the model uses and how surely, to print or to read."""
        check_is_fitted(self)
        return self._summary()

    def _summary(self) -> Summary:
        raise NotImplementedError

    # -- keeping and showing --------------------------------------------------------------

    def save(self, path: str | Path, *, sparse: bool = False) -> None:
        """Writes the model to one file; :func:`islab.load` reads it.

        Parameters
        ----------
        path : path
            Replaced in one move if it exists.
        sparse : bool
            Only the median network: a few kilobytes that predict and explain, without the full
            posterior.
        """
        from islab.io.store import save

        save(self, path, sparse=sparse)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._summary_html()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += self._summary_html()
        return bundle

    def _summary_html(self) -> str:
        return self.summary()._repr_html_() if self.__sklearn_is_fitted__() else ""
