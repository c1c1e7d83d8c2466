"""What estimators make of tables that are not as they should be."""

from datetime import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score

import islab
from islab import ISLaBClassifier, ISLaBRegressor, TableWarning

from .conftest import QUICK


def test_columns_in_another_order_are_refused(classifier, table):
    with pytest.raises(ValueError, match="same order"):
        classifier.predict(table[table.columns[::-1]])


def test_columns_of_other_names_are_refused_and_named(classifier, table):
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time.*years.*missing.*age"):
        classifier.predict(table.rename(columns={"age": "years"}))


def test_a_missing_column_is_named(classifier, table):
    with pytest.raises(ValueError, match=r"(?s)missing:\n- age"):
        classifier.predict(table.drop(columns="age"))


def test_an_array_of_another_width_is_refused():
    model = ISLaBRegressor(**QUICK).fit(np.eye(6)[:, :3], np.arange(6.0))
    with pytest.raises(ValueError, match="X has 2 features, but ISLaBRegressor is expecting 3"):
        model.predict(np.ones((1, 2)))


def test_a_column_name_that_stands_twice_is_refused(table, labels):
    double = table.set_axis(["size", "size", "noise", "colour", "smoker"], axis=1)
    with pytest.raises(ValueError, match="Got column name 'size' more than once"):
        ISLaBClassifier(**QUICK).fit(double, labels)


def test_a_single_row_is_too_few(table, labels):
    with pytest.raises(ValueError, match="1 row"):
        ISLaBClassifier(**QUICK).fit(table[:1], labels[:1])


def test_a_table_without_rows_is_refused(classifier, table):
    with pytest.raises(ValueError, match="0 row"):
        classifier.predict(table[:0])


def test_a_table_without_columns_is_refused(table, labels):
    with pytest.raises(ValueError, match="0 column"):
        ISLaBClassifier(**QUICK).fit(table[[]], labels)


def test_text_in_an_array_is_refused_with_its_place():
    rows = np.array([[1.0, 2.0], [3.0, "four"], [5.0, 6.0]], dtype=object)
    with pytest.raises(ValueError, match=r"Got 'four' in column 1 \(row 1\).*DataFrame"):
        ISLaBClassifier(**QUICK).fit(rows, [0, 1, 0])


def test_infinity_in_an_array_is_refused_with_its_place():
    rows = np.array([[1.0, 2.0], [3.0, np.inf], [5.0, 6.0]])
    with pytest.raises(ValueError, match=r"Got inf in column 'x1' \(row 1\)"):
        ISLaBClassifier(**QUICK).fit(rows, [0, 1, 0])


def test_infinity_is_refused_in_rows_to_predict(classifier, table):
    rows = table[:2].assign(age=[np.inf, 3])
    with pytest.raises(ValueError, match=r"Got inf in column 'age' \(row 0\)"):
        classifier.predict(rows)


def test_lazy_frames_are_refused_with_the_remedy(table, labels):
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame(table.to_dict(orient="list")).lazy()
    with pytest.raises(TypeError, match=r"X\.collect\(\)"):
        ISLaBClassifier(**QUICK).fit(lazy, labels)


def test_y_is_required(table):
    with pytest.raises(ValueError, match="requires y to be passed"):
        ISLaBClassifier(**QUICK).fit(table, None)


def test_a_frame_without_text_names_is_read_like_an_array(labels):
    x = np.random.default_rng(0).normal(size=(len(labels), 3))
    model = ISLaBClassifier(**QUICK).fit(pd.DataFrame(x), labels)
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(pd.DataFrame(x)), model.predict(x))


def test_single_precision_is_enough_for_the_same_answer(regressor, table):
    single = table.astype({"size": np.float32, "age": np.float32, "noise": np.float32})
    np.testing.assert_allclose(regressor.predict(single), regressor.predict(table), rtol=1e-5)


def test_the_data_are_left_as_they_were(table, labels):
    before = table.copy(deep=True)
    ISLaBClassifier(**QUICK).fit(table, labels).predict(table)
    pd.testing.assert_frame_equal(table, before)


