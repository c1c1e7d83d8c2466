"""Columns of every type that frames may have."""

from datetime import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from islab.tables.columns import ColumnEncoder, TableWarning
from tests.tables.encoding import learn, standardised


@pytest.mark.parametrize(
    "column", [[[1], [2]], [time(1), time(2)], pd.Series([b"u", b"v"], dtype=object)]
)
def test_columns_of_other_types_are_left_out(column):
    table = pd.DataFrame({"x": [1.0, 2.0], "when": column})
    with pytest.warns(TableWarning, match=r"1 column left out \('when': holds values of type "):
        encoder, covariates = learn(table)
    assert encoder.names == ("x",)
    np.testing.assert_array_equal(encoder.encode(table), covariates)


def test_booleans_beside_text_are_levels():
    values = np.array([True, "no", None] * 10, dtype=object)
    encoder, _ = learn(pd.DataFrame({"paid": values}))
    assert encoder.names == ("paid=True", "paid=no", "paid=(missing)")


def test_periods_are_dates_of_their_first_day():
    months = pd.period_range("2020-01", periods=30, freq="M")
    encoder, covariates = learn(pd.DataFrame({"month": months}))
    expected = learn(pd.DataFrame({"month": months.to_timestamp()}))
    assert encoder.names == expected[0].names
    np.testing.assert_array_equal(covariates, expected[1])


DAYS = [19874.5, 19875.25, 19876.0]


def test_durations_are_days():
    column = pd.to_timedelta([DAYS[0], None, DAYS[2]], unit="D")
    encoder, covariates = learn(pd.DataFrame({"when": column}))
    assert encoder.names == ("when", "when (missing)")
    np.testing.assert_allclose(covariates, np.column_stack([DAYS, [0, 1, 0]]))


def test_levels_that_are_whole_numbers_are_found_whatever_their_type():
    table = pd.DataFrame({"c": pd.Categorical([1, 2, 3, 1])})
    encoder, covariates = learn(table)
    assert encoder.names == ("c=1", "c=2", "c=3")
    for same in (table.astype(float), table.astype(int), table.astype(str)):
        np.testing.assert_array_equal(encoder.encode(same), covariates)


def test_nullable_types_of_pandas_are_read():
    table = pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "s": pd.array(["u", None, "v"], dtype="string"),
        }
    )
    _, covariates = learn(table)
    np.testing.assert_array_equal(
        covariates,
        [[1, 0, 1, 0, 1, 0, 0], [2, 1, 0.5, 1, 0, 0, 1], [3, 0, 0, 0, 0, 1, 0]],
    )


def test_polars_and_pandas_give_the_same_covariates():
    polars = pytest.importorskip("polars")
    values = {
        "a": [1.0, None, 3.0, 4.0],
        "b": [True, False, None, True],
        "c": ["u", "v", None, "w"],
        "d": ["k", "l", "k", "l"],
    }
    table = polars.DataFrame(values).with_columns(polars.col("d").cast(polars.Categorical))
    np.testing.assert_array_equal(learn(table)[1], learn(pd.DataFrame(values))[1])


def test_arrays_and_frames_give_the_same_covariates():
    x = np.random.default_rng(2).normal(size=(6, 3))
    x[2, 1] = np.nan
    table = pd.DataFrame(x, columns=["x0", "x1", "x2"])
    _, from_array = ColumnEncoder.learn(x, ["x0", "x1", "x2"])
    np.testing.assert_array_equal(from_array, learn(table)[1])


def test_arrow_tables_are_read():
    arrow = pytest.importorskip("pyarrow")
    values = {"a": [1.0, None, 3.0], "c": ["u", "v", None]}
    _, covariates = ColumnEncoder.learn(arrow.table(values), ["a", "c"])
    np.testing.assert_array_equal(covariates, learn(pd.DataFrame(values))[1])


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 2, 4], dtype=object),
        np.array([Decimal(1), Decimal(2), Decimal(4)], dtype=object),
        pd.arrays.SparseArray([1.0, 2.0, 4.0]),
        pd.array([1, 2, 4], dtype="Int64"),
        np.array([1, 2, 4], dtype=np.uint64),
    ],
    ids=lambda column: str(column.dtype),
)
def test_numbers_of_any_type_are_numbers(column):
    np.testing.assert_array_equal(learn(pd.DataFrame({"a": column}))[1], [[1], [2], [4]])


def test_booleans_with_gaps_are_numbers():
    column = np.array([True, np.nan, False, None], dtype=object)
    _, covariates = learn(pd.DataFrame({"a": column}))
    np.testing.assert_array_equal(covariates, [[1, 0], [0.5, 1], [0, 0], [0.5, 1]])


def test_whole_numbers_too_large_for_floats_are_infinite():
    with pytest.raises(ValueError, match="Got inf in column 'a'"):
        learn(pd.DataFrame({"a": [10**400, 1]}, dtype=object))


def test_large_whole_numbers_are_fine():
    table = pd.DataFrame({"a": [2**62, 2**61, 2**60]})
    np.testing.assert_allclose(standardised(table).std(), 1)


def test_levels_that_are_declared_but_not_there_are_no_covariates():
    column = pd.Categorical(["u", "v", "u"], categories=list("uvwx"))
    encoder, _ = learn(pd.DataFrame({"a": column}))
    assert encoder.variables[0].levels == ("u", "v")


def test_missing_values_of_a_dictionary_column_stay_missing():
    arrow = pytest.importorskip("pyarrow")
    values = ["x", None, "y", "z", None]
    table = arrow.table({"g": arrow.array(values).dictionary_encode()})
    encoder, covariates = ColumnEncoder.learn(table, ["g"])
    expected, same = learn(pd.DataFrame({"g": values}))
    assert encoder.names == expected.names
    np.testing.assert_array_equal(covariates, same)
    with pytest.raises(ValueError, match=r"NaN in column 'g' \(row 1\)"):
        ColumnEncoder.learn(table, ["g"], missing="error")


FLAGS = [True, False, True, True]
SPELLED = [
    pd.Series(FLAGS),
    pd.Series(FLAGS, dtype=object),
    pd.Series(FLAGS).astype(str),
    pd.Series(pd.Categorical(FLAGS)),
    pd.Series(FLAGS).astype("boolean"),
    pd.Series(FLAGS).astype(int),
]


@pytest.mark.parametrize("training", SPELLED[:-1], ids=lambda column: str(column.dtype))
@pytest.mark.parametrize("later", SPELLED, ids=lambda column: str(column.dtype))
def test_booleans_are_known_however_they_are_spelled(training, later):
    encoder, covariates = learn(pd.DataFrame({"b": training}))
    np.testing.assert_array_equal(encoder.encode(pd.DataFrame({"b": later})), covariates)
