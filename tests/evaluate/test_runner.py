"""Cells: run, kept, gone on from; results on a disk that may be full."""

import os
import resource
import subprocess
import sys
from functools import partial

import pytest

from islab.evaluate import runner
from islab.evaluate.runner import (
    Cell,
    NoData,
    append_record,
    fit_timed,
    read_cells,
    read_records,
    run_cells,
)

CELLS = [Cell("data", "method", "settings", seed) for seed in range(4)]


def square(cell):
    return {"number": cell.seed**2}


def failing(cell):
    if cell.seed == 1:
        raise ZeroDivisionError("no\nnumber")
    return square(cell)


# -- running ----------------------------------------------------------------------------------


def test_records_come_in_the_order_of_the_cells():
    found = run_cells(CELLS, square, n_jobs=2)
    assert [record["number"] for record in found.values()] == [0, 1, 4, 9]
    assert list(found) == CELLS


def test_a_record_names_its_cell():
    found = run_cells(CELLS[:1], square)
    assert Cell.of(found[CELLS[0]]) == CELLS[0]


def test_what_fails_is_a_record_that_says_why_on_one_line():
    found = run_cells(CELLS, failing)
    assert found[CELLS[1]]["error"] == "ZeroDivisionError: no number"
    assert found[CELLS[2]]["number"] == 4


def test_failures_are_not_kept(tmp_path):
    run_cells(CELLS, failing, keep=partial(append_record, tmp_path / "a"))
    assert [cell.seed for cell in read_cells(tmp_path / "a")] == [0, 2, 3]


def test_what_is_done_does_not_run_again(tmp_path):
    ran = []
    file = tmp_path / "a"

    def run(cell):
        ran.append(cell.seed)
        return square(cell)

    for cells in (CELLS[:2], CELLS):
        run_cells(cells, run, done=read_cells(file), keep=partial(append_record, file))
    assert ran == [0, 1, 2, 3]


def test_data_that_cannot_be_had_are_asked_for_once():
    asked = []

    def run(cell):
        asked.append(cell)
        raise NoData("no file")

    others = [Cell("other", "method", "settings", seed) for seed in range(2)]
    found = run_cells([*CELLS, *others], run)
    assert asked == [CELLS[0], others[0]]
    assert {record["error"] for record in found.values()} == {"NoData: no file"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_ends_the_run_and_leaves_no_record_of_its_cell(tmp_path, error):
    def run(cell):
        if cell.seed == 2:
            raise error
        return square(cell)

    with pytest.raises(error):
        run_cells(CELLS, run, keep=partial(append_record, tmp_path / "a"))
    assert [cell.seed for cell in read_cells(tmp_path / "a")] == [0, 1]


def test_a_model_that_was_interrupted_and_kept_is_no_result():
    class Kept:
        interrupted_ = True

        def fit(self, X, y):
            return self

    with pytest.raises(KeyboardInterrupt, match="Kept was interrupted"):
        fit_timed(Kept(), [[1.0]], [1.0])


def test_numbers_that_json_does_not_have_are_none():
    found = run_cells(CELLS[:1], lambda cell: {"models": {"full": {"r2": float("nan")}}})
    assert found[CELLS[0]]["models"]["full"]["r2"] is None


# -- results ----------------------------------------------------------------------------------


def test_what_is_added_is_read(tmp_path):
    for number in range(3):
        append_record(tmp_path / "a", {"number": number})
    assert [record["number"] for record in read_records(tmp_path / "a")] == [0, 1, 2]


def test_a_line_cut_short_is_left_out_and_harms_no_other(tmp_path):
    (tmp_path / "a").write_text('{"number": 0}\n{"num')
    append_record(tmp_path / "a", {"number": 2})
    assert read_records(tmp_path / "a") == [{"number": 0}, {"number": 2}]


def test_no_file_holds_no_records(tmp_path):
    assert read_records(tmp_path / "a") == []


@pytest.mark.parametrize(
    "line",
    [
        '{"hello": 1}',
        '{"dataset": "d", "method": "m", "settings": "s"}',
        '{"dataset": ["d"], "method": "m", "settings": "s", "seed": 0}',
        '{"dataset": "d", "method": "m", "settings": "s", "seed": "0"}',
    ],
)
def test_lines_of_something_else_are_no_cells(tmp_path, line):
    (tmp_path / "a").write_text(f"{line}\n")
    assert read_cells(tmp_path / "a") == {}


def test_short_writes_lose_nothing(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(runner.os, "write", lambda fd, line: write(fd, line[:3]))
    for number in range(3):
        append_record(tmp_path / "a", {"number": number})
    assert [record["number"] for record in read_records(tmp_path / "a")] == [0, 1, 2]


def test_a_full_disk_is_an_error_that_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    append_record(tmp_path / "a", {"number": 0})
    before, write, room = (tmp_path / "a").read_bytes(), os.write, [5]

    def until_full(fd, line):
        if not room[0]:
            raise OSError(28, "No space left on device")
        written = write(fd, line[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(runner.os, "write", until_full)
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path / 'a'}'"):
        append_record(tmp_path / "a", {"number": 1})
    assert (tmp_path / "a").read_bytes() == before


def test_a_limit_on_the_size_of_files_cuts_no_line(tmp_path):
    code = (
        "import sys, resource, signal; from pathlib import Path\n"
        "from islab.evaluate.runner import append_record\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (100, {resource.RLIM_INFINITY}))\n"
        "for number in range(9):\n"
        "    append_record(Path(sys.argv[1]), {'number': number, 'filling': 20 * 'x'})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "a"], capture_output=True, text=True, check=False
    )
    assert "File too large" in done.stderr
    assert (tmp_path / "a").read_bytes().endswith(b"\n")
    assert [record["number"] for record in read_records(tmp_path / "a")] == [0, 1]


def test_an_interrupt_in_the_middle_of_a_line_leaves_none(tmp_path, monkeypatch):
    write, calls = os.write, []

    def interrupted(fd, line):
        calls.append(line)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return write(fd, line[:4])

    monkeypatch.setattr(runner.os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        append_record(tmp_path / "a", {"number": 1})
    assert (tmp_path / "a").read_bytes() == b""
