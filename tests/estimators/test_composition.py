"""Estimators among scikit-learn's tools."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from islab import ISLaBClassifier

from .conftest import QUICK

NUMERIC = ["size", "age", "noise"]


def test_a_pipeline_may_end_in_it(table, labels):
    pipeline = make_pipeline(StandardScaler(), ISLaBClassifier(**QUICK))
    assert pipeline.fit(table[NUMERIC], labels).score(table[NUMERIC], labels) > 0.7


def test_a_pipeline_may_select_with_it(table, labels):
    pipeline = make_pipeline(ISLaBClassifier(**QUICK), LogisticRegression())
    assert pipeline.fit(table[NUMERIC], labels).score(table[NUMERIC], labels) > 0.7


def test_grid_search_finds_a_sparsity(table, labels):
    search = GridSearchCV(ISLaBClassifier(**QUICK), {"sparsity": [0.0, 1.0]}, cv=2)
    assert search.fit(table, labels).best_params_["sparsity"] in (0.0, 1.0)


def test_cross_validation_scores_each_fold(table, labels):
    scores = cross_val_score(ISLaBClassifier(**QUICK), table, labels, cv=3, scoring="neg_log_loss")
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


def test_a_clone_has_the_parameters_and_is_not_fitted(classifier):
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    assert not hasattr(copy, "network_")


def test_a_pickled_model_predicts_alike(classifier, table):
    copy = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(copy.predict_proba(table), classifier.predict_proba(table))


def test_a_model_goes_through_joblib(classifier, table, tmp_path):
    joblib.dump(classifier, tmp_path / "model.joblib")
    copy = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(copy.predict_proba(table), classifier.predict_proba(table))


def test_selection_names_the_variables_used(classifier, table):
    used = {classifier.columns_.owners[column] for column in classifier.network_.covariates}
    assert set(classifier.get_feature_names_out()) == used
    assert classifier.get_support().tolist() == [name in used for name in table.columns]


def test_what_decides_is_selected(classifier):
    assert {"size", "age", "colour"} <= set(classifier.get_feature_names_out())


def test_selected_columns_come_as_a_frame_on_request(table, labels):
    model = ISLaBClassifier(**QUICK).set_output(transform="pandas").fit(table, labels)
    chosen = model.transform(table)
    assert isinstance(chosen, pd.DataFrame)
    assert chosen.columns.tolist() == model.get_feature_names_out().tolist()


def test_two_jobs_give_the_same_model_as_one(table, labels):
    settings = {**QUICK, "n_restarts": 2}
    one, two = (ISLaBClassifier(**settings, n_jobs=n).fit(table, labels) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(table), two.predict_proba(table))


def test_fitting_again_forgets_the_first_time(table, labels, three_labels):
    model = ISLaBClassifier(**QUICK).fit(table, three_labels)
    model.fit(table[NUMERIC].to_numpy(), labels)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    assert len(model.classes_) == 2


@pytest.mark.parametrize("seed", [np.random.RandomState(3), np.int64(3)])
def test_random_states_of_other_kinds_are_fine(table, labels, seed):
    model = ISLaBClassifier(**{**QUICK, "random_state": seed}).fit(table, labels)
    assert 0 <= model.seed_ < 2**31
