"""Cells: run, kept, resumed."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from experiments.paper import cells, runner
from experiments.paper.cells import Cell, Results, run_cell
from experiments.paper.methods import make_estimator
from experiments.paper.runner import plan, run_cells
from experiments.paper.tasks import QUICK_ROWS, load_task
from islab.evaluate import score_classes

from .conftest import record

CELL = Cell("wbc", "blr-lrt", "default", 0)


@pytest.fixture(scope="module")
def quick_run():
    return run_cell(CELL, quick=True)


def test_a_run_says_what_it_is_of(quick_run):
    assert Cell.of(quick_run) == CELL


def test_a_run_scores_both_models(quick_run):
    task = load_task(CELL.dataset, CELL.recipe, quick=True)
    model = make_estimator(CELL.method, task, CELL.recipe, CELL.seed, quick=True)
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
    assert "error" not in run_cell(Cell("wbc", "islab-lrt", "paper", 0), quick=True)


def test_a_method_that_cannot_run_is_a_sentence():
    found = run_cell(Cell("linear-0.0", "bnn-horse", "paper", 0), quick=True)
    assert "The paper has no setting of bnn-horse on linear" in found["error"]


def test_a_missing_data_set_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("ISLAB_DATA", str(tmp_path))
    found = run_cell(Cell("fer2013", "blr-lrt", "default", 0), quick=True)
    assert "Kaggle" in found["error"]


def test_results_are_read_as_they_were_added(tmp_path):
    results = Results(tmp_path / "new")
    results.add(record(CELL))
    assert results.read(["wbc"]) == {CELL: record(CELL)}


def test_the_latest_of_two_runs_counts(tmp_path):
    results = Results(tmp_path)
    results.add(record(CELL, nll=1.0))
    results.add(record(CELL, nll=2.0))
    assert results.read(["wbc"])[CELL]["nll"] == 2.0


def test_a_line_that_was_cut_short_spoils_nothing(tmp_path):
    results = Results(tmp_path)
    (tmp_path / "wbc.jsonl").write_text('{"dataset": "wb')
    results.add(record(CELL))
    assert list(results.read(["wbc"])) == [CELL]


@pytest.mark.parametrize(
    "line",
    [
        '{"hello": 1}',
        '{"dataset": "wbc", "method": "blr-lrt", "recipe": "default", "seed": 7}',
        '{"dataset": "wbc", "method": "other", "recipe": "default", "seed": 0, "seconds": 1}',
        '{"dataset": ["wbc"], "method": "blr-lrt", "recipe": "paper", "seed": 0, "seconds": 1}',
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


def test_a_folder_that_cannot_be_made_is_known_before_anything_runs(tmp_path, counted):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        run_cells([CELL], Results(tmp_path / "file" / "results"))
    assert counted == []


def test_data_that_cannot_be_had_are_asked_for_once(tmp_path, monkeypatch):
    asked = []

    def fake(cell, quick):
        asked.append(cell)
        return {**cell.__dict__, "error": "FileNotFoundError: no", "lost": True}

    monkeypatch.setattr(runner, "run_cell", fake)
    wanted = plan(["mice", "wbc"], ["islab-lrt"], ["default"], range(3))
    failures = run_cells(wanted, Results(tmp_path))
    assert asked == [wanted[0], wanted[3]]
    assert {Cell.of(failure) for failure in failures} == set(wanted)
    assert {failure["error"] for failure in failures} == {"FileNotFoundError: no"}


@pytest.mark.parametrize("name", ["wbc", "linear-0.0"])
def test_a_quick_task_has_rows_from_everywhere(name):
    whole, few = load_task(name), load_task(name, quick=True)
    assert len(few.y_train) <= QUICK_ROWS
    np.testing.assert_array_equal(np.unique(few.y_train), np.unique(whole.y_train))
    step = math.ceil(len(whole.y_train) / QUICK_ROWS)
    np.testing.assert_array_equal(few.x_train, whole.x_train[::step])


def test_a_plan_leaves_out_what_the_paper_did_not_run():
    found = plan(["linear-0.0"], ["bnn-horse"], ["paper", "default"], range(2))
    assert found == [Cell("linear-0.0", "bnn-horse", "default", seed) for seed in (0, 1)]


@pytest.fixture
def counted(monkeypatch):
    """Instead of fitting, counts what would be run; seed 2 fails."""
    ran = []

    def fake(cell, quick):
        ran.append(cell)
        if cell.seed == 2:
            return {**cell.__dict__, "error": "ValueError: no"}
        return record(cell)

    monkeypatch.setattr(runner, "run_cell", fake)
    return ran


def test_what_is_stored_does_not_run_again(tmp_path, counted):
    wanted = plan(["wbc"], ["islab-lrt"], ["default"], range(2))
    run_cells(wanted[:1], Results(tmp_path))
    run_cells(wanted, Results(tmp_path))
    assert counted == wanted


def test_force_runs_everything_again(tmp_path, counted):
    wanted = plan(["wbc"], ["islab-lrt"], ["default"], range(2))
    run_cells(wanted, Results(tmp_path))
    run_cells(wanted, Results(tmp_path), force=True)
    assert counted == wanted + wanted


def test_failures_are_returned_and_not_stored(tmp_path, counted):
    failures = run_cells(plan(["wbc"], ["islab-lrt"], ["default"], range(3)), Results(tmp_path))
    assert [failure["seed"] for failure in failures] == [2]
    assert len(Results(tmp_path).read(["wbc"])) == 2


def test_an_interrupted_run_keeps_what_was_finished(tmp_path, monkeypatch):
    def fake(cell, quick):
        if cell.seed == 1:
            raise KeyboardInterrupt
        return record(cell)

    monkeypatch.setattr(runner, "run_cell", fake)
    with pytest.raises(KeyboardInterrupt):
        run_cells(plan(["wbc"], ["islab-lrt"], ["default"], range(3)), Results(tmp_path))
    assert [cell.seed for cell in Results(tmp_path).read(["wbc"])] == [0]


def test_the_processor_has_a_name():
    assert cells._cpu_name()


def test_a_study_runs_what_is_missing_and_keeps_it(tmp_path):
    ran = []

    def run(task, method):
        ran.append((task, method))
        return {"dataset": "cost", "task": task, "method": method, "number": len(ran)}

    results, parts = Results(tmp_path), [("wbc", "blr-lrt"), ("mice", "blr-lrt")]
    first = list(results.study("cost", parts[:1], run))
    again = list(results.study("cost", parts, run))
    assert ran == parts
    assert again[0] == first[0]
    assert [line["number"] for line in results.study("cost", parts, run, force=True)] == [3, 4]


def test_memory_is_left_alone_where_there_is_no_glibc(monkeypatch):
    monkeypatch.setattr(cells.platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(cells.ctypes, "CDLL", pytest.fail)
    cells.keep_memory()


def test_stored_results_can_be_shown_where_one_may_not_write(tmp_path, counted, monkeypatch):
    results = Results(tmp_path)
    results.add(record(CELL))
    monkeypatch.setattr("os.access", lambda *_: False)
    assert run_cells([CELL], results) == []
    with pytest.raises(PermissionError, match="may not write; try another one with --results"):
        run_cells([replace(CELL, seed=5)], results)


def test_a_fit_of_images_that_fails_has_not_lost_its_data(monkeypatch):
    def fail(error):
        def run(*_):
            raise error

        monkeypatch.setattr("experiments.paper.images.run_images", run)
        return run_cell(Cell("mnist-bcnn", "islab-lrt", "default", 0))

    assert "lost" not in fail(RuntimeError("no memory"))
    assert fail(FileNotFoundError("no file"))["lost"]
