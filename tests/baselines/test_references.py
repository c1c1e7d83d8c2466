"""Estimators of other packages behind our face."""

import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import (
    BayesianRidge,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    Ridge,
)
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from islab.baselines.peers import PEERS, make_peer
from islab.baselines.references import ReferenceClassifier, ReferenceRegressor

OPTIONAL = {
    "ebm": "interpret.glassbox",
    "gam": "pygam",
    "bart": "stochtree",
    "lassonet": "lassonet",
}
# These take long where they are installed.
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in OPTIONAL else name for name in PEERS]
WITHOUT_SIZE = ("gp", "bart")
QUICK = {
    "boosting-tuned": {"param_grid": {"learning_rate": [0.1]}, "estimator__max_iter": 60},
    "forest": {"n_estimators": 20},
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
    if name in WITHOUT_SIZE:
        with pytest.raises(AttributeError, match="does not show its weights"):
            model.n_used_weights_  # noqa: B018
        return
    assert model.n_used_weights_ > 0
    assert model.get_support()[:2].all()


@pytest.mark.parametrize("name", ["boosting", "ensemble"])
def test_the_same_seed_gives_the_same_model(name):
    table, y = make_table(40)
    inner = make_peer(name, "regression").set_params(**QUICK.get(name, {}))
    model = ReferenceRegressor(inner, random_state=3)
    first, second = (clone(model).fit(table, y).predict(table) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("name", "package"), OPTIONAL.items())
def test_a_package_that_is_not_installed_is_named(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        make_peer(name, "regression")


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="Got name='jungle', expected one of ridge, lasso"):
        make_peer("jungle", "regression")


def test_a_gaussian_process_refuses_many_rows():
    x = np.zeros((1001, 1))
    with pytest.raises(ValueError, match="Got 1001 training rows, expected at most 1000"):
        make_peer("gp", "regression").fit(x, x[:, 0])


@pytest.mark.parametrize("name", ["gam", "bart"])
def test_methods_of_two_classes_refuse_three(name):
    pytest.importorskip(OPTIONAL[name])
    with pytest.raises(ValueError, match="Got 3 classes, expected two"):
        make_peer(name, "classification").fit(np.zeros((3, 1)), np.arange(3))


# -- folds of parts ---------------------------------------------------------------------------


def sorted_rows(n_rows=120):
    rng = np.random.default_rng(1)
    x = np.sort(rng.normal(size=(n_rows, 1)), axis=0)
    return x, x[:, 0] + 0.3 * rng.normal(size=n_rows)


def folds_of(fitted_cv, n_rows):
    """Row numbers of each fold, whether folds or what makes them were set."""
    folds = fitted_cv.cv
    return folds if isinstance(folds, list) else list(folds.split(np.zeros((n_rows, 1))))


def is_shuffled(test):
    return (np.diff(np.sort(test)) > 1).mean() > 0.5


def test_folds_of_the_last_step_of_a_pipeline_are_shuffled_and_keep_groups():
    x, y = sorted_rows()
    inner = make_pipeline(StandardScaler(), LassoCV(cv=4))
    groups = np.arange(120) % 40
    model = ReferenceRegressor(inner, random_state=0).fit(x, y, groups=groups)
    folds = folds_of(model.estimator_[-1], 120)
    assert len(folds) == 4
    assert all(is_shuffled(test) for _, test in folds)
    assert all(not set(groups[train]) & set(groups[test]) for train, test in folds)


def test_folds_within_another_cross_validation_are_shuffled():
    x, y = sorted_rows()
    inner = GridSearchCV(LassoCV(alphas=[0.01, 0.1]), {"max_iter": [1000, 2000]}, cv=3)
    model = ReferenceRegressor(inner, random_state=0).fit(x, y)
    assert all(is_shuffled(test) for _, test in folds_of(model.estimator_, 120))
    assert all(is_shuffled(test) for _, test in folds_of(model.estimator_.best_estimator_, 120))


def test_folds_within_another_cross_validation_that_would_part_groups_are_refused():
    x, y = sorted_rows()
    inner = GridSearchCV(LassoCV(alphas=[0.01, 0.1]), {"max_iter": [1000]}, cv=3)
    with pytest.raises(ValueError, match="Got groups and 'estimator__cv' of GridSearchCV"):
        ReferenceRegressor(inner).fit(x, y, groups=np.arange(120) % 40)


def test_parts_get_the_seed_unless_they_have_one():
    x, y = sorted_rows()
    boosting = HistGradientBoostingRegressor(max_iter=2)
    made = [
        ReferenceRegressor(make_pipeline(boosting.set_params(random_state=own)), random_state=3)
        for own in (None, 7)
    ]
    seeds = [model.fit(x, y).estimator_[-1].random_state for model in made]
    assert seeds[0] is not None
    assert seeds[1] == 7


# -- spread of numbers ------------------------------------------------------------------------


def test_the_spread_is_the_estimators_own_if_it_has_one():
    x, y = sorted_rows()
    model = ReferenceRegressor(BayesianRidge()).fit(x, y)
    mean, sd = model.predict(x, return_std=True)
    x_, y_ = ((values - values.mean(0)) / values.std(0) for values in (x, y))
    own_mean, own_sd = BayesianRidge().fit(x_, y_).predict(x_, return_std=True)
    np.testing.assert_allclose(mean, y.mean() + y.std() * own_mean)
    np.testing.assert_allclose(sd, y.std() * own_sd)
    ends = model.predict_interval(x, level=0.9)
    np.testing.assert_allclose(np.diff(ends, axis=1)[:, 0], 2 * norm.ppf(0.95) * sd)
    assert model.sd_ is None


def test_the_spread_of_a_gaussian_process_is_its_posterior_with_noise():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (150, 1))
    y = np.sin(x[:, 0]) + 0.2 * rng.normal(size=150)
    model = ReferenceRegressor(make_peer("gp", "regression"), random_state=0).fit(x, y)
    _, sd = model.predict(np.array([[0.0], [30.0]]), return_std=True)
    assert sd[0] == pytest.approx(0.2, rel=0.25)
    assert sd[1] > 2 * sd[0]


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
