"""Scores that average as the paper does, beside those that should."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from experiments.paper.cells import flat, mean_logs, paper_scores
from experiments.paper.tasks import Task
from islab import ISLaBClassifier
from islab.baselines import L1SkipClassifier
from islab.evaluate import calibration_error
from islab.evaluate.runner import scored

N_DRAWS = 30


def score(model, task):
    rows = task.x_test, task.y_test
    return flat(scored(model, *rows)) | paper_scores(model, *rows)


@pytest.fixture(scope="module")
def task():
    x, y = load_iris(return_X_y=True)
    return Task("mice", x[::2], y[::2], x[1::2], y[1::2])


@pytest.fixture(scope="module")
def model(task):
    model = ISLaBClassifier(hidden_layer_sizes=(), max_epochs=60, n_draws=N_DRAWS, random_state=0)
    return model.fit(task.x_train, task.y_train)


def test_logarithms_are_averaged_over_draws():
    draws = np.array([[[0.1, 0.9]], [[0.4, 0.6]]])
    np.testing.assert_allclose(mean_logs(draws), np.log([[0.2, np.sqrt(0.54)]]))


def test_a_probability_of_nothing_has_a_logarithm_all_the_same():
    assert np.isfinite(mean_logs(np.array([[[0.0, 1.0]]]))).all()


def test_the_mean_of_logarithms_never_scores_better(model, task):
    scores = score(model, task)
    assert scores["nll_paper"] > scores["nll"]
    assert scores["nll_paper_median"] > scores["nll_median"]


def test_calibration_is_that_of_mean_logarithms(model, task):
    scores = score(model, task)
    stated = np.exp(mean_logs(model.sample_posterior(task.x_test, model="full")))
    assert scores["ece_paper"] == calibration_error(task.y_test, stated)
    assert scores["ece_paper"] != scores["ece"]


def test_without_draws_both_ways_agree(task):
    point = L1SkipClassifier(hidden_layer_sizes=(), penalty=0.01, max_epochs=40, random_state=0)
    scores = score(point.fit(task.x_train, task.y_train), task)
    assert scores["nll_paper"] == pytest.approx(scores["nll"], rel=1e-9)
    assert scores["ece_paper"] == pytest.approx(scores["ece"], rel=1e-9)
