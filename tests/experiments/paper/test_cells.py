"""Cells: run, kept, resumed."""

import json
import math
import signal
from pathlib import Path

import numpy as np
import pytest

from experiments.paper import cells
from experiments.paper.__main__ import main
from experiments.paper.cells import Results, plan, run_cell
from experiments.paper.methods import make_estimator
from experiments.paper.settings import method_of
from experiments.paper.tasks import QUICK_ROWS, load_task
from islab.evaluate import score_classes
from islab.evaluate.runner import Cell, NoData

from .conftest import record

RAW = Path(__file__).parents[3] / "docs" / "results" / "raw"
CELL = Cell("wbc", "blr", "default", 0)


@pytest.fixture(scope="module")
def quick_run():
    return run_cell(CELL, quick=True)


def test_two_classes_have_one_way_of_averaging(quick_run):
    assert "nll_paper" not in quick_run


def test_a_run_scores_both_models(quick_run):
    task = load_task(CELL.dataset, CELL.settings, quick=True)
    model = make_estimator(CELL.method, task, CELL.settings, CELL.seed, quick=True)
    model.fit(task.x_train, task.y_train)
    for kind, suffix in (("full", ""), ("median", "_median")):
        expected = score_classes(
            task.y_test, model.predict_proba(task.x_test, model=kind), model.classes_
        )
        found = {name: quick_run[name + suffix] for name in ("accuracy", "ece", "nll", "auc")}
        assert found == pytest.approx({name: expected[name] for name in found})


def test_a_run_tells_versions_machine_and_time_but_no_host(quick_run):
    assert {"islab-bnn", "numpy", "python"} <= set(quick_run["versions"])
    assert set(quick_run["machine"]) == {"cores", "cpu", "system"}
    assert quick_run["seconds"] >= 0


def test_a_run_is_a_line_of_json(quick_run):
    assert json.loads(json.dumps(quick_run)) == quick_run


def test_the_papers_recipe_runs_too():
    assert run_cell(Cell("wbc", "islab", "paper", 0), quick=True)["accuracy"] > 0


def test_a_method_that_cannot_run_is_a_sentence():
    with pytest.raises(ValueError, match="The paper has no setting of horseshoe on linear"):
        run_cell(Cell("linear-0.0", "horseshoe", "paper", 0), quick=True)


def test_a_missing_data_set_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("ISLAB_DATA", str(tmp_path))
    with pytest.raises(NoData, match="Kaggle"):
        run_cell(Cell("fer2013", "blr", "default", 0), quick=True)


def test_results_are_read_as_they_were_added(tmp_path):
    results = Results(tmp_path / "new")
    results.add(record(CELL))
    assert results.read(["wbc"]) == {CELL: record(CELL)}


def test_the_latest_of_two_runs_counts(tmp_path):
    results = Results(tmp_path)
    results.add(record(CELL, nll=1.0))
    results.add(record(CELL, nll=2.0))
    assert results.read(["wbc"])[CELL]["nll"] == 2.0


def test_a_line_that_was_cut_short_harms_no_other(tmp_path):
    results = Results(tmp_path)
    (tmp_path / "wbc.jsonl").write_text('{"dataset": "wb')
    results.add(record(CELL))
    assert list(results.read(["wbc"])) == [CELL]


@pytest.mark.parametrize(
    "line",
    [
        '{"hello": 1}',
        '{"dataset": "wbc", "method": "blr", "settings": "default", "seed": 7}',
        '{"dataset": "wbc", "method": "other", "settings": "default", "seed": 0, "seconds": 1}',
        '{"dataset": ["wbc"], "method": "blr", "settings": "paper", "seed": 0, "seconds": 1}',
    ],
)
def test_lines_of_something_else_are_left_out(tmp_path, line):
    results = Results(tmp_path)
    (tmp_path / "wbc.jsonl").write_text(f"{line}\n")
    results.add(record(CELL))
    assert list(results.read(["wbc"])) == [CELL]


def test_a_score_that_is_no_number_is_kept_as_nothing(tmp_path):
    results = Results(tmp_path)
    results.add(record(CELL, pearson=math.nan, nll=1))
    found = results.read(["wbc"])[CELL]
    assert (found["pearson"], found["nll"]) == (None, 1)


@pytest.mark.parametrize("name", ["wbc", "linear-0.0"])
def test_a_quick_task_has_rows_from_everywhere(name):
    whole, few = load_task(name), load_task(name, quick=True)
    assert len(few.y_train) <= QUICK_ROWS
    np.testing.assert_array_equal(np.unique(few.y_train), np.unique(whole.y_train))
    step = math.ceil(len(whole.y_train) / QUICK_ROWS)
    np.testing.assert_array_equal(few.x_train, whole.x_train[::step])


