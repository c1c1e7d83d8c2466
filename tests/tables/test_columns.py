import pickle

import numpy as np
import pandas as pd
import pytest

from islab.tables.columns import TableWarning
from islab.tables.numbers import MISSING_LEVEL
from islab.tables.reading import UnusableColumns
from tests.tables.encoding import learn, standardised


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


def test_all_columns_that_cannot_be_used_are_named_in_one_error():
    huge = [1.0, 2.0, 1e300, 4.0]
    table = pd.DataFrame({"age": huge, "x": [1.0, np.inf, 2.0, 3.0], "z": [1, 2, 3, 5]})
    with pytest.raises(UnusableColumns, match="Got 2 columns that cannot be used") as refused:
        learn(table)
    assert list(refused.value.problems) == ["age", "x"]
    assert "Got 1e+300 in column 'age'" in str(refused.value)
    assert "Got inf in column 'x' (row 1)" in str(refused.value)
    assert pickle.loads(pickle.dumps(refused.value)).problems == refused.value.problems


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


@pytest.mark.parametrize("value", [3.0, "text", None])
def test_a_column_without_values_may_hold_anything_later(value):
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [None, None]})
    with pytest.warns(UserWarning, match="without a single value"):
        encoder, _ = learn(table)
    np.testing.assert_array_equal(encoder.encode(table.assign(b=value))[:, 1], 0)


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
