"""A median network that does not predict as its full model gives a warning."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from islab import ISLaBClassifier, ISLaBRegressor, load
from islab.estimators.islab import ISLaBEstimator
from islab.report import render_report
from tests.estimators.conftest import QUICK as SHORT

QUICK = {**SHORT, "posterior": "independent"}


def doubtful(posterior):
    """The same weights, none of them surely in: the median network is left without any."""
    lam, noise = np.minimum(posterior.lam, -0.05), posterior.noise / 10
    return replace(posterior, lam=lam, rho=posterior.rho - 5, noise=noise)


@pytest.fixture
def forgetful(monkeypatch):
    """Estimators whose training ends with weights that are all just below one half."""
    learn = ISLaBEstimator._learn_weights

    def learned(self, *args):
        found = learn(self, *args)
        return replace(found, weights=doubtful(found.weights))

    monkeypatch.setattr(ISLaBEstimator, "_learn_weights", learned)


@pytest.mark.usefixtures("forgetful")
def test_fitting_warns_of_classes_that_differ(table, labels):
    with pytest.warns(UserWarning, match=r"predict different classes in \d+% of rows"):
        ISLaBClassifier(**QUICK).fit(table, labels)


@pytest.mark.usefixtures("forgetful")
@pytest.mark.filterwarnings("ignore:No covariate is used")
def test_fitting_warns_of_numbers_that_differ(table, numbers):
    with pytest.warns(UserWarning, match=r"differ by [\d.]+ residual SDs"):
        ISLaBRegressor(**QUICK).fit(table, numbers)


@pytest.mark.usefixtures("forgetful")
def test_the_summary_has_a_line_of_it(table, labels):
    with pytest.warns(UserWarning, match="median network"):
        model = ISLaBClassifier(**QUICK).fit(table, labels)
    assert "different classes" in model.summary().facts["caution"]


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("sparse", [False, True])
def test_files_keep_the_line(table, labels, tmp_path, sparse):
    with pytest.warns(UserWarning, match="median network"):
        model = ISLaBClassifier(**QUICK).fit(table, labels)
    model.save(tmp_path / "m.islab", sparse=sparse)
    facts = load(tmp_path / "m.islab").summary().facts
    assert facts["caution"] == model.summary().facts["caution"]


def test_ordinary_models_have_no_such_line(classifier, regressor):
    assert "caution" not in classifier.summary().facts
    assert "caution" not in regressor.summary().facts


def test_the_report_has_a_line_of_it(table, labels):
    classifier = ISLaBClassifier(**QUICK).fit(table, labels)
    other = copy(classifier)
    other.posterior_ = doubtful(classifier.posterior_)
    other.network_ = other.posterior_.median()
    assert 'id="caution"' in render_report(other, table, labels, n_draws=10)
    assert 'id="caution"' not in render_report(classifier, table, labels, n_draws=10)


def test_rows_on_the_border_between_classes_do_not_count(classifier, table):
    found = classifier.predictions(table)
    full = np.tile([0.51, 0.49], (len(table), 1))
    found._means.update(full=full, median=full[:, ::-1])
    assert found.disagreement().size == 0


def test_a_sparse_model_has_nothing_to_compare(classifier, table):
    assert replace(classifier.predictions(table), posterior=None).disagreement() is None
