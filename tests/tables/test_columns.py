import pickle
from datetime import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from islab.tables.categories import OTHER_LEVEL
from islab.tables.columns import ColumnEncoder, TableWarning
from islab.tables.numbers import MISSING_LEVEL, fewest_rows
from islab.tables.reading import UnusableColumns


def learn(table, missing="impute", **options):
    names = [str(name) for name in table.columns]
    return ColumnEncoder.learn(table, names, missing, **options)


def standardised(table):
    encoder, covariates = learn(table)
    center, scale = encoder.center_and_scale(covariates)
    return (covariates - center) / scale


def test_numbers_and_booleans_stay_as_they_are():
    table = pd.DataFrame({"a": [1.5, 2, 4], "b": [True, False, True], "c": [3, 2, 1]})
    encoder, covariates = learn(table)
    assert encoder.names == ("a", "b", "c")
    np.testing.assert_array_equal(covariates, [[1.5, 1, 3], [2, 0, 2], [4, 1, 1]])


def test_standardised_columns_have_mean_0_and_deviation_1():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(50, 7, (40, 3)), columns=list("abc"))
    standard = standardised(table)
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(standard.std(axis=0), 1)


def test_weights_count_rows_as_if_repeated():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": rng.normal(size=20), "b": rng.choice(list("uvw"), 20)})
    table.loc[3, "a"] = np.nan
    weight = rng.integers(1, 4, 20)
    encoder, covariates = learn(table, sample_weight=weight.astype(float))
    weighted = encoder.center_and_scale(covariates, weight.astype(float))
    encoder, covariates = learn(table.loc[table.index.repeat(weight)].reset_index(drop=True))
    repeated = encoder.center_and_scale(covariates)
    np.testing.assert_allclose(weighted, repeated)


def test_text_becomes_a_covariate_for_each_level_that_knows_its_variable():
    encoder, covariates = learn(pd.DataFrame({"n": [1, 2, 3, 4], "c": ["r", "g", "b", "r"]}))
    assert encoder.names == ("n", "c=b", "c=g", "c=r")
    assert encoder.owners == ("n", "c", "c", "c")
    np.testing.assert_array_equal(encoder.owner_index, [0, 1, 1, 1])
    np.testing.assert_array_equal(covariates[:, 1:].sum(axis=1), 1)


def test_two_levels_need_one_covariate():
    encoder, covariates = learn(pd.DataFrame({"sex": ["m", "f", "m"]}))
    assert encoder.names == ("sex=m",)
    np.testing.assert_array_equal(covariates[:, 0], [1, 0, 1])


def test_missing_numbers_get_the_mean_and_an_indicator():
    encoder, covariates = learn(pd.DataFrame({"a": [1.0, np.nan, 3.0]}))
    assert encoder.names == ("a", f"a {MISSING_LEVEL}")
    np.testing.assert_array_equal(covariates, [[1, 0], [2, 1], [3, 0]])


def test_missing_text_is_a_level():
    encoder, covariates = learn(pd.DataFrame({"c": ["u", None, "v"]}))
    assert encoder.names == ("c=u", "c=v", f"c={MISSING_LEVEL}")
    np.testing.assert_array_equal(covariates[1], [0, 0, 1])


@pytest.mark.parametrize("column", [[1.0, None], ["u", None]])
def test_missing_values_are_an_error_on_request(column):
    with pytest.raises(ValueError, match=r"NaN in column 'a' \(row 1\).*missing='impute'"):
        learn(pd.DataFrame({"a": column}), missing="error")


def test_new_missing_numbers_are_the_training_mean_with_a_warning():
    encoder, _ = learn(pd.DataFrame({"a": [1.0, 3.0]}))
    with pytest.warns(UserWarning, match="1 row of column 'a'.*training mean, 2"):
        covariates = encoder.encode(pd.DataFrame({"a": [np.nan, 9.0]}))
    np.testing.assert_array_equal(covariates, [[2], [9]])


@pytest.mark.parametrize("value", ["purple", None])
def test_rows_of_unknown_level_are_average_rows_with_a_warning(value):
    encoder, training = learn(pd.DataFrame({"c": ["r", "g", "b", "r"]}))
    named = "'purple'" if value else "a missing value"
    with pytest.warns(UserWarning, match=f"Got {named} in 1 row of column 'c'.*b, g, r"):
        covariates = encoder.encode(pd.DataFrame({"c": [value, "r"]}))
    np.testing.assert_array_equal(covariates, [training.mean(axis=0), [0, 0, 1]])


