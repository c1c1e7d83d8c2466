"""The fuzzers in a few seconds each."""

import inspect

import pytest

from islab import ISLaBRegressor
from tests.fuzz.accidents import fuzz_interrupts, fuzz_kills
from tests.fuzz.files import fuzz_files
from tests.fuzz.outcome import Outcome, add_to_file, read_file, table

RESUMES = "checkpoint" in inspect.signature(ISLaBRegressor).parameters


def test_changed_files_are_refused_or_harmless():
    outcome = fuzz_files(400, seed=20)
    assert outcome.failures == []
    assert {"edited: loaded", "edited: refused", "checkpoint: refused"} <= set(outcome.counts)


def test_calls_of_the_kernel_end_in_numbers_or_errors():
    pytest.importorskip("islab.learn.engines.native")
    from tests.fuzz.kernel import fuzz_kernel

    outcome = fuzz_kernel(400, seed=20)
    assert outcome.failures == []
    assert {"run: done", "run: refused"} <= set(outcome.counts)


def test_calls_of_chains_end_in_draws_or_errors():
    pytest.importorskip("islab.learn.sample.native._chains")
    from tests.fuzz.chains import fuzz_chains

    outcome = fuzz_chains(300, seed=20)
    assert outcome.failures == []
    assert {"run: done", "run: refused", "restore: refused"} <= set(outcome.counts)


def test_calls_of_networks_end_in_the_numbers_of_numpy_or_errors():
    pytest.importorskip("islab.core.native._networks")
    from tests.fuzz.networks import fuzz_networks

    outcome = fuzz_networks(2000, seed=20)
    assert outcome.failures == []
    called = ("predictor", "slopes", "contributions", "locations", "counts", "ranks")
    assert {f"{name}: {end}" for name in called for end in ("done", "refused")} <= {*outcome.counts}


@pytest.mark.skipif(not RESUMES, reason="fits do not go on from checkpoints")
@pytest.mark.parametrize("fuzz", [fuzz_kills, fuzz_interrupts])
def test_fits_that_have_accidents_end_in_the_same_model(fuzz):
    assert fuzz(2, seed=20).failures == []


def test_the_table_counts_failures():
    outcome = Outcome("files")
    outcome.counts["refused"] += 2
    outcome.failures.append("seed=0 number=1: FAILED")
    lines = table([outcome]).splitlines()
    assert lines[1].split() == ["files", "all", "2", "1"]
    assert lines[-1] == "files: seed=0 number=1: FAILED"


def test_outcomes_of_several_commands_are_one_table(tmp_path):
    for failures in ([], ["seed=0 number=1: FAILED"]):
        outcome = Outcome("files", failures=failures)
        outcome.counts["refused"] += 2
        add_to_file(tmp_path / "a", outcome)
    (found,) = read_file(tmp_path / "a", ["files"])
    assert (found.tries, found.failures) == (4, ["seed=0 number=1: FAILED"])


def test_a_section_that_did_not_end_has_failed(tmp_path):
    add_to_file(tmp_path / "a", Outcome("files"))
    files, kernel = read_file(tmp_path / "a", ["files", "kernel"])
    assert files.failures == []
    assert len(kernel.failures) == 1


def test_a_file_that_nothing_was_added_to_is_a_failure(tmp_path):
    assert all(outcome.failures for outcome in read_file(tmp_path / "a", ["files", "kernel"]))
