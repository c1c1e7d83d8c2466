"""What each command does."""

import io
import json
import re
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

import islab
from islab.tables.targets import detected_task

from .conftest import QUICK, run

COVARIATES = ["size", "colour", "noise"]


# -- fit --------------------------------------------------------------------------------------


def test_fit_saves_what_the_estimator_learns(folder, table):
    model = islab.load(folder / "state.islab")
    assert model.feature_names_in_.tolist() == COVARIATES
    assert model.score(table[COVARIATES], table["state"]) > 0.85


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.csv.gz"])
def test_all_formats_give_the_same_model(folder, tmp_path, capsys, name):
    arguments = ["--target", "state", "--drop", "price", "--drop", "visits", *QUICK]
    code, _, _ = run(capsys, "fit", folder / name, *arguments, "-o", tmp_path / "m")
    assert code == 0
    assert (tmp_path / "m").read_bytes() == (folder / "state.islab").read_bytes()


def test_parquet_is_read(folder, table, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "data.parquet")
    code, out, _ = run(capsys, "predict", folder / "state.islab", tmp_path / "data.parquet")
    assert code == 0
    assert len(out.splitlines()) == len(table) + 1


def test_parquet_without_its_reader_says_what_to_install(folder, tmp_path, capsys, monkeypatch):
    (tmp_path / "data.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    code, _, err = run(capsys, "predict", folder / "state.islab", tmp_path / "data.parquet")
    assert code == 2
    assert "pip install pyarrow" in err


def test_the_task_is_said_and_nothing_else_where_no_one_watches(folder, tmp_path, capsys):
    arguments = ["--target", "state", *QUICK, "-o", tmp_path / "m"]
    _, out, err = run(capsys, "fit", folder / "data.csv", *arguments)
    assert err.startswith("classification of 'state'")
    assert len(err.splitlines()) == 1
    assert "ISLaBClassifier" in out


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([True, False, True], "classification"),
        ([1, 2, 1], "classification"),
        ([1.0, 2.0, 1.0], "classification"),
        ([1.5, 2.0, 1.0], "regression"),
        (list(range(20)), "regression"),
        ([1e300, 1e300], "regression"),
        (pd.Categorical([1.5, 2.5, 1.5]), "classification"),
    ],
)
def test_tasks_are_detected_from_the_target(values, task):
    assert detected_task(pd.Series(values)) == task


def test_counts_are_learned_on_request(folder, tmp_path, capsys):
    arguments = ["--target", "visits", "--task", "counts", *QUICK, "-o", tmp_path / "m"]
    assert run(capsys, "fit", folder / "data.csv", *arguments)[0] == 0
    assert islab.load(tmp_path / "m").likelihood == "poisson"


def test_fit_speaks_json(folder, tmp_path, capsys):
    arguments = ["--target", "price", *QUICK, "-o", tmp_path / "m", "--json"]
    _, out, _ = run(capsys, "fit", folder / "data.csv", *arguments)
    said = json.loads(out)
    assert (said["task"], said["rows"]) == ("regression", 90)
    assert {line["variable"] for line in said["summary"]["covariates"]} <= {
        *COVARIATES,
        "state",
        "visits",
    }


def test_parameters_can_be_set(folder, tmp_path, capsys):
    arguments = ["--target", "state", *QUICK, "--sparsity", 0.25, "--sparse", "--seed", 3]
    code, _, _ = run(capsys, "fit", folder / "data.csv", *arguments, "-o", tmp_path / "m")
    model = islab.load(tmp_path / "m")
    assert code == 0
    assert (model.sparsity, model.random_state, model.hidden_layer_sizes) == (0.25, 3, (3,))
    assert model.posterior_ is None


def test_rows_without_a_target_are_left_out_and_counted(table, tmp_path, capsys):
    holes = table.copy()
    holes.loc[:9, "state"] = None
    holes.to_csv(tmp_path / "data.csv", index=False)
    arguments = ["--target", "state", *QUICK, "-o", tmp_path / "m", "--json"]
    _, out, err = run(capsys, "fit", tmp_path / "data.csv", *arguments)
    assert "10 rows without a target are left out" in err
    assert json.loads(out)["rows"] == 80


