"""Fits of all methods on the same splits."""

import json
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.svm import LinearSVC

import islab
from islab import compare
from islab.baselines.references import ReferenceClassifier
from islab.evaluate import make_method, score_classes
from islab.images import ISLaBImageClassifier


def test_scores_are_those_of_a_fit_to_the_split(table, state):
    found = compare(table, state, {"linear": LogisticRegression()}, seeds=[5], test_size=0.2)
    rows = np.arange(len(table))
    train, test = train_test_split(rows, test_size=0.2, random_state=5, stratify=state)
    model = ReferenceClassifier(LogisticRegression()).fit(
        table.iloc[np.sort(train)], state[np.sort(train)]
    )
    held_out = table.iloc[np.sort(test)]
    expected = score_classes(state[np.sort(test)], model.predict_proba(held_out), ["ill", "well"])
    row = found.to_frame().iloc[0]
    assert row[list(expected)].to_dict() == pytest.approx(expected)


def test_a_network_has_a_line_for_both_models_and_another_method_one(table, state, quick):
    frame = compare(table, state, quick, seeds=1).to_frame()
    assert list(zip(frame["method"], frame["model"], strict=True)) == [
        ("network", "full"),
        ("network", "median"),
        ("linear", "full"),
    ]


def test_numbers_have_the_scores_of_numbers(table, price, linear):
    frame = compare(table, price, linear, seeds=2).to_frame()
    assert len(frame) == 2
    assert frame[["rmse", "nll", "coverage", "crps"]].notna().all(axis=None)


def test_counts_are_compared_where_a_method_knows_them(table):
    visits = np.random.default_rng(0).poisson(3, len(table))
    network = islab.ISLaBRegressor(likelihood="poisson", max_epochs=200, n_restarts=1, n_draws=10)
    found = compare(table, visits, {"network": network, "ridge": "ridge"}, seeds=1, task="counts")
    assert found.to_frame()["nll"].notna().sum() == 2
    assert "counts" in found.failures()["ridge"]


def test_arrays_and_other_frames_give_what_a_frame_gives(table, price, linear):
    polars = pytest.importorskip("polars")
    numbers = table.drop(columns="colour")
    kinds = [numbers, numbers.to_numpy(), polars.from_dict(numbers.to_dict("list"))]
    scores = [compare(X, price, linear, seeds=1).to_frame()["rmse"][0] for X in kinds]
    np.testing.assert_allclose(scores, scores[0])


def test_parallel_fits_give_what_fits_in_turn_give(table, price, linear):
    one = compare(table, price, linear, seeds=3).to_frame()
    two = compare(table, price, linear, seeds=3, n_jobs=2).to_frame()
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), two.drop(columns="seconds"))


# Dask's own code warns.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_cluster_of_dask_gives_what_one_process_gives(table, state, quick):
    distributed = pytest.importorskip("distributed")
    here = compare(table, state, quick, seeds=2).to_frame()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        there = compare(table, state, quick, seeds=2).to_frame()
        done = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert sum(done.values()) >= 4
    pd.testing.assert_frame_equal(here.drop(columns="seconds"), there.drop(columns="seconds"))


# -- what fails -------------------------------------------------------------------------------


def test_a_method_that_fails_is_a_line_that_says_why(table, state, quick, counting):
    counting.stop_at, counting.error = 1, ZeroDivisionError
    found = compare(table, state, {"broken": counting(), **quick}, seeds=1)
    frame = found.to_frame().set_index("method")
    assert frame.loc["broken", "error"] == "ZeroDivisionError: enough"
    assert frame.loc[["network", "linear"], "error"].isna().all()


def test_a_method_without_its_package_is_a_line_that_says_why(table, price, monkeypatch):
    monkeypatch.setitem(sys.modules, "lassonet", None)
    found = compare(table, price, ["lassonet", "ridge"], seeds=2)
    assert found.failures() == {
        "lassonet": "failed on 2 of 2 seeds: ModuleNotFoundError: LassoNet needs lassonet, which "
        "is not installed; try `pip install lassonet`."
    }


def test_an_estimator_for_another_task_is_a_line_that_says_why(table, state):
    found = compare(table, state, {"numbers": Ridge(), "ridge": "ridge"}, seeds=1)
    assert "Ridge is not for classification" in found.failures()["numbers"]


def test_a_classifier_without_probabilities_is_a_line_that_says_why(table, state):
    found = compare(table, state, {"machine": LinearSVC(), "ridge": "ridge"}, seeds=1)
    assert "predict_proba" in found.failures()["machine"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["jungle"]}, "Got method 'jungle'"),
        ({"methods": []}, "Got no methods"),
        ({"seeds": 0}, "Got seeds=0"),
        ({"seeds": [1, 1]}, "all different"),
        ({"test_size": 2.0}, "cannot be split"),
        ({"task": "ranking"}, "Got task='ranking'"),
        ({"y": [1.0]}, "60 rows of X and 1 of y"),
        ({"y": [None] + ["a"] * 59}, "Got no target in row 0"),
        ({"y": ["a"] + ["b"] * 59}, "classes with a single row"),
    ],
)
def test_what_cannot_be_compared_is_refused(table, state, change, message):
    options = {"X": table, "y": state, "methods": ["ridge"], "seeds": 1, **change}
    with pytest.raises(ValueError, match=message):
        compare(**options)


