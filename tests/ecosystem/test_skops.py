"""Files of skops, which load only classes that the reader trusts, and its model cards."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from islab import ISLaBClassifier, ISLaBRegressor
from islab.core.sampled import AllRows
from islab.evaluate import evaluate
from islab.skops import TRUSTED_TYPES, model_card
from islab.tables.columns import TableWarning

sio = pytest.importorskip("skops.io")

QUICK = {"max_epochs": 30, "n_restarts": 1, "random_state": 0}


@pytest.mark.parametrize("likelihood", ["gaussian", "student_t", "heteroscedastic"])
def test_a_regressor_comes_back_with_its_predictions(table, numbers, likelihood):
    model = ISLaBRegressor(**QUICK, likelihood=likelihood).fit(table, numbers)
    again = sio.loads(sio.dumps(model), trusted=TRUSTED_TYPES)
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    np.testing.assert_array_equal(again.predict_interval(table), model.predict_interval(table))


@pytest.mark.filterwarnings("ignore:Got chains that disagree")
@pytest.mark.parametrize("posterior", ["sampled", "independent", "flow"])
def test_a_classifier_comes_back_with_its_probabilities(table, numbers, posterior):
    labels = pd.cut(numbers, 3, labels=["low", "mid", "top"]).astype(str)
    model = ISLaBClassifier(**QUICK, posterior=posterior).fit(table, labels)
    again = sio.loads(sio.dumps(model), trusted=TRUSTED_TYPES)
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.classes_.tolist() == ["low", "mid", "top"]


def test_a_named_exposure_comes_back(table):
    years = np.random.default_rng(2).uniform(0.5, 3, len(table))
    counts = np.random.default_rng(3).poisson(years * np.exp(table["size"]))
    model = ISLaBRegressor(**QUICK, likelihood="poisson")
    model.fit(table.assign(years=years), counts, exposure="years")
    again = sio.loads(sio.dumps(model), trusted=TRUSTED_TYPES)
    rows = table.assign(years=years)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


def test_columns_that_are_left_out_or_have_outliers_come_back(table, numbers):
    income = np.where(np.arange(len(table)) % 40 == 7, 1e7, table["age"].fillna(0))
    odd = table.assign(patient_id=[f"p{k:04}" for k in range(len(table))], income=income)
    with pytest.warns(TableWarning, match="patient_id"):
        model = ISLaBRegressor(**QUICK).fit(odd, numbers)
    file = sio.dumps(model)
    kinds = {"islab.tables.left_out.LeftOut", "islab.tables.tails.Tails"}
    assert kinds <= set(sio.get_untrusted_types(data=file))
    again = sio.loads(file, trusted=TRUSTED_TYPES)
    np.testing.assert_array_equal(again.predict(odd), model.predict(odd))


def test_a_pipeline_comes_back_with_its_predictions(table, numbers):
    x = table[["age", "size"]]
    pipeline = make_pipeline(StandardScaler(), ISLaBRegressor(**QUICK))
    again = sio.loads(sio.dumps(pipeline.fit(x, numbers)), trusted=TRUSTED_TYPES)
    np.testing.assert_array_equal(again.predict(x), pipeline.predict(x))


def test_what_a_fit_of_many_rows_tells_of_itself_comes_back():
    told = AllRows(n_rows=100_000, n_sampled=5_000, n_structures=3, promised=0.1, pareto_k=0.2)
    assert sio.loads(sio.dumps(told), trusted=TRUSTED_TYPES) == told


def test_without_the_list_nothing_is_loaded(table, numbers):
    model = ISLaBRegressor(**QUICK).fit(table, numbers)
    with pytest.raises(sio.exceptions.UntrustedTypesFoundException, match="SampledPosterior"):
        sio.loads(sio.dumps(model))


@pytest.mark.parametrize("name", TRUSTED_TYPES)
def test_every_trusted_name_is_a_class_of_its_module(name):
    module, _, word = name.rpartition(".")
    found = getattr(import_module(module), word)
    assert isinstance(found, type)
    assert found.__module__ == module


@pytest.fixture(scope="module")
def model(table, numbers):
    return ISLaBRegressor(**QUICK).fit(table, numbers)


def test_a_card_tells_what_the_model_found_and_how_good_it_is(tmp_path, model, table, numbers):
    card = model_card(model, table, numbers)
    assert card.select("Model description/Summary").content.splitlines()[1:-1] == (
        str(model.summary()).splitlines()
    )
    scores = card.select("Model description/Evaluation Results")
    found = dict(zip(scores.table["Metric"], scores.table["Value"], strict=True))
    expected = evaluate(model, table, numbers)
    assert float(found["rmse"]) == pytest.approx(expected["rmse"], rel=1e-3)
    assert "selected" not in found
    assert "120 rows" in scores.content
    card.save(tmp_path / "README.md")
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    for words in ("model.predict(X)", "`town`", "max_epochs", "10.1613/jair.1.20433"):
        assert words in text


def test_a_card_without_rows_leaves_the_scores_open(model):
    card = model_card(model)
    for section in ("Evaluation Results", "Intended uses"):
        assert "More Information Needed" in card.select(f"Model description/{section}").content


def test_a_card_of_classes_and_columns_without_names_says_how_to_predict(numbers):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(len(numbers), 3))
    model = ISLaBClassifier(**QUICK).fit(x, x[:, 0] + rng.normal(size=len(x)) > 0)
    text = model_card(model).render()
    assert "model.predict_proba(X)" in text
    assert "columns 0 to 2" in text


def test_a_card_with_rows_but_no_targets_is_refused(model, table):
    with pytest.raises(ValueError, match="expected both"):
        model_card(model, table)