def test_a_column_without_a_name_is_pointed_out(table, tmp_path, capsys):
    table[:20].to_csv(tmp_path / "data.csv")
    arguments = ["--target", "state", *QUICK, "-o", tmp_path / "m"]
    _, _, err = run(capsys, "fit", tmp_path / "data.csv", *arguments)
    assert "try --drop 'Unnamed: 0'" in err


# -- predict ----------------------------------------------------------------------------------


def test_predictions_of_numbers_are_the_estimator_s(folder, table, tmp_path, capsys):
    arguments = [folder / "price.islab", folder / "data.csv", "-o", tmp_path / "p.csv"]
    assert run(capsys, "predict", *arguments, "--interval", 0.9)[0] == 0
    written = pd.read_csv(tmp_path / "p.csv")
    model = islab.load(folder / "price.islab")
    mean, sd = model.predict(table[COVARIATES], return_std=True)
    interval = model.predict_interval(table[COVARIATES], 0.9)
    np.testing.assert_allclose(written, np.column_stack([mean, sd, interval]), rtol=1e-12)
    assert list(written) == ["prediction", "sd", "lower", "upper"]


def test_predictions_of_classes_come_with_probabilities(folder, table, capsys):
    arguments = [folder / "state.islab", folder / "data.csv"]
    _, out, _ = run(capsys, "predict", *arguments, "--average", "full")
    written = pd.read_csv(io.StringIO(out))
    model = islab.load(folder / "state.islab")
    expected = model.predict_proba(table[COVARIATES], model="full")
    probabilities = written[["probability_ill", "probability_well"]]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)


def test_predictions_are_json_lines_on_request(folder, table, capsys):
    arguments = [folder / "state.islab", folder / "data.csv", "--json"]
    lines = run(capsys, "predict", *arguments)[1].splitlines()
    assert len(lines) == len(table)
    assert json.loads(lines[0])["prediction"] in ("ill", "well")


def test_columns_are_found_by_name(folder, table, tmp_path, capsys):
    table[["noise", "state", "colour", "size"]].to_csv(tmp_path / "new.csv", index=False)
    model = folder / "price.islab"
    moved = run(capsys, "predict", model, tmp_path / "new.csv")[1]
    assert moved == run(capsys, "predict", model, folder / "data.csv")[1]


def test_long_files_are_predicted_in_pieces(folder, capsys, monkeypatch):
    arguments = ["predict", folder / "price.islab", folder / "data.csv"]
    whole = run(capsys, *arguments)[1]
    monkeypatch.setattr("islab.cli.tables.ROWS_AT_ONCE", 7)
    pieces = run(capsys, *arguments)[1]
    np.testing.assert_allclose(
        pd.read_csv(io.StringIO(pieces)), pd.read_csv(io.StringIO(whole)), rtol=1e-9
    )


def test_large_files_are_read_in_small_types(folder, table, monkeypatch):
    from islab.cli.tables import read_table

    monkeypatch.setattr("islab.cli.tables.LARGE_FILE", 0)
    monkeypatch.setattr("islab.cli.tables.ROWS_AT_ONCE", 7)
    small = read_table(folder / "data.csv")
    assert small["size"].dtype == np.float32
    assert isinstance(small["colour"].dtype, pd.CategoricalDtype)
    np.testing.assert_allclose(small["size"], table["size"], rtol=1e-6)
    assert small["colour"].tolist() == table["colour"].tolist()


def test_large_numbers_with_small_differences_stay_in_double_precision(tmp_path, monkeypatch):
    from islab.cli.tables import read_table

    seconds = 1.6e9 + np.arange(50.0)
    pd.DataFrame({"time": seconds}).to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.setattr("islab.cli.tables.LARGE_FILE", 0)
    np.testing.assert_array_equal(read_table(tmp_path / "data.csv")["time"], seconds)


# -- report -----------------------------------------------------------------------------------


def test_a_report_with_a_target_is_scored(folder, tmp_path, capsys):
    arguments = [folder / "state.islab", folder / "data.csv", "--target", "state"]
    code, _, err = run(capsys, "report", *arguments, "-o", tmp_path / "r.html")
    assert code == 0
    assert "report of 90 rows" in err
    assert 'id="scores"' in (tmp_path / "r.html").read_text()


