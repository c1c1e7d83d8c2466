"""What is read from files of text, and what is refused."""

import pandas as pd
import pytest

from islab.cli.tables import known_targets, read_table


@pytest.fixture
def file(tmp_path):
    def write(content, name="data.csv"):
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


@pytest.fixture
def in_pieces(monkeypatch):
    monkeypatch.setattr("islab.cli.tables.ROWS_AT_ONCE", 2)


# -- spelling -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("large_file", [0, 2**20], ids=["large", "small"])
def test_a_column_with_text_in_a_later_piece_is_text_from_the_start(file, monkeypatch, large_file):
    monkeypatch.setattr("islab.cli.tables.LARGE_FILE", large_file)
    codes = read_table(file("code\n007\n1.0\nx1\n9\n"))["code"]
    assert codes.tolist() == ["007", "1.0", "x1", "9"]


@pytest.mark.usefixtures("in_pieces")
def test_booleans_of_which_a_later_piece_lacks_some_stay_booleans(file):
    flags = read_table(file("flag,n\nTrue,1\nFalse,2\nTrue,3\n,4\n"))["flag"]
    assert flags.dropna().tolist() == [True, False, True]


@pytest.mark.usefixtures("in_pieces")
def test_numbers_of_which_a_piece_has_none_stay_numbers(file):
    numbers = read_table(file("a,b\n1,u\n2,v\n,w\n,x\n"))["a"]
    assert pd.api.types.is_float_dtype(numbers)


def test_text_far_down_in_a_wide_table_is_text_from_the_start(file):
    others = "".join(f",n{number}" for number in range(1100))
    zeros = ",0" * 1100
    codes = read_table(file(f"code{others}\n" + f"007{zeros}\n" * 600 + f"x{zeros}\n"))["code"]
    assert set(codes) == {"007", "x"}


def test_columns_are_read_as_text_on_request(file):
    table = read_table(file("code,n\n007,1\n008,2\n"), {"code": ()})
    assert table["code"].tolist() == ["007", "008"]
    assert table["n"].tolist() == [1, 2]


def test_columns_that_are_not_there_may_be_asked_for_as_text(file):
    assert list(read_table(file("a\n1\n"), {"b": ()})) == ["a"]


# -- targets that are missing -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.csv.gz"])
def test_words_that_are_taken_for_missing_targets_are_named(tmp_path, capsys, name):
    table = pd.DataFrame({"a": range(5), "state": ["well", "None", "NA", "", "ill"]})
    table.to_csv(tmp_path / name, index=False, sep="\t" if "tsv" in name else ",")
    kept, _ = known_targets(read_table(tmp_path / name), "state", tmp_path / name)
    assert kept["a"].tolist() == [0, 4]
    said = capsys.readouterr().err
    assert "3 rows without a target (in words, 'None', 'NA') are left out" in said


def test_empty_targets_are_no_words(file, capsys):
    path = file("a,y\n1,2\n2,\n3,4\n")
    known_targets(read_table(path), "y", path)
    assert "1 rows without a target are left out" in capsys.readouterr().err


def test_missing_targets_of_parquet_are_counted(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    path = tmp_path / "data.parquet"
    pd.DataFrame({"a": [1, 2], "y": [1.0, None]}).to_parquet(path)
    known_targets(read_table(path), "y", path)
    assert "1 rows without a target are left out" in capsys.readouterr().err


# -- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "NA"])
def test_a_name_that_stands_twice_is_refused(file, name):
    with pytest.raises(ValueError, match=f"Got .* with column name '{name}' more than once"):
        read_table(file(f"{name},b,{name}\n1,2,3\n"))


def test_several_columns_may_be_without_a_name(file):
    assert read_table(file("a,,\n1,2,3\n")).shape == (1, 3)


@pytest.mark.parametrize(
    "rows",
    ["1,2,\n3,4,\n", "0,1,2\n1,3,4\n", "u,1,2\nv,3,4\n", "1,2,,\n3,4,,\n"],
    ids=["comma at the end", "counted rows", "named rows", "two commas"],
)
def test_rows_with_more_fields_than_names_are_refused(file, rows):
    with pytest.raises(ValueError, match=r"Expected 2 fields in line 2.*; try to name every col"):
        read_table(file("a,b\n" + rows))


def test_rows_may_have_fewer_fields_than_names(file):
    assert read_table(file("a,b\n1\n2,3\n"))["b"].isna().tolist() == [True, False]


def test_semicolons_are_named_where_numbers_have_commas(file):
    with pytest.raises(ValueError, match="separated by ';'"):
        read_table(file("a;b\n1,5;2,5\n3,5;4,5\n"))


def test_a_header_alone_is_no_table(file):
    with pytest.raises(ValueError, match="without a single row"):
        read_table(file("a,b\n"))
