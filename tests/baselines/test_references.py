"""Estimators of other packages behind our face."""

import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from islab.baselines.peers import PEERS, make_peer
from islab.baselines.references import ReferenceClassifier, ReferenceRegressor

# The last two take minutes where they are installed.
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if name in ("ebm", "lassonet") else name
    for name in PEERS
]
OPTIONAL = {"ebm": "interpret", "lassonet": "lassonet"}
QUICK = {
    "ebm": {"outer_bags": 1},
    "lassonet": {"path_multiplier": 2.0, "n_iters": (200, 10)},
    "ensemble": {"n_estimators": 2},
}


def make_table(n_rows=80):
    """Numbers, text and gaps; the target needs ``size`` and ``colour``."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(10, 2, n_rows),
            "colour": rng.choice(["red", "blue", "green"], n_rows),
            "noise": rng.normal(size=n_rows),
        }
    )
    score = table["size"] - 10 + 3 * (table["colour"] == "red")
    table.loc[::9, "noise"] = np.nan
    return table, score + 0.3 * rng.normal(size=n_rows)


def as_classes(score):
    return np.where(score > 0.5, "ill", "well")


@parametrize_with_checks(
    [
        ReferenceClassifier(LogisticRegression(), missing="error"),
        ReferenceRegressor(Ridge()),
        ReferenceRegressor(Lasso(0.01), missing="error"),
    ]
)
def test_references_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@cache
def fitted(name, task):
    pytest.importorskip(OPTIONAL.get(name, "sklearn"))
    table, score = make_table()
    inner = make_peer(name, task).set_params(**QUICK.get(name, {}))
    if task == "classification":
        return ReferenceClassifier(inner, random_state=0).fit(table, as_classes(score))
    return ReferenceRegressor(inner, random_state=0).fit(table, score)


@pytest.mark.parametrize("name", NAMES)
def test_every_known_estimator_learns_classes_from_a_table(name):
    table, score = make_table()
    assert fitted(name, "classification").score(table, as_classes(score)) > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_every_known_estimator_gives_probabilities(name):
    table, _ = make_table()
    probability = fitted(name, "classification").predict_proba(table)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_every_known_estimator_learns_numbers_from_a_table(name):
    assert fitted(name, "regression").score(*make_table()) > 0.8


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", NAMES)
def test_every_known_estimator_tells_its_size(name, task):
    model = fitted(name, task)
    assert model.n_used_weights_ > 0
    assert model.get_support()[:2].all()


@pytest.mark.parametrize("name", ["boosting", "ensemble"])
def test_the_same_seed_gives_the_same_model(name):
    table, y = make_table(40)
    inner = make_peer(name, "regression").set_params(**QUICK.get(name, {}))
    model = ReferenceRegressor(inner, random_state=3)
    first, second = (clone(model).fit(table, y).predict(table) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("name", "package"), [("ebm", "interpret"), ("lassonet", "lassonet")])
def test_a_package_that_is_not_installed_is_named(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        make_peer(name, "regression")


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="Got name='forest', expected one of ridge, lasso"):
        make_peer("forest", "regression")


# -- spread of numbers ------------------------------------------------------------------------


def test_the_spread_is_that_of_cross_validated_residuals():
    X, y = load_diabetes(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=0)
    residual = y - cross_val_predict(LinearRegression(), X, y, cv=folds)
    model = ReferenceRegressor(LinearRegression()).fit(X, y)
    assert model.sd_ == pytest.approx(np.sqrt(np.mean(residual**2)))


def test_a_model_that_knows_its_rows_by_heart_has_a_spread_all_the_same():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 29)), rng.normal(size=30)
    model = ReferenceRegressor(LinearRegression()).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
    assert model.sd_ > 0.5


def test_quantiles_are_normal():
    X, y = load_diabetes(return_X_y=True)
    model = ReferenceRegressor(Ridge()).fit(X, y)
    mean, sd = model.predict(X, return_std=True)
    expected = norm.ppf([0.05, 0.95], mean[:, None], sd[:, None])
    np.testing.assert_allclose(model.predict_interval(X, 0.9), expected)


def test_predictions_are_in_the_unit_of_the_target():
    X, y = load_diabetes(return_X_y=True)
    expected = LinearRegression().fit(X, y).predict(X)
    found = ReferenceRegressor(LinearRegression()).fit(X, y).predict(X)
    np.testing.assert_allclose(found, expected)


# -- size and selection -----------------------------------------------------------------------


def test_the_lasso_selects_what_it_gives_a_coefficient():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = ReferenceRegressor(Lasso(0.1)).fit(X, y)
    kept = model.estimator_.coef_ != 0
    assert 0 < kept.sum() < X.shape[1]
    assert model.n_used_weights_ == kept.sum()
    assert model.get_feature_names_out().tolist() == X.columns[kept].tolist()


def test_a_column_is_selected_with_any_of_its_covariates():
    table, y = make_table()
    model = ReferenceRegressor(Lasso(0.3)).fit(table, y)
    used = np.array(model.columns_.names)[model.estimator_.coef_ != 0]
    assert "colour=red" in used
    assert "colour=green" not in used
    assert model.get_feature_names_out().tolist() == ["size", "colour"]


def test_each_class_has_its_own_coefficients():
    X, _ = load_breast_cancer(return_X_y=True)
    codes = np.digitize(X[:, 0], [12, 16])
    model = ReferenceClassifier(LogisticRegression(max_iter=1000)).fit(X[:, :4], codes)
    assert model.n_used_weights_ == 3 * 4


def test_trees_count_thresholds_and_leaves():
    table, score = make_table()
    boosting = HistGradientBoostingClassifier(max_iter=7, max_leaf_nodes=2)
    model = ReferenceClassifier(boosting).fit(table, as_classes(score))
    # Every tree is one threshold and two leaves.
    assert model.n_used_weights_ == 7 * 3


def test_trees_select_what_they_split_on():
    table, _ = make_table()
    model = ReferenceClassifier(HistGradientBoostingClassifier(max_iter=1, max_leaf_nodes=2))
    model.fit(table, as_classes(table["size"] - 10))
    assert model.get_feature_names_out().tolist() == ["size"]


def test_networks_count_their_weights():
    X, y = load_diabetes(return_X_y=True)
    network = MLPRegressor(
        hidden_layer_sizes=(4, 3), solver="lbfgs", max_iter=10_000, tol=1e-2, random_state=0
    )
    assert ReferenceRegressor(network).fit(X, y).n_used_weights_ == 10 * 4 + 4 * 3 + 3


def test_an_estimator_of_unknown_size_is_said_to_use_all_columns():
    table, score = make_table()
    model = ReferenceClassifier(GaussianNB()).fit(table, as_classes(score))
    assert model.get_support().all()
    assert not hasattr(model, "n_used_weights_")


def test_the_summary_names_estimator_and_covariates():
    table, y = make_table()
    text = str(ReferenceRegressor(Lasso(0.3)).fit(table, y).summary())
    assert "Lasso" in text
    assert "colour=red" in text
    assert "colour=green" not in text


class Unusable(Ridge):
    """Fails if there are more than two covariates."""

    def fit(self, X, y, sample_weight=None):
        if X.shape[1] > 2:
            raise RuntimeError("too many")
        return super().fit(X, y, sample_weight)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = load_diabetes(return_X_y=True)
    model = ReferenceRegressor(Unusable()).fit(X[:, :2], y)
    before = model.predict(X[:, :2])
    with pytest.raises(RuntimeError, match="too many"):
        model.fit(X, 100 * y)
    np.testing.assert_array_equal(model.predict(X[:, :2]), before)


@pytest.mark.parametrize("kind", [ReferenceClassifier, ReferenceRegressor])
def test_a_misspelt_word_for_missing_values_is_refused(kind):
    table, score = make_table()
    with pytest.raises(ValueError, match="Got missing='eror'"):
        kind(missing="eror").fit(table, as_classes(score))
