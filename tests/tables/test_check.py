import numpy as np
import pandas as pd
import pytest

import islab
from islab.cli import main

N = 200
RNG = np.random.default_rng(0)
SIZE = RNG.normal(size=N)
ODD = RNG.normal(size=N)
ODD[5] = 1e6
TABLE = pd.DataFrame(
    {
        "id": range(N),
        "name": [f"person {number}" for number in range(N)],
        "size": SIZE,
        "size again": SIZE,
        "size in cm": 100 * SIZE + 0.1 * RNG.normal(size=N),
        "unit": "m",
        "town": ["Ely"] * 100 + ["Wells"] * 94 + ["Bath"] * 3 + ["York"] * 3,
        "odd": ODD,
        "gaps": np.where(np.arange(N) % 4 == 0, np.nan, RNG.normal(size=N)),
        "fine": RNG.normal(size=N),
    }
)
FOUND = {
    ("id", "left out"),
    ("name", "left out"),
    ("size again", "duplicate"),
    ("size in cm", "near copy"),
    ("unit", "constant"),
    ("town", "rare levels"),
    ("odd", "outlier"),
    ("gaps", "missing"),
}


def pairs(frame):
    return set(zip(frame["column"], frame["finding"], strict=True))


def test_all_findings_are_listed_at_once():
    assert pairs(islab.check(TABLE).to_frame()) == FOUND


@pytest.mark.parametrize("y", [TABLE["fine"] * 3, TABLE["fine"] > 0.2])
def test_a_column_that_alone_tells_the_target_is_suspected(y):
    assert pairs(islab.check(TABLE, y).to_frame()) - FOUND == {("fine", "leakage suspect")}


def test_a_good_table_has_no_findings():
    table = pd.DataFrame(RNG.normal(size=(50, 3)), columns=list("abc"))
    assert islab.check(table, RNG.normal(size=50)).findings == ()


def test_the_page_shows_names_as_text():
    page = islab.check(TABLE.rename(columns={"unit": "<b>"}))._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_the_command_prints_every_finding(tmp_path, capsys):
    TABLE.assign(y=RNG.normal(size=N)).to_csv(tmp_path / "t.csv", index=False)
    assert main(["check", str(tmp_path / "t.csv"), "--target", "y"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{N} rows, 10 columns, {len(FOUND)} findings"
    assert "unit: constant (nothing can be learned from it)" in lines
