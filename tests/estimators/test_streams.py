"""Fits of batches: all rows count, however they come, and only a sample is in memory."""

import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from islab import Batches, ISLaBClassifier, ISLaBRegressor, TableWarning
from islab.estimators.streams import StreamRows
from islab.learn.engines import Problem
from islab.learn.scale import ArrayRows
from tests.estimators.conftest import QUICK
from tests.estimators.test_many_rows import few_seen

__all__ = ["few_seen"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 10, 4000),
            "colour": rng.choice(["red", "green", "blue"], 4000),
            "old": rng.random(4000) < 0.1,
            "noise": rng.normal(size=4000),
        }
    )
    frame.loc[rng.random(4000) < 0.05, "size"] = np.nan
    eta = frame["size"].fillna(50) / 10 - 5 + (frame["colour"] == "red") - frame["old"]
    price = 1000 + 70 * (eta + rng.normal(size=4000))
    return frame.assign(price=price, state=np.where(eta > rng.normal(size=4000), "well", "ill"))


def parts(table, *ends):
    return [table.iloc[a:b] for a, b in zip((0, *ends), (*ends, len(table)), strict=True)]


class Collected:
    """Blocks, put together."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __add__(self, other):
        return Collected(self.blocks + other.blocks)

    @property
    def problem(self):
        x, y = (np.concatenate([getattr(b, name) for b in self.blocks]) for name in "xy")
        return Problem(x, y)


def collected(block):
    return Collected([block])


@pytest.mark.parametrize("target", ["price", "state"])
def test_a_stream_gives_what_the_array_of_its_rows_gives(few_seen, table, target, monkeypatch):
    maker = ISLaBRegressor if target == "price" else ISLaBClassifier
    data = table.drop(columns={"price": "state", "state": "price"}[target])
    batches = Batches(parts(data, 700, 1900, 1950), n_rows=600)
    streamed = maker(**QUICK).fit(batches, target)
    original = StreamRows.total

    def in_memory(self, task):
        if task is collected or getattr(task, "__name__", "") == "moments":
            return original(self, task)
        return ArrayRows(original(self, collected).problem).total(task)

    monkeypatch.setattr(StreamRows, "total", in_memory)
    whole = maker(**QUICK).fit(batches, target)
    rows = data.drop(columns=target)[:50]
    predict = "predict" if target == "price" else "predict_proba"
    found, expected = (getattr(model, predict)(rows) for model in (streamed, whole))
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert streamed.posterior_.all_rows.n_rows == 4000


def test_at_any_time_two_batches_are_in_memory_at_most(few_seen, table):
    """However many there are, and however often they are read."""
    data, alive = table.drop(columns="state"), set()
    most = []

    def batches():
        for first in range(0, len(data), 100):
            batch = data.iloc[first : first + 100].copy()
            number = len(most)
            alive.add(number)
            weakref.finalize(batch, alive.discard, number)
            most.append(len(alive))
            yield batch

    ISLaBRegressor(**QUICK).fit(Batches(batches, n_rows=600), "price")
    assert len(most) > 5 * 40
    assert max(most) <= 2


def test_how_rows_are_split_does_not_change_the_model(few_seen, table, tmp_path):
    pytest.importorskip("pyarrow")
    data = table.drop(columns="state")
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for path, part in zip(paths, parts(data, 1000, 1700), strict=True):
        part.to_parquet(path, index=False)
    rows = data.drop(columns="price")[:50]
    one = ISLaBRegressor(**QUICK).fit(Batches(data, n_rows=600), "price").predict(rows)
    other = ISLaBRegressor(**QUICK).fit(Batches(paths, n_rows=600), "price").predict(rows)
    np.testing.assert_allclose(one, other, rtol=1e-7)


def test_weights_come_from_rows_outside_the_sample(few_seen, table):
    data = table.drop(columns="state").assign(size=table["size"].fillna(50.0), colour=0.0, old=0.0)
    params = QUICK | {"hidden_layer_sizes": ()}
    model = ISLaBRegressor(**params).fit(Batches(parts(data, 1500), n_rows=300), "price")
    exact = np.polyfit(data["size"], data["price"], 1)[0]
    ends = data.drop(columns="price")[:2].assign(size=[0.0, 1.0], noise=0.0)
    np.testing.assert_allclose(np.diff(model.predict(ends)), exact, rtol=0.01)


def test_ranges_and_scales_are_those_of_all_rows(few_seen, table):
    data = table.drop(columns="state")
    model = ISLaBRegressor(**QUICK).fit(Batches(parts(data, 1500), n_rows=600), "price")
    scale = model.posterior_.scale
    where = scale.names.index("noise")
    np.testing.assert_allclose(scale.x_center[where], data["noise"].mean(), atol=1e-6)
    np.testing.assert_allclose(scale.x_scale[where], data["noise"].std(ddof=0), rtol=1e-6)
    np.testing.assert_allclose(scale.y_scale[0], data["price"].std(ddof=0), rtol=1e-6)
    low, high = model.columns_.ranges[:, where]
    np.testing.assert_allclose([low, high], [data["noise"].min(), data["noise"].max()])


def test_a_class_that_the_sample_lacks_is_named(few_seen, table):
    data = table.drop(columns="price")
    data = pd.concat([data] * 3 + [data[:1].assign(state="dead")], ignore_index=True)
    with pytest.raises(ValueError, match="Got class 'dead' in the batches"):
        ISLaBClassifier(**QUICK).fit(Batches(data, n_rows=50), "state")


def test_counts_with_an_exposure_stream(few_seen, table):
    rng = np.random.default_rng(1)
    years = rng.uniform(0.5, 3, 4000)
    visits = rng.poisson(years * np.exp(0.3 * table["noise"]))
    data = table[["noise", "old"]].assign(visits=visits, years=years)
    model = ISLaBRegressor(**QUICK | {"hidden_layer_sizes": ()}, likelihood="poisson")
    model.fit(Batches(parts(data, 1000), n_rows=500), "visits", exposure="years")
    rows = pd.DataFrame({"noise": [0.0, 1.0], "old": False, "years": 1.0})
    found = np.log(model.predict(rows))
    np.testing.assert_allclose(np.diff(found), 0.3, atol=0.04)
    np.testing.assert_allclose(found[0], 0.0, atol=0.05)


def test_other_posteriors_learn_from_the_sample_and_say_so(table):
    data = table.drop(columns="state")
    with pytest.warns(TableWarning, match="random sample of 300 of 4,000"):
        ISLaBRegressor(**QUICK, posterior="independent").fit(Batches(data, n_rows=300), "price")


def test_a_reader_can_be_sent_to_other_processes(table):
    import pickle

    data = table.drop(columns="state")
    model = ISLaBRegressor(**QUICK | {"max_epochs": 2}, posterior="independent")
    model.fit(data.drop(columns="price"), data["price"])
    from islab.estimators.streams import FrameReader, NumberTargets
    from islab.tables.offsets import OffsetColumns

    reader = FrameReader(
        model.columns_, model.posterior_.scale, "price", NumberTargets("gaussian"), OffsetColumns()
    )
    again = pickle.loads(pickle.dumps(reader))
    np.testing.assert_array_equal(again(data).x, reader(data).x)
    assert replace(again, target="other").target == "other"
