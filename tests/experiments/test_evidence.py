"""Runners of UCI sets, of many tables and of simulated truths."""

import numpy as np
import pytest

from experiments.benchmarks import many_tables, overview, truth, uci
from islab.evaluate.runner import Cell


def stored(name, method, split, nll, weights=9.0, **more):
    scores = {"nll": nll, "rmse": 1.0, "coverage": 0.9, "used_weights": weights}
    models = {"full": scores, "median": {**scores, "nll": nll + 0.1}}
    record = {"dataset": name, "method": method, "settings": "", "seed": split, "error": None}
    return {**record, "seconds": 1.0, "cpu_seconds": 1.0, "models": models, **more}


# -- UCI ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    x, test = rng.normal(size=(90, 2)), np.zeros((3, 90), dtype=bool)
    test[[0, 1, 2], [5, 6, 7]] = test[:, 20:30] = True
    bits = np.packbits(test, axis=1)
    np.savez(tmp_path / "yacht.npz", x=x, y=x[:, 0] * 9 + rng.normal(size=90), test=bits)
    return tmp_path


def test_the_official_splits_are_unpacked(folder):
    x, _, test = uci.load("yacht", folder)
    assert test.shape == (3, 90)
    assert test.sum(axis=1).tolist() == [11, 11, 11]
    assert test[1, 6]
    assert len(x) == 90


def test_scores_of_a_split_are_in_the_unit_of_the_target(folder):
    record = uci.run_in(folder, Cell("yacht", "ridge", "", 0))
    assert record["models"]["full"]["rmse"] == pytest.approx(1, abs=0.5)
    assert record["models"]["full"]["nll"] == pytest.approx(1.4, abs=0.5)


def test_first_is_first_or_within_one_standard_error():
    assert uci.is_first(-0.5, 0.1, [-0.41, -2.0])
    assert not uci.is_first(-0.5, 0.1, [-0.39])


def test_the_page_counts_sets_that_are_first_and_small():
    records = [stored("yacht", "islab", split, 0.1 + 0.1 * split) for split in range(3)]
    records += [stored("wine", "islab", split, 2.0, weights=150.0) for split in range(2)]
    text = "\n".join(uci.page(records))
    assert "on\n1 of the 2 sets run** (yacht)" in text
    assert "has fewer than 100 weights on 1 of them (yacht); both hold on 1." in text
    assert "| yacht | **-0.20** ± 0.06 |" in text


# -- many tables --------------------------------------------------------------------------------


def test_there_are_thirty_tables_of_each_kind_and_none_that_is_kept_for_judging():
    assert len(many_tables.CLASSES) == len(many_tables.NUMBERS) == 30
    kept = {"pbc", "nhefs", "loans", "weather", "caravan", "fair", "nwtco", "permeability"}
    kept |= {"bupa", "german", "glass", "iris", "abalone", "wdbc", "biopsy", "fgl", "cpus"}
    homes = {source.home.lower().split("/")[-1] for source in many_tables.TABLES.values()}
    assert not kept & (set(many_tables.TABLES) | homes)


def test_ranks_are_of_standardised_targets():
    more = {"sd": 10.0, "test_by_train": 1 / 3, "selected": ["a"]}
    records = [
        stored("engel", name, split, nll + np.log(10), **more)
        for name, nll in {"islab": 1.0, "ridge": 1.5}.items()
        for split in range(2)
    ]
    text = "\n".join(many_tables.summary(records, classes=False))
    assert "| islab | 1 | 1.00 | 1 |  | 1.000 | 0.100 | 0.900 | 9 | 1 | 1.0 |" in text
    assert "| ridge | 1 | 2.00 | 0 | 1 / 0 / 0 | 1.500 |" in text


# -- truth --------------------------------------------------------------------------------------


def test_true_effects_add_up_to_the_target_without_noise():
    x, y, effects = truth.simulate("linear", 0.7, 3)
    slopes = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0][:4]
    np.testing.assert_allclose(slopes, [1, 0.5, 0.5, 0.25], atol=0.4)
    assert (effects[:, truth.RELEVANT :] == 0).all()
    assert (y - effects.sum(axis=1)).std() == pytest.approx(1, abs=0.1)


def test_averaging_of_all_models_finds_effects_and_covers_them():
    found = [truth.run(Cell("linear 0.0", "exact averaging", "", seed)) for seed in range(4)]
    assert np.mean([each["covered_relevant"] for each in found]) > 0.7
    assert np.mean([each["error_relevant"] for each in found]) < 0.15
    right, wrong = np.sum([each["selected"]["P(used) > .5"] for each in found], axis=0)
    assert right >= 14
    assert wrong <= 2


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_a_covariate_and_its_knockoff_may_change_places(correlation):
    rng, v = np.random.default_rng(0), 4
    sigma = (1 - correlation) * np.eye(v) + correlation
    x = rng.multivariate_normal(np.zeros(v), sigma, 100_000)
    copy = truth.knockoff_copy(x, correlation, rng)
    both = np.cov(x.T, copy.T)
    np.testing.assert_allclose(both[v:, v:], sigma, atol=0.02)
    across = both[:v, v:]
    np.testing.assert_allclose(across[~np.eye(v, dtype=bool)], correlation, atol=0.02)
    assert np.diag(across).max() < 0.45


def test_the_page_of_truths_has_a_row_for_each_rule():
    cells = [Cell(f"{name} 0.7", "lasso", "", 0) for name in truth.TRUTHS]
    records = [{**cell.to_dict(), **truth.run(cell)} for cell in cells]
    records[-1]["pair_found"] = True
    text = "\n".join(truth.page(records))
    assert "| lasso | slope not 0 |" in text
    assert "| lasso | 1.00 |" in text


# -- overview -----------------------------------------------------------------------------------


def test_the_overview_ranks_the_readable_network_by_itself_and_says_where_we_lose():
    more = {"sd": 1.0, "test_by_train": 1 / 3, "selected": ["a"]}
    nll = {"islab": [1.0, 2.0], "ridge": [1.5, 1.2]}
    records = [
        stored(table, name, 0, each[number], **more)
        for name, each in nll.items()
        for number, table in enumerate(("engel", "mpg"))
    ]
    records += [
        stored(table, "ridge", 0, 0.5, **more) | {"models": {"full": {**ONE, "nll": value}}}
        for table, value in (("birthwt", 0.5), ("crabs", 0.6))
    ]
    records += [
        stored(table, "islab", 0, 0.4, **more) | {"models": {"full": {**ONE, "nll": 0.4}}}
        for table in ("birthwt", "crabs")
    ]
    text = "\n".join(overview.page(records, []))
    assert "| **islab**, readable network | yes |" in text
    assert "On 1 of 4 tables" in text
    assert "mpg (0.800, linear or logistic, ridge)" in text


ONE = {"accuracy": 0.8, "ece": 0.1, "used_weights": 3.0}
