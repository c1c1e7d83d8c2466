"""The typical row, values to show, and rows that training did not see."""

import numpy as np
import pandas as pd
import pytest

from islab.tables.columns import ColumnEncoder
from islab.tables.rows import outside_range, shown_values, typical_row

TABLE = pd.DataFrame(
    {
        "age": [20.0, 30.0, 31.0, 40.0, 90.0, np.nan, np.nan, np.nan],
        "port": ["S", "C", "S", "S", "Q", "Q", "C", "C"],
        "deck": ["a", "b", None, None, None, None, "a", "a"],
        "alone": [True, False, True, True, False, True, False, True],
    }
)


@pytest.fixture
def encoded():
    return ColumnEncoder.learn(TABLE, list(TABLE.columns))


def test_the_typical_row_has_the_median_number_and_the_most_frequent_level(encoded):
    encoder, covariates = encoded
    typical = dict(zip(encoder.names, typical_row(encoder, covariates), strict=True))
    assert typical["age"] == 31.0
    assert typical["age (missing)"] == 0.0
    assert (typical["port=C"], typical["port=Q"], typical["port=S"]) == (1.0, 0.0, 0.0)
    assert typical["deck=(missing)"] == 0.0  # most rows lack it, but that is not typical
    assert typical["alone"] == 1.0


def test_rows_count_by_their_weight_in_the_typical_row():
    table = pd.DataFrame({"size": [1.0, 2.0, 3.0]})
    weight = np.array([1.0, 1.0, 5.0])
    encoder, covariates = ColumnEncoder.learn(table, ["size"], "impute", weight)
    assert typical_row(encoder, covariates, weight).tolist() == [3.0]


@pytest.mark.parametrize("n_rows", [1, 2, 7, 8])
def test_rows_of_one_weight_have_the_middle_value_that_a_sort_finds(n_rows):
    values = np.random.default_rng(n_rows).permutation(n_rows).astype(float)
    table = pd.DataFrame({"size": np.append(values, [50.0, 60.0])})
    columns = ColumnEncoder.learn(table, ["size"])
    expected = np.sort(table["size"])[(len(table) - 1) // 2]
    assert typical_row(*columns).tolist() == [expected]


def test_values_are_shown_as_the_table_has_them(encoded):
    encoder, covariates = encoded
    shown = pd.DataFrame(shown_values(encoder, covariates, TABLE), columns=list(TABLE.columns))
    np.testing.assert_array_equal(shown["age"].astype(float), TABLE["age"])
    assert shown["port"].tolist() == TABLE["port"].tolist()
    assert shown["deck"].tolist() == TABLE["deck"].fillna("(missing)").tolist()


def test_without_the_table_levels_are_read_from_covariates(encoded):
    encoder, covariates = encoded
    shown = pd.DataFrame(shown_values(encoder, covariates), columns=list(TABLE.columns))
    assert shown["port"].tolist() == TABLE["port"].tolist()
    rare = "(not seen in training)"
    expected = TABLE["deck"].fillna("(missing)").replace("b", rare)
    assert shown["deck"].tolist() == expected.tolist()


def test_values_that_training_did_not_see_are_outside(encoded):
    encoder, _ = encoded
    new = pd.DataFrame(
        {
            "age": [19.0, 91.0, 50.0, np.nan],
            "port": ["S", "X", "C", None],
            "deck": ["a", "b", None, "z"],
            "alone": [True, False, True, True],
        }
    )
    found = outside_range(encoder, new)
    assert found["age"].tolist() == [True, True, False, False]
    assert found["port"].tolist() == [False, True, False, True]
    assert found["deck"].tolist() == [False, False, False, True]
    assert not found["alone"].any()


def test_no_training_row_is_outside(encoded):
    assert not np.any(list(outside_range(encoded[0], TABLE).values()))


def test_missing_text_that_is_rare_in_training_is_not_outside():
    table = pd.DataFrame({"stage": ["a", "b", "c"] * 20 + [None]})
    encoder, _ = ColumnEncoder.learn(table, ["stage"])
    assert encoder.variables[0].pooled == ("(missing)",)
    assert not outside_range(encoder, table)["stage"].any()
    assert outside_range(encoder, pd.DataFrame({"stage": ["d"]}))["stage"].all()


def test_a_missing_number_is_outside_if_none_was_missing_in_training():
    table = pd.DataFrame({"size": np.arange(10.0) ** 2})
    encoder, _ = ColumnEncoder.learn(table, ["size"])
    found = outside_range(encoder, pd.DataFrame({"size": [1.0, np.nan]}))
    assert found["size"].tolist() == [False, True]


def test_dates_and_ordered_levels_have_a_typical_value_too():
    days = pd.date_range("2020-01-01", periods=41, freq="7D")
    sizes = pd.Categorical(["s", "m", "m", "l"] * 10 + ["m"], ["s", "m", "l"], ordered=True)
    table = pd.DataFrame({"day": days, "size": sizes})
    encoder, covariates = ColumnEncoder.learn(table, ["day", "size"])
    typical = typical_row(encoder, covariates)
    assert shown_values(encoder, typical[None])[0].tolist() == [str(days[20].date()), "m"]
    late = pd.DataFrame({"day": days[-1:] + pd.Timedelta("9D"), "size": sizes[:1]})
    found = outside_range(encoder, late)
    assert (found["day"].tolist(), found["size"].tolist()) == ([True], [False])
