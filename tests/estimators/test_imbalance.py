"""Rare classes: calibrated probabilities, thresholds on request, and what class weights mean."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV

from islab import ISLaBClassifier

PARAMS = {"hidden_layer_sizes": (), "n_restarts": 1, "n_draws": 100, "random_state": 0}
PARAMS |= {"posterior": "independent"}


def simulate(seed, n):
    """About one row in a hundred is of the second class."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    probability = expit(-5.5 + 1.3 * x[:, 0] + 0.8 * x[:, 1])
    return x, rng.random(n) < probability, probability


@pytest.fixture(scope="module")
def data():
    return simulate(0, 5000)


@pytest.fixture(scope="module")
def model(data):
    return ISLaBClassifier(max_epochs=40, **PARAMS).fit(*data[:2])


@pytest.fixture(scope="module")
def sampled(data):
    return ISLaBClassifier(random_state=0).fit(*data[:2])


@pytest.mark.parametrize("fitted", ["model", "sampled"])
def test_probabilities_of_a_rare_class_are_calibrated(fitted, request):
    model = request.getfixturevalue(fitted)
    x, y, exact = simulate(1, 40_000)
    found = model.predict_proba(x)[:, 1]
    assert 0.005 < y.mean() < 0.02
    assert found.mean() == pytest.approx(y.mean(), rel=0.25)
    for part in np.array_split(np.argsort(found), 4)[1:]:
        assert found[part].mean() == pytest.approx(exact[part].mean(), rel=0.4)
    top = np.argsort(found)[-400:]
    assert found[top].mean() == pytest.approx(exact[top].mean(), rel=0.3)


def test_a_threshold_can_be_tuned_for_a_score(data, model):
    x, y, _ = data
    tuned = TunedThresholdClassifierCV(
        ISLaBClassifier(max_epochs=20, **PARAMS), scoring="f1", cv=2, random_state=0
    ).fit(x, y)
    assert tuned.best_threshold_ < 0.5
    new, observed, _ = simulate(2, 10_000)
    assert f1_score(observed, tuned.predict(new)) > f1_score(observed, model.predict(new))


def test_a_threshold_can_be_tuned_for_a_cost(data):
    """A missed row costs twenty times a false alarm: about one in twenty is the best threshold."""
    x, y, _ = data

    def saved(observed, predicted):
        return -20.0 * (observed & ~predicted).sum() - (~observed & predicted).sum()

    tuned = TunedThresholdClassifierCV(
        ISLaBClassifier(max_epochs=20, **PARAMS), scoring=make_scorer(saved), cv=2, random_state=0
    ).fit(x, y)
    assert 0.01 < tuned.best_threshold_ < 0.2


def test_class_weights_multiply_the_odds(data, model):
    """Rows that count ten times raise the odds tenfold: probabilities are those of such data."""
    x, y, _ = data
    weighted = ISLaBClassifier(max_epochs=40, class_weight={False: 1, True: 10}, **PARAMS)
    weighted.fit(x, y)
    rows = np.array([[0.0, 0, 0], [1.0, 1, 0]])
    plain, raised = (m.predict_proba(rows)[:, 1] for m in (model, weighted))
    ratio = (raised / (1 - raised)) / (plain / (1 - plain))
    np.testing.assert_allclose(ratio, 10, rtol=0.4)


def test_class_weights_give_the_classes_other_probabilities_beforehand(data):
    """A class of one row in a hundred, as where it is one of ten: weights are p / share."""
    x, y, _ = data
    share, prior = y.mean(), 0.1
    weights = {False: (1 - prior) / (1 - share), True: prior / share}
    model = ISLaBClassifier(max_epochs=40, class_weight=weights, **PARAMS).fit(x, y)
    new, observed, _ = simulate(3, 40_000)
    rows = np.where(observed, prior / observed.mean(), (1 - prior) / (1 - observed.mean()))
    found = model.predict_proba(new)[:, 1]
    assert np.average(found, weights=rows) == pytest.approx(prior, rel=0.15)
    likely = found > 0.5
    average = np.average(found[likely], weights=rows[likely])
    assert np.average(observed[likely], weights=rows[likely]) == pytest.approx(average, rel=0.15)