def test_everything_that_is_new_is_said_in_one_warning():
    encoder, _ = learn(pd.DataFrame({"a": [1.0, 3.0, 2.0], "c": ["u", "v", "w"], "d": [1, 2, 4]}))
    with pytest.warns(UserWarning, match="column 'a'") as said:
        encoder.encode(pd.DataFrame({"a": [np.nan], "c": ["x"], "d": [1]}))
    assert len(said) == 1
    assert "Got 'x' in 1 row of column 'c'" in str(said[0].message)


def test_a_constant_column_stays_at_its_training_value():
    encoder, _ = learn(pd.DataFrame({"a": [7.0, 7.0, 7.0]}))
    covariates = encoder.encode(pd.DataFrame({"a": [7.0, 1e6]}))
    np.testing.assert_array_equal(covariates, 7)


@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1, -1e-300, 0.0])
def test_a_constant_standardises_to_0_whatever_rounding_does_to_its_mean(value):
    np.testing.assert_array_equal(standardised(pd.DataFrame({"a": [value] * 7})), 0)


def test_differences_in_the_last_digit_are_no_variation():
    table = pd.DataFrame({"a": [1.1] * 7 + [np.nextafter(1.1, 2)]})
    with pytest.warns(UserWarning, match="vary by less than 1e-12 of their size"):
        columns = learn(table)[0]
    assert not columns.varies.any()
    with pytest.warns(UserWarning, match="vary by less than 1e-12 of their size"):
        numbers = standardised(table)
    np.testing.assert_array_equal(numbers, 0)


def test_covariates_that_vary_are_told_from_those_that_do_not():
    table = pd.DataFrame(
        {
            "varies": [1.0, 2.0, 3.0],
            "constant": [5.0, 5.0, 5.0],
            "absent": [5.0, None, 5.0],
            "one": ["u", "u", "u"],
            "two": ["u", "v", "u"],
        }
    )
    encoder, covariates = learn(table)
    assert encoder.varies.tolist() == [True, False, False, True, False, True]
    np.testing.assert_array_equal(encoder.varies, np.ptp(covariates, axis=0) > 0)


def test_the_range_in_training_is_kept():
    encoder, _ = learn(pd.DataFrame({"a": [3.0, np.nan, -1.0, 2.0]}))
    assert (encoder.variables[0].low, encoder.variables[0].high) == (-1.0, 3.0)


def test_levels_that_are_spelled_alike_are_one():
    encoder, covariates = learn(pd.DataFrame({"a": pd.Categorical([1, "1", "b", "1"])}))
    assert encoder.variables[0].levels == ("1", "b")
    np.testing.assert_array_equal(covariates[:, 0], [0, 0, 1, 0])


def test_text_that_says_missing_is_missing():
    encoder, covariates = learn(pd.DataFrame({"a": [MISSING_LEVEL, None, "b", "c"]}))
    assert encoder.variables[0].levels == ("b", "c", MISSING_LEVEL)
    np.testing.assert_array_equal(covariates[0], covariates[1])
    np.testing.assert_allclose(encoder.variables[0].shares, [0.25, 0.25, 0.5])


def test_a_column_without_values_is_ignored_with_a_warning():
    with pytest.warns(UserWarning, match="'b' without a single value"):
        _, covariates = learn(pd.DataFrame({"a": [1.0, 2.0], "b": [None, None]}))
    np.testing.assert_array_equal(covariates[:, 1], 0)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_are_refused_with_column_and_row(value):
    with pytest.raises(ValueError, match=r"Got -?inf in column 'a' \(row 1\)"):
        learn(pd.DataFrame({"a": [1.0, value]}))


def test_values_too_large_to_standardise_are_refused():
    with pytest.raises(ValueError, match=r"Got 1e\+300 in column 'a'"):
        standardised(pd.DataFrame({"a": [1.0, 1e300]}))


