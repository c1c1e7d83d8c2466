"""Numbers, amounts and dates that text spells."""

import re

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBRegressor, load
from islab.tables.columns import TableWarning
from tests.tables.encoding import learn


def test_text_in_a_column_of_numbers_is_an_error_if_missing_values_are():
    values = np.array([1.0, 2.0, "n/a?", 4.0], dtype=object)
    with pytest.raises(ValueError, match=r"Got 'n/a\?' in column 'age' \(row 2\)"):
        learn(pd.DataFrame({"age": values}), missing="error")


def test_words_among_numbers_are_missing_and_said_in_one_warning():
    ages = np.arange(60.0).astype(object)
    ages[[3, 8, 9, 11, 12]] = "unknown", "?", "unknown", "c. 40", "n.k."
    table = pd.DataFrame({"age": ages, "spelled": ages.astype(str)})
    with pytest.warns(TableWarning) as said:
        encoder, covariates = learn(table)
    assert len(said) == 1
    for name in table:
        words = f"Got 'unknown', 'c. 40', 'n.k.' in column {name!r}, which are no numbers"
        assert words in str(said[0].message)
    assert encoder.names == ("age", "age (missing)", "spelled", "spelled (missing)")
    missing = np.isin(np.arange(60), [3, 8, 9, 11, 12])
    np.testing.assert_array_equal(covariates[:, 1], missing)
    np.testing.assert_array_equal(covariates[~missing, 0], np.flatnonzero(~missing))
    np.testing.assert_array_equal(covariates[:, 2:], covariates[:, :2])
    # What training said is not repeated; other words are named.
    np.testing.assert_array_equal(encoder.encode(table), covariates)
    with pytest.warns(UserWarning, match=r"Got 'n\.n\.' in column 'age', which is no number"):
        encoder.encode(table.assign(age=table["age"].replace("unknown", "n.n.")))


def test_a_later_word_is_missing_where_training_had_gaps():
    ages = np.append(np.arange(50.0), np.repeat(np.nan, 9))
    encoder, _ = learn(pd.DataFrame({"age": ages}))
    with pytest.warns(UserWarning, match=r"Got 'old' in column 'age', which is no number and "):
        covariates = encoder.encode(pd.DataFrame({"age": ["old", "7"]}))
    np.testing.assert_array_equal(covariates, [[ages[:50].mean(), 1], [7, 0]])


def test_numbers_read_as_text_because_of_one_cell_are_refused_if_missing_values_are():
    values = [str(number) for number in range(30)] + ["unknown"]
    with pytest.raises(ValueError, match=r"Got 'unknown' in column 'age' \(row 30\)"):
        learn(pd.DataFrame({"age": values}), missing="error")


def test_such_a_column_is_fine_when_declared_categorical():
    values = [str(number) for number in range(30)] * 4 + ["unknown"] * 4
    encoder, _ = learn(pd.DataFrame({"age": pd.Categorical(values)}))
    assert len(encoder.names) == 31


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


def test_a_column_that_turns_to_text_half_way_names_the_odd_value():
    values = np.array([1.0, 2.0, "3.5", "n/a?", "4"], dtype=object)
    with pytest.raises(ValueError, match=r"Got 'n/a\?' in column 'age' \(row 3\)"):
        learn(pd.DataFrame({"age": values}), missing="error")


def test_numbers_and_their_spellings_are_numbers():
    values = np.array([1.0, "2.5", 3], dtype=object)
    np.testing.assert_array_equal(learn(pd.DataFrame({"a": values}))[1], [[1], [2.5], [3]])


def test_a_number_is_refused_that_is_of_another_type_later():
    encoder, _ = learn(pd.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"Got column 'x' of type.*try to derive"):
        encoder.encode(pd.DataFrame({"x": [[1], [2]]}))


# -- amounts with a unit -----------------------------------------------------------------------

AMOUNTS = np.arange(40) * 1234.5 + 7


