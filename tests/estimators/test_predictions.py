"""One pass: what predictions give is what the estimators' methods give, encoded and drawn once."""

from weakref import WeakKeyDictionary

import numpy as np
import pytest

from islab.core.posterior import Posterior
from islab.core.sparse import SparseNetwork
from islab.evaluate import evaluate
from islab.tables.columns import ColumnEncoder

MODELS = ["full", "median"]
MEMORY = "islab.estimators.predictions.NUMBERS_AT_ONCE"
LAST_DRAWS = "islab.estimators.predictions._LAST_DRAWS"


@pytest.fixture
def encodings(monkeypatch):
    encode, calls = ColumnEncoder.encode, []

    def counted(self, table):
        calls.append(len(table))
        return encode(self, table)

    monkeypatch.setattr(ColumnEncoder, "encode", counted)
    return calls


@pytest.fixture
def draws(monkeypatch):
    monkeypatch.setattr(LAST_DRAWS, WeakKeyDictionary())
    calls = []
    for kind in (SparseNetwork, Posterior):

        def counted(self, n_draws, rng, draw=kind.draw, name=kind.__name__):
            calls.append(name)
            return draw(self, n_draws, rng)

        monkeypatch.setattr(kind, "draw", counted)
    return calls


@pytest.mark.parametrize("model", MODELS)
def test_means_are_the_predictions_of_the_regressor(regressor, table, model):
    found = regressor.predictions(table).mean(model)[:, 0]
    np.testing.assert_array_equal(found, regressor.predict(table, model=model))


@pytest.mark.parametrize("model", MODELS)
def test_means_are_the_probabilities_of_the_classifier(classifier, table, model):
    found = classifier.predictions(table).mean(model)
    np.testing.assert_array_equal(found, classifier.predict_proba(table, model=model))


def test_the_mean_of_the_samples_is_the_mean(classifier, table):
    found = classifier.predictions(table)
    np.testing.assert_allclose(found.samples().mean(axis=0), found.mean(), rtol=1e-12)


def test_the_log_score_is_that_of_the_residuals(classifier, table, labels):
    expected = classifier.residuals(table, labels)["log_score"]
    np.testing.assert_array_equal(classifier.predictions(table).log_score(labels), expected)


def test_every_statistic_of_one_object_needs_one_encoding(regressor, table, numbers, encodings):
    found = regressor.predictions(table)
    for model in MODELS:
        found.mean(model), found.sd(model), found.interval(0.9, model)
        found.log_score(numbers, model)
    assert encodings == [len(table)]


def test_every_statistic_of_one_object_needs_one_draw_of_each_model(regressor, table, draws):
    found = regressor.predictions(table)
    for model in MODELS:
        found.mean(model), found.sd(model), found.interval(0.9, model)
    assert sorted(draws) == ["Posterior", "SparseNetwork"]


def test_tables_beyond_memory_still_draw_the_weights_once(regressor, table, draws, monkeypatch):
    n_weights = regressor.posterior_.architecture.n_weights
    monkeypatch.setattr(MEMORY, regressor.n_draws * max(n_weights, 7))
    found = regressor.predictions(table)
    found.mean(), found.sd()
    assert draws == ["Posterior"]


def test_methods_of_the_estimator_take_predictions_for_rows(classifier, table, encodings):
    found = classifier.predictions(table)
    classifier.predict(found), classifier.predict_interval(found)
    classifier.decompose_uncertainty(found), classifier.explain_local(found)
    assert encodings == [len(table)]


def test_both_models_are_evaluated_in_one_pass(regressor, table, numbers, encodings):
    found = regressor.predictions(table)
    scores = [evaluate(regressor, found, numbers, model=model) for model in MODELS]
    assert encodings == [len(table)]
    assert scores[0] == evaluate(regressor, table, numbers, model="full")


def test_predictions_of_another_model_are_refused(classifier, regressor, table):
    with pytest.raises(ValueError, match="predictions of another model"):
        classifier.predict(regressor.predictions(table))


def test_classes_that_training_did_not_know_are_refused(classifier, table):
    with pytest.raises(ValueError, match="Got class 'odd' in y"):
        classifier.predictions(table).log_score(["odd"] * len(table))


def test_predictions_with_another_number_of_draws_are_made_anew(regressor, table):
    found = regressor.predictions(table)
    found.mean()
    assert len(regressor.predictions(found, n_draws=7).predictor()) == 7


@pytest.mark.parametrize("model", MODELS)
def test_weights_are_those_behind_the_predictor(regressor, table, model, monkeypatch):
    found = regressor.predictions(table)
    weights, biases = found.weights(5, model)
    source = found.network if model == "median" else found.posterior
    monkeypatch.setattr(MEMORY, 3 * source.architecture.n_weights)  # draws come in parts of three
    again = regressor.predictions(table).weights(5, model)
    assert len(weights) == len(biases) == len(again[0]) == 5
    whole = source.draw(regressor.n_draws, np.random.default_rng(regressor.seed_))
    np.testing.assert_array_equal(weights, whole[0][:5])
