"""Columns that alone tell the target: how that is measured, and what a fit says of it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, spearmanr
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from islab import ISLaBClassifier, ISLaBRegressor, TableWarning
from islab.tables.columns import ColumnEncoder
from islab.tables.leaks import _rank_correlation, _separation

RNG = np.random.default_rng(0)
N = 200
FINE = RNG.normal(size=N)
TABLE = pd.DataFrame({"size": RNG.normal(size=N), "fine": FINE, "town": np.resize(list("abc"), N)})


def learn(table, target):
    return ColumnEncoder.learn(table, list(table), target=np.asarray(target))


def test_strengths_are_rank_correlation_and_auc():
    x, y = RNG.normal(size=60), RNG.normal(size=60)
    assert _rank_correlation(x, rankdata(y)) == pytest.approx(abs(spearmanr(x, y).statistic))
    high = (y > 0).astype(int)
    assert _separation(x, high) == pytest.approx(abs(2 * roc_auc_score(high, x) - 1))


def test_of_many_classes_the_pair_that_is_parted_worst_counts():
    codes = np.repeat([0, 1, 2], 20)
    x = np.where(codes == 2, 9.0, RNG.normal(size=60))
    assert _separation(-x, codes) == pytest.approx(
        abs(2 * roc_auc_score(codes[codes < 2], x[codes < 2]) - 1)
    )


@pytest.mark.parametrize(
    "target", [3 * FINE, np.exp(FINE), FINE > 0.3, np.where(FINE > 0.3, "yes", "no")]
)
def test_a_fit_says_which_column_tells_the_target_alone(target):
    with pytest.warns(TableWarning, match="Got column 'fine', which alone tells the target nearly"):
        learn(TABLE, target)


def test_a_fit_names_all_such_columns_with_what_it_leaves_out_in_one_warning():
    table = TABLE.assign(id=np.arange(N), paid=np.where(FINE > 0.3, "in full", "in part"))
    with pytest.warns(TableWarning) as said:
        learn(table, FINE > 0.3)
    assert len(said) == 1
    assert "1 column left out ('id'" in str(said[0].message)
    assert "Got columns 'fine', 'paid', each of which alone tells" in str(said[0].message)


def test_of_several_targets_each_counts():
    with pytest.warns(TableWarning, match="Got columns 'size', 'fine', each of which"):
        learn(TABLE, TABLE[["size", "fine"]])


def test_the_only_column_that_varies_is_no_suspect():
    learn(TABLE[["fine"]].assign(unit="m"), FINE > 0.3)


def test_where_many_columns_tell_the_target_none_is_a_suspect():
    learn(TABLE.assign(**{f"copy{k}": np.exp(k * FINE) for k in (1, 2, 3)}), FINE > 0.3)


def test_of_a_few_rows_nothing_is_said():
    learn(TABLE[:49], FINE[:49] > 0.3)


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_a_strong_column_is_no_suspect(noise):
    learn(TABLE, FINE + noise * RNG.normal(size=N))
    learn(TABLE, FINE + noise * RNG.normal(size=N) > 0)


def test_columns_that_tell_the_target_together_are_no_suspects():
    learn(TABLE, TABLE["size"] + FINE)
    iris = load_iris(as_frame=True)
    learn(iris.data, iris.target)


def test_many_rows_are_looked_through_in_part():
    many = TABLE.loc[np.resize(np.arange(N), 30_000)].reset_index(drop=True)
    with pytest.warns(TableWarning, match="Got column 'fine'"):
        learn(many, many["fine"])


@pytest.mark.parametrize("estimator", [ISLaBClassifier, ISLaBRegressor])
def test_estimators_say_it_once_in_a_cross_validation(estimator):
    y = FINE > 0.3 if estimator is ISLaBClassifier else FINE * 3
    table = TABLE.rename(columns={"fine": f"told {estimator.__name__}"})
    model = estimator(posterior="independent", max_epochs=2, n_restarts=1, random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        cross_val_score(model, table, y, cv=4)
    assert sum("alone tells the target" in str(each.message) for each in said) == 1
