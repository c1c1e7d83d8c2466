"""MAPIE's conformal prediction with estimators of this package."""

import numpy as np
import pytest
from sklearn.base import clone

from islab import ISLaBClassifier, ISLaBRegressor

regression = pytest.importorskip("mapie.regression")
classification = pytest.importorskip("mapie.classification")

QUICK = {"hidden_layer_sizes": (2,), "max_epochs": 100, "n_restarts": 1, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    return x, x[:, 0] + rng.normal(size=1000)


def covered(y, ends):
    return ((y >= ends[:, 0]) & (y <= ends[:, 1])).mean()


def test_a_fitted_regressor_is_conformalised_on_rows_held_out(rows):
    x, y = rows
    model = ISLaBRegressor(**QUICK).fit(x[:100], y[:100])
    split = regression.SplitConformalRegressor(model, confidence_level=0.8, prefit=True)
    split.conformalize(x[100:250], y[100:250])
    predicted, ends = split.predict_interval(x[250:])
    np.testing.assert_array_equal(predicted, model.predict(x[250:]))
    errors = np.sort(np.abs(y[100:250] - model.predict(x[100:250])))
    reach = errors[int(np.ceil(151 * 0.8)) - 1]
    np.testing.assert_allclose(ends[:, :, 0], predicted[:, None] + [-reach, reach])


def test_a_regressor_is_cross_conformalised(rows):
    x, y = rows
    cross = regression.CrossConformalRegressor(
        clone(ISLaBRegressor(**QUICK)), confidence_level=0.8, cv=3
    )
    cross.fit_conformalize(x[:200], y[:200])
    assert 0.7 < covered(y[200:], cross.predict_interval(x[200:])[1][..., 0]) < 0.92


def test_a_fitted_classifier_gives_prediction_sets(rows):
    x, y = rows
    labels = np.where(y > 0, "ill", "well")
    model = ISLaBClassifier(**QUICK).fit(x[:100], labels[:100])
    split = classification.SplitConformalClassifier(model, confidence_level=0.8, prefit=True)
    split.conformalize(x[100:250], labels[100:250])
    sets = split.predict_set(x[250:])[1][..., 0]
    own = sets[np.arange(750), np.searchsorted(model.classes_, labels[250:])]
    assert 0.7 < own.mean() < 0.9