def test_a_report_tells_of_the_rows_asked_for(folder, tmp_path, capsys):
    arguments = [folder / "price.islab", folder / "data.csv", "--row", 7, "--row", 2]
    assert run(capsys, "report", *arguments, "-o", tmp_path / "r.html")[0] == 0
    page = (tmp_path / "r.html").read_text()
    assert re.findall(r"<h3>Row (\d+)", page) == ["7", "2"]
    assert 'id="scores"' not in page


def test_a_report_leaves_out_rows_without_a_target(folder, table, tmp_path, capsys):
    holes = table.assign(state=table["state"].where(table.index > 3))
    holes.to_csv(tmp_path / "data.csv", index=False)
    arguments = [folder / "state.islab", tmp_path / "data.csv", "--target", "state"]
    code, _, err = run(capsys, "report", *arguments, "-o", tmp_path / "r.html")
    assert code == 0
    assert "4 rows without a target are left out" in err
    assert "report of 86 rows" in err


def test_fit_reports_on_the_rows_it_learned_from(folder, tmp_path, capsys):
    arguments = ["--target", "state", *QUICK, "-o", tmp_path / "m", "--report", tmp_path / "r.html"]
    assert run(capsys, "fit", folder / "data.csv", *arguments)[0] == 0
    assert "This report is about the 90 training rows" in (tmp_path / "r.html").read_text()


# -- explain, summary, demo -------------------------------------------------------------------


def test_explain_shows_contributions_of_the_row(folder, capsys):
    code, out, _ = run(capsys, "explain", folder / "price.islab", folder / "data.csv", "--row", 3)
    assert code == 0
    assert out.startswith("Of the posterior average, as `islab predict` gives it")
    assert "Counted from the typical row of the training data" in out
    assert "\nrow 3\n" in out
    assert "contributions to price" in out
    assert "size" in out


