"""Mistakes end in one line on stderr and exit code 2."""

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from islab import ISLaBClassifier

from .conftest import QUICK, run

COVARIATES = ["size", "colour", "noise"]
STRICT = ["--target", "state", "--set", "missing=error"]


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
    (tmp_path / "data.ods").write_text("a,b\n1,2\n")
    assert ".parquet" in one_line(capsys, "fit", tmp_path / "data.ods", *FIT)


@pytest.mark.parametrize("name", ["data.xlsx", "data.feather", "data.arrow", "data.parquet"])
def test_files_that_are_not_what_their_name_says(capsys, tmp_path, name):
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    (tmp_path / name).write_text("a,b\n1,2\n")
    assert "cannot be read as" in one_line(capsys, "fit", tmp_path / name, *FIT)


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
    assert "no column other than the target" in line


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


# -- files that are damaged, and what a table may put into messages --------------------------------

COMPRESSIONS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda content: zipped(content),
}
TEXT = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (n, n * n % 97, n % 2) for n in range(300))


def zipped(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.csv", content)
    return file.getvalue()


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_compressed_files_that_are_cut_short(capsys, tmp_path, kind):
    content = COMPRESSIONS[kind](TEXT)
    (tmp_path / f"data.csv.{kind}").write_bytes(content[: len(content) // 2])
    line = one_line(capsys, "fit", tmp_path / f"data.csv.{kind}", "--target", "y", "-o", "never")
    assert "cannot be decompressed" in line


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_compressed_files_that_are_altered(capsys, tmp_path, kind):
    content = bytearray(COMPRESSIONS[kind](TEXT))
    content[80:160] = bytes(80)
    (tmp_path / f"data.csv.{kind}").write_bytes(bytes(content))
    code, _, err = run(
        capsys, "fit", tmp_path / f"data.csv.{kind}", "--target", "y", "-o", tmp_path / "m"
    )
    assert code == 2
    assert "islab: error: " in err


def test_parquet_files_that_are_altered(capsys, tmp_path, folder, table):
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "data.parquet")
    whole = (tmp_path / "data.parquet").read_bytes()
    rng = np.random.default_rng(2)
    for _ in range(40):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=4):
            content[place] = rng.integers(256)
        (tmp_path / "data.parquet").write_bytes(bytes(content))
        code, _, err = run(
            capsys,
            "predict",
            folder / "state.islab",
            tmp_path / "data.parquet",
            "-o",
            tmp_path / "p",
        )
        assert code == 0 or err.startswith("islab: error: ")


def test_metadata_of_a_parquet_file_that_do_not_fit_it(capsys, tmp_path, folder, table):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    whole = arrow.Table.from_pandas(table)
    metadata = {b"pandas": whole.schema.metadata[b"pandas"].replace(b"pandas_type", b"pandas_tyke")}
    parquet.write_table(whole.replace_schema_metadata(metadata), tmp_path / "data.parquet")
    line = one_line(capsys, "predict", folder / "state.islab", tmp_path / "data.parquet")
    assert "cannot be read as Parquet" in line


def unusable(table, path, value, row=3):
    """The table with one cell of its numbers altered."""
    column = table["noise"].astype(str)
    column[row] = value
    table.assign(noise=column).to_csv(path, index=False)
    return path


def test_a_huge_cell_does_not_make_a_huge_message(capsys, tmp_path, table):
    path = unusable(table, tmp_path / "data.csv", "x" * 1_000_000)
    assert len(one_line(capsys, "fit", path, *STRICT, "-o", tmp_path / "m")) < 500


def test_a_huge_cell_in_the_target_does_not_make_a_huge_message(capsys, tmp_path, table):
    path = unusable(table, tmp_path / "data.csv", "x" * 1_000_000)
    assert len(one_line(capsys, "fit", path, "--target", "noise", "-o", tmp_path / "m")) < 500


def test_a_number_with_underscores_is_blamed_itself(capsys, tmp_path, table):
    path = unusable(table, tmp_path / "data.csv", "1_000")
    line = one_line(capsys, "fit", path, *STRICT, "-o", tmp_path / "m")
    assert "Got '1_000' in column 'noise' (row 3)" in line


def test_a_word_among_numbers_is_missing_with_a_warning(capsys, tmp_path, table):
    path = unusable(table, tmp_path / "data.csv", "x" * 1_000_000)
    code, _, err = run(capsys, "fit", path, *STRICT[:2], *QUICK, "-o", tmp_path / "m")
    assert code == 0
    said = [line for line in err.splitlines() if "is no number and counts as missing" in line]
    assert len(said) == 1
    assert "in column 'noise'" in said[0]
    assert len(said[0]) < 500


NAME = "\x1b[2Jsize\x07"


@pytest.fixture
def hostile(tmp_path, table):
    """A table and a model with a name that a terminal would obey."""
    columns = table[["size", "state"]].rename(columns={"size": NAME})
    columns.to_csv(tmp_path / "data.csv", index=False)
    model = ISLaBClassifier(max_epochs=30, n_restarts=1, hidden_layer_sizes=(), random_state=0)
    model.fit(columns[[NAME]], columns["state"].replace("ill", "\x1b[31mill")).save(tmp_path / "m")
    return tmp_path / "m", tmp_path / "data.csv"


@pytest.mark.parametrize(
    "command", [["summary"], ["explain"], ["explain", "data"], ["predict", "data"]]
)
def test_names_do_not_reach_the_terminal_as_commands(capsys, hostile, monkeypatch, command):
    model, data = hostile
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    code, out, err = run(capsys, command[0], model, *[data] * (len(command) - 1))
    assert code == 0
    assert out
    assert "\x1b" not in out + err
    assert "\x07" not in out + err


def test_messages_do_not_reach_the_terminal_as_commands(capsys, hostile, tmp_path):
    (tmp_path / "other.csv").write_text("\x1b[2Jweight\n1\n")
    _, _, err = run(capsys, "predict", hostile[0], tmp_path / "other.csv")
    assert "weight" in err
    assert "\x1b" not in err


def test_a_closed_output_is_said_in_one_line(folder):
    command = f"{sys.executable} -m islab summary {folder / 'state.islab'} >&-"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "islab: error: standard output is closed; try > /dev/null\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_in_one_line(folder):
    command = f"{sys.executable} -m islab summary {folder / 'state.islab'} > /dev/full"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "No space left" in ended.stderr


# -- classes ---------------------------------------------------------------------------------------


@pytest.fixture
def formulas(tmp_path, table):
    model = ISLaBClassifier(max_epochs=30, n_restarts=1, hidden_layer_sizes=(), random_state=0)
    classes = table["state"].replace({"ill": "=cmd()", "well": "@SUM(A1)"})
    model.fit(table[["size"]], classes).save(tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize(("options", "start"), [([], "="), (["--escape-formulas"], "'=")])
def test_labels_that_are_formulas_are_escaped_on_request(capsys, formulas, folder, options, start):
    _, out, _ = run(capsys, "predict", formulas, folder / "data.csv", *options)
    cells = pd.read_csv(io.StringIO(out))["prediction"]
    assert set(cells) == {f"{start}cmd()", f"{start[:-1]}@SUM(A1)"}


def test_the_first_of_two_classes_can_be_explained(capsys, folder):
    def explained(name):
        arguments = ["explain", folder / "state.islab", folder / "data.csv", "--json"]
        code, out, _ = run(capsys, *arguments, "--class", name)
        assert code == 0
        return json.loads(out)

    first, second = explained("ill"), explained("well")
    for one, other in zip(first["covariates"], second["covariates"], strict=True):
        assert one["output"] == "ill"
        assert one["contribution"] == -other["contribution"]
        assert one["contribution_lower"] == -other["contribution_upper"]
    one, other = first["predictions"][0], second["predictions"][0]
    assert one["response"] + other["response"] == pytest.approx(1)
    assert one["response_lower"] + other["response_upper"] == pytest.approx(1)


def test_the_network_of_the_first_of_two_classes_is_shown(capsys, folder):
    assert run(capsys, "explain", folder / "state.islab", "--class", "ill")[0] == 0


@pytest.mark.parametrize("more", [["data.csv"], []])
def test_a_class_that_is_none_of_two_is_refused_with_both(capsys, folder, more):
    files = [folder / name for name in ("state.islab", *more)]
    code, _, said = run(capsys, "explain", *files, "--class", "maybe")
    assert code == 2
    assert said == "islab: error: Got --class 'maybe', expected 'ill' or 'well'\n"
