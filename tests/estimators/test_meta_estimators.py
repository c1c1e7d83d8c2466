"""Estimators inside those of scikit-learn, which pass arrays, parts of frames, or both."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_predict
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from islab import ISLaBClassifier, ISLaBRegressor

QUICK = {
    "max_epochs": 30,
    "n_restarts": 1,
    "hidden_layer_sizes": (2,),
    "n_draws": 20,
    "posterior": "independent",
    "random_state": 0,
}
N = 120
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "town": RNG.choice(["Ely", "Wells", "Bath"], N),
        "when": pd.date_range("2022-01-01", periods=N, freq="5D"),
        "rank": pd.Categorical(RNG.choice(list("abc"), N), ordered=True),
    },
    index=np.arange(500, 500 + N),
)
SCORE = 3 * X["size"] + 2 * (X["town"] == "Ely")
Y = SCORE + 0.3 * RNG.normal(size=N)
LABELS = np.where(SCORE.median() < SCORE, "high", "low")
NUMBERS = X[["size"]].assign(other=RNG.normal(size=N))


@pytest.mark.parametrize("table", [X, NUMBERS, NUMBERS.to_numpy()], ids=["mixed", "frame", "array"])
def test_bags_of_models(table):
    longer = {**QUICK, "max_epochs": 200}
    bag = BaggingClassifier(ISLaBClassifier(**longer), n_estimators=3, random_state=0)
    assert bag.fit(table, LABELS).score(table, LABELS) > 0.8
    bag = BaggingRegressor(ISLaBRegressor(**longer), n_estimators=3, random_state=0)
    assert bag.fit(table, Y).score(table, Y) > 0.8


def test_an_array_of_objects_is_read_as_the_frame_it_was():
    table = X.drop(columns="rank").set_axis(["x0", "x1", "x2"], axis=1)
    model, same = ISLaBRegressor(**QUICK).fit(table, Y), ISLaBRegressor(**QUICK)
    assert same.fit(table.to_numpy(), Y).columns_ == model.columns_
    np.testing.assert_array_equal(same.predict(table.to_numpy()), model.predict(table))


def test_a_grid_of_settings_on_a_frame_with_text_and_dates():
    search = GridSearchCV(ISLaBRegressor(**QUICK), {"sparsity": [0.3, 0.7]}, cv=3)
    assert search.fit(X, Y).best_score_ > 0.8
    assert search.best_estimator_.columns_.to_frame()["kind"].tolist() == [
        "number",
        "category",
        "date",
        "ordered",
    ]


def test_a_pipeline_that_hands_on_a_frame():
    scale = ColumnTransformer([("scale", StandardScaler(), ["size"])], remainder="passthrough")
    pipeline = make_pipeline(scale.set_output(transform="pandas"), ISLaBRegressor(**QUICK))
    assert pipeline.fit(X, Y).score(X, Y) > 0.8
    assert "scale__size" in pipeline[-1].feature_names_in_


def test_votes_stacks_and_calibration():
    vote = VotingClassifier(
        [("a", ISLaBClassifier(**QUICK)), ("b", ISLaBClassifier(**QUICK))], voting="soft"
    )
    assert vote.fit(X, LABELS).score(X, LABELS) > 0.8
    calibrated = CalibratedClassifierCV(ISLaBClassifier(**QUICK), cv=3).fit(X, LABELS)
    assert calibrated.score(X, LABELS) > 0.8
    stack = StackingRegressor([("a", ISLaBRegressor(**QUICK)), ("b", Ridge())], cv=3)
    assert stack.fit(NUMBERS, Y).score(NUMBERS, Y) > 0.7


def test_a_threshold_for_a_cost():
    tuned = TunedThresholdClassifierCV(
        ISLaBClassifier(**QUICK), scoring="balanced_accuracy", cv=3
    ).fit(X, LABELS == "high")
    assert tuned.score(X, LABELS == "high") > 0.8


def test_targets_that_are_transformed_or_several():
    logged = TransformedTargetRegressor(
        ISLaBRegressor(**QUICK), func=np.log1p, inverse_func=np.expm1
    )
    assert logged.fit(X, np.exp(Y / 4)).score(X, np.exp(Y / 4)) > 0.7
    both = MultiOutputRegressor(ISLaBRegressor(**QUICK))
    assert both.fit(NUMBERS, np.column_stack([Y, -Y])).predict(NUMBERS).shape == (N, 2)


def test_held_out_predictions_and_the_importance_of_columns():
    predicted = cross_val_predict(ISLaBRegressor(**QUICK), X, Y, cv=3)
    assert np.corrcoef(predicted, Y)[0, 1] > 0.9
    model = ISLaBRegressor(**QUICK).fit(X, Y)
    importance = permutation_importance(model, X, Y, n_repeats=2, random_state=0)
    assert importance.importances_mean.argmax() == 0


def test_selected_columns_are_a_frame_with_the_index_on_request():
    model = clone(ISLaBRegressor(**QUICK)).set_output(transform="pandas").fit(X, Y)
    selected = model.transform(X)
    assert {"size", "town"} <= set(selected.columns)
    pd.testing.assert_index_equal(selected.index, X.index)


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
def test_selected_columns_of_any_frame_are_what_set_output_asks_for(kind, output):
    polars, library = pytest.importorskip("polars"), pytest.importorskip(kind)
    table = X.drop(columns="rank").reset_index(drop=True)
    other = polars.from_pandas(table)
    other = {"pandas": table, "polars": other}.get(kind, other.to_arrow())
    if kind == "duckdb":
        other = library.from_arrow(other)
    model = ISLaBRegressor(**{**QUICK, "max_epochs": 200}).set_output(transform=output)
    selected = model.fit(other, Y.to_numpy()).transform(other)
    kinds = {"default": np.ndarray, "pandas": pd.DataFrame, "polars": polars.DataFrame}
    assert isinstance(selected, kinds[output])
    names = table.columns[model.get_support()]
    assert {"size", "town"} <= set(names)
    if output == "pandas":
        selected = polars.from_pandas(selected)
    if output == "default":
        np.testing.assert_array_equal(selected, table[names].to_numpy())
    else:
        assert selected.equals(polars.from_pandas(table[names]))


def test_residuals_keep_the_index():
    regressor = ISLaBRegressor(**QUICK).fit(X, np.column_stack([Y, -Y]))
    assert regressor.residuals(X, np.column_stack([Y, -Y])).index.tolist() == [*X.index.repeat(2)]
    classifier = ISLaBClassifier(**QUICK).fit(X, LABELS)
    pd.testing.assert_index_equal(classifier.residuals(X, LABELS).index, X.index)
    assert classifier.residuals(classifier.predictions(X), LABELS).index.tolist() == [*range(N)]


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "duckdb"])
def test_frames_of_other_libraries_give_the_same_model(kind):
    library = pytest.importorskip(kind)
    arrow = pytest.importorskip("pyarrow")
    table = X.drop(columns="rank")
    other = arrow.Table.from_pandas(table, preserve_index=False)
    if kind == "polars":
        other = library.from_arrow(other)
    if kind == "duckdb":
        other = library.from_arrow(other)
    expected = ISLaBRegressor(**QUICK).fit(table, Y)
    found = ISLaBRegressor(**QUICK).fit(other, Y.to_numpy())
    assert found.columns_ == expected.columns_
    np.testing.assert_array_equal(found.predict(other), expected.predict(table))