def test_a_missing_value_is_called_so(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    y = (X["a"] + 2 * X["b"]).rename("y")
    X.loc[::5, "a"] = np.nan
    model = islab.ISLaBRegressor(posterior="independent", max_epochs=40, random_state=0)
    model.fit(X, y).save(tmp_path / "m.islab")
    X.to_csv(tmp_path / "rows.csv", index=False)
    out = run(capsys, "explain", tmp_path / "m.islab", tmp_path / "rows.csv", "--row", 5)[1]
    line = next(line for line in out.splitlines() if line.split()[:1] == ["a"])
    assert line.split()[1] == "missing"


def test_explanations_in_json_add_up(folder, table, capsys):
    arguments = [folder / "price.islab", folder / "data.csv", "--row", 5, "--row", 2, "--json"]
    said = json.loads(run(capsys, "explain", *arguments)[1])
    assert [line["row"] for line in said["predictions"]] == [5, 2]
    prediction = said["predictions"][0]
    for name in ("variables", "covariates"):
        parts = [line["contribution"] for line in said[name] if line["row"] == 5]
        assert prediction["intercept"] + sum(parts) == pytest.approx(prediction["predictor"])
    model = islab.load(folder / "price.islab")
    predicted = model.predict(table.loc[[5], COVARIATES])
    assert prediction["response"] == pytest.approx(predicted.item())


def test_contributions_count_from_the_center_on_request(folder, capsys):
    arguments = ["explain", folder / "price.islab", folder / "data.csv", "--json"]
    typical = json.loads(run(capsys, *arguments)[1])
    center = json.loads(run(capsys, *arguments, "--baseline", "center")[1])
    scale = islab.load(folder / "price.islab").network_.scale
    for said, start in ((typical, scale.x_typical), (center, scale.x_center)):
        size = next(line for line in said["covariates"] if line["covariate"] == "size")
        assert size["baseline"] == pytest.approx(start[0])
    assert typical["predictions"][0]["predictor"] == pytest.approx(
        center["predictions"][0]["predictor"]
    )


def test_the_readable_network_is_explained_on_request(folder, table, capsys):
    arguments = ["explain", folder / "price.islab", folder / "data.csv", "--model", "median"]
    assert run(capsys, *arguments)[1].startswith("Of the readable network")
    said = json.loads(run(capsys, *arguments, "--json")[1])["predictions"][0]
    model = islab.load(folder / "price.islab")
    predicted = model.predict(table.loc[[0], COVARIATES], model="median")
    assert said["response"] == pytest.approx(predicted.item())


def test_a_row_asked_for_twice_is_shown_once(folder, capsys):
    arguments = [folder / "price.islab", folder / "data.csv", "--row", 3]
    assert run(capsys, "explain", *arguments, "--row", 3) == run(capsys, "explain", *arguments)


def test_a_row_without_a_table_is_refused(folder, capsys):
    code, _, err = run(capsys, "explain", folder / "price.islab", "--row", 3)
    assert (code, "Got --row 3 without a table" in err) == (2, True)


@pytest.mark.parametrize("command", [["predict"], ["explain", "--row", 50]])
def test_an_unusable_cell_is_found_in_the_whole_file(
    folder, table, tmp_path, capsys, monkeypatch, command
):
    unusable = table.astype({"size": object})
    unusable.loc[50, "size"] = "ten"
    unusable.to_csv(tmp_path / "unusable.csv", index=False)
    monkeypatch.setattr("islab.cli.tables.ROWS_AT_ONCE", 7)
    name, *options = command
    files = folder / "price.islab", tmp_path / "unusable.csv"
    code, _, err = run(capsys, name, *files, *options)
    assert code == 2
    assert "Got 'ten' in column 'size' (row 50)" in err


def test_explain_without_a_table_shows_the_network(folder, capsys):
    out = run(capsys, "explain", folder / "state.islab")[1]
    assert "used_weights" in out
    assert "size" in out


def test_summary_is_the_estimator_s(folder, capsys):
    out = run(capsys, "summary", folder / "state.islab")[1]
    assert out.strip() == str(islab.load(folder / "state.islab").summary()).strip()


def test_summary_speaks_json(folder, capsys):
    said = json.loads(run(capsys, "summary", folder / "state.islab", "--json")[1])
    assert said["title"] == "ISLaBClassifier"


def test_demo_scores_held_out_rows(capsys, monkeypatch):
    quick = partial(islab.ISLaBClassifier, max_epochs=40, n_restarts=1)
    monkeypatch.setattr("islab.estimators.ISLaBClassifier", quick)
    said = json.loads(run(capsys, "demo", "--json")[1])
    assert (said["rows_train"], said["rows_test"]) == (512, 57)
    assert said["accuracy"] > 0.8
    text = run(capsys, "demo")[1]
    for word in ("accuracy", "calibration error", "used weights", "selected covariates", "seconds"):
        assert word in text
    parser = islab.cli.make_parser()
    commands = [line.split()[1:] for line in text.splitlines() if line.startswith("  islab ")]
    assert [parser.parse_args(each).command for each in commands] == [each[0] for each in commands]
    assert len(commands) == 5


@pytest.mark.parametrize(
    ("terminal", "display", "remote", "watched"),
    [
        (True, ":0", "", True),
        (False, ":0", "", False),
        (True, "", "", False),
        (True, ":0", "10.0.0.1 22", False),
    ],
)
def test_the_report_is_opened_by_itself_only_where_somebody_watches(
    monkeypatch, terminal, display, remote, watched
):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setenv("SSH_CONNECTION", remote)
    assert islab.cli.demo.is_watched() is watched


@pytest.mark.parametrize("terminal", [True, False])
def test_a_fit_shows_a_progress_bar_on_a_terminal_only(
    folder, tmp_path, capsys, monkeypatch, terminal
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    arguments = ["--target", "state", "--drop", "price", *QUICK, "-o", tmp_path / "m"]
    code, _, said = run(capsys, "fit", folder / "data.csv", *arguments)
    assert code == 0
    assert ("islab: 100%|" in said or "sampling: " in said) is terminal


@pytest.mark.parametrize(("found", "words"), [(True, "opened"), (False, "no browser was found")])
def test_demo_opens_its_report_where_there_is_a_browser(
    capsys, monkeypatch, tmp_path, found, words
):
    pages = []
    quick = partial(islab.ISLaBClassifier, max_epochs=40, n_restarts=1, posterior="independent")
    monkeypatch.setattr("islab.estimators.ISLaBClassifier", quick)
    monkeypatch.setattr("webbrowser.open", lambda page: pages.append(page) or found)
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path))
    _, _, said = run(capsys, "demo", "--open")
    assert words in said
    assert str(tmp_path) in said
    assert pages == [(tmp_path / "report.html").as_uri()]
    assert "mean concavity" in (tmp_path / "report.html").read_text()
