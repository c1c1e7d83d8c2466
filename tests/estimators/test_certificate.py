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


# -- fitted models ------------------------------------------------------------------------------


def make_population(n_rows, seed, classes):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    y = x[:, 0] + 0.5 * x[:, 1] + rng.standard_t(3, n_rows)
    return x, np.where(y > 0, "ill", "well") if classes else y


@pytest.mark.parametrize("classes", [True, False])
def test_bounds_of_a_fitted_model_hold_at_their_level(classes):
    """One model, many sets of certifying rows; 20,000 other rows tell the truth."""
    kind, n_rows, repeats, level = ISLaBClassifier if classes else ISLaBRegressor, 50, 300, 0.8
    quick = {"hidden_layer_sizes": (2,), "n_restarts": 1, "max_epochs": 200, "n_draws": 60}
    model = kind(random_state=0, **quick).fit(*make_population(80, 0, classes))
    x, y = make_population(20_000, 1, classes)
    truth = model.certificate(x, y, level)
    found = model.predictions(x)
    if classes:
        draws = found.response(found.predictor()).argmax(axis=-1)
        losses = (model.classes_[draws] != y).mean(axis=1)
    else:
        losses = np.minimum(np.abs(found.samples()[..., 0] - y), truth.size).mean(axis=1)
    pool, targets = make_population(n_rows * repeats, 2, classes)
    others, held = model.predictions(pool), 0
    for start in range(0, len(pool), n_rows):
        rows = range(start, start + n_rows)
        own = model.certificate(others.of_rows(rows), targets[rows.start : rows.stop], level)
        average_holds = truth.average_loss <= own.average_bound
        held += average_holds and own.weights @ losses <= own.bound
    # Two standard deviations of a share of 300; all held would say the bounds are idle.
    assert held / repeats >= level - 0.046
    assert truth.average_loss > 0.05