def test_text_in_a_column_of_numbers_is_refused_with_value_and_row():
    values = np.array([1.0, 2.0, "n/a?", 4.0], dtype=object)
    with pytest.raises(ValueError, match=r"Got 'n/a\?' in column 'age' \(row 2\)"):
        learn(pd.DataFrame({"age": values}))


def test_numbers_read_as_text_because_of_one_cell_are_refused():
    values = [str(number) for number in range(30)] + ["unknown"]
    with pytest.raises(ValueError, match=r"Got 'unknown' in column 'age' \(row 30\)"):
        learn(pd.DataFrame({"age": values}))


def test_all_columns_that_cannot_be_used_are_named_in_one_error():
    values = np.array([1.0, 2.0, "n/a?", 4.0], dtype=object)
    table = pd.DataFrame({"age": values, "x": [1.0, np.inf, 2.0, 3.0], "z": [1, 2, 3, 5]})
    with pytest.raises(UnusableColumns, match="Got 2 columns that cannot be used") as refused:
        learn(table)
    assert list(refused.value.problems) == ["age", "x"]
    assert "Got 'n/a?' in column 'age' (row 2)" in str(refused.value)
    assert "Got inf in column 'x' (row 1)" in str(refused.value)
    assert pickle.loads(pickle.dumps(refused.value)).problems == refused.value.problems


def test_such_a_column_is_fine_when_declared_categorical():
    values = [str(number) for number in range(30)] * 4 + ["unknown"] * 4
    encoder, _ = learn(pd.DataFrame({"age": pd.Categorical(values)}))
    assert len(encoder.names) == 31


def test_text_that_no_rows_share_is_left_out_and_said_in_one_warning():
    rows = range(30)
    table = pd.DataFrame(
        {
            "id": [f"P-{number}" for number in rows],
            "notes": [f"came in on day {number} with pain" for number in rows],
            "x": np.sin(rows),
            "name": [f"person {number}" for number in rows],
        }
    )
    with pytest.warns(TableWarning, match="3 columns left out") as said:
        encoder, covariates = learn(table)
    assert len(said) == 1
    assert "'id', 'name': text that differs from row to row; 'notes': free text" in str(
        said[0].message
    )
    np.testing.assert_array_equal(covariates[:, 0], table["x"])
    np.testing.assert_array_equal(encoder.encode(table.assign(id=None)), covariates)


def test_a_table_of_nothing_but_ids_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"Got no column that can help.*declare a column"):
        learn(pd.DataFrame({"id": [f"P-{number}" for number in range(30)]}))


# -- rare levels and gaps ----------------------------------------------------------------------


def repeated(**counts):
    """A column of levels, each so many times."""
    return [level for level, count in counts.items() for _ in range(count)]


def test_levels_of_fewer_than_log_n_rows_are_pooled_and_named():
    column = repeated(a=60, b=32, c=4, d=3, e=1)
    encoder, covariates = learn(pd.DataFrame({"c": column}))
    variable = encoder.variables[0]
    assert fewest_rows(100) == 4
    assert variable.levels == ("a", "b", "c", OTHER_LEVEL)
    assert (variable.pooled, variable.n_pooled) == (("d", "e"), 2)
    np.testing.assert_array_equal(covariates.sum(axis=0), [60, 32, 4, 4])


def test_rare_levels_that_are_too_few_even_together_are_of_unknown_level():
    table = pd.DataFrame({"c": repeated(a=60, b=39, d=1)})
    encoder, covariates = learn(table)
    assert encoder.names == ("c=b",)
    np.testing.assert_allclose(covariates[-1], 39 / 99)
    # Seen in training, so that nothing is said of it later.
    np.testing.assert_array_equal(encoder.encode(table), covariates)


def test_a_new_level_is_taken_for_a_rare_one_with_a_warning():
    encoder, _ = learn(pd.DataFrame({"c": repeated(a=60, b=30, d=3, e=3, f=4)}))
    with pytest.warns(UserWarning, match="Got 'z' in 1 row.*predicted as of rare level"):
        covariates = encoder.encode(pd.DataFrame({"c": ["z", "d"]}))
    np.testing.assert_array_equal(covariates[0], covariates[1])


