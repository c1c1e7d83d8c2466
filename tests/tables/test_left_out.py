import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from islab.tables.left_out import COUNTS_ROWS, ID, SPELLS_NUMBERS, ids, reason_to_leave_out
from islab.tables.reading import Labels

N = 300
RNG = np.random.default_rng(0)
OTHER = RNG.normal(size=N)


def reason(name, values):
    """Why this column would be left out beside another one; None if it is kept."""
    values = np.asarray(values)
    return ids(pd.DataFrame({name: values, "other": OTHER[: len(values)]})).get(0)


@pytest.mark.parametrize("first", [0, 1, 10_001])
@pytest.mark.parametrize("part", [1.0, 0.8, 0.5, 0.3])
def test_a_counter_is_found_in_any_order_and_in_parts_of_a_table(first, part):
    rows = RNG.permutation(N)[: int(part * N)]
    assert reason("patient", first + rows) == COUNTS_ROWS


def test_folds_are_read_as_the_whole_table():
    table = pd.DataFrame(
        {
            "case": RNG.permutation(N),
            "age": RNG.integers(20, 80, N),
            "income": RNG.permutation(10**6)[:N],
            "year": np.arange(N) + 1700,
            "account_id": RNG.permutation(10**6)[:N],
        }
    )
    whole = ids(table)
    assert whole == {0: COUNTS_ROWS, 4: ID}
    for rows, _ in KFold(5, shuffle=True, random_state=0).split(table):
        assert ids(table.iloc[rows]) == whole


@pytest.mark.parametrize("name", ["id", "ID", "PassengerId", "customer_id", "Unnamed: 0", "index"])
def test_a_name_says_that_numbers_are_ids(name):
    assert reason(name, RNG.permutation(10**6)[:N]) == ID


@pytest.mark.parametrize("name", ["paid", "grid", "width", "income", "bid"])
def test_other_names_do_not(name):
    assert reason(name, RNG.permutation(10**6)[:N]) is None


@pytest.mark.parametrize("name", ["year", "Year", "day", "time_s", "t", "elapsed days"])
def test_a_time_may_count_the_rows(name):
    assert reason(name, np.arange(N)) is None


@pytest.mark.parametrize(
    "values",
    [
        5 * np.arange(N),
        np.append(np.arange(N - 1), 0),
        np.arange(N).astype(float),
        RNG.normal(size=N),
        np.arange(19),
    ],
    ids=["steps of five", "a tie", "floats", "numbers", "few rows"],
)
def test_numbers_that_do_not_name_rows_are_kept(values):
    assert reason("x", values) is None


@pytest.mark.parametrize("n_rows", [20, 50, 300])
@pytest.mark.parametrize("reach", [1, 2, 4, 10, 1000])
def test_random_whole_numbers_are_no_ids(n_rows, reach):
    columns = RNG.integers(0, reach * n_rows, (200, n_rows))
    assert not any(reason("x", column) for column in columns)


@pytest.mark.parametrize("spelling", ["{}.5", "{},5", "${},000", "{} %", "\N{EURO SIGN} {}"])
def test_text_that_spells_numbers_is_left_out_with_the_remedy(spelling):
    levels = tuple(map(spelling.format, range(100, 400)))
    column = Labels(np.arange(N), levels, declared=False)
    assert reason_to_leave_out(column) == SPELLS_NUMBERS


def test_a_table_of_nothing_else_keeps_its_counter():
    assert ids(pd.DataFrame({"x": np.arange(N)})) == {}
