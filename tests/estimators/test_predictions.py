"""One pass: what predictions give is what the estimators' methods give, encoded and drawn once."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.families.mixtures import scattered_normals
from islab.core.posterior import Posterior
from islab.core.sparse import SparseNetwork
from islab.evaluate import evaluate
from islab.tables.columns import ColumnEncoder
from tests.estimators.conftest import QUICK

MODELS = ["full", "median"]
MEMORY = "islab.estimators.drawn_rows.NUMBERS_AT_ONCE"
LAST_DRAWS = "islab.estimators.drawn_rows._LAST_DRAWS"


@pytest.fixture(scope="module")
def independent(table, numbers):
    """A model whose weights are drawn when they are needed."""
    return ISLaBRegressor(posterior="independent", **QUICK).fit(table, numbers)


@pytest.fixture(scope="module")
def sampled_regressor(table, numbers):
    return ISLaBRegressor(posterior="sampled", **QUICK).fit(table, numbers)


@pytest.fixture(scope="module")
def sampled_classifier(table, labels):
    return ISLaBClassifier(posterior="sampled", **QUICK).fit(table, labels)


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


def test_every_statistic_of_one_object_needs_one_draw_of_each_model(independent, table, draws):
    found = independent.predictions(table)
    for model in MODELS:
        found.mean(model), found.sd(model), found.interval(0.9, model)
    assert sorted(draws) == ["Posterior", "SparseNetwork"]


def test_tables_beyond_memory_still_draw_the_weights_once(independent, table, draws, monkeypatch):
    n_weights = independent.posterior_.architecture.n_weights
    monkeypatch.setattr(MEMORY, independent.n_draws * max(n_weights, 7))
    found = independent.predictions(table)
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
def test_thinned_draws_are_evenly_spaced_ones_of_those_behind_the_predictor(
    regressor, table, model, monkeypatch
):
    found = regressor.predictions(table)
    networks, noise = found.thinned(5, model)
    source = found.network if model == "median" else found.posterior
    monkeypatch.setattr(MEMORY, 3 * source.architecture.n_weights)  # draws come in parts of three
    again = regressor.predictions(table).thinned(5, model)[0]
    whole = source.draw(regressor.n_draws, np.random.default_rng(regressor.seed_))
    places = [20, 60, 100, 140, 180]
    for each in (networks, again):
        np.testing.assert_array_equal(each.dense()[0], whole[0][places])
        np.testing.assert_array_equal(each.dense()[1], whole[1][places])
    every = found.noise(model)
    np.testing.assert_array_equal(noise, every[places] if every.ndim == 3 else every)


def outside(table):
    """Rows inside the range of training, the same beyond it, and farther."""
    rows = table.iloc[:3]
    reach = table["size"].max() - table["size"].min()
    return [rows.assign(size=table["size"].max() + share * reach) for share in (0, 1, 3)]


def test_intervals_of_numbers_grow_outside_the_range_of_training(regressor, table):
    widths = [np.diff(regressor.predict_interval(rows))[:, 0] for rows in outside(table)]
    sds = [regressor.predict(rows, return_std=True)[1] for rows in outside(table)]
    for narrow, wide in (*pairwise(widths), *pairwise(sds)):
        assert (wide > 1.2 * narrow).all()
    beyond = outside(table)[1]
    change = regressor.predict(beyond) - regressor.predict(outside(table)[0])
    assert (widths[1] > np.abs(change)).all()


def test_intervals_of_classes_grow_outside_the_range_of_training(classifier, table):
    shares = [classifier.predict_interval(rows, 0.8) for rows in outside(table)]
    widths = [np.diff(np.log(ends / (1 - ends).clip(1e-300)))[:, 0] for ends in shares]
    assert (widths[1] > widths[0]).all()


@pytest.mark.parametrize("model", MODELS)
def test_inside_the_range_of_training_intervals_are_those_of_the_draws(regressor, table, model):
    found = regressor.predictions(table)
    assert not found.outside.any()
    plain = replace(found, ranges=None)
    np.testing.assert_array_equal(found.interval(model=model), plain.interval(model=model))
    np.testing.assert_array_equal(found.sd(model), plain.sd(model))


def test_expectations_outside_the_range_are_those_of_the_draws(regressor, table):
    rows = outside(table)[2]
    found = regressor.predictions(rows)
    assert found.outside.all()
    np.testing.assert_array_equal(found.mean(), replace(found, ranges=None).mean())
    np.testing.assert_allclose(found.mean(), found.samples().mean(axis=0))


def test_a_row_outside_has_the_same_interval_beside_any_others(regressor, table):
    near, far, _ = outside(table)
    together = regressor.predict_interval(pd.concat([near, table, far]))
    np.testing.assert_array_equal(together[-3:], regressor.predict_interval(far))


def test_the_spread_outside_is_the_change_beyond_the_edge_or_as_far_inside(regressor, table):
    """By its definition, draw by draw."""
    edge, far, _ = outside(table)
    low, high = regressor.columns_.ranges
    found = regressor.predictions(far)
    limit = np.clip(found.covariates, low, high)
    inside = replace(found, covariates=np.clip(2 * limit - found.covariates, low, high))
    predictor = [rows.predictor() for rows in (inside, regressor.predictions(edge), found)]
    changes = np.diff(predictor, axis=0)
    beyond = np.where(np.abs(changes[0]) > np.abs(changes[1]), changes[0], changes[1])
    z = scattered_normals(regressor.n_draws)
    assert abs(z.mean()) < 0.02
    assert z.std() == pytest.approx(1, abs=0.03)
    expected = (predictor[2] + beyond * z[:, None, None]).var(axis=0)
    found = regressor.predictions(far).uncertainty().epistemic
    np.testing.assert_allclose(found, expected)


def test_a_second_call_takes_the_draws_of_the_first(independent, table, draws):
    first = independent.predict(table)
    assert draws == ["Posterior"]
    np.testing.assert_array_equal(independent.predict(table), first)
    assert draws == ["Posterior"]


def test_draws_are_forgotten_with_their_model(regressor, table, monkeypatch):
    kept = WeakKeyDictionary()
    monkeypatch.setattr(LAST_DRAWS, kept)
    network = replace(regressor.network_)
    found = replace(regressor.predictions(table), network=network)
    found.mean("median")
    assert list(kept) == [network]
    del network, found
    assert len(kept) == 0


def test_one_row_has_the_numbers_it_has_beside_others(regressor, classifier, table):
    for model in (regressor, classifier):
        whole = model.predict_interval(table)
        np.testing.assert_array_equal(model.predict_interval(table[7:8]), whole[7:8])


def everything(found, model, y):
    """All that is predicted, in one list."""
    uncertainty = found.uncertainty(model)
    parts = [found.mean(model), uncertainty.aleatoric, uncertainty.epistemic]
    parts += [found.samples(model), found.quantiles([0.05, 0.5, 0.95], model)]
    return [*parts, found.log_score(y, model)]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("regressor", "numbers"),
        ("independent", "numbers"),
        ("classifier", "labels"),
        ("three_classes", "three_labels"),
        ("poisson", "counts"),
        ("sampled_regressor", "numbers"),
        ("sampled_classifier", "labels"),
    ],
)
def test_compiled_predictions_are_those_of_numpy(name, target, table, request, monkeypatch):
    fitted, y = request.getfixturevalue(name), request.getfixturevalue(target)
    found = [everything(fitted.predictions(table), model, y) for model in MODELS]
    monkeypatch.setattr(LAST_DRAWS, WeakKeyDictionary())
    for module in ("drawn", "families.mixtures", "equations"):
        monkeypatch.setattr(f"islab.core.{module}.compiled", None)
    for model, parts in zip(MODELS, found, strict=True):
        expected = everything(fitted.predictions(table), model, y)
        for one, other in zip(parts, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("numbers_in_cache", [1, 777])
def test_predictions_do_not_depend_on_the_size_of_the_parts(
    classifier, table, numbers_in_cache, monkeypatch
):
    expected = classifier.predict_interval(table)
    monkeypatch.setattr("islab.estimators.drawn_rows.NUMBERS_IN_CACHE", numbers_in_cache)
    np.testing.assert_array_equal(classifier.predict_interval(table), expected)


def test_memory_does_not_grow_with_the_number_of_draws(regressor, table):
    rows = table.sample(2000, replace=True, random_state=0)
    few, many = (_peak(regressor.predictions(rows, n_draws=n)) for n in (500, 4000))
    assert many < few + 40 * 2**20  # all draws of all rows are 64 MB; weights and blocks are less


def _peak(found):
    found.mean()  # draws the weights
    tracemalloc.start()
    try:
        found.interval()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