# -- going on ---------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_from_what_is_done(table, state, counting, tmp_path):
    file = tmp_path / "fits.jsonl"
    counting.stop_at = 4
    with pytest.raises(KeyboardInterrupt):
        compare(table, state, {"a": counting()}, seeds=6, results=file)
    assert len(file.read_text().splitlines()) == 3
    counting.fits, counting.stop_at = 0, None
    frame = compare(table, state, {"a": counting()}, seeds=6, results=file).to_frame()
    assert counting.fits == 3
    assert frame["seed"].tolist() == list(range(6))


def test_what_is_done_is_not_repeated(table, state, counting, tmp_path):
    first = compare(table, state, {"a": counting()}, seeds=2, results=tmp_path)
    again = compare(table, state, {"a": counting()}, seeds=2, results=tmp_path)
    assert counting.fits == 2
    pd.testing.assert_frame_equal(first.to_frame(), again.to_frame())


def test_more_seeds_add_to_what_is_done(table, state, counting, tmp_path):
    for seeds in (2, 5):
        compare(table, state, {"a": counting()}, seeds=seeds, results=tmp_path)
    assert counting.fits == 5


def test_force_repeats_what_is_done(table, state, counting, tmp_path):
    for _ in range(2):
        compare(table, state, {"a": counting()}, seeds=2, results=tmp_path, force=True)
    assert counting.fits == 4


@pytest.mark.parametrize("change", ["rows", "target", "test_size", "label"])
def test_results_of_something_else_are_not_taken(table, state, counting, tmp_path, change):
    compare(table, state, {"a": counting()}, seeds=1, results=tmp_path)
    label, size = "a", 0.1
    if change == "rows":
        table = table.assign(size=table["size"] + 1)
    elif change == "target":
        state = np.where(state == "ill", "sick", "well")
    elif change == "test_size":
        size = 0.2
    else:
        label = "b"
    compare(table, state, {label: counting()}, seeds=1, test_size=size, results=tmp_path)
    assert counting.fits == 2


def test_other_parameters_are_another_method(table, price, tmp_path):
    errors = [
        compare(table, price, {"linear": Ridge(alpha)}, seeds=1, results=tmp_path)
        for alpha in (1.0, 1e6)
    ]
    first, second = (found.to_frame()["rmse"][0] for found in errors)
    assert second > 1.5 * first


def test_failures_are_tried_again(table, state, counting, tmp_path):
    counting.stop_at, counting.error = 1, ValueError
    assert compare(table, state, {"a": counting()}, seeds=1, results=tmp_path).failures()
    assert not compare(table, state, {"a": counting()}, seeds=1, results=tmp_path).failures()


def test_records_are_lines_of_json(table, state, counting, tmp_path):
    compare(table, state, {"a": counting()}, seeds=2, results=tmp_path)
    lines = (tmp_path / "comparison.jsonl").read_text().splitlines()
    assert {(record["method"], record["seed"]) for record in map(json.loads, lines)} == {
        ("a", 0),
        ("a", 1),
    }


def test_a_place_that_cannot_be_written_is_refused_before_the_first_fit(
    table, state, counting, tmp_path
):
    with pytest.raises(FileNotFoundError, match="folder does not exist"):
        compare(table, state, {"a": counting()}, seeds=1, results=tmp_path / "no" / "where")
    assert counting.fits == 0


def test_columns_may_have_any_name(table, price, linear):
    numbers = table.drop(columns="colour")
    renamed = numbers.set_axis(range(numbers.shape[1]), axis=1)
    scores = [compare(X, price, linear, seeds=1).to_frame()["rmse"][0] for X in (numbers, renamed)]
    assert scores[0] == pytest.approx(scores[1])


def test_results_of_data_that_differ_in_a_nameless_column_are_not_taken_for_the_same(
    table, price, linear, tmp_path
):
    nameless = table.drop(columns="colour").assign(**{"": 0.0})
    tables = nameless, nameless.assign(**{"": price})
    first, second = (
        compare(X, price, linear, seeds=1, results=tmp_path).to_frame()["rmse"][0] for X in tables
    )
    assert second < 0.5 * first


# -- folds within the training rows -----------------------------------------------------------


