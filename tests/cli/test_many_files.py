"""Tables in several files, larger than memory if need be: predicted as they are read."""

import io

import numpy as np
import pandas as pd
import pytest

import islab

from .conftest import QUICK, run

parquet = pytest.importorskip("pyarrow.parquet")
COVARIATES = ["size", "colour", "noise"]
DROPS = ["--target", "price", "--drop", "state", "--drop", "visits"]


@pytest.fixture
def files(table, tmp_path):
    """The table in three files of different length."""
    paths = []
    for number, part in enumerate((table[:20], table[20:25], table[25:])):
        paths.append(tmp_path / f"{number}.parquet")
        part.to_parquet(paths[-1], index=False)
    return paths


def test_several_files_are_predicted_one_after_the_other(folder, files, capsys):
    found = run(capsys, "predict", folder / "price.islab", *files)[1]
    whole = run(capsys, "predict", folder / "price.islab", folder / "data.csv")[1]
    np.testing.assert_allclose(
        pd.read_csv(io.StringIO(found)), pd.read_csv(io.StringIO(whole)), rtol=1e-9
    )


@pytest.mark.parametrize("name", ["price", "state"])
def test_predictions_are_written_to_parquet_as_they_come(
    folder, files, table, tmp_path, capsys, monkeypatch, name
):
    monkeypatch.setattr("islab.cli.tables.ROWS_AT_ONCE", 7)
    output = tmp_path / "out.parquet"
    arguments = [folder / f"{name}.islab", *files, "-o", output, "--interval", 0.9]
    assert run(capsys, "predict", *arguments)[0] == 0
    text = run(capsys, "predict", folder / f"{name}.islab", *files, "--interval", 0.9)[1]
    found, expected = pd.read_parquet(output), pd.read_csv(io.StringIO(text))
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert parquet.ParquetFile(output).num_row_groups > len(files)


def test_a_failure_in_a_later_file_leaves_nothing(folder, files, table, tmp_path, capsys):
    table.assign(size="much").to_parquet(files[2], index=False)
    output = tmp_path / "out.parquet"
    code, _, err = run(capsys, "predict", folder / "price.islab", *files, "-o", output)
    assert code == 2
    assert "2.parquet" in err
    assert "(row 0)" in err
    assert sorted(tmp_path.iterdir()) == files


def test_parquet_and_json_exclude_each_other(folder, files, tmp_path, capsys):
    arguments = [folder / "price.islab", *files, "-o", tmp_path / "out.parquet", "--json"]
    code, _, err = run(capsys, "predict", *arguments)
    assert code == 2
    assert "expected neither with Parquet" in err


def test_an_input_among_several_is_not_overwritten(folder, files, capsys):
    code, _, err = run(capsys, "predict", folder / "price.islab", *files, "-o", files[1])
    assert code == 2
    assert "already in use" in err


def test_a_fit_on_several_files_is_the_fit_on_their_rows(folder, files, table, tmp_path, capsys):
    code, _, _ = run(capsys, "fit", *files, *DROPS, *QUICK, "-o", tmp_path / "m")
    assert code == 0
    model, expected = islab.load(tmp_path / "m"), islab.load(folder / "price.islab")
    rows = table[COVARIATES]
    np.testing.assert_allclose(model.predict(rows), expected.predict(rows), rtol=1e-9)


def test_a_fit_on_a_sample_says_how_many_rows(folder, files, tmp_path, capsys):
    arguments = [*DROPS, *QUICK, "--rows", 60, "--json", "-o", tmp_path / "m"]
    code, out, err = run(capsys, "fit", *files, *arguments)
    assert code == 0
    assert "random sample of 60 of 90 rows" in err
    assert '"rows": 60' in out


def test_a_fit_on_several_files_learns_from_all_rows(folder, files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("islab.tables.batches.SAMPLE_ROWS", 60)
    code, out, _ = run(capsys, "fit", *files, *DROPS, *QUICK, "--json", "-o", tmp_path / "m")
    assert code == 0
    assert '"rows": 90' in out
    assert islab.load(tmp_path / "m").posterior_.all_rows.n_rows == 90


def test_text_in_one_of_several_files_makes_the_column_text(table, tmp_path, capsys):
    codes = np.arange(90) % 3
    first = table.assign(code=codes)[:50]
    second = table.assign(code=np.where(codes == 2, "x", codes.astype(str)))[50:]
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, part in zip(paths, (first, second), strict=True):
        part.to_csv(path, index=False)
    assert run(capsys, "fit", *paths, *DROPS, *QUICK, "-o", tmp_path / "m")[0] == 0
    model = islab.load(tmp_path / "m")
    assert [n for n in model.columns_.names if n.startswith("code")] == [
        "code=0",
        "code=1",
        "code=2",
        "code=x",
    ]
