"""Formulas of columns, which exports hold, say what encoding does."""

import math

import numpy as np
import pandas as pd
import pytest

from islab.core.expressions import spell
from islab.tables.columns import ColumnEncoder

N_ROWS = 400


def make_table(seed=0, start="1999-11-07"):
    """A column of every kind; times over several years, a leap year and a turn of century."""
    rng = np.random.default_rng(seed)
    minutes = rng.integers(0, 4 * 365 * 24 * 60, N_ROWS)
    when = pd.Series(pd.Timestamp(start) + pd.to_timedelta(minutes, "min"))
    sizes = rng.normal(size=N_ROWS)
    sizes[[3, 4]] = 1e9, -3e8
    few = np.where(np.arange(N_ROWS) < 6, np.resize(list("uvwxyz"), N_ROWS), "a")
    grades = rng.choice(["low", "middle", "high", None], N_ROWS)
    return pd.DataFrame(
        {
            "number": rng.normal(size=N_ROWS),
            "gaps": np.where(rng.random(N_ROWS) < 0.3, np.nan, rng.normal(size=N_ROWS)),
            "far": sizes,
            "truth": rng.random(N_ROWS) < 0.5,
            "constant": 7.0,
            "two": rng.choice(["a", "b"], N_ROWS),
            "many": rng.choice(["a", "b", "c", None], N_ROWS),
            "rare": few,
            "code": pd.Categorical(rng.choice([1, 2, 3], N_ROWS)),
            "grade": pd.Categorical(grades, ["low", "middle", "high"], ordered=True),
            "when": when.where(rng.random(N_ROWS) < 0.8),
            "spelled": when.dt.strftime("%Y-%m-%d"),
        }
    )


class Row:
    """Computes expressions from a row of the table."""

    def __init__(self, row):
        self.row = row

    def constant(self, value):
        return value

    def cell(self, cell):
        value = self.row[cell.column]
        if pd.isna(value):
            return math.nan
        if cell.kind == "days":
            return (pd.Timestamp(value) - pd.Timestamp(0)) / pd.Timedelta("1D")
        return float(value)

    def lookup(self, lookup):
        value = self.row[lookup.column]
        return (
            lookup.missing
            if pd.isna(value)
            else dict(lookup.values).get(str(value), lookup.default)
        )

    def call(self, function, arguments):
        if function == "missing":
            return math.isnan(arguments[0])
        if function == "where":
            return arguments[1] if arguments[0] else arguments[2]
        if any(math.isnan(each) for each in arguments):
            return math.nan
        if function in ("sin", "cos", "floor", "log"):
            return getattr(math, function)(*arguments)
        if function == "largest":
            return max(arguments)
        first, second = arguments
        return {
            "+": first + second,
            "-": first - second,
            "*": first * second,
            "greater": first > second,
        }.get(function, first / second if second else math.nan)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_covariate_is_what_its_formula_says():
    table = make_table()
    encoder, _ = ColumnEncoder.learn(table, list(table))
    kinds = {type(variable).__name__ for variable in encoder.variables}
    assert kinds == {"Number", "Category", "Ordered", "Moment"}
    assert [v.tails is not None for v in encoder.variables if v.name == "far"] == [True]
    rows = make_table(seed=1, start="2095-12-30")
    rows.loc[3, ["number", "two", "many", "rare", "spelled"]] = None
    rows.loc[4, ["two", "many", "rare"]] = "never seen"
    right = encoder.encode(rows)
    for number, name in enumerate(encoder.names):
        expression = encoder.expression(number)
        found = [spell(expression, Row(row)) for row in rows.to_dict("records")]
        np.testing.assert_allclose(found, right[:, number], rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_model_that_refuses_missing_values_has_none_for_them():
    table = make_table()[["number", "two"]]
    encoder, _ = ColumnEncoder.learn(table, list(table), missing="error")
    row = Row({"number": math.nan, "two": None})
    assert math.isnan(spell(encoder.expression(0), row))
    assert math.isnan(spell(encoder.expression(1), row))
