"""A fit that fails leaves the model as it was."""

import copy

import numpy as np
import pytest
from sklearn.utils.validation import has_fit_parameter

from islab import ISLaBClassifier, ISLaBRegressor

ROWS = np.random.default_rng(0).normal(size=(20, 2))
QUICK = {"max_epochs": 5, "n_restarts": 1, "n_draws": 20, "hidden_layer_sizes": ()}
KINDS = [ISLaBClassifier, ISLaBRegressor]

each_kind = pytest.mark.parametrize("kind", KINDS)


def fitted(kind):
    return kind(**QUICK, random_state=0).fit(ROWS, np.arange(20) % 2)


@each_kind
def test_a_model_that_was_not_fitted_still_is_not(kind):
    model = kind(**QUICK)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="in y"):
        model.fit(ROWS, np.full(20, np.nan))
    assert vars(model) == before


@each_kind
def test_a_fitted_model_predicts_what_it_did(kind):
    model = fitted(kind)
    before = model.predict(ROWS)
    with pytest.raises(ValueError, match="in y"):
        model.fit(np.ones((20, 7)), np.full(20, np.nan))
    np.testing.assert_array_equal(model.predict(ROWS), before)


@each_kind
def test_an_interrupted_fit_leaves_the_model_as_it_was(kind, monkeypatch):
    model = fitted(kind)
    before = dict(vars(model))

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("islab.estimators.islab_base.fit_recipe", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ROWS[:, :1], np.arange(20) % 2)
    assert vars(model) == before


@each_kind
def test_a_fit_that_ends_well_replaces_what_was_learned(kind):
    model = fitted(kind)
    old = copy.copy(model)
    assert model.fit(ROWS[:, :1], np.arange(20) % 2) is model
    assert (old.n_features_in_, model.n_features_in_) == (2, 1)


@each_kind
def test_scikit_learn_still_finds_the_weights_of_rows(kind):
    assert has_fit_parameter(kind(), "sample_weight")