def test_a_column_of_more_levels_than_a_file_holds_pools_the_rarest():
    levels = [f"{number:04}" for number in range(1200)]
    column = pd.Categorical(np.repeat(levels, 10))
    encoder, covariates = learn(pd.DataFrame({"c": column}))
    assert len(encoder.names) == 1001
    assert encoder.variables[0].n_pooled == 200
    np.testing.assert_array_equal(covariates.sum(axis=1), 1)


def test_a_gap_in_too_few_rows_has_no_covariate_and_no_warning():
    values = np.arange(100.0)
    few, enough = values.copy(), values.copy()
    few[:3], enough[:4] = np.nan, np.nan
    encoder, _ = learn(pd.DataFrame({"few": few, "enough": enough}))
    assert encoder.names == ("few", "enough", "enough (missing)")
    later = encoder.encode(pd.DataFrame({"few": [np.nan], "enough": [1.0]}))
    np.testing.assert_allclose(later, [[values[3:].mean(), 1, 0]])


@pytest.mark.parametrize("n_rare", [1, 4, 20, 50])
def test_two_values_are_two_deviations_apart_however_rare_one_is(n_rare):
    rare = np.arange(100) < n_rare
    text = np.where(rare, "yes", "no") if n_rare >= 4 else np.where(np.arange(100) % 2, "u", "v")
    standard = standardised(pd.DataFrame({"flag": rare, "code": 3.0 + 4 * rare, "text": text}))
    np.testing.assert_allclose(np.ptp(standard, axis=0), 2)
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-12)


def test_weights_count_in_what_is_rare():
    table = pd.DataFrame({"c": repeated(a=60, b=38, d=1, e=1)})
    encoder, _ = learn(table, sample_weight=np.repeat([1.0, 5.0], [98, 2]))
    assert encoder.variables[0].levels == ("a", "b", "d", "e")


@pytest.mark.parametrize(
    "column", [[[1], [2]], [time(1), time(2)], pd.Series([b"u", b"v"], dtype=object)]
)
def test_columns_of_other_types_are_left_out(column):
    table = pd.DataFrame({"x": [1.0, 2.0], "when": column})
    with pytest.warns(TableWarning, match=r"1 column left out \('when': holds values of type "):
        encoder, covariates = learn(table)
    assert encoder.names == ("x",)
    np.testing.assert_array_equal(encoder.encode(table), covariates)


def test_a_number_is_refused_that_is_of_another_type_later():
    encoder, _ = learn(pd.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"Got column 'x' of type.*try to derive"):
        encoder.encode(pd.DataFrame({"x": [[1], [2]]}))


def test_numbers_that_are_spelled_are_numbers():
    values = [f"{number / 2}" for number in range(30)] * 2
    encoder, covariates = learn(pd.DataFrame({"x": values}))
    assert encoder.names == ("x",)
    np.testing.assert_array_equal(covariates[:, 0], np.array(values, dtype=float))
    later = encoder.encode(pd.DataFrame({"x": ["2.5", 7]}))
    np.testing.assert_array_equal(later[:, 0], [2.5, 7.0])


@pytest.mark.parametrize("blank", ["", " ", "?", "N/A", "-", None])
def test_blanks_among_spelled_numbers_are_missing(blank):
    values = [f"{number / 2}" for number in range(30)] * 2 + [blank] * 6
    encoder, covariates = learn(pd.DataFrame({"x": values}))
    assert encoder.names == ("x", "x (missing)")
    np.testing.assert_array_equal(covariates[:, 1], np.repeat([0.0, 1.0], [60, 6]))
    assert encoder.encode(pd.DataFrame({"x": [blank, "1"]}))[:, 1].tolist() == [1.0, 0.0]


def test_codes_that_begin_with_a_zero_are_levels():
    values = [f"{number:02d}" for number in range(30)] * 5
    encoder, _ = learn(pd.DataFrame({"area": values}))
    assert len(encoder.names) == 30


def test_whole_numbers_as_text_that_hardly_any_two_rows_share_are_left_out():
    table = pd.DataFrame({"x": np.sin(range(30)), "phone": [f"55512{n:02d}" for n in range(30)]})
    with pytest.warns(TableWarning, match="'phone': text that seems to spell numbers"):
        encoder, _ = learn(table)
    assert encoder.names == ("x",)


