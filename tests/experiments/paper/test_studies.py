"""Studies: sizes by formula, ranges of the start, pictures."""

import re
from itertools import pairwise

import pytest

from experiments.paper import initialisation
from experiments.paper.cost import full_bits, measure, sparse_bits
from experiments.paper.initialisation import RANGES
from experiments.paper.pictures import fitted


def test_a_full_model_needs_three_numbers_for_each_weight():
    assert full_bits(5_580) == 64 * 3 * 5_580


def test_a_median_network_without_weights_needs_a_bit_for_each_place_and_number():
    assert sparse_bits(1_000, 0) == 2 * 1_000


def test_a_median_network_with_all_weights_needs_a_bit_more_than_its_numbers():
    assert sparse_bits(1_000, 1_000) == 65 * 2 * 1_000


def test_costs_are_measured_and_computed():
    found = measure("wbc", "islab", quick=True)
    assert found["batch_size"] == 64
    assert found["seconds_per_step"] >= 0
    assert found["formula_bits"] == full_bits(found["weights"])
    assert min(found["sparse_file_bits"], found["file_bits"]) > 0


@pytest.mark.filterwarnings("ignore:No covariate is used")
def test_costs_of_baselines_are_those_of_the_paper_s_formulas():
    found = {method: measure("wbc", method, quick=True) for method in ("horseshoe", "spam")}
    n_weights = found["horseshoe"]["weights"]
    assert found["horseshoe"]["formula_bits"] > full_bits(n_weights, numbers=2)
    assert found["spam"]["formula_bits"] == full_bits(found["spam"]["weights"], numbers=2)
    assert all(record["seconds_per_step"] >= 0 for record in found.values())
    assert all(record["batch_size"] == 64 for record in found.values())


def test_a_method_without_a_sparse_network_has_no_formula_for_one():
    assert measure("wbc", "concrete-dropout", quick=True)["sparse_formula_bits"] is None


def test_the_ten_ranges_go_from_sparse_to_dense_without_a_gap():
    assert len(RANGES) == 10
    assert (RANGES[0][0], RANGES[-1][1]) == (0.001, 0.999)
    assert all(one[1] == next_[0] for one, next_ in pairwise(RANGES))


def test_the_study_of_the_start_has_three_plots_for_each_posterior():
    runs = [
        {"method": method, "low": low, "pearson_median": 0.7, "rmse_median": 2, "used_weights": 9}
        for method in initialisation.POSTERIORS
        for low, _ in RANGES
    ]
    assert len(initialisation.plot(runs).axes) == 6


def test_a_model_for_pictures_is_kept(tmp_path):
    model, _ = fitted("wbc", tmp_path, quick=True)
    again, _ = fitted("wbc", tmp_path, quick=True)
    assert again.network_.n_used_weights == model.network_.n_used_weights
    assert (tmp_path / "models" / "wbc.islab").stat().st_size > 0


@pytest.mark.parametrize("bad", ["linear", "iris"])
def test_the_command_knows_its_names(bad, capsys):
    from experiments.paper.__main__ import main

    with pytest.raises(SystemExit):
        main([bad])
    assert "invalid choice" in capsys.readouterr().err


def test_the_command_prints_ours_beside_the_papers_and_says_what_did_not_run(tmp_path, capsys):
    from experiments.paper.__main__ import main

    folder = str(tmp_path)
    options = ["--method", "blr", "--recipe", "default", "--quick", "--results", folder]
    assert main(["wbc", *options]) == 0
    printed = capsys.readouterr().out
    assert "wbc, blr, default recipe on a few rows and epochs: 2 seeds" in printed
    assert "0.207 (0.197, 0.227)" in printed
    assert not re.search("better|same|worse", printed)


def test_a_method_said_twice_runs_once(tmp_path, capsys):
    from experiments.paper.__main__ import main

    twice = ["--method", "blr", "--method", "blr", "--recipe", "default"]
    assert main(["wbc", *twice, "--quick", "--results", str(tmp_path)]) == 0
    assert "2 seeds" in capsys.readouterr().out


def test_data_that_cannot_be_had_are_said_and_fail(tmp_path, capsys, monkeypatch):
    from experiments.paper.__main__ import main

    monkeypatch.setenv("ISLAB_DATA", str(tmp_path / "empty"))
    options = ["--method", "blr", "--quick", "--results", str(tmp_path)]
    assert main(["fer2013", *options]) == 2
    said = capsys.readouterr().err
    assert "not run: fer2013, blr (4 seeds and recipes)" in said
    assert "4 of 4 runs could not be made" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wbc", "--jobs", "0"], "Got --jobs 0, expected at least 1"),
        (["wbc", "--quick", "--pages", "."], "Got --quick with --pages"),
        (["mnist-bcnn", "--recipe", "paper"], "with nothing set only, by islab and islab-flow"),
        (["initialisation", "--method", "blr"], "expected one of those that the study"),
        (["choices", "--method", "islab"], "concrete-dropout, spam"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(arguments, message, tmp_path, capsys):
    from experiments.paper.__main__ import main

    assert main([*arguments, "--results", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_stored_model_that_cannot_be_read_says_what_helps(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "wbc.islab").write_bytes(b"no model")
    with pytest.raises(ValueError, match="--force fits it again"):
        fitted("wbc", tmp_path, quick=True)


def test_a_method_that_the_paper_did_not_run_is_one_sentence(tmp_path, capsys):
    from experiments.paper.__main__ import main

    code = main(["linear-0.0", "--method", "horseshoe", "--recipe", "paper"])
    assert code == 2
    assert "no setting of horseshoe on linear-0.0; try --recipe default" in capsys.readouterr().err