@pytest.fixture(scope="module")
def by_age():
    """A table sorted by a column that matters."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["age", "size", "noise"])
    chance = 1 / (1 + np.exp(-2 * table["age"] - table["size"]))
    state = np.where(rng.random(200) < chance, "ill", "well")
    order = np.argsort(table["age"].to_numpy())
    return table.iloc[order].reset_index(drop=True), state[order]


def lasso_on(folds):
    return make_method("lasso", "classification").set_params(estimator__cv=folds)


def test_a_sorted_table_is_learned_as_well_as_with_shuffled_folds(by_age):
    methods = {
        "lasso": "lasso",
        "shuffled": lasso_on(StratifiedKFold(5, shuffle=True, random_state=1)),
        "consecutive": lasso_on(StratifiedKFold(5)),
    }
    nll = compare(*by_age, methods, seeds=3).to_frame().groupby("method")["nll"].mean()
    assert nll["lasso"] == pytest.approx(nll["shuffled"], abs=0.02)
    assert nll["consecutive"] > nll["lasso"] + 0.1


def test_the_result_says_how_penalties_are_chosen(by_age, tmp_path):
    found = compare(*by_age, ["ridge", "lasso", "boosting"], seeds=1)
    note = (
        "settings of ridge, lasso chosen within the training rows by 5 shuffled folds, stratified"
    )
    assert str(found).splitlines()[-1] == note
    found.to_html(tmp_path / "page.html")
    assert note in (tmp_path / "page.html").read_text()


def test_groups_are_on_one_side_of_every_split(price):
    seen = []

    class Watching(Ridge):
        def fit(self, X, y):
            seen.append(X)
            return super().fit(X, y)

    groups = np.repeat([f"patient {k}" for k in range(15)], 4)
    numbers = pd.DataFrame({"group": pd.factorize(groups)[0], "row": np.arange(60)})
    compare(numbers, price, {"a": Watching()}, seeds=3, test_size=0.2, groups=groups)
    # Standardised covariates: rows of a group share a value.
    for rows in seen:
        counts = np.unique(rows[:, 0].round(9), return_counts=True)[1]
        assert set(counts) == {4}


def test_classes_in_groups_are_on_one_side_of_every_split(table, state):
    groups = np.arange(60) // 3
    found = compare(table, state, ["lasso"], seeds=2, groups=groups)
    assert not found.failures()
    assert found.records[0]["folds"].endswith("stratified, grouped")


@pytest.mark.parametrize(
    ("groups", "message"),
    [(np.zeros(60), "at least two groups"), (np.arange(59), "of each of the 60 rows")],
)
def test_groups_that_make_no_sense_are_refused(table, price, groups, message):
    with pytest.raises(ValueError, match=message):
        compare(table, price, ["ridge"], seeds=1, groups=groups)


def test_ridge_logistic_and_linear_are_one_method(table, state, price):
    frame = compare(table, state, ["ridge", "logistic", "linear"], seeds=1).to_frame()
    assert frame["method"].tolist() == ["ridge"]
    assert compare(table, price, ["linear"], seeds=1).methods == ("ridge",)


# -- interrupts -------------------------------------------------------------------------------


def test_a_model_that_was_interrupted_and_kept_is_refused(
    table, state, counting, tmp_path, monkeypatch
):
    original = ReferenceClassifier.fit

    def fit(self, X, y):
        self.interrupted_ = counting.fits == 1
        return original(self, X, y)

    monkeypatch.setattr(ReferenceClassifier, "fit", fit)
    with pytest.raises(KeyboardInterrupt):
        compare(table, state, {"a": counting()}, seeds=3, results=tmp_path)
    assert len((tmp_path / "comparison.jsonl").read_text().splitlines()) == 1


# -- images --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def images():
    """A bright half, at the top or at the bottom."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["bottom", "top"], 30)
    pixels = rng.random((60, 6, 6)) * 0.3
    pixels[30:, :3] += 0.6
    pixels[:30, 3:] += 0.6
    return pixels, labels


@pytest.fixture(scope="module")
def of_images(images):
    pytest.importorskip("torch")
    network = ISLaBImageClassifier(channels=(2,), hidden_layer_sizes=(), max_epochs=20, n_draws=5)
    return compare(*images, {"network": network, "pixels": "ridge"}, seeds=2)


def test_images_are_compared_with_methods_that_read_their_pixels(of_images):
    frame = of_images.to_frame().query("model == 'full'")
    assert frame.groupby("method")["accuracy"].min().to_dict() == {"network": 1.0, "pixels": 1.0}


def test_the_size_of_a_network_of_images_is_counted(of_images):
    used = of_images.to_frame().query("method == 'network'")["used_weights"]
    assert used.between(1, 500).all()


def test_changed_pixels_are_other_data(images, tmp_path):
    pixels, labels = images
    options = {"seeds": 1, "results": tmp_path}
    first = compare(pixels, labels, ["ridge"], **options)
    again = compare(pixels, labels, ["ridge"], **options)
    other = compare(pixels[:, ::-1], labels, ["ridge"], **options)
    assert first.records[0]["seconds"] == again.records[0]["seconds"]
    assert other.records[0]["dataset"] != first.records[0]["dataset"]


def test_images_have_classes(images):
    with pytest.raises(ValueError, match="Got task='regression' for images, expected 'class"):
        compare(*images, task="regression")


def test_a_network_of_images_fails_on_a_table(table, state):
    found = compare(table, state, ["islab-images", "ridge"], seeds=1)
    assert "reads images, not a table" in found.failures()["islab-images"]
