"""Certificates of fitted models."""

import numpy as np
import pytest

from islab import ISLaBClassifier, ISLaBRegressor

FEW = {
    "max_epochs": 20,
    "n_restarts": 1,
    "random_state": 0,
    "n_draws": 50,
    "posterior": "independent",
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    return x, 2 * x[:, 0] + rng.normal(size=400)


def test_a_classifiers_certificate_is_above_its_error_on_the_rows(rows):
    x, y = rows
    model = ISLaBClassifier(**FEW).fit(x[:200], y[:200] > 0)
    found = model.certificate(x[200:], y[200:] > 0)
    wrong = (model.predict(x[200:]) != (y[200:] > 0)).mean()
    assert found.average_loss == pytest.approx(wrong)
    assert wrong < found.average_bound < 0.5
    assert found.loss < found.bound < 0.6


def test_a_regressors_certificate_counts_errors_up_to_the_size(rows):
    x, y = rows
    model = ISLaBRegressor(**FEW).fit(x[:200], y[:200])
    found = model.certificate(x[200:], y[200:], size=1.5)
    error = np.minimum(np.abs(model.predict(x[200:]) - y[200:]), 1.5).mean()
    assert found.average_loss == pytest.approx(error)
    assert error < found.average_bound <= 1.5
    assert "errors above 1.5" in str(found)


def test_a_size_that_is_not_positive_is_refused(rows):
    x, y = rows
    model = ISLaBRegressor(**FEW).fit(x[:200], y[:200])
    with pytest.raises(ValueError, match="Got size=-1, expected a positive number"):
        model.certificate(x[200:], y[200:], size=-1)
