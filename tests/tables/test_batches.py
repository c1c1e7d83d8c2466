"""Batches: the same rows however they are split, and a uniform sample of them."""

import warnings

import numpy as np
import pandas as pd
import pytest

from islab import Batches, ISLaBClassifier, ISLaBRegressor, TableWarning
from islab.tables import batches as module

QUICK = {
    "posterior": "independent",
    "max_epochs": 5,
    "n_restarts": 1,
    "hidden_layer_sizes": (2,),
    "random_state": 0,
}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": np.arange(300.0),
            "size": rng.normal(size=300),
            "colour": rng.choice(["red", "blue", None], 300),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, 300), "D"),
        }
    )
    frame["kind"] = pd.Categorical(rng.choice(["1", "2"], 300))
    return frame.assign(price=3 * frame["size"] + rng.normal(size=300))


def parts(table, *ends):
    return [
        table.iloc[a:b].reset_index(drop=True)
        for a, b in zip((0, *ends), (*ends, len(table)), strict=True)
    ]


def parquet(table, folder, *ends):
    pytest.importorskip("pyarrow")
    paths = []
    for number, part in enumerate(parts(table, *ends)):
        paths.append(folder / f"part{number}.parquet")
        part.to_parquet(paths[-1], index=False)
    return paths


def test_a_frame_comes_in_slices(table, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 130)
    found = list(Batches(table))
    assert [len(batch) for batch in found] == [130, 130, 40]
    pd.testing.assert_frame_equal(pd.concat(found), table)


def test_the_sample_does_not_depend_on_how_rows_are_split(table, tmp_path):
    whole = Batches(table, n_rows=50).sample(seed=1)
    assert (len(whole.table), whole.n_rows) == (50, 300)
    for source in (parts(table, 7, 100), parquet(table, tmp_path, 150)):
        found = Batches(source, n_rows=50).sample(seed=1)
        np.testing.assert_array_equal(found.table["number"], whole.table["number"])


def test_rows_stay_in_their_order_and_come_once(table):
    found = Batches(parts(table, *range(10, 300, 10)), n_rows=20).sample(seed=0).table["number"]
    assert (np.diff(found) > 0).all()


def test_every_row_is_drawn_equally_often(table):
    """A row is in a sample of 30 of 300 with probability 0.1; chi squared of 299 degrees."""
    n_samples = 200
    batches = Batches(parts(table[["number"]], 20, 90, 200), n_rows=30)
    drawn = np.concatenate([batches.sample(seed).table["number"] for seed in range(n_samples)])
    counts = np.bincount(drawn.astype(int), minlength=300)
    expected = n_samples * 0.1
    statistic = ((counts - expected) ** 2 / (expected * 0.9)).sum() * 299 / 300
    assert 220 < statistic < 390  # each end is beyond 3 standard deviations


def test_few_rows_are_all_in_the_sample(table, tmp_path):
    found = Batches(parquet(table, tmp_path, 40, 200)).sample(seed=0)
    assert found.n_rows == 300
    pd.testing.assert_frame_equal(found.table, table, check_dtype=False)
    assert found.table["kind"].dtype == "category"


def test_memory_holds_at_most_twice_the_sample_and_a_batch(table, monkeypatch):
    largest = []

    original = Batches._cut

    def cut(self, kept, keys):
        largest.append(sum(map(len, kept)))
        return original(self, kept, keys)

    monkeypatch.setattr(Batches, "_cut", cut)
    Batches(parts(table, *range(10, 300, 10)), n_rows=20).sample(seed=0)
    assert max(largest) <= 2 * 20 + 10


def test_of_parquet_files_one_row_group_is_in_memory(tmp_path, monkeypatch):
    """What Arrow holds does not grow with the number of files."""
    arrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{number}.parquet" for number in range(6)]
    for path in paths:
        frame = pd.DataFrame(rng.normal(size=(40_000, 4))).rename(columns=str)
        frame.to_parquet(path, use_dictionary=False, data_page_size=1 << 12)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 2_000)
    monkeypatch.setattr(module, "BUFFER", 1 << 12)
    row_group, before = 40_000 * 4 * 8, arrow.total_allocated_bytes()

    def most(batches):
        return max(arrow.total_allocated_bytes() - before for _ in batches) / row_group

    few, many = most(Batches(paths[:2])), most(Batches(paths))
    assert many < 1.1 * few
    assert many < 1.5


def test_parquet_files_have_the_types_of_the_first(table, tmp_path):
    paths = parquet(table[["number", "size"]], tmp_path, 100)
    whole = table[100:][["size", "number"]].reset_index(drop=True)
    whole.astype({"number": "int64"}).to_parquet(paths[1], index=False)
    found = pd.concat([batch.to_pandas() for batch in Batches(paths)], ignore_index=True)
    pd.testing.assert_frame_equal(found, table[["number", "size"]])


@pytest.mark.parametrize("kind", ["files", "dataset", "frames", "function", "polars"])
def test_a_fit_on_batches_is_the_fit_on_their_rows(table, tmp_path, kind):
    paths = parquet(table, tmp_path, 100)
    if kind == "dataset":
        source = pytest.importorskip("pyarrow.dataset").dataset(paths)
    elif kind == "polars":
        polars = pytest.importorskip("polars")
        source = Batches([polars.read_parquet(path) for path in paths])
    elif kind == "function":
        source = Batches(lambda: iter(parts(table, 100)))
    else:
        source = Batches(paths if kind == "files" else parts(table, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        model = ISLaBRegressor(**QUICK).fit(source, "price")
        plain = ISLaBRegressor(**QUICK).fit(table.drop(columns="price"), table["price"])
    rows = table.drop(columns="price")
    np.testing.assert_array_equal(model.predict(rows), plain.predict(rows))


def test_a_fit_on_a_sample_says_so(table):
    batches = Batches(table.drop(columns="number"), n_rows=200)
    with pytest.warns(TableWarning, match=r"sample of 200 of 300 rows; .* Batches\("):
        model = ISLaBRegressor(**QUICK).fit(batches, "price")
    assert list(model.feature_names_in_) == ["size", "colour", "day", "kind"]


def test_classes_may_be_a_column_of_the_batches(table):
    named = table.assign(state=np.where(table["size"] > 0, "ill", "well"))[["size", "state"]]
    model = ISLaBClassifier(**QUICK).fit(Batches(named), "state")
    assert model.classes_.tolist() == ["ill", "well"]


def test_columns_in_another_order_are_put_in_order(table):
    first, second = parts(table, 100)
    found = list(Batches([first, second[second.columns[::-1]]]))
    assert list(found[1]) == list(found[0])


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (iter([]), TypeError, "only once"),
        ([], ValueError, "at least one"),
        ([1, 2], TypeError, "type int"),
    ],
)
def test_what_cannot_be_read_again_is_refused(source, error, message):
    with pytest.raises(error, match=message):
        Batches(source)


def test_batches_of_other_columns_are_refused(table):
    with pytest.raises(ValueError, match="only some have the column 'size'"):
        list(Batches([table, table.drop(columns="size")]))


def test_the_target_of_batches_is_a_name(table):
    model = ISLaBRegressor(**QUICK)
    with pytest.raises(ValueError, match="name of the column"):
        model.fit(Batches(table), table["price"])
    with pytest.raises(ValueError, match="there is none"):
        model.fit(Batches(table), "cost")
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(Batches(table), "price", np.ones(300))
