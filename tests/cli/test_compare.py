"""``islab compare``."""

import json

import pandas as pd
import pytest

from islab.baselines.references import ReferenceClassifier
from islab.cli import main


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("ISLAB_DATA", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def data(tmp_path, table):
    table.drop(columns=["price", "visits"]).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def run(capsys, *arguments):
    """Exit code, stdout and stderr of ``islab compare``."""
    capsys.readouterr()
    code = main(["compare", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_table_is_printed(data, capsys):
    options = ["--target", "state", "--methods", "ridge", "boosting", "--seeds", "2"]
    code, out, err = run(capsys, data, *options)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if line] == [
        *["method", "ridge", "boosting"],
        *["method", "ridge", "boosting"],
        *["nll", "method", "boosting"],  # paired differences
        "settings",
    ]
    assert err == "classification of 'state' from 3 columns (detected; --task changes it)\n"


def test_files_are_written(data, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    names = {"--csv": "fits.csv", "--html": "page.html", "--plot": "picture.svg"}
    files = [part for flag, name in names.items() for part in (flag, tmp_path / name)]
    code, _, _ = run(capsys, data, "--target", "state", "--methods", "ridge", "--seeds", 2, *files)
    assert code == 0
    assert len(pd.read_csv(tmp_path / "fits.csv")) == 2
    assert "<!doctype html>" in (tmp_path / "page.html").read_text()
    assert "<svg" in (tmp_path / "picture.svg").read_text()


def test_json_has_a_line_for_each_fit(data, capsys):
    options = ["--target", "size", "--methods", "ridge", "--seeds", "3", "--json"]
    _, out, _ = run(capsys, data, *options)
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["seed"] for record in records] == [0, 1, 2]
    assert all("rmse" in record["models"]["full"] for record in records)


def test_a_second_run_takes_what_the_first_has_done(data, capsys):
    options = ["--target", "state", "--methods", "ridge", "--seeds", "2", "--json"]
    first, second = (run(capsys, data, *options)[1] for _ in range(2))
    # Seconds would differ had it been done again.
    assert first == second


def test_force_does_it_again(data, capsys):
    options = ["--target", "state", "--methods", "ridge", "--seeds", "1", "--json"]
    first, second = (run(capsys, data, *options, "--force")[1] for _ in range(2))
    assert json.loads(first)["seconds"] != json.loads(second)["seconds"]


def test_results_are_kept_where_the_user_says(data, tmp_path, capsys):
    options = ["--target", "state", "--methods", "ridge", "--seeds", "2"]
    run(capsys, data, *options, "--results", tmp_path / "fits.jsonl")
    assert len((tmp_path / "fits.jsonl").read_text().splitlines()) == 2


def test_a_method_that_fails_is_said_below_the_table(data, capsys):
    options = ["--target", "size", "--methods", "logistic", "ridge", "--seeds", "1"]
    code, out, _ = run(capsys, data, *options)
    assert code == 0
    assert out.splitlines()[-1].startswith("logistic failed on 1 of 1 seeds: ValueError")


def test_groups_are_held_out_together_and_no_covariate(data, tmp_path, capsys):
    table = pd.read_csv(data)
    table["patient"] = [f"p{row // 4}" for row in range(len(table))]
    table.to_csv(tmp_path / "visits.csv", index=False)
    options = ["--target", "state", "--methods", "lasso", "--seeds", "1", "--json"]
    code, out, err = run(capsys, tmp_path / "visits.csv", *options, "--groups", "patient")
    assert code == 0
    assert "from 3 columns" in err
    assert json.loads(out)["folds"].endswith("grouped")


def test_an_interrupt_exits_with_130_and_keeps_only_what_is_done(
    data, tmp_path, capsys, monkeypatch
):
    original = ReferenceClassifier.fit

    def fit(self, *rows):
        if self.random_state == 1:
            raise KeyboardInterrupt
        return original(self, *rows)

    monkeypatch.setattr(ReferenceClassifier, "fit", fit)
    options = ["--target", "state", "--methods", "ridge", "--seeds", "3"]
    code, _, _ = run(capsys, data, *options, "--results", tmp_path / "fits.jsonl")
    assert code == 130
    assert len((tmp_path / "fits.jsonl").read_text().splitlines()) == 1


def test_the_methods_are_listed(capsys):
    with pytest.raises(SystemExit, match="0"):
        run(capsys, "--list")
    assert "horseshoe" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "sate"], "did you mean 'state'"),
        (["--target", "state", "--methods", "rige"], "did you mean 'ridge'"),
        (["--target", "state", "--seeds", "0"], "Got seeds=0"),
        (["--target", "state", "--groups", "town"], "Got --groups town"),
        (["--target", "state", "--test-size", "7"], "cannot be split"),
        (["--target", "state", "--html", "no/where.html"], "folder does not exist"),
        (
            ["--target", "state", "--drop", "size", "--drop", "colour", "--drop", "noise"],
            "expected covariates",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(data, capsys, options, message):
    code, _, err = run(capsys, data, *options)
    assert code == 2
    assert message in err.splitlines()[-1]


def test_two_files_to_write_differ(data, tmp_path, capsys):
    files = ["--csv", tmp_path / "out", "--html", tmp_path / "out"]
    code, _, err = run(capsys, data, "--target", "state", *files)
    assert code == 2
    assert "already in use" in err


def test_nothing_that_succeeded_is_a_failure(data, capsys):
    options = ["--target", "state", "--methods", "boosting", "--seeds", "1", "--task", "counts"]
    code, out, err = run(capsys, data, *options)
    assert code == 2
    assert "boosting" in out
    assert "No fit has succeeded" in err
