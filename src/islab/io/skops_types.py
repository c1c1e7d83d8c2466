"""What skops must be told to trust before it loads a fitted estimator.

A file of `skops <https://skops.readthedocs.io>`_ names the classes it is made of, and those that
skops does not know are loaded only if the reader lists them. These are the classes that a fitted
:class:`ISLaBClassifier` or :class:`ISLaBRegressor` is made of. None of them runs code of the file.
"""

TRUSTED_TYPES = (
    "islab.core.architecture.Architecture",
    "islab.core.architecture.Block",
    "islab.core.posterior.Posterior",
    "islab.core.sampled.ChainDraws",
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