def test_more_columns_than_rows_are_fine():
    x = np.random.default_rng(3).normal(size=(10, 40))
    model = ISLaBRegressor(**QUICK).fit(x, x[:, 0])
    assert np.isfinite(model.predict(x)).all()


def test_names_of_any_characters_are_kept(labels):
    x = np.random.default_rng(3).normal(size=(len(labels), 2))
    odd = pd.DataFrame(x, columns=["<b>größe</b>\n", "名前 = {x}"])
    model = ISLaBClassifier(**QUICK).fit(odd, labels)
    assert model.network_.scale.names == tuple(odd.columns)
    assert "\n" not in str(model.summary()).splitlines()[-1]
    assert "<b>" not in model.summary()._repr_html_()


def test_arrow_tables_are_accepted(classifier, table, labels):
    arrow = pytest.importorskip("pyarrow")
    frame = arrow.table(table.to_dict(orient="list"))
    model = ISLaBClassifier(**QUICK).fit(frame, labels)
    np.testing.assert_array_equal(model.predict_proba(frame), classifier.predict_proba(table))


def test_text_as_a_regression_target_points_to_the_classifier(table, labels):
    with pytest.raises(ValueError, match=r"Got text in y.*'ill'|'well'.*ISLaBClassifier"):
        ISLaBRegressor(**QUICK).fit(table, labels)