def test_numbers_with_a_last_level_of_text_are_levels():
    values = np.array([0, 1, 2, "3+", None] * 10, dtype=object)
    encoder, covariates = learn(pd.DataFrame({"children": values}))
    assert encoder.names == tuple(
        f"children={level}" for level in ("0", "1", "2", "3+", "(missing)")
    )
    later = encoder.encode(pd.DataFrame({"children": [0, 1, 2]}))
    np.testing.assert_array_equal(later, covariates[:3])


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


def test_new_text_where_numbers_were_is_refused():
    encoder, _ = learn(pd.DataFrame({"a": [1.0, 3.0]}))
    with pytest.raises(ValueError, match=r"Got 'three' in column 'a' \(row 1\)"):
        encoder.encode(pd.DataFrame({"a": ["1", "three"]}))


def test_new_numbers_spelled_as_text_are_numbers():
    encoder, _ = learn(pd.DataFrame({"a": [1.0, 3.0]}))
    np.testing.assert_array_equal(encoder.encode(pd.DataFrame({"a": ["1", "2.5"]})), [[1], [2.5]])


def test_new_infinity_spelled_as_text_is_refused():
    encoder, _ = learn(pd.DataFrame({"a": [1.0, 3.0]}))
    with pytest.raises(ValueError, match="Got inf in column 'a'"):
        encoder.encode(pd.DataFrame({"a": ["1", "inf"]}))


def test_new_numbers_where_text_was_are_refused():
    encoder, _ = learn(pd.DataFrame({"c": ["u", "v"]}))
    with pytest.raises(ValueError, match="Got the number 3 in column 'c', expected text"):
        encoder.encode(pd.DataFrame({"c": [3, 4]}))


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


def test_a_column_that_turns_to_text_half_way_names_the_odd_value():
    values = np.array([1.0, 2.0, "3.5", "n/a?", "4"], dtype=object)
    with pytest.raises(ValueError, match=r"Got 'n/a\?' in column 'age' \(row 3\)"):
        learn(pd.DataFrame({"age": values}))


def test_numbers_and_their_spellings_are_numbers():
    values = np.array([1.0, "2.5", 3], dtype=object)
    np.testing.assert_array_equal(learn(pd.DataFrame({"a": values}))[1], [[1], [2.5], [3]])


def test_arrow_tables_are_read():
    arrow = pytest.importorskip("pyarrow")
    values = {"a": [1.0, None, 3.0], "c": ["u", "v", None]}
    _, covariates = ColumnEncoder.learn(arrow.table(values), ["a", "c"])
    np.testing.assert_array_equal(covariates, learn(pd.DataFrame(values))[1])


@pytest.mark.parametrize("value", [3.0, "text", None])
def test_a_column_without_values_may_hold_anything_later(value):
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [None, None]})
    with pytest.warns(UserWarning, match="without a single value"):
        encoder, _ = learn(table)
    np.testing.assert_array_equal(encoder.encode(table.assign(b=value))[:, 1], 0)


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


def test_a_column_called_like_a_level_of_another_is_refused():
    table = pd.DataFrame({"c": ["u", "v", "w"], "c=u": [1.0, 0.0, 0.5]})
    with pytest.raises(ValueError, match="Got columns 'c' and 'c=u', which both give"):
        learn(table)


@pytest.mark.parametrize("value", [1e-200, 5e-324])
def test_numbers_whose_spread_no_number_holds_are_refused(value):
    table = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, value]})
    with pytest.raises(ValueError, match=r"Got values from 0 to .* in column 'b'.*another unit"):
        standardised(table)


def test_numbers_in_a_small_unit_are_fine():
    table = pd.DataFrame({"a": [0.0, 1e-140, 3e-140]})
    np.testing.assert_allclose(standardised(table).std(), 1)


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


def test_levels_share_a_prior_and_parts_of_a_date_do_not():
    table = pd.DataFrame(
        {
            "x": np.where(np.arange(800) % 9 == 0, np.nan, np.sin(np.arange(800))),
            "town": np.array(list("abc"))[np.arange(800) % 3],
            "day": pd.date_range("2021-01-01", periods=800),
        }
    )
    encoder, _ = learn(table)
    sizes = {"x": 2, "town": 3, "trend": 1, "month": 2, "weekday": 7}
    np.testing.assert_array_equal(encoder.groups, np.repeat(range(5), [*sizes.values()]))
