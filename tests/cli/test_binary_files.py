"""Tables in Parquet, Feather, Arrow and Excel files."""

import datetime
import sys
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from islab.cli.tables import read_table
from tests.cli.conftest import QUICK, run

pytest.importorskip("pyarrow")
pytest.importorskip("openpyxl")

TABLE = pd.DataFrame(
    {
        "number": [1.5, None, 3.0, 4.0],
        "count": [1, 2, 3, 4],
        "flag": [True, False, True, True],
        "code": ["007", "x", None, "NA"],
        "when": pd.to_datetime(["2024-05-31 14:30", None, "2024-06-02 00:00", "2024-06-03 00:00"]),
    }
)


def write(table, path):
    """The table in a file of the kind that the name says."""
    import pyarrow as arrow

    match path.suffix:
        case ".xlsx":
            table.to_excel(path, index=False)
        case ".feather":
            table.to_feather(path)
        case ".parquet":
            table.to_parquet(path)
        case ".arrow":
            whole = arrow.Table.from_pandas(table)
            with arrow.ipc.new_stream(path, whole.schema) as stream:
                stream.write_table(whole, max_chunksize=3)
    return path


KINDS = ["data.xlsx", "data.feather", "data.parquet", "data.arrow"]


@pytest.mark.parametrize("name", ["data.feather", "data.parquet", "data.arrow"])
def test_text_that_is_not_utf_8_is_refused_with_the_file(tmp_path, name):
    import pyarrow as arrow
    import pyarrow.feather
    import pyarrow.parquet

    buffers = [
        None,
        *map(arrow.py_buffer, (np.array([0, 2, 4], np.int32).tobytes(), b"ok\xff\xfe")),
    ]
    table = arrow.table({"code": arrow.Array.from_buffers(arrow.string(), 2, buffers)})
    match name.rpartition(".")[2]:
        case "parquet":
            arrow.parquet.write_table(table, tmp_path / name)
        case "feather":
            arrow.feather.write_feather(table, tmp_path / name)
        case _:
            with arrow.ipc.new_stream(tmp_path / name, table.schema) as stream:
                stream.write_table(table)
    with pytest.raises(ValueError, match=f"{name}', which cannot be read as .*UTF8"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("name", KINDS)
def test_a_file_gives_the_table_back(tmp_path, name):
    found = read_table(write(TABLE, tmp_path / name), {"code": ("NA",)})
    assert list(found) == list(TABLE)
    assert found["number"].tolist()[2:] == [3.0, 4.0]
    assert found["count"].tolist() == [1, 2, 3, 4]
    assert found["flag"].tolist() == [True, False, True, True]
    assert found["code"].dropna().tolist() == ["007", "x", "NA"]
    assert found["code"].isna().tolist() == [False, False, True, False]
    pd.testing.assert_series_equal(found["when"], TABLE["when"], check_dtype=False)


@pytest.mark.parametrize("name", KINDS)
def test_a_model_predicts_the_rows_of_a_file(folder, table, tmp_path, capsys, name):
    _, expected, _ = run(capsys, "predict", folder / "state.islab", folder / "data.csv")
    code, out, _ = run(capsys, "predict", folder / "state.islab", write(table, tmp_path / name))
    assert code == 0
    # A sheet keeps fifteen digits.
    pd.testing.assert_frame_equal(pd.read_csv(StringIO(out)), pd.read_csv(StringIO(expected)))


@pytest.mark.parametrize("name", ["data.parquet", "data.feather"])
def test_dates_and_an_order_are_kept(tmp_path, name):
    days = [datetime.date(2024, 5, day) for day in range(1, 31)]
    grade = pd.Categorical(list("abc") * 10, categories=list("cba"), ordered=True)
    found = read_table(write(pd.DataFrame({"day": days, "grade": grade}), tmp_path / name))
    assert found["day"].dtype.kind == "M"
    assert found["grade"].cat.ordered
    assert found["grade"].cat.categories.tolist() == ["c", "b", "a"]


def test_pieces_of_an_ordered_column_are_joined_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr("islab.cli.tables.ROWS_AT_ONCE", 2)
    grade = pd.Categorical(list("abca"), categories=list("cba"), ordered=True)
    found = read_table(write(pd.DataFrame({"grade": grade}), tmp_path / "data.parquet"))["grade"]
    assert found.tolist() == list("abca")
    assert found.cat.ordered


def test_words_for_a_missing_value_are_missing_in_a_sheet(tmp_path):
    table = pd.DataFrame({"a": [1.0, "NA", 3.0], "b": ["u", "n/a", "NA"]}, dtype=object)
    found = read_table(write(table, tmp_path / "data.xlsx"), {"b": ("NA",)})
    assert found["a"].dtype == float
    assert found["b"].dropna().tolist() == ["u", "NA"]


def test_empty_rows_and_columns_of_a_sheet_are_passed_over(tmp_path):
    table = pd.DataFrame({"a": [None, "x", 1, None], "b": [None, "y", 2, None], "c": [None] * 4})
    table.to_excel(tmp_path / "data.xlsx", index=False, header=False)
    assert read_table(tmp_path / "data.xlsx").to_dict("list") == {"x": [1], "y": [2]}


def test_a_name_twice_in_a_sheet_is_refused(tmp_path):
    table = pd.DataFrame([["a", "a"], [1, 2]])
    table.to_excel(tmp_path / "data.xlsx", index=False, header=False)
    with pytest.raises(ValueError, match="column name 'a' more than once"):
        read_table(tmp_path / "data.xlsx")


@pytest.mark.parametrize(("name", "package"), [("a.xlsx", "openpyxl"), ("a.feather", "pyarrow")])
def test_a_file_without_its_reader_says_what_to_install(tmp_path, monkeypatch, name, package):
    (tmp_path / name).write_bytes(b"content")
    for module in (package, f"{package}.ipc"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=f"pip install {package}"):
        read_table(tmp_path / name)


def test_columns_that_look_like_ids_are_kept_on_request(tmp_path, capsys):
    rng = np.random.default_rng(0)
    names = [f"person {number}" for number in range(60)]
    table = pd.DataFrame({"id": range(60), "who": names, "x": rng.normal(size=60)})
    table.assign(y=rng.normal(size=60)).to_csv(tmp_path / "data.csv", index=False)
    arguments = ["--target", "y", *QUICK, "-o", tmp_path / "m", "--json"]
    code, _, err = run(
        capsys, "fit", tmp_path / "data.csv", *arguments, "--keep", "id", "--keep", "who"
    )
    assert code == 0
    assert "left out" not in err
    code, _, err = run(capsys, "fit", tmp_path / "data.csv", *arguments)
    assert "2 columns left out ('id': counts the rows; 'who'" in err
