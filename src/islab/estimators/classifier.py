"""The classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from islab.estimators.base import ISLaBEstimator, Model
from islab.estimators.draws import by_rows
from islab.estimators.table import checked_table
from islab.estimators.target import checked_labels, checked_levels, interval_levels

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.floating]


class ISLaBClassifier(ClassifierMixin, ISLaBEstimator):
    """Bayesian neural network that keeps few weights and explains each class probability.

    Parameters
    ----------
    class_weight : dict or "balanced", optional
        Factors on the rows of each class, as in scikit-learn.
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
    classes_ : (classes,)
    network_ : SparseNetwork
        The median network: predicts, and can be read.
    posterior_ : Posterior
        All weights; None if the model comes from a sparse file.
    n_used_weights_ : int
    elbo_ : float
    history_ : History
    columns_ : ColumnEncoder
        How tables become covariates.
    n_features_in_ : int
    feature_names_in_ : (columns,)
        If the training table had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ISLaBClassifier(max_epochs=20, n_restarts=1, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    classes_: NDArray

    def __init__(
        self,
        *,
        class_weight: Any = None,
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
        self.class_weight = class_weight

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ISLaBClassifier:
        """Learns from rows and their classes.

        Parameters
        ----------
        X : DataFrame or (rows, columns)
            Numbers, truth values, text and categories; missing values are welcome.
        y : (rows,)
            Classes.
        sample_weight : (rows,), optional
            How often each row counts.
        """
        self._check_params()
        table = checked_table(self, X, reset=True)
        labels = checked_labels(self, y, table)
        check_classification_targets(labels)
        weight = self._checked_weight(sample_weight, table)
        counted = labels if weight is None else labels[weight > 0]
        classes = np.unique(counted)
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise ValueError(f"Got y with a single class, {only!r}, expected at least two classes.")
        # Rows of weight 0 may hold classes that no other row has; their codes do not matter.
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        target = (np.eye(len(classes)) if len(classes) > 2 else np.array([[0.0], [1.0]]))[codes]
        names = tuple(str(name) for name in classes)
        self._learn(
            table,
            target,
            likelihood="categorical" if len(classes) > 2 else "bernoulli",
            outputs=names if len(classes) > 2 else names[1:],
            sample_weight=self._with_class_weight(weight, labels),
            table_weight=weight,
        )
        self.classes_ = classes
        return self

    def _with_class_weight(self, weight: Float | None, labels: NDArray) -> Float | None:
        if self.class_weight is None:
            return weight
        factor = compute_sample_weight(self.class_weight, labels)
        return factor if weight is None else factor * weight

    def predict_proba(self, X: Any, *, model: Model | None = None) -> Float:
        """Probability of each class, averaged over draws of the model, (rows, classes).

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        model : {"full", "median"}, optional
            Average over the full posterior, which is the default and the better calibrated, or
            over the median network, which is the one that pictures and explanations show. A file
            saved with ``sparse=True`` holds the median network only.
        """
        covariates = self._covariates(X)
        parts = by_rows(
            covariates,
            self._numbers_per_row(),
            lambda rows: self._response(self._draw(rows, model)).mean(axis=0),
        )
        return np.concatenate(parts)

    def predict_log_proba(self, X: Any, *, model: Model | None = None) -> Float:
        """Logarithm of the class probabilities, (rows, classes)."""
        tiny = np.finfo(float).tiny
        return np.log(np.maximum(self.predict_proba(X, model=model), tiny))

    def predict(self, X: Any, *, model: Model | None = None) -> NDArray:
        """The most probable class of each row, (rows,)."""
        best = self.predict_proba(X, model=model).argmax(axis=1)
        return self.classes_[best]

    def predict_quantiles(self, X: Any, levels: ArrayLike, *, model: Model | None = None) -> Float:
        """Posterior quantiles of the class probabilities, (rows, classes, levels).

        They say how surely a probability is known. With two classes they are those of the
        second, (rows, levels).
        """
        levels = checked_levels(levels)
        covariates = self._covariates(X)
        parts = by_rows(
            covariates,
            self._numbers_per_row(),
            lambda rows: np.quantile(self._response(self._draw(rows, model)), levels, axis=0),
        )
        quantiles = np.moveaxis(np.concatenate(parts, axis=1), 0, -1)
        return quantiles[:, 1] if len(self.classes_) == 2 else quantiles

    def predict_interval(self, X: Any, level: float = 0.9, *, model: Model | None = None) -> Float:
        """Credible interval of the class probabilities, (rows, classes, 2).

        With two classes it is that of the second, (rows, 2).
        """
        return self.predict_quantiles(X, interval_levels(level), model=model)

    def residuals(self, X: Any, y: ArrayLike, *, model: Model | None = None) -> pd.DataFrame:
        """How each row's class was predicted.

        Returns
        -------
        DataFrame
            ``observed`` and ``predicted`` class, ``probability`` of the observed one,
            ``residual`` (1 - probability) and ``log_score`` (its negative log).
        """
        import pandas as pd

        probabilities = self.predict_proba(X, model=model)
        observed = checked_labels(self, y, probabilities)
        unknown = observed[~np.isin(observed, self.classes_)]
        if len(unknown):
            raise ValueError(
                f"Got class {unknown.tolist()[0]!r} in y, expected those of the training: "
                f"{', '.join(map(str, self.classes_))}."
            )
        rows = np.arange(len(observed))
        probability = probabilities[rows, np.searchsorted(self.classes_, observed)]
        return pd.DataFrame(
            {
                "observed": observed,
                "predicted": self.classes_[probabilities.argmax(axis=1)],
                "probability": probability,
                "residual": 1 - probability,
                "log_score": -np.log(np.maximum(probability, np.finfo(float).tiny)),
            }
        )

    def _response(self, draws: Float) -> Float:
        response = super()._response(draws)
        if response.shape[-1] > 1:
            return response
        return np.concatenate([1 - response, response], axis=-1)
