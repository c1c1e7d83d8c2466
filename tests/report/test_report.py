"""The report as a file: complete, escaped, small, and written in one move."""

import json
import re
from copy import copy
from html.parser import HTMLParser
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor, TableWarning, load
from islab.core.architecture import Architecture
from islab.core.drawn import DrawnNetworks
from islab.core.posterior import Initial, Posterior
from islab.core.sparse import SparseNetwork
from islab.report import render_report, write_report
from islab.report.charts import Scale
from islab.report.scores import score as scored
from islab.report.variables import _reach
from islab.report.whatif import PageModel, draws_that_fit, network_data
from islab.tables.columns import ColumnEncoder
from islab.tables.numbers import Number
from tests.report.conftest import BREAKOUT, CLASSES, SCRIPT, hostile_table


class Reader(HTMLParser):
    """Tags, attributes and text of a page as a browser would see them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.text.append(data)


# Networks of a few passes: what is left to explain has long tails.
pytestmark = pytest.mark.filterwarnings("ignore:The targets have outliers")


def labels(score):
    return np.array(CLASSES)[(score > 0).astype(int)]


def with_posterior(model, posterior):
    """The same estimator around another posterior."""
    other = copy(model)
    other.posterior_ = posterior
    other.network_ = posterior.median(scale=model.network_.scale)
    return other


@pytest.fixture(scope="module")
def page(report_path):
    return report_path.read_text()


def embedded(page):
    match = re.search(r'<script type="application/json" id="islab-data">(.*?)</script>', page, re.S)
    return json.loads(match[1])


def test_names_make_no_tags_and_no_handlers(page):
    found = Reader(page)
    assert found.tags.count("script") == 2
    assert not {"img", "b"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on")]


def test_names_are_not_evaluated_by_the_template(page):
    assert "{{ 7 * 7 }}" in " ".join(Reader(page).text)


def test_embedded_names_come_back_as_they_were(page):
    names = [setting["name"] for setting in embedded(page)["settings"]]
    assert {SCRIPT, BREAKOUT} <= set(names)


def test_the_page_names_no_other_address(page):
    links = [value for name, value in Reader(page).attributes if name in ("src", "href")]
    assert all(value.startswith("#") for value in links)
    assert not re.search(r"https?://", page)


def test_the_page_is_small(page):
    assert len(page) < 500_000


def test_every_part_of_the_page_is_there(page):
    ids = {value for name, value in Reader(page).attributes if name == "id"}
    assert {"scores", "paths", "graph", "covariates", "what-if", "rows", "training"} <= ids


def test_scores_are_scikit_learns(classifier):
    from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

    X, truth = hostile_table()
    y = labels(truth)
    scores = scored(classifier.predictions(X), y, 0.95)
    found = {each.name: each for each in scores.table[0][1]}
    for which in ("median", "full"):
        probability = classifier.predict_proba(X, model=which)
        assert getattr(found["accuracy"], which) == accuracy_score(
            y, classifier.classes_[probability.argmax(axis=1)]
        )
        assert getattr(found["log score"], which) == pytest.approx(log_loss(y, probability))
        assert getattr(found["AUC"], which) == pytest.approx(
            roc_auc_score(y == CLASSES[1], probability[:, 1])
        )


def test_scores_of_a_regression_are_scikit_learns(regressor):
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    X, y = hostile_table()
    predictions = regressor.predictions(X)
    scores = scored(predictions, predictions.observed(y), 0.9)
    found = {each.name: each.median for each in scores.table[0][1]}
    predicted = regressor.predict(X, model="median")
    assert found["RMSE"] == pytest.approx(root_mean_squared_error(y, predicted))
    assert found["MAE"] == pytest.approx(mean_absolute_error(y, predicted))
    assert found["R\u00b2"] == pytest.approx(r2_score(y, predicted))
    interval = regressor.predict_interval(X, 0.9, model="median")
    inside = ((y >= interval[:, 0]) & (y <= interval[:, 1])).mean()
    assert found["coverage"] == pytest.approx(inside, abs=0.01)


def test_without_targets_nothing_is_scored(classifier):
    X, _ = hostile_table()
    assert 'id="scores"' not in render_report(classifier, X, n_draws=10)


def test_rows_asked_for_are_told_of_in_their_order(page):
    numbers = re.findall(r"<h3>Row (\d+)", page)
    assert numbers == ["5", "0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": [240]}, "Got row 240"),
        ({"rows": [-1]}, "Got row -1"),
        ({"rows": range(51)}, "Got 51 rows"),
        ({"level": 1.5}, "level=1.5"),
        ({"n_draws": 1}, "n_draws=1"),
    ],
)
def test_wrong_options_are_named(classifier, options, message):
    X, _ = hostile_table()
    with pytest.raises(ValueError, match=message):
        render_report(classifier, X, **options)


def test_a_failing_report_leaves_the_old_file(classifier, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    X, score = hostile_table()
    with pytest.raises(ValueError, match="class"):
        write_report(path, classifier, X, np.full(len(score), "neither"))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_model_gives_the_same_page(classifier):
    X, score = hostile_table()
    one, two = (render_report(classifier, X, labels(score), n_draws=10) for _ in range(2))
    assert one == two


def test_a_regression_is_reported(regressor):
    X, y = hostile_table()
    page = render_report(regressor, X, y, n_draws=10)
    assert "inside their 95 % intervals" in page
    assert Reader(page).tags.count("script") == 2


def test_a_sparse_model_is_reported_without_what_it_does_not_hold(classifier, tmp_path):
    classifier.save(tmp_path / "m.islab", sparse=True)
    X, score = hostile_table()
    page = render_report(load(tmp_path / "m.islab"), X, labels(score), n_draws=10)
    assert "not stored" in page


def test_a_model_that_uses_nothing_is_reported(independent):
    classifier, posterior = independent, independent.posterior_
    empty = with_posterior(classifier, posterior.copy(lam=np.full_like(posterior.lam, -9.0)))
    X, score = hostile_table()
    page = render_report(empty, X, labels(score), n_draws=10)
    assert "the median network predicts the same for all rows" in page
    assert 'id="graph"' not in page


def test_sliders_span_the_values_in_training(classifier):
    X, _ = hostile_table()
    page = render_report(classifier, X.iloc[:2], n_draws=10)
    setting = next(each for each in embedded(page)["settings"] if each["name"] == SCRIPT)
    assert (setting["low"], setting["high"]) == (X[SCRIPT].min(), X[SCRIPT].max())
    assert 0 < setting["step"] < (setting["high"] - setting["low"]) / 50


@pytest.mark.parametrize(("values", "step"), [([1.0, 4.0, 2.5], 1.0), ([1.0, 4.5, 2.5], 0.01)])
def test_whole_numbers_are_changed_in_whole_steps(values, step):
    # 2.5 is the mean, which stands where a value is missing.
    variable = Number("a", fill=2.5, low=1.0, high=max(values), indicator=True)
    assert _reach(variable, np.array(values)) == (1.0, max(values), step)


def test_columns_left_out_are_named_with_the_reason():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"<b>id": rng.permutation(90), "x": rng.normal(size=90)})
    y = 3 * table["x"] + rng.normal(size=90)
    with pytest.warns(TableWarning):
        model = ISLaBRegressor(max_epochs=60, n_restarts=1, random_state=0).fit(table, y)
    page = render_report(model, table, y, n_draws=10)
    assert "1 column was left out:" in page
    assert "&lt;b&gt;id (counts the rows)." in page


def test_a_single_row_is_enough(classifier):
    X, score = hostile_table()
    assert "<h3>Row 0" in render_report(classifier, X.iloc[:1], labels(score)[:1], n_draws=10)


def test_several_targets_are_reported():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    y = x[:, :2] * 3 + rng.normal(size=(80, 2))
    model = ISLaBRegressor(max_epochs=20, n_restarts=1, random_state=0).fit(x, y)
    page = render_report(model, x, y, n_draws=10)
    assert 'id="which-output"' in page


def test_a_curved_network_is_called_approximate(classifier):
    net = Architecture(classifier.network_.n_covariates, (3,), 1, activation="tanh")
    rng = np.random.default_rng(0)
    posterior = Posterior.initialise(net, rng, Initial("dense", "dense"), "bernoulli")
    X, score = hostile_table()
    page = render_report(with_posterior(classifier, posterior), X, labels(score), n_draws=10)
    assert "an approximation" in page


def test_a_large_network_has_fewer_draws():
    rng = np.random.default_rng(0)
    start = Initial("dense", "dense")
    network = Posterior.initialise(Architecture(60, (20,), 3), rng, start, "categorical").median()
    networks = DrawnNetworks.from_dense(network.architecture, *network.draw(500, rng))
    n_draws = draws_that_fit(networks)
    assert 20 <= n_draws < 500
    model = PageModel(networks[:n_draws], network.covariates, network.noise_in_units())
    assert len(json.dumps(network_data(network, {"median": model}, 0.95))) < 1_500_000


def test_ticks_are_round_and_inside():
    ticks = Scale(0.013, 0.987, 0.0, 100.0).ticks()
    assert [label for _, label in ticks] == ["0.25", "0.5", "0.75"]
    assert all(0 <= place <= 100 for place, _ in ticks)


def test_a_report_encodes_the_table_once(regressor, monkeypatch):
    X, y = hostile_table()
    encode, calls = ColumnEncoder.encode, []

    def counted(self, table):
        calls.append(len(table))
        return encode(self, table)

    monkeypatch.setattr(ColumnEncoder, "encode", counted)
    render_report(regressor, X, y, n_draws=10)
    assert calls == [len(X)]


@pytest.mark.parametrize("more", [0, 5])
def test_a_report_draws_each_model_once(more, monkeypatch):
    X, y = hostile_table()
    params = {"max_epochs": 60, "n_restarts": 1, "random_state": 0, "posterior": "independent"}
    regressor = ISLaBRegressor(**params).fit(X, y)
    monkeypatch.setattr("islab.estimators.drawn_rows._LAST_DRAWS", WeakKeyDictionary())
    X, y = hostile_table()
    calls = []
    for kind in (SparseNetwork, Posterior):

        def counted(self, n_draws, rng, draw=kind.draw, name=kind.__name__):
            calls.append((name, n_draws))
            return draw(self, n_draws, rng)

        monkeypatch.setattr(kind, "draw", counted)
    n_draws = regressor.n_draws + more
    render_report(regressor, X, y, n_draws=n_draws if more else 10)
    assert sorted(calls) == [("Posterior", n_draws), ("SparseNetwork", n_draws)]
