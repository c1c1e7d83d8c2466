"""What estimators make of tables that are not as they should be."""

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier, ISLaBRegressor

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
    assert model.network_.units.names == tuple(odd.columns)
    assert "\n" not in str(model.summary()).splitlines()[-1]
    assert "<b>" not in model.summary()._repr_html_()


def test_arrow_tables_are_welcome(classifier, table, labels):
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
