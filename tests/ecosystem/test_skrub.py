"""skrub encodes a raw table; the estimator learns from what it makes."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from islab import ISLaBClassifier, ISLaBRegressor

skrub = pytest.importorskip("skrub")

QUICK = {"max_epochs": 100, "n_restarts": 1, "random_state": 0}


def test_a_tabular_pipeline_predicts_numbers(table, numbers):
    pipeline = skrub.tabular_pipeline(ISLaBRegressor(**QUICK)).fit(table, numbers)
    assert pipeline.score(table, numbers) > 0.8


def test_a_vectorizer_in_front_of_a_classifier(table, numbers):
    labels = np.where(numbers > numbers.median(), "high", "low")
    pipeline = make_pipeline(skrub.TableVectorizer(), ISLaBClassifier(**QUICK))
    assert pipeline.fit(table, labels).score(table, labels) > 0.9
    assert {"size", "town_Ely"} <= set(pipeline[-1].feature_names_in_)


def test_a_cleaned_table_keeps_its_columns_for_the_estimator(table, numbers):
    cleaned = skrub.Cleaner().fit_transform(table)
    model = ISLaBRegressor(**QUICK).fit(cleaned, numbers)
    assert model.feature_names_in_.tolist() == table.columns.tolist()
    assert model.score(cleaned, numbers) > 0.9
