"""What the report says of classes, of the rows it is about, and of the chains."""

import re

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve

from islab.plots.edge_signs import edge_signs
from islab.report import render_report
from islab.report.charts import precision_chart, roc_chart
from islab.report.graph import path_graph
from islab.report.scores import score as scored
from tests.report.conftest import CLASSES, SCRIPT, hostile_table


def labels(score):
    return np.array(CLASSES)[(score > 0).astype(int)]


def curve(chart):
    """The trace of a chart in the unit square."""
    (mark,) = [mark for mark in chart.marks if mark.css == "trace"]
    places = np.array(mark.numbers).reshape(-1, 2)
    start, end = [chart.x.start, chart.y.start], [chart.x.end, chart.y.end]
    return ((places - start) / (np.array(end) - start)).T


@pytest.fixture(scope="module")
def stated():
    rng = np.random.default_rng(0)
    probability = rng.random(80)
    return (rng.random(80) < probability).astype(int), probability


def test_the_confusion_matrix_is_scikit_learns(classifier):
    X, score = hostile_table()
    y = labels(score)
    found = scored(classifier.predictions(X), y, 0.95).confusion
    expected = confusion_matrix(y, classifier.predict(X), labels=classifier.classes_)
    np.testing.assert_array_equal([counts for _, counts in found.lines], expected)


def test_the_roc_curve_is_scikit_learns(stated):
    false, true, _ = roc_curve(*stated)
    np.testing.assert_allclose(curve(roc_chart(*stated, "a")), [false, true], atol=1e-3)


def test_precision_and_recall_are_scikit_learns(stated):
    precision, recall, _ = precision_recall_curve(*stated)
    found = curve(precision_chart(*stated, "a"))
    np.testing.assert_allclose(found, [recall, precision], atol=1e-3)


def test_imbalance_is_said_with_the_base_rate(classifier):
    X, score = hostile_table()
    y = labels(score)
    rare = np.flatnonzero(y == CLASSES[0])[:10]
    often = np.flatnonzero(y == CLASSES[1])[:90]
    rows = np.concatenate([rare, often])
    page = render_report(classifier, X.iloc[rows], y[rows], n_draws=10)
    assert "90.0 % is the base rate: always predicting" in page
    balanced = render_report(classifier, X, y, n_draws=10)
    assert "always predicting" not in balanced


def test_training_rows_are_called_so(classifier):
    X, score = hostile_table()
    y = labels(score)
    assert "the 240 training rows" in render_report(classifier, X, y, n_draws=10)
    part = render_report(classifier, X.iloc[:-1], y[:-1], n_draws=10)
    assert "training rows, so" not in part
    assert "if the model was trained on some of them" in part


def test_rows_outside_the_range_of_training_are_marked(classifier):
    X, _ = hostile_table()
    far = X.iloc[:20].copy()
    far.loc[3, SCRIPT] = 1000.0
    page = render_report(classifier, far, rows=[3, 4], n_draws=10)
    assert "1 row lies outside the range of the training data" in page
    story, other = page[page.index("<h3>Row 3") :].split("<h3>Row 4")
    assert "Outside the range of the training data: &lt;script&gt;" in story
    assert "Outside the range" not in other


def test_the_largest_error_is_that_of_the_full_model(classifier):
    X, score = hostile_table()
    y = labels(score)
    worst = int(classifier.predictions(X).log_score(y).argmax())
    page = render_report(classifier, X, y, n_draws=10)
    assert re.search(rf"<h3>Row {worst}<small>the largest error", page)


def test_chains_and_the_price_of_reading_are_told(classifier):
    X, _ = hostile_table()
    page = render_report(classifier, X, n_draws=10)
    diagnostics = page[page.index('id="diagnostics"') :]
    assert classifier.summary().facts["chains"] in diagnostics
    assert classifier.posterior_.price.words in diagnostics


def test_a_variational_posterior_has_no_chains(independent):
    X, _ = hostile_table()
    assert 'id="diagnostics"' not in render_report(independent, X, n_draws=10)


def test_edges_are_coloured_by_their_effect_on_the_output(classifier):
    network = classifier.network_
    graph = path_graph(network, classifier.explain_global(hostile_table()[0]).covariates)
    names = {1: "positive", -1: "negative", 0: "both"}
    expected = sorted(names[int(sign)] for sign in edge_signs(network))
    assert sorted(each.sign for each in graph.curves) == expected
    assert {css for css, _ in graph.key} == set(expected)


def test_predictions_of_some_rows_are_those_of_the_whole_table(classifier):
    found = classifier.predictions(hostile_table()[0])
    np.testing.assert_array_equal(found.of_rows([3, 1]).mean(), found.mean()[[3, 1]])