@pytest.mark.parametrize(
    ("spelling", "unit"),
    [
        ("${:,.2f}", "in $"),
        ("{:.1f}%", "in %"),
        ("{:.1f} %", "in %"),
        ("\N{EURO SIGN} {:.1f}", "in \N{EURO SIGN}"),
        ("{:,.1f} \N{EURO SIGN}", "in \N{EURO SIGN}"),
        ("-${:,.1f}", "in $"),
        ("{:.1f}kg", "in kg"),
        ("{:.2f} km/h", "in km/h"),
        ("{:,.1f}", ""),
    ],
)
def test_amounts_are_numbers_in_the_unit_that_is_spelled(spelling, unit):
    encoder, covariates = learn(pd.DataFrame({"x": [spelling.format(value) for value in AMOUNTS]}))
    assert encoder.names == ("x",)
    assert encoder.to_frame()["note"].tolist() == [unit]
    sign = -1 if spelling.startswith("-") else 1
    np.testing.assert_allclose(covariates[:, 0], sign * AMOUNTS)
    # One row, which could not tell the unit by itself, and a number without it.
    later = pd.DataFrame({"x": [spelling.format(2500.0)]})
    np.testing.assert_array_equal(encoder.encode(later), [[sign * 2500]])
    np.testing.assert_array_equal(encoder.encode(pd.DataFrame({"x": [2500.0]})), [[2500]])


@pytest.mark.parametrize("odd", ["$5", "5 lb", "5 kgs"])
def test_an_amount_in_another_unit_is_no_number(odd):
    values = [f"{value:.1f} kg" for value in AMOUNTS]
    encoder, _ = learn(pd.DataFrame({"x": values}))
    with pytest.raises(ValueError, match=re.escape(f"Got {odd!r} in column 'x'")):
        encoder.encode(pd.DataFrame({"x": [odd]}))
    with pytest.warns(TableWarning, match="which is no number and counts as missing"):
        assert learn(pd.DataFrame({"x": [*values, odd]}))[1].shape == (41, 1)


@pytest.mark.parametrize("spelling", ["0{}", "{}B", "{}-A", "A{}"])
def test_names_with_numbers_in_them_are_no_amounts(spelling):
    values = [spelling.format(number) for number in range(100, 140)]
    table = pd.DataFrame({"x": np.sin(range(40)), "name": values})
    with pytest.warns(TableWarning, match="1 column left out"):
        assert learn(table)[0].names == ("x",)


def test_few_amounts_are_levels():
    encoder, _ = learn(pd.DataFrame({"dose": ["5 mg", "10 mg", "20 mg"] * 9}))
    assert encoder.names == ("dose=10 mg", "dose=20 mg", "dose=5 mg")


def test_a_decimal_comma_is_left_out_with_the_remedy():
    values = [f"{number},5" for number in range(40)] * 3
    table = pd.DataFrame({"x": np.sin(range(120)), "size": values})
    with pytest.warns(TableWarning, match="'size': text that seems to spell numbers"):
        assert learn(table)[0].names == ("x",)


def test_times_are_days_as_durations_are():
    spans = pd.to_timedelta(np.linspace(-2, 400, 40).round(), unit="h")
    expected = learn(pd.DataFrame({"t": spans}))[1]
    np.testing.assert_allclose(learn(pd.DataFrame({"t": spans.astype(str)}))[1], expected)
    clock = [f"{number // 60:02d}:{number % 60:02d}:30" for number in range(0, 1200, 30)]
    encoder, covariates = learn(pd.DataFrame({"t": clock}))
    np.testing.assert_allclose(covariates[:, 0] * 1440, np.arange(0, 1200, 30) + 0.5)
    assert encoder.to_frame()["note"].tolist() == ["in days"]
    np.testing.assert_allclose(encoder.encode(pd.DataFrame({"t": ["-12:00:00"]})), [[-0.5]])