def test_labels_of_several_types_are_refused(table):
    mixed = np.array(["a", 1] * (len(table) // 2), dtype=object)
    with pytest.raises(ValueError, match=r"different types in y \(int, str\)"):
        ISLaBClassifier(**QUICK).fit(table, mixed)


def test_whole_numbers_held_as_objects_are_classes(table):
    numbers = np.array([0, 1] * (len(table) // 2), dtype=object)
    assert ISLaBClassifier(**QUICK).fit(table, numbers).classes_.dtype.kind == "i"


def test_a_path_instead_of_data_points_to_a_reader():
    with pytest.raises(TypeError, match=r"Got X='data.csv', expected data; try pandas.read_csv"):
        ISLaBClassifier(**QUICK).fit("data.csv", [0, 1])


def test_a_name_instead_of_targets_points_to_the_column(table):
    with pytest.raises(ValueError, match=r"Got y='age'.*try y=X\['age'\]"):
        ISLaBRegressor(**QUICK).fit(table, "age")


def test_masked_numbers_are_missing():
    x = np.ma.masked_array(np.eye(6)[:, :2], mask=np.eye(6, 2, k=-3, dtype=bool))
    model = ISLaBRegressor(**QUICK).fit(x, np.arange(6.0))
    assert [variable.indicator for variable in model.columns_.variables] == [True, True]


def test_masked_targets_are_refused(table):
    y = np.ma.masked_less(np.arange(len(table)), 3)
    with pytest.raises(ValueError, match="Got masked values in y"):
        ISLaBRegressor(**QUICK).fit(table, y)


def test_sparse_matrices_are_refused_with_the_remedy(table, labels):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"toarray\(\)"):
        ISLaBClassifier(**QUICK).fit(scipy_sparse.eye_array(len(table)), labels)


def test_one_row_is_predicted(classifier, table):
    assert classifier.predict(table[:1]).shape == (1,)


@pytest.mark.parametrize(
    ("dtype", "kind"), [("Int64", "i"), ("boolean", "b"), ("category", "i"), ("Float64", "f")]
)
def test_nullable_classes_keep_their_type(table, dtype, kind):
    y = pd.Series([0, 1] * (len(table) // 2)).astype(dtype)
    for same in (y, y.array):
        assert ISLaBClassifier(**QUICK).fit(table, same).classes_.dtype.kind == kind


@pytest.mark.parametrize(
    "classes",
    [
        pd.to_datetime(["2020", "2021"]),
        np.array([b"a", b"b"]),
        pd.Series([(1, 2), (3, 4)]),
        pd.Series([[1], [3, 4]]),
        [Decimal(1), Decimal(2)],
    ],
    ids=lambda classes: type(classes[0]).__name__,
)
def test_classes_that_no_file_could_hold_are_refused(table, classes):
    y = pd.Series(list(classes) * (len(table) // 2))
    if isinstance(classes, np.ndarray):
        y = np.tile(classes, len(table) // 2)
    with pytest.raises(ValueError, match=r"Got classes such as .* in y.*try y\.astype\(str\)"):
        ISLaBClassifier(**QUICK).fit(table, y)


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_targets_whose_variance_no_number_holds_are_refused(table, numbers, unit):
    with pytest.raises(ValueError, match=r"Got y from .*try another unit"):
        ISLaBRegressor(**QUICK).fit(table, unit * (numbers - numbers.mean()))


@pytest.mark.parametrize("unit", [1e140, 1e-140])
def test_targets_in_extreme_units_are_learned(regressor, table, numbers, unit):
    model = ISLaBRegressor(**QUICK).fit(table, unit * numbers)
    np.testing.assert_allclose(model.predict(table), unit * regressor.predict(table), rtol=1e-3)
    assert (np.diff(model.predict_interval(table)) > 0).all()


def test_whole_numbers_too_large_for_floats_are_refused(table):
    with pytest.raises(ValueError, match=r"too large.* in y"):
        ISLaBRegressor(**QUICK).fit(table, [10**400] * len(table))


def test_targets_of_another_shape_are_refused(regressor, table, numbers):
    with pytest.raises(ValueError, match=r"Got y of shape \(120, 2\), expected \(120,\)"):
        regressor.residuals(table, np.column_stack([numbers, numbers]))


def test_no_levels_are_refused(regressor, table):
    with pytest.raises(ValueError, match=r"Got levels=\[\]"):
        regressor.predict_quantiles(table, [])


def test_a_level_in_words_is_refused(regressor, table):
    with pytest.raises(ValueError, match=r"Got level='0\.9', expected a number"):
        regressor.predict_interval(table, "0.9")


@pytest.mark.parametrize("names", [[3, 5], [1, 2], [("a", 1), ("a", 2)]])
def test_names_that_are_not_text_are_replaced_with_a_warning_to_the_caller(names):
    x = pd.DataFrame(np.eye(6)[:, :2])
    x.columns = pd.Index(names)
    with pytest.warns(UserWarning, match="column names that are not text.*called x0, x1") as said:
        model = ISLaBRegressor(**QUICK).fit(x, np.arange(6.0))
    assert model.network_.scale.names == ("x0", "x1")
    assert said[0].filename == __file__


def test_names_of_which_some_are_text_are_refused_without_a_warning(table, labels):
    with pytest.raises(TypeError, match="all input features have string names"):
        ISLaBClassifier(**QUICK).fit(table.rename(columns={"age": 5}), labels)


DATES = pd.Series(pd.date_range("2020-01-01", periods=6))


@pytest.mark.parametrize(
    "dates",
    [
        DATES,
        DATES.dt.tz_localize("UTC"),
        DATES - DATES[0],
        DATES.dt.to_period("D"),
        DATES.to_numpy(),
        DATES.tolist(),
        DATES.to_frame(),
        pd.DataFrame({"n": range(6), "date": DATES}),
        pl.DataFrame({"n": range(6), "date": DATES.tolist()}),
        [None, *DATES.tolist()[1:]],
        [time(hour) for hour in range(6)],
    ],
    ids=[
        "series",
        "zone",
        "spans",
        "periods",
        "array",
        "list",
        "frame",
        "among numbers",
        "polars",
        "after a gap",
        "times",
    ],
)
def test_dates_as_targets_are_refused_with_the_remedy(dates):
    with pytest.raises(ValueError, match="Got dates or times in y, expected numbers; try days"):
        ISLaBRegressor(**QUICK).fit(np.eye(6), dates)


def test_columns_of_an_arrow_table_with_the_same_name_are_refused():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_arrays([arrow.array([1.0, 2.0])] * 2, names=["a", "a"])
    with pytest.raises(ValueError, match="Got column name 'a' more than once"):
        ISLaBRegressor().fit(table, [1.0, 2.0])


def test_half_a_character_in_text_is_refused_with_the_name_of_its_column():
    column = pd.Series(["u", "\ud800", "u", "v"], dtype=object)
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": column})
    with pytest.raises(ValueError, match=r"an unpaired surrogate, '\\ud800', in column 'b'"):
        ISLaBRegressor().fit(table, [1.0, 2.0, 3.0, 4.0])


def test_half_a_character_in_a_name_is_refused_with_the_name():
    names = pd.Index(["a", "b\ud800"], dtype=object)
    table = pd.DataFrame(np.arange(8.0).reshape(4, 2), columns=names)
    with pytest.raises(ValueError, match=r"surrogate, '\\ud800', in the column name 'b\\ud800'"):
        ISLaBRegressor().fit(table, [1.0, 2.0, 3.0, 4.0])


def test_half_a_character_in_the_name_of_y_is_refused_with_the_name():
    y = pd.Series([1.0, 2.0, 3.0, 4.0], name="y\ud800")
    with pytest.raises(ValueError, match=r"surrogate, '\\ud800', in the name 'y\\ud800' of y"):
        ISLaBRegressor().fit(np.arange(8.0).reshape(4, 2), y)


@pytest.mark.parametrize("dtype", [object, str])
def test_half_a_character_in_a_class_is_refused(dtype):
    y = np.array(["u", "v\ud800"] * 2, dtype=dtype)
    with pytest.raises(ValueError, match=r"surrogate, '\\ud800', in the classes of y, expected"):
        ISLaBClassifier().fit(np.arange(8.0).reshape(4, 2), y)


# -- what is said before it goes wrong ---------------------------------------------------------


def quick_regressor(**params):
    options = {"max_epochs": 5, "n_restarts": 1, "n_draws": 20, "hidden_layer_sizes": ()}
    return ISLaBRegressor(**{**options, **params}, random_state=0)


def test_columns_that_vary_by_rounding_only_are_named_in_one_warning():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"])
    frame[["b", "c"]] = 1e6 + 1e-9 * frame[["b", "c"]]
    with pytest.warns(UserWarning, match=r"1e-12 of their size in 2 columns \(b, c\)") as said:
        quick_regressor().fit(frame, rng.normal(size=30))
    assert len(said) == 1


@pytest.mark.parametrize("kind", ["datetime64[D]", "timedelta64[s]"])
def test_arrays_of_dates_are_refused_as_frames_are(kind):
    times = np.arange(30).reshape(-1, 1).astype(kind)
    with pytest.raises(ValueError, match="expected numbers; try to derive numbers from dates"):
        quick_regressor().fit(times, np.arange(30.0))


def test_dates_in_an_array_of_objects_are_those_of_the_frame():
    days = pd.date_range("2024-01-01", periods=30, freq="5D")
    frame = pd.DataFrame({"x": np.sin(np.arange(30.0)), "day": days})
    array = frame.to_numpy(dtype=object)
    model = quick_regressor().fit(frame, np.arange(30.0))
    again = quick_regressor().fit(array, np.arange(30.0))
    np.testing.assert_array_equal(again.predict(array[:5]), model.predict(frame.iloc[:5]))


def test_a_target_whose_values_differ_by_rounding_only_is_refused():
    with pytest.raises(ValueError, match=r"Got y from 1e\+300 to 1e\+300, numbers so large"):
        quick_regressor().fit(np.ones((30, 1)) * np.arange(30)[:, None], np.full(30, 1e300))


def test_a_column_that_counts_the_rows_is_left_out():
    frame = pd.DataFrame({"patient": range(100, 130), "x": np.sin(np.arange(30.0))})
    with pytest.warns(TableWarning, match="1 column left out .'patient': counts the rows"):
        model = quick_regressor().fit(frame, np.cos(np.arange(30.0)))
    assert model.columns_.names == ("x",)
    assert model.get_feature_names_out().tolist() in ([], ["x"])


def test_a_column_that_counts_the_rows_is_kept_as_floats_or_if_there_is_no_other():
    frame = pd.DataFrame({"day": range(30), "x": np.sin(np.arange(30.0))})
    kept = quick_regressor().fit(frame.astype({"day": float}), np.cos(np.arange(30.0)))
    alone = quick_regressor().fit(frame[["day"]], np.cos(np.arange(30.0)))
    assert kept.columns_.names == ("day", "x")
    assert alone.columns_.names == ("day",)


def test_what_is_left_out_is_not_repeated_in_cross_validation():
    rng = np.random.default_rng(0)
    names = [f"person {number}" for number in range(60)]
    frame = pd.DataFrame({"who in folds": names, "x": rng.normal(size=60)})
    with pytest.warns(TableWarning) as said:
        cross_val_score(quick_regressor(), frame, frame["x"], cv=3)
    assert len(said) == 1


def test_a_file_keeps_what_is_left_out_and_what_is_pooled(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "who": [f"person {number}" for number in range(60)],
            "town": ["Ely"] * 30 + ["Wells"] * 24 + ["Bath", "York", "Hull"] * 2,
            "x": rng.normal(size=60),
        }
    )
    frame.loc[3, "x"] = np.nan
    with pytest.warns(TableWarning):
        model = quick_regressor().fit(frame, rng.normal(size=60))
    model.save(tmp_path / "m.islab")
    assert islab.load(tmp_path / "m.islab").columns_ == model.columns_


@pytest.mark.parametrize("size", [20.0, 400.0])
def test_one_row_of_a_rare_level_carries_no_huge_effect(size):
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame({"area": rng.normal(size=n), "feature": ["none"] * 180 + ["shed"] * 120})
    y = frame["area"] + 0.5 * rng.normal(size=n)
    frame.loc[7, "feature"] = "lift"
    y[7] -= size
    with pytest.warns(UserWarning, match="have outliers"):
        model = ISLaBRegressor(n_restarts=1, random_state=0, posterior="independent").fit(frame, y)
    assert model.columns_.names == ("area", "feature=shed")
    with_lift, without = model.predict(frame.iloc[[7, 7]].assign(feature=["lift", "none"]))
    assert abs(with_lift - without) < 0.5


def test_one_row_without_measurements_carries_no_huge_effect():
    rng = np.random.default_rng(0)
    species = np.repeat([0, 1, 2], 60)
    frame = pd.DataFrame({"bill": rng.normal(species, 0.5), "mass": rng.normal(-species, 0.5)})
    frame.loc[3] = np.nan
    model = ISLaBClassifier(n_restarts=1, random_state=0, posterior="independent")
    model.fit(frame, species)
    assert model.columns_.names == ("bill", "mass")
    unknown = model.predict_proba(pd.DataFrame({"bill": [np.nan], "mass": [np.nan]}))
    assert unknown.min() > 1e-6


def test_whole_numbers_that_do_not_count_are_fine():
    frame = pd.DataFrame({"age": np.arange(30) * 7 % 31})
    quick_regressor().fit(frame, np.cos(np.arange(30.0)))


def test_a_model_without_covariates_is_no_silent_answer_to_a_clear_effect():
    x = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(UserWarning, match=r"No covariate is used, although 'x1'"):
        quick_regressor(
            posterior="independent", prior_inclusion=1e-12, inclusion_init=(-9.0, -9.0)
        ).fit(x, x[:, 1] + 0.1 * x[:, 0])


def test_a_model_without_covariates_is_a_good_answer_to_noise():
    rng = np.random.default_rng(1)
    model = quick_regressor(max_epochs=200).fit(rng.normal(size=(60, 40)), rng.normal(size=60))
    assert model.n_used_weights_ == 0
