"""The regressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from islab.estimators.base import ISLaBEstimator, Model
from islab.estimators.draws import by_rows
from islab.estimators.table import checked_table
from islab.estimators.target import (
    checked_levels,
    checked_numbers,
    interval_levels,
    output_names,
)

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]


class ISLaBRegressor(RegressorMixin, ISLaBEstimator):
    """Bayesian neural network that keeps few weights and explains each predicted number.

    Parameters
    ----------
    likelihood : {"gaussian", "poisson"}
        Real targets with noise of a learned size, or counts.
    hidden_layer_sizes : "auto" or tuple of int
        Widths of the hidden layers to start from; ``()`` for a linear model.
    activation : "auto", "leaky_relu", "relu", "identity", "sigmoid" or "tanh"
        Local explanations are exact for the first three.
    posterior : {"lrt", "flow"}
        Independent weights, or weights tied by a normalizing flow (needs torch).
    input_skip : bool
        Whether covariates enter every layer or only the first.
    sparsity : "auto" or float
        From 0, the most accurate network, to 1, the one that is easiest to read.
    prior_inclusion, prior_scale : "auto" or float
        Prior probability that a weight is needed, and standard deviation of such a weight; a
        number fixes what is otherwise learned from the data.
    inclusion_init : "auto", str or (low, high)
        Where the inclusion parameters, logits of the probabilities, start: a keyword such as
        "dense" or "sparse", or bounds.
    batch_size : "auto" or int
    learning_rate_init : "auto" or float
        Adam's highest rate.
    max_epochs : "auto" or int
        Passes over the data to train each network.
    n_restarts : "auto" or int
        Networks to train; the one with the highest ELBO stays.
    n_draws : int
        Draws of the model behind each prediction.
    missing : {"impute", "error"}
        What to do with missing values. Imputed numbers get the mean and a covariate that says
        so; missing text is a level.
    shrink : bool
        Drop dead hidden units while training.
    early_stopping : bool
        End a stage when the ELBO no longer rises. No data are held out.
    engine : {"auto", "native", "torch"}
    device : str
        "cpu", or a device of torch.
    n_jobs : int, optional
        Networks to train at the same time.
    random_state : int, RandomState instance or None
        Same number, same model. Predictions are the same each time in any case.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    network_ : SparseNetwork
        The median network: predicts, and can be read.
    posterior_ : Posterior
        All weights; None if the model comes from a sparse file.
    n_used_weights_ : int
    elbo_ : float
    history_ : History
    columns_ : ColumnEncoder
        How tables become covariates.
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : (columns,)
        If the training table had names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = ISLaBRegressor(max_epochs=50, n_restarts=1, random_state=0).fit(X, y)
    >>> model.predict_interval(X, level=0.9).shape
    (442, 2)
    """

    n_outputs_: int
    _flat: bool  # whether y was (rows,)

    def __init__(
        self,
        *,
        likelihood: str = "gaussian",
        hidden_layer_sizes: Any = "auto",
        activation: str = "auto",
        posterior: str = "lrt",
        input_skip: bool = True,
        sparsity: Any = "auto",
        prior_inclusion: Any = "auto",
        prior_scale: Any = "auto",
        inclusion_init: Any = "auto",
        batch_size: Any = "auto",
        learning_rate_init: Any = "auto",
        max_epochs: Any = "auto",
        n_restarts: Any = "auto",
        n_draws: int = 1000,
        missing: str = "impute",
        shrink: bool = True,
        early_stopping: bool = False,
        engine: str = "auto",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            hidden_layer_sizes=hidden_layer_sizes,
            activation=activation,
            posterior=posterior,
            input_skip=input_skip,
            sparsity=sparsity,
            prior_inclusion=prior_inclusion,
            prior_scale=prior_scale,
            inclusion_init=inclusion_init,
            batch_size=batch_size,
            learning_rate_init=learning_rate_init,
            max_epochs=max_epochs,
            n_restarts=n_restarts,
            n_draws=n_draws,
            missing=missing,
            shrink=shrink,
            early_stopping=early_stopping,
            engine=engine,
            device=device,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.likelihood = likelihood

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ISLaBRegressor:
        """Learns from rows and their targets.

        Parameters
        ----------
        X : DataFrame or (rows, columns)
            Numbers, truth values, text and categories; missing values are welcome.
        y : (rows,) or (rows, outputs)
        sample_weight : (rows,), optional
            How often each row counts.
        """
        self._check_params()
        table = checked_table(self, X, reset=True)
        values = checked_numbers(self, y, table, self.likelihood)
        weight = self._checked_weight(sample_weight, table)
        target = values.reshape(len(values), -1)
        self._learn(
            table,
            target,
            likelihood=self.likelihood,
            outputs=output_names(y, target.shape[1]),
            sample_weight=weight,
            table_weight=weight,
        )
        self.n_outputs_ = target.shape[1]
        self._flat = values.ndim == 1
        return self

    def predict(
        self, X: Any, return_std: bool = False, *, model: Model | None = None
    ) -> Float | tuple[Float, Float]:
        """Expected target of each row, (rows,) or (rows, outputs).

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        return_std : bool
            Return also the standard deviation of the target, noise included.
        model : {"full", "median"}, optional
            Average over the full posterior, which is the default and the better calibrated, or
            over the median network, which is the one that pictures and explanations show. A file
            saved with ``sparse=True`` holds the median network only.
        """
        covariates = self._covariates(X)
        noise = self.network_.noise_in_units()

        def moments(rows: Float) -> tuple[Float, Float]:
            draws = self._draw(rows, model)
            total = self._likelihood.uncertainty(draws, noise).total
            return self._likelihood.predictive_mean(draws), np.sqrt(total)

        mean, sd = zip(*by_rows(covariates, self._numbers_per_row(), moments), strict=True)
        if return_std:
            return self._shaped(np.concatenate(mean)), self._shaped(np.concatenate(sd))
        return self._shaped(np.concatenate(mean))

    def predict_quantiles(self, X: Any, levels: ArrayLike, *, model: Model | None = None) -> Float:
        """Quantiles of each row's target, noise included, (rows, levels).

        With targets (rows, outputs) in training they are (rows, outputs, levels).
        """
        levels = checked_levels(levels)
        noise = self.network_.noise_in_units()
        covariates = self._covariates(X)
        parts = by_rows(
            covariates,
            self._numbers_per_row(),
            lambda rows: self._likelihood.predictive_quantiles(
                self._draw(rows, model), noise, levels
            ),
        )
        return self._shaped(np.moveaxis(np.concatenate(parts, axis=1), 0, -1))

    def predict_interval(self, X: Any, level: float = 0.9, *, model: Model | None = None) -> Float:
        """Lower and upper end of a central predictive interval, (rows, 2).

        With targets (rows, outputs) in training it is (rows, outputs, 2).
        """
        return self.predict_quantiles(X, interval_levels(level), model=model)

    def residuals(self, X: Any, y: ArrayLike, *, model: Model | None = None) -> pd.DataFrame:
        """How far each target lies from its prediction.

        Returns
        -------
        DataFrame
            ``output``, ``observed``, ``predicted``, ``sd`` of the prediction, ``residual``
            (observed - predicted) and ``standardised`` (residual / sd).
        """
        import pandas as pd

        predicted, sd = self.predict(X, return_std=True, model=model)
        observed = checked_numbers(self, y, predicted, self.likelihood)
        if observed.size != predicted.size:
            raise ValueError(
                f"Got y of shape {observed.shape}, expected {predicted.shape}: as in training."
            )
        observed = observed.reshape(predicted.shape)
        residual = observed - predicted
        outputs = np.array(self.network_.units.outputs, dtype=object)
        return pd.DataFrame(
            {
                "output": np.tile(outputs, len(predicted)),
                "observed": observed.ravel(),
                "predicted": predicted.ravel(),
                "sd": sd.ravel(),
                "residual": residual.ravel(),
                "standardised": (residual / sd).ravel(),
            }
        )

    def _shaped(self, values: Float) -> Float:
        return values[:, 0] if self._flat else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        counts = self.likelihood == "poisson"
        tags.target_tags.positive_only = counts
        # Real numbers between 1 and 6, read as counts, say little: their noise is large.
        tags.regressor_tags.poor_score = counts
        return tags
