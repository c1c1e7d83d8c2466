"""What every classifier does with a distribution over networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from islab.core import families
from islab.estimators.base import LARGEST_WEIGHT, SMALLEST_WEIGHT, NetworkEstimator
from islab.estimators.drawn_rows import Model
from islab.estimators.posterior import PosteriorEstimator
from islab.estimators.predictions import ClassPredictions
from islab.estimators.streams import ClassTargets, Stream
from islab.tables.batches import is_batched, sampled_rows
from islab.tables.frames import all_or_nothing, checked_table, row_index
from islab.tables.targets import checked_labels, codes_of, interval_levels, levels_of

if TYPE_CHECKING:
    import pandas as pd

    from islab.core.certificate import Certificate

Float = NDArray[np.floating]


class PosteriorClassifier(ClassifierMixin, PosteriorEstimator):
    """Class probabilities from draws, whatever the network reads."""

    classes_: NDArray
    levels_: NDArray | None = None

    def predict_proba(self, X: Any, *, model: Model | None = None) -> Float:
        """Probability of each class, averaged over draws of the model, (rows, classes).

        Parameters
        ----------
        X : table or images, as in ``fit``
        model : {"full", "median"}, optional
            Average over the full posterior, which is the default and mostly predicts better, or
            over the median network, which is the one that the graph and exports show. A file
            saved with ``sparse=True`` holds the median network only.
        """
        return self.predictions(X).mean(model)

    def predict_log_proba(self, X: Any, *, model: Model | None = None) -> Float:
        """Logarithm of the class probabilities, (rows, classes)."""
        tiny = np.finfo(float).tiny
        return np.log(np.maximum(self.predict_proba(X, model=model), tiny))

    def predict(self, X: Any, *, model: Model | None = None) -> NDArray:
        """The most probable class of each row, (rows,)."""
        return self.predictions(X).predicted(model)

    def predict_quantiles(self, X: Any, levels: ArrayLike, *, model: Model | None = None) -> Float:
        """Posterior quantiles of the class probabilities, (rows, classes, levels).

        They show how precisely a probability is known. With two classes they are those of the
        second, (rows, levels).
        """
        quantiles = self.predictions(X).quantiles(levels, model)
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
            ``residual`` (1 - probability) and ``log_score`` (its negative log), with the index
            of X.
        """
        import pandas as pd

        found = self.predictions(X)
        probability = found.probability_of(y, model)
        return pd.DataFrame(
            {
                "observed": found.observed(y),
                "predicted": found.predicted(model),
                "probability": probability,
                "residual": 1 - probability,
                "log_score": found.log_score(y, model),
            },
            index=row_index(X),
        )

    def certificate(self, X: Any, y: ArrayLike, level: float = 0.95) -> Certificate:
        """The largest error rate on new rows, with a stated confidence.

        Parameters
        ----------
        X : table or images, as in ``fit``
            Rows that had no part in training, drawn like the rows to come. For rows that the
            model was fitted to, or chosen by, the bounds do not hold.
        y : (rows,)
        level : float
            Confidence.

        Returns
        -------
        Certificate
            Bounds of the averaged prediction, by Chernoff, and of a network drawn at random, by
            PAC-Bayes; they hold together, whatever the data are like.
        """
        from islab.estimators.certificates import certificate_of_classes

        return certificate_of_classes(self.predictions(X), y, level)

    if TYPE_CHECKING:

        def predictions(self, X: Any, *, n_draws: int | None = None) -> ClassPredictions: ...

    def _predictions(self, **content: Any) -> ClassPredictions:
        return ClassPredictions(**content, classes=self.classes_, levels=self.levels_)


class NetworkClassifier(PosteriorClassifier, NetworkEstimator):
    """Classes in, probabilities out, whatever method learns the weights.

    A class that inherits may have the parameters ``class_weight`` and ``likelihood``.
    """

    class_weight: Any = None
    likelihood: str = "categorical"

    def predict_set(self, X: Any, level: float = 0.9) -> NDArray[np.bool_]:
        """The classes that each row may have, (rows, classes).

        Parameters
        ----------
        X : DataFrame or (rows, columns)
        level : float
            Share of rows like those of training whose class is in its set, on average over rows
            and whatever their distribution.

        Returns
        -------
        (rows, classes)
            True for the classes of the set, in the order of ``classes_``. A set may hold several
            classes, or none if every class would be among the strangest ``1 - level``.

        Notes
        -----
        Conformal prediction from posterior draws (Fong and Holmes, 2021): draws are weighted as if
        the row had been seen with each class, so that no training rows are held out. At most 400
        training rows are ranked, under 200 draws.
        """
        from islab.estimators.conformal import conformal_set, n_draws_of

        check_is_fitted(self)
        kept = self.conformity_
        return conformal_set(self.predictions(X, n_draws=n_draws_of(kept)), kept, level)

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learns from rows and their classes.

        Parameters
        ----------
        X : DataFrame, (rows, columns), Batches or pyarrow Dataset
            Numbers, booleans, text, categories and dates; values may be missing.
        y : (rows,)
            Classes, or of batches the name of their column. An ordered pandas Categorical says that
            they have an order.
        sample_weight : (rows,), optional
            How often each row counts.
        """
        self._check_params()
        sampled = sampled_rows(X, y, sample_weight, self.random_state) if is_batched(X) else None
        if sampled is not None:
            X, y = sampled.table, sampled.y
        table = checked_table(self, X, reset=True)
        labels = checked_labels(self, y, table)
        check_classification_targets(labels)
        weight = self._checked_weight(sample_weight, table)
        counted = labels if weight is None else labels[weight > 0]
        classes = np.unique(counted)
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise ValueError(f"Got y with a single class, {only!r}, expected at least two classes.")
        levels = levels_of(y, classes, self.likelihood)
        names = classes if levels is None else levels
        # Rows of weight 0 may hold classes that no other row has; their codes do not matter.
        codes = codes_of(labels, names)
        likelihood = families.likelihood_of_classes(len(classes), ordered=levels is not None)
        self.classes_, self.levels_ = classes, levels
        targets = ClassTargets(names, likelihood.name)
        self._learn(
            table,
            likelihood.class_targets(codes, len(classes)),
            likelihood=likelihood.name,
            outputs=likelihood.class_outputs(tuple(str(name) for name in names)),
            sample_weight=self._with_class_weight(weight, labels, codes),
            table_weight=weight,
            labels=labels,
            stream=None if sampled is None else Stream(sampled, targets),
        )
        return self

    def _with_class_weight(
        self, weight: Float | None, labels: NDArray, codes: NDArray[np.intp]
    ) -> Float | None:
        if self.class_weight is None:
            return weight
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            # A row of weight 2 counts as two rows, here too.
            total = np.bincount(codes, weight)
            factor = (total.mean() / total)[codes]
        else:
            factor = compute_sample_weight(self.class_weight, labels)
        wrong = ~((factor >= SMALLEST_WEIGHT) & (factor <= LARGEST_WEIGHT))
        if wrong.any():
            raise ValueError(
                f"Got class_weight={factor[wrong][0]:g} for class {labels[wrong].tolist()[0]!r}, "
                f"expected numbers from {SMALLEST_WEIGHT:g} to {LARGEST_WEIGHT:g}; try to leave "
                "out the rows of a class that should not count."
            )
        return factor if weight is None else factor * weight