def test_a_plan_leaves_out_what_the_paper_did_not_run():
    found = plan(["linear-0.0"], ["horseshoe"], ["paper", "default"], range(2))
    assert found == [Cell("linear-0.0", "horseshoe", "default", seed) for seed in (0, 1)]


OPTIONS = ["--method", "blr", "--recipe", "default", "--quick", "--seeds", "2"]


@pytest.fixture
def counted(monkeypatch):
    """Instead of fitting, counts what would be run; the class says what goes wrong."""
    ran = []

    def fake(cell, quick=False, epochs=None):
        ran.append(cell.seed)
        if cell.seed == 1 and counted_errors:
            raise counted_errors[0]
        return {k: v for k, v in record(cell).items() if k not in cell.to_dict()}

    counted_errors = []
    monkeypatch.setattr(cells, "run_cell", fake)
    return ran, counted_errors


def reproduce(folder, *more):
    return main(["wbc", *OPTIONS, "--results", str(folder), *more])


def test_what_is_stored_does_not_run_again(tmp_path, counted):
    reproduce(tmp_path)
    reproduce(tmp_path)
    assert counted[0] == [0, 1]


def test_force_runs_everything_again(tmp_path, counted):
    reproduce(tmp_path)
    reproduce(tmp_path, "--force")
    assert counted[0] == [0, 1, 0, 1]


def test_failures_are_said_and_not_stored(tmp_path, counted, capsys):
    counted[1].append(ValueError("no"))
    assert reproduce(tmp_path) == 2
    assert "not run: wbc, blr (1 seeds and recipes): ValueError: no" in capsys.readouterr().err
    assert [cell.seed for cell in Results(tmp_path / "quick").read(["wbc"])] == [0]


def test_an_interrupted_run_keeps_what_was_finished_and_nothing_else(tmp_path, counted):
    counted[1].append(KeyboardInterrupt())
    assert reproduce(tmp_path) == 130
    assert [cell.seed for cell in Results(tmp_path / "quick").read(["wbc"])] == [0]


def test_a_signal_to_end_keeps_nothing_half_done_and_is_told_from_an_interrupt(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(cells, "run_cell", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
    assert reproduce(tmp_path) == 143
    assert Results(tmp_path / "quick").read(["wbc"]) == {}


def test_a_folder_that_cannot_be_made_is_known_before_anything_runs(tmp_path, counted, capsys):
    (tmp_path / "file").touch()
    assert reproduce(tmp_path / "file" / "results") == 2
    assert "file" in capsys.readouterr().err
    assert counted[0] == []


def test_results_of_version_0_1_are_read_by_the_names_of_today(tmp_path):
    old = {**record(CELL), "method": "blr-lrt", "recipe": "default"}
    del old["settings"]
    (tmp_path / "wbc.jsonl").write_text(json.dumps(old) + "\n")
    assert list(Results(tmp_path).read(["wbc"])) == [CELL]


def test_all_committed_results_are_read():
    for file in RAW.glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        runs = {
            (method_of(r["method"]), r.get("settings", r.get("recipe")), r["seed"])
            for r in lines
            if "accuracy" in r
        }
        if runs and file.stem != "initialisation":
            assert len(Results(RAW).read([file.stem])) == len(runs), file.stem


def test_the_processor_has_a_name():
    assert cells._cpu_name()


def test_a_study_runs_what_is_missing_and_keeps_it(tmp_path):
    ran = []

    def run(task, method):
        ran.append((task, method))
        return {"dataset": "cost", "task": task, "method": method, "number": len(ran)}

    results, parts = Results(tmp_path), [("wbc", "blr"), ("mice", "blr")]
    first = list(results.study("cost", parts[:1], run))
    again = list(results.study("cost", parts, run))
    assert ran == parts
    assert again[0] == first[0]
    assert [line["number"] for line in results.study("cost", parts, run, force=True)] == [3, 4]


def test_memory_is_left_alone_where_there_is_no_glibc(monkeypatch):
    monkeypatch.setattr(cells.platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(cells.ctypes, "CDLL", pytest.fail)
    cells.keep_memory()


def test_stored_results_can_be_shown_where_one_may_not_write(
    tmp_path, counted, monkeypatch, capsys
):
    reproduce(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert reproduce(tmp_path) == 0
    assert reproduce(tmp_path, "--force") == 2
    assert "may not write; try another one with --results" in capsys.readouterr().err
