"""Encoders in files: they come back as they were, and nonsense is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from islab.estimators.column_state import columns_of_record
from islab.io.schema import ColumnsRecord, as_record
from islab.tables.columns import ColumnEncoder, TableWarning

N = 900
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "number": np.append(RNG.normal(size=N - 1), 1e9),
        "town": RNG.choice(["Ely", "Wells", "Bath"], N),
        "grade": pd.Categorical(RNG.choice(list("abcd"), N), ordered=True),
        "when": pd.date_range("2020-01-01", periods=N, freq="13h"),
        "id": RNG.permutation(N),
    }
)


@pytest.fixture(scope="module")
def written():
    with pytest.warns(TableWarning):
        encoder, _ = ColumnEncoder.learn(TABLE, list(TABLE))
    return encoder, json.dumps(encoder.to_dict())


def read(text):
    return columns_of_record(as_record(json.loads(text), ColumnsRecord))


def test_every_kind_of_column_comes_back(written):
    encoder, text = written
    assert [variable.kind for variable in encoder.variables] == [
        "number",
        "category",
        "ordered",
        "date",
        "left out",
    ]
    assert read(text) == encoder
    np.testing.assert_array_equal(read(text).encode(TABLE), encoder.encode(TABLE))


NUMBER, TOWN, GRADE, WHEN = range(4)


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        (NUMBER, "tails", {"low": 1.0, "high": 1.0}),
        (NUMBER, "tails", {"low": "a", "high": 1.0}),
        (NUMBER, "fill", 1e30),
        (TOWN, "shares", [0.5, 0.5]),
        (GRADE, "steps", ["c", "b"]),
        (GRADE, "steps", ["a", "b", "c"]),
        (GRADE, "steps", ["b", "c", "z"]),
        (GRADE, "steps", []),
        (GRADE, "shares", [0.5]),
        (GRADE, "shares", [0.5, 0.4, 3.0]),
        (GRADE, "levels", ["a", "a", "b", "c"]),
        (GRADE, "levels", [str(number) for number in range(5000)]),
        (WHEN, "start", 1e300),
        (WHEN, "start", None),
        (WHEN, "cycles", [{"name": "when: month", "clock": "week"}]),
        (WHEN, "cycles", [{"name": "when: month", "clock": "year"}] * 2),
        (WHEN, "cycles", [{"name": "when: month", "clock": "year"}] * 3),
        (WHEN, "trend", {"name": "t"}),
        (WHEN, "weekday", {"name": "w", "levels": ["Monday"], "shares": [0.2]}),
    ],
)
def test_nonsense_is_refused(written, place, key, value):
    content = json.loads(written[1])
    content["variables"][place][key] = value
    with pytest.raises(ValueError, match=r"."):
        read(json.dumps(content))
