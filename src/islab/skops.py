"""Fitted estimators in the hands of skops: what it must be told to trust, and a model card.

A file of `skops <https://skops.readthedocs.io>`_ names the classes it is made of, and those that
skops does not know are loaded only if the reader lists them. ``TRUSTED_TYPES`` are the classes of
a fitted :class:`ISLaBClassifier` or :class:`ISLaBRegressor`. None of them runs code of the file.
"""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from islab.core.dependencies import needed, own_version
from islab.evaluate import evaluate

TRUSTED_TYPES = (
    "islab.core.architecture.Architecture",
    "islab.core.architecture.Block",
    "islab.core.chain_draws.ChainDraws",
    "islab.core.posterior.Posterior",
    "islab.core.sampled.AllRows",
    "islab.core.sampled.PredictionMixing",
    "islab.core.sampled.ReadingPrice",
    "islab.core.sampled.SampledPosterior",
    "islab.core.scale.Scale",
    "islab.core.sparse.KeptDraws",
    "islab.core.sparse.SparseNetwork",
    "islab.estimators.islab.ISLaBClassifier",
    "islab.estimators.islab.ISLaBRegressor",
    "islab.estimators.training_fit.Quality",
    "islab.estimators.training_fit.TrainingFit",
    "islab.learn.history.History",
    "islab.tables.categories.Category",
    "islab.tables.columns.ColumnEncoder",
    "islab.tables.dates.Cycle",
    "islab.tables.dates.Moment",
    "islab.tables.left_out.LeftOut",
    "islab.tables.numbers.Number",
    "islab.tables.offsets.OffsetColumns",
    "islab.tables.orders.Ordered",
    "islab.tables.tails.Tails",
)

OPEN = "[More Information Needed]"
LIMITS = """\
- Probabilities, intervals and effects hold for rows like those of training;
  `model.outside_range(X)` finds rows that are unlike them.
- Effects and contributions say how predictions depend on columns. They are not effects of causes.
- Of columns that carry the same information, some stand for the others."""
USE = """\
```python
import islab

model = islab.load("model.islab")  # what model.save("model.islab") wrote; runs no code
model.{method}(X)
```

`X` is a table with the columns {columns}."""
CITATION = """\
Eirik Høyheim, Lars Skaaret-Lund, Solve Sæbø, Aliaksandr Hubin: Explainable Bayesian Deep Learning
through Input-skip Latent Binary Bayesian Neural Networks. Journal of Artificial Intelligence
Research 86:16, 2026. [doi:10.1613/jair.1.20433](https://doi.org/10.1613/jair.1.20433)"""


def model_card(model: Any, X: Any = None, y: ArrayLike | None = None) -> Any:
    """A card that tells what a fitted model is, how it was fitted and how good it is.

    Parameters
    ----------
    model : ISLaBClassifier or ISLaBRegressor
    X : DataFrame or (rows, columns), optional
        Rows that the model has not seen.
    y : (rows,) or (rows, outputs), optional
        Their targets; the card has their scores.

    Returns
    -------
    skops.card.Card
        Intended uses, authors and contact are left open; fill them in with
        ``card.add(**{"Model description/Intended uses": ...})``. ``card.save("README.md")`` writes
        the card.
    """
    if (X is None) != (y is None):
        raise ValueError("Got one of X and y, expected both, or neither; scores need both.")
    method = "predict_proba" if hasattr(model, "classes_") else "predict"
    made_of = f"`{type(model).__name__}` of islab {own_version()}"
    sections = {
        "Model description": f"{made_of}: a Bayesian neural network that learns its own structure.",
        "Model description/Intended uses": OPEN,
        "Model description/Limitations": LIMITS,
        "Model description/Summary": f"```text\n{model.summary()}\n```",
        "Model description/Evaluation Results": OPEN,
        "Model description/Parameters": "",
        "How to Get Started with the Model": USE.format(method=method, columns=_columns(model)),
        "Model Card Authors": OPEN,
        "Model Card Contact": OPEN,
        "Citation": CITATION,
    }
    card = needed("skops.card", "A model card", "skops").Card(model, template=sections)
    card.add_hyperparams(section="Model description/Parameters")
    if y is not None:
        _add_scores(card, evaluate(model, X, y), len(np.asarray(y)))
    return card


def _columns(model: Any) -> str:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return f"0 to {model.n_features_in_ - 1}, in the order of training"
    return ", ".join(f"`{name}`" for name in names)


def _add_scores(card: Any, scores: dict[str, Any], n_rows: int) -> None:
    """The scores that are numbers, to four digits."""
    numbers = {
        name: f"{value:.4g}"
        for name, value in scores.items()
        if isinstance(value, Real) and isfinite(value)
    }
    words = f"On {n_rows} rows that training has not seen."
    card.add_metrics(section="Model description/Evaluation Results", description=words, **numbers)