# -- dates with day and month in an order of their own -----------------------------------------

DATES = pd.date_range("2023-01-07 09:30", periods=60)


@pytest.mark.parametrize(
    "spelling", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m-%d-%Y %H:%M", "%d/%m/%Y %I:%M %p"]
)
def test_the_order_of_day_and_month_is_learned_from_days_above_12(spelling):
    text = DATES.strftime(spelling)
    expected = pd.to_datetime(text, format=spelling)
    encoder, covariates = learn(pd.DataFrame({"when": text}))
    known, same = learn(pd.DataFrame({"when": expected}))
    assert encoder.names == known.names
    np.testing.assert_array_equal(covariates, same)
    # 5 June says nothing about the order.
    later = pd.to_datetime(["2024-06-05 10:00"])
    found = encoder.encode(pd.DataFrame({"when": later.strftime(spelling)}))
    rounded = pd.to_datetime(later.strftime(spelling), format=spelling)
    np.testing.assert_array_equal(found, known.encode(pd.DataFrame({"when": rounded})))


def test_days_up_to_12_between_points_stand_first():
    text = [f"{day:02d}.03.2024" for day in range(1, 13)] * 2
    encoder, covariates = learn(pd.DataFrame({"when": text}))
    assert np.ptp(covariates[:, 0]) == 11
    assert encoder.names[0] == "when: days since 2024-01-01"


def test_dates_whose_order_is_not_sure_are_left_out_however_often_they_occur():
    text = [f"{day}/{month}/2024" for day in range(1, 13) for month in (1, 2)] * 9
    table = pd.DataFrame({"x": np.sin(range(len(text))), "when": text})
    with pytest.warns(TableWarning, match="'when': text that seems to spell dates, try pandas"):
        assert learn(table)[0].names == ("x",)


def test_another_order_than_in_training_is_refused_with_an_example():
    encoder, _ = learn(pd.DataFrame({"when": DATES.strftime("%d/%m/%Y")}))
    with pytest.raises(ValueError, match=r"Got text such as '06/25/2024'.*such as 31/05/2024"):
        encoder.encode(pd.DataFrame({"when": ["06/25/2024"]}))


@pytest.mark.parametrize("blank", ["", "N/A", "?", None])
@pytest.mark.parametrize("spelling", ["%Y-%m-%d", "%d/%m/%Y"])
def test_blanks_among_dates_are_missing(blank, spelling):
    text = [*DATES.strftime(spelling), *[blank] * 6]
    encoder, covariates = learn(pd.DataFrame({"when": text}))
    assert encoder.names[1] == "when (missing)"
    np.testing.assert_array_equal(covariates[:, 1], np.arange(66) >= 60)


def test_a_file_keeps_units_and_orders(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "price": [f"${value:,.0f}" for value in rng.uniform(500, 9000, 80)],
            "when": pd.date_range("2023-01-07", periods=80).strftime("%m/%d/%Y"),
        }
    )
    model = ISLaBRegressor(posterior="independent", max_epochs=2, n_restarts=1)
    model.fit(table, rng.normal(size=80)).save(tmp_path / "model.islab")
    again = load(tmp_path / "model.islab")
    assert again.columns_ == model.columns_
    row = pd.DataFrame({"price": ["$1,000"], "when": ["05/06/2024"]})
    np.testing.assert_array_equal(again.predict(row), model.predict(row))
    plain = pd.DataFrame({"price": [1000.0], "when": pd.to_datetime(["2024-05-06"])})
    np.testing.assert_array_equal(again.predict(row), again.predict(plain))


def test_names_of_which_each_has_few_rows_are_left_out():
    names = [f"name {number}" for number in range(300)] * 3
    table = pd.DataFrame({"x": np.sin(range(900)), "name": names})
    with pytest.warns(TableWarning, match="'name': text that differs from row to row"):
        assert learn(table)[0].names == ("x",)
