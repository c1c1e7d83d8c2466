"""``islab export`` writes what ``export`` of the loaded model gives."""

import sqlite3

import pandas as pd
import pytest

import islab

from .conftest import run


@pytest.mark.parametrize("to", ["formula", "latex", "python", "sql", "graphml"])
def test_text_goes_to_stdout(folder, capsys, to):
    if to == "graphml":
        pytest.importorskip("networkx")
    code, out, _ = run(capsys, "export", folder / "price.islab", "--to", to)
    assert code == 0
    assert out.rstrip("\n") == islab.load(folder / "price.islab").export(to).rstrip("\n")


def test_a_file_holds_the_query_and_the_query_predicts(folder, table, tmp_path, capsys):
    options = ["--draws", 20, "--interval", 0.5, "--table", "my rows", "--dialect", "sqlite"]
    path = tmp_path / "model.sql"
    code, out, _ = run(
        capsys, "export", folder / "price.islab", "--to", "sql", *options, "-o", path
    )
    assert (code, out) == (0, "")
    with sqlite3.connect(":memory:") as connection:
        table.to_sql("my rows", connection, index=False)
        found = pd.read_sql_query(path.read_text(), connection)
    model = islab.load(folder / "price.islab")
    expected = model.predictions(table[model.feature_names_in_], n_draws=20).interval(0.5)
    assert abs(found["lower"] - expected[:, 0, 0]).max() < 1e-6


def test_onnx_is_written_to_a_file(folder, tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    code, _, _ = run(capsys, "export", folder / "state.islab", "--to", "onnx", "-o", path)
    assert code == 0
    names = {given.name for given in onnx.load(path).graph.input}
    assert names <= {"size", "colour", "noise"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "onnx"], "without a file"),
        (["--to", "formula", "--draws", 3], "Got --draws with --to formula"),
        (["--to", "python", "--draws", 0], "Got n_draws=0"),
    ],
)
def test_mistakes_are_said_in_one_line(folder, capsys, arguments, message):
    code, out, err = run(capsys, "export", folder / "price.islab", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_model_itself_is_not_overwritten(folder, capsys):
    path = folder / "price.islab"
    code, _, err = run(capsys, "export", path, "--to", "sql", "-o", path)
    assert code == 2
    assert "already in use" in err
