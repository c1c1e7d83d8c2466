"""Methods by name."""

import pytest

from islab import ISLaBClassifier, ISLaBRegressor
from islab.baselines.references import ReferenceClassifier, ReferenceRegressor
from islab.evaluate import METHODS, make_method
from islab.evaluate.methods import DEFAULT_METHODS, NETWORKS, Method


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_a_seed(name):
    try:
        made = make_method(name, "classification")
    except ImportError as error:
        pytest.skip(str(error))
    assert made.get_params()["random_state"] is None


def test_methods_of_the_network_differ_by_parameters():
    assert make_method("lbbnn", "regression").input_skip is False
    assert make_method("islab-flow", "classification").posterior == "flow"


def test_the_task_chooses_the_class():
    assert isinstance(make_method("islab", "classification"), ISLaBClassifier)
    assert isinstance(make_method("islab", "regression"), ISLaBRegressor)
    assert isinstance(make_method("lasso", "classification"), ReferenceClassifier)
    assert isinstance(make_method("lasso", "regression"), ReferenceRegressor)


def test_counts_ask_for_their_likelihood():
    assert make_method("islab", "counts").likelihood == "poisson"


def test_a_method_without_counts_says_so():
    with pytest.raises(ValueError, match="ridge has no likelihood for counts"):
        make_method("ridge", "counts")


def test_logistic_regression_is_not_for_numbers():
    with pytest.raises(ValueError, match="try 'ridge'"):
        make_method("logistic", "regression")


def test_a_misspelt_method_is_corrected():
    with pytest.raises(ValueError, match="did you mean 'horseshoe'"):
        make_method("horsehoe", "regression")


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match="Got task='ranking'"):
        make_method("islab", "ranking")


def test_an_estimator_that_is_not_there_is_an_import_error(monkeypatch):
    monkeypatch.setitem(NETWORKS, "islab", Method("none", "islab.estimators", "Missing"))
    with pytest.raises(ImportError, match="MissingRegressor is not part of this installation"):
        make_method("islab", "regression")


def test_the_default_methods_are_there():
    assert all(make_method(name, "classification") for name in DEFAULT_METHODS)
