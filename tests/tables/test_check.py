import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

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
        "town again": ["Ely"] * 100 + ["Wells"] * 94 + ["Bath"] * 3 + ["York"] * 3,
        "visit": pd.date_range("2023-01-01", periods=N, freq="3D"),
        "grade": pd.Categorical(["a", "b", "c", None] * (N // 4), ordered=True),
        "account_id": RNG.permutation(10**6)[:N],
        "born": [f"{1 + number % 12}/{1 + number % 11}/{1950 + number}" for number in range(N)],
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
    ("town again", "rare levels"),
    ("town again", "duplicate"),
    ("visit", "date"),
    ("grade", "missing"),
    ("account_id", "left out"),
    ("born", "left out"),
}


def pairs(frame):
    return set(zip(frame["column"], frame["finding"], strict=True))


def test_all_findings_are_listed_at_once():
    assert pairs(islab.check(TABLE).to_frame()) == FOUND


@pytest.mark.parametrize("y", [TABLE["fine"] * 3, TABLE["fine"] > 0.2])
def test_a_column_that_alone_tells_the_target_is_suspected(y):
    assert pairs(islab.check(TABLE, y).to_frame()) - FOUND == {("fine", "leakage suspect")}


def test_rows_without_a_target_do_not_hide_a_leak():
    y = TABLE["fine"].copy()
    y[::7] = np.nan
    assert ("fine", "leakage suspect") in pairs(islab.check(TABLE, y).to_frame())


def test_a_class_of_several_that_a_column_tells_is_found():
    y = pd.cut(TABLE["fine"], [-9, -0.5, 0.5, 9], labels=["low", "middle", "high"])
    assert ("fine", "leakage suspect") in pairs(islab.check(TABLE, y).to_frame())


def test_a_column_that_tells_one_class_of_three_is_no_suspect():
    iris = load_iris(as_frame=True)
    assert "leakage suspect" not in set(islab.check(iris.data, iris.target).to_frame()["finding"])


@pytest.mark.parametrize("y", [np.arange(N) % 5 < 2, np.array(list("abcab"))[np.arange(N) % 5]])
def test_levels_that_together_tell_the_target_are_suspected(y):
    table = TABLE[["fine"]].assign(town=np.array(list("vwxyz"))[np.arange(N) % 5])
    assert pairs(islab.check(table, y).to_frame()) == {("town", "leakage suspect")}


def test_a_gap_that_tells_the_target_is_suspected():
    y = RNG.random(N) < 0.4
    found = islab.check(TABLE[["fine"]].assign(paid=np.where(y, SIZE, np.nan)), y).to_frame()
    assert ("paid", "leakage suspect") in pairs(found)
    assert found["detail"].str.contains(r"paid \(missing\)").any()


def test_a_few_rows_make_no_suspect():
    assert islab.check(TABLE[["fine"]][:5], TABLE["fine"][:5]).findings == ()


def test_a_target_of_several_columns_is_looked_at_column_by_column():
    y = TABLE[["gaps", "fine"]]
    assert ("fine", "leakage suspect") in pairs(islab.check(TABLE[["size", "fine"]], y).to_frame())


@pytest.mark.parametrize("frame", [np.asarray, lambda table: table.to_numpy(dtype=object)])
def test_an_array_is_looked_at_as_a_frame_is(frame):
    table = TABLE[["size", "odd"]]
    assert pairs(islab.check(frame(table)).to_frame()) == {("x1", "outlier")}


def test_an_array_of_text_is_looked_at_too():
    table = TABLE[["size", "unit"]].to_numpy()
    assert pairs(islab.check(table).to_frame()) == {("x1", "constant")}


def test_a_single_column_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"Got X with 1 dimension, .*to_frame"):
        islab.check(TABLE["size"])


def test_a_huge_number_is_told_in_few_digits():
    odd = ODD.copy()
    odd[5] = 1e200
    assert len(islab.check(TABLE[["fine"]].assign(odd=odd)).findings[0].detail) < 80


def test_a_target_of_another_length_is_refused():
    with pytest.raises(ValueError, match="Got y of length 3 for 200 rows"):
        islab.check(TABLE, [1, 2, 3])


def test_columns_that_stop_a_fit_are_findings():
    table = TABLE[["fine"]].assign(odd=[[1]] * N, far=np.append(SIZE[1:], np.inf))
    table["huge"] = SIZE * 1e200
    found = islab.check(table, SIZE).to_frame().set_index("column")
    assert found["finding"].to_dict() == {
        "far": "cannot be used",
        "huge": "cannot be used",
        "odd": "left out",
    }
    assert found.loc["odd", "detail"] == "holds values of type list"
    assert found.loc["far", "detail"].startswith("Got inf in column 'far' (row 199)")


def test_numbers_that_name_groups_are_findings():
    table = TABLE[["fine"]].assign(mouse_id=np.arange(N) // 5)
    found = islab.check(table).to_frame()
    assert found["finding"].tolist() == ["group id"]
    assert "declare it categorical" in found["detail"][0]


def test_a_table_of_nothing_usable_is_looked_at_too():
    found = islab.check(TABLE[["name"]]).to_frame()
    assert found["finding"].tolist() == ["left out"]


def test_a_column_without_a_value_is_called_empty():
    found = islab.check(TABLE[["fine"]].assign(nothing=np.nan))
    assert pairs(found.to_frame()) == {("nothing", "empty")}


def test_one_finding_is_counted_as_one():
    table = pd.DataFrame({"a": RNG.normal(size=50), "same": np.ones(50)})
    assert str(islab.check(table, RNG.normal(size=50))).startswith(
        "50 rows, 2 columns, 1 finding\n"
    )


def test_a_good_table_has_no_findings():
    table = pd.DataFrame(RNG.normal(size=(50, 3)), columns=list("abc"))
    assert islab.check(table, RNG.normal(size=50)).findings == ()


def test_the_page_shows_names_as_text():
    page = islab.check(TABLE.rename(columns={"unit": "<b>"}))._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_a_detail_says_what_a_fit_makes_of_a_column():
    found = islab.check(TABLE).to_frame().set_index(["column", "finding"])["detail"]
    assert found["visit", "date"] == "read as days since 2023-01-01, month, weekday"
    assert found["town", "rare levels"] == "pooled: Bath, York"
    assert found["town again", "duplicate"] == "of 'town'"
    assert found["grade", "missing"] == "25% of the rows"
    assert found["account_id", "left out"] == "an id, another in every row"
    assert "pandas.to_datetime" in found["born", "left out"]


def test_a_fitted_model_says_what_it_made_of_each_column():
    with pytest.warns(islab.TableWarning, match="4 columns left out"):
        model = islab.ISLaBRegressor(max_epochs=2, n_restarts=1, posterior="independent").fit(
            TABLE, SIZE
        )
    lines = model.columns_.to_frame().set_index("column")
    assert lines.index.tolist() == list(TABLE)
    assert lines.loc["id"].tolist() == ["left out", 0, "counts the rows"]
    assert lines.loc["grade"].tolist() == ["ordered", 3, "in the order a, b, c"]
    assert lines.loc["fine"].tolist() == ["number", 1, ""]
    assert lines["covariates"].sum() == len(model.columns_.names)


def test_the_command_prints_every_finding(tmp_path, capsys):
    TABLE.assign(y=RNG.normal(size=N)).to_csv(tmp_path / "t.csv", index=False)
    assert main(["check", str(tmp_path / "t.csv"), "--target", "y"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{N} rows, {TABLE.shape[1]} columns, {len(FOUND)} findings"
    assert "unit: constant (nothing can be learned from it)" in lines
