"""Formulas of columns, which exports hold, say what encoding does."""

import math

import numpy as np
import pandas as pd
import pytest

from islab.core.expressions import spell
from islab.tables.columns import ColumnEncoder

N_ROWS = 60


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    when = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, N_ROWS), "D"))
    return pd.DataFrame(
        {
            "number": rng.normal(size=N_ROWS),
            "gaps": np.where(rng.random(N_ROWS) < 0.3, np.nan, rng.normal(size=N_ROWS)),
            "truth": rng.random(N_ROWS) < 0.5,
            "constant": 7.0,
            "two": rng.choice(["a", "b"], N_ROWS),
            "many": rng.choice(["a", "b", "c", None], N_ROWS),
            "rare": np.where(np.arange(N_ROWS) < 7, list("uvwxyzu") * 8 + ["a"] * 4, "a"),
            "code": pd.Categorical(rng.choice([1, 2, 3], N_ROWS)),
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
        functions = {"sin": math.sin, "cos": math.cos, "floor": math.floor}
        if function in functions:
            return functions[function](*arguments)
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
    rows = make_table(seed=1)
    rows.loc[3, ["number", "two", "many", "rare", "spelled"]] = None
    rows.loc[4, ["two", "many", "rare"]] = "never seen"
    right = encoder.encode(rows)
    for number, name in enumerate(encoder.names):
        expression = encoder.expression(number)
        found = [spell(expression, Row(row)) for row in rows.to_dict("records")]
        np.testing.assert_allclose(found, right[:, number], rtol=1e-12, err_msg=name)


def test_a_model_that_refuses_missing_values_has_none_for_them():
    table = make_table()[["number", "two"]]
    encoder, _ = ColumnEncoder.learn(table, list(table), missing="error")
    row = Row({"number": math.nan, "two": None})
    assert math.isnan(spell(encoder.expression(0), row))
    assert math.isnan(spell(encoder.expression(1), row))
