"""Mistakes end in one line on stderr and exit code 2."""

import pytest

from .conftest import run

COVARIATES = ["size", "colour", "noise"]


def one_line(capsys, *arguments):
    """The single line on stderr of a command that fails with exit code 2."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    lines = [line for line in err.splitlines() if "of '" not in line or "error" in line]
    assert len(lines) == 1
    assert lines[0].startswith("islab: error: Got ")
    return lines[0]


FIT = ["--target", "state", "-o", "never.islab"]


def test_a_path_that_leads_nowhere(capsys, tmp_path):
    assert "there is none" in one_line(capsys, "fit", tmp_path / "nothing.csv", *FIT)


def test_a_folder_instead_of_a_file(capsys, tmp_path):
    assert "expected a file" in one_line(capsys, "fit", tmp_path, *FIT)


@pytest.mark.parametrize("content", ["", "\n\n", "a,b\n", 'a,b\n"1,2\n3,4\n', "a,b\n1,2\n3,4,5\n"])
def test_files_that_are_no_tables(capsys, tmp_path, content):
    (tmp_path / "data.csv").write_text(content)
    one_line(capsys, "fit", tmp_path / "data.csv", "--target", "a", "-o", tmp_path / "m")


def test_bytes_that_are_no_text(capsys, tmp_path):
    (tmp_path / "data.csv").write_bytes(b"a,b\n\xff\xfe,2\n")
    line = one_line(capsys, "fit", tmp_path / "data.csv", "--target", "a", "-o", tmp_path / "m")
    assert "cannot be read as a table" in line


def test_an_unknown_kind_of_file(capsys, tmp_path):
    (tmp_path / "data.xlsx").write_text("a,b\n1,2\n")
    assert ".parquet" in one_line(capsys, "fit", tmp_path / "data.xlsx", *FIT)


def test_a_target_that_is_no_column_with_the_nearest_name(capsys, folder):
    arguments = ["--target", "stat", "-o", "never.islab"]
    line = one_line(capsys, "fit", folder / "data.csv", *arguments)
    assert "did you mean 'state'?" in line


def test_a_target_that_is_left_out(capsys, folder):
    line = one_line(capsys, "fit", folder / "data.csv", *FIT, "--drop", "state")
    assert "which is the target" in line


def test_nothing_but_a_target(capsys, tmp_path):
    (tmp_path / "data.csv").write_text("a\n1\n2\n")
    line = one_line(capsys, "fit", tmp_path / "data.csv", "--target", "a", "-o", tmp_path / "m")
    assert "no column besides the target" in line


@pytest.mark.parametrize("setting", ["depth=3", "max_epochs", "max_epochs=many", "sparsity=7"])
def test_settings_that_are_none(capsys, folder, setting, tmp_path):
    arguments = ["--target", "state", "-o", tmp_path / "m", "--set", setting]
    one_line(capsys, "fit", folder / "data.csv", *arguments)


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_a_place_that_cannot_be_written_is_named_before_anything_is_read(capsys, tmp_path, option):
    places = {"-o": tmp_path / "m", "--report": tmp_path / "r.html"}
    places[option] = tmp_path / "nowhere" / "file"
    arguments = [part for pair in places.items() for part in pair]
    line = one_line(capsys, "fit", tmp_path / "none.csv", "--target", "state", *arguments)
    assert "whose folder does not exist" in line


def test_a_report_against_what_is_no_class(capsys, folder, tmp_path):
    arguments = [folder / "state.islab", folder / "data.csv", "--target", "colour"]
    line = one_line(capsys, "report", *arguments, "-o", tmp_path / "r.html")
    assert "in y, expected those of the training: ill, well" in line
    assert not list(tmp_path.iterdir())


def test_a_target_without_values(capsys, folder, table, tmp_path):
    table.assign(state=None).to_csv(tmp_path / "data.csv", index=False)
    line = one_line(capsys, "fit", tmp_path / "data.csv", "--target", "state", "-o", tmp_path / "m")
    assert "without a single value in column 'state'" in line


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "data.csv", "--target", "state", "-o", "data.csv"],
        ["fit", "data.csv", "--target", "state", "-o", "new", "--report", "./new"],
        ["predict", "state.islab", "data.csv", "-o", "data.csv"],
        ["predict", "state.islab", "data.csv", "-o", "state.islab"],
        ["report", "state.islab", "data.csv", "-o", "state.islab"],
    ],
    ids=" ".join,
)
def test_no_file_is_replaced_that_another_argument_names(capsys, folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    assert "which is already in use" in one_line(capsys, *command)


def test_columns_separated_by_semicolons(capsys, table, tmp_path):
    table.to_csv(tmp_path / "data.csv", index=False, sep=";")
    assert "separated by ';'" in one_line(capsys, "fit", tmp_path / "data.csv", *FIT)


def test_a_target_of_numbers_with_a_cell_of_text(capsys, table, tmp_path):
    prices = table["price"].astype(str).where(table.index != 5, "n/a?")
    table.assign(price=prices).to_csv(tmp_path / "data.csv", index=False)
    line = one_line(capsys, "fit", tmp_path / "data.csv", "--target", "price", "-o", tmp_path / "m")
    assert "Got 'n/a?' in column 'price', where other values are numbers" in line


def test_a_model_file_that_is_none(capsys, folder):
    line = one_line(capsys, "predict", folder / "data.csv", folder / "data.csv")
    assert "cannot be loaded" in line


def test_a_table_without_a_column_of_the_model(capsys, folder, table, tmp_path):
    table.drop(columns="colour").to_csv(tmp_path / "new.csv", index=False)
    line = one_line(capsys, "predict", folder / "state.islab", tmp_path / "new.csv")
    assert "without column 'colour', which the model reads" in line


def test_a_failed_prediction_leaves_no_file(capsys, folder, table, tmp_path):
    table.assign(size="much").to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / "out.csv"
    line = one_line(capsys, "predict", folder / "state.islab", tmp_path / "new.csv", "-o", output)
    assert "Got 'much' in column 'size'" in line
    assert [entry.name for entry in tmp_path.iterdir()] == ["new.csv"]


@pytest.mark.parametrize("row", [-1, 90])
def test_a_row_that_is_not_there(capsys, folder, row):
    arguments = [folder / "state.islab", folder / "data.csv", f"--row={row}"]
    assert "from 0 to 89" in one_line(capsys, "explain", *arguments)


def test_an_interval_that_is_none(capsys, folder):
    arguments = [folder / "state.islab", folder / "data.csv", "--interval", 90]
    assert "Got level=90" in one_line(capsys, "predict", *arguments)


def test_warnings_are_one_line_each(capsys, folder, table, tmp_path):
    table.assign(colour="violet").to_csv(tmp_path / "new.csv", index=False)
    code, _, err = run(capsys, "predict", folder / "state.islab", tmp_path / "new.csv")
    assert code == 0
    assert err.startswith("islab: warning: Got 'violet'")
    assert len(err.splitlines()) == 1
