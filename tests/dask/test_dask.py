"""Fits of Dask data frames: those of local batches of the same rows, wherever rows lie."""

import numpy as np
import pandas as pd
import pytest

from islab import Batches, ISLaBClassifier, ISLaBRegressor
from tests.estimators.conftest import QUICK
from tests.estimators.test_many_rows import few_seen

__all__ = ["few_seen"]

frames = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the scheduler

from islab.dask import (  # noqa: E402
    DaskBatches,
    DaskISLaBClassifier,
    DaskISLaBRegressor,
    explain_local,
)

N_ROWS = 3000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 10, N_ROWS),
            "colour": rng.choice(["red", "green", "blue"], N_ROWS),
            "noise": rng.normal(size=N_ROWS),
        }
    )
    eta = frame["size"] / 10 - 5 + (frame["colour"] == "red")
    noise = rng.normal(size=N_ROWS)
    return frame.assign(price=eta + noise, state=np.where(eta + noise > 0, "well", "ill"))


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_draw_the_sample_of_local_batches(client, table):
    found = DaskBatches(frames.from_pandas(table, npartitions=7), n_rows=100).sample(5)
    expected = Batches(table, n_rows=100).sample(5)
    assert found.n_rows == expected.n_rows == N_ROWS
    np.testing.assert_array_equal(found.table["noise"], expected.table["noise"])


KNOWN = {}


def local_predictions(data, target):
    """Of a local fit of the same sample; kept, because several tests need them."""
    if target not in KNOWN:
        maker = ISLaBRegressor if target == "price" else ISLaBClassifier
        model = maker(**QUICK).fit(Batches(data, n_rows=600), target)
        rows = data.drop(columns=target)
        KNOWN[target] = model.predict(rows) if target == "price" else model.predict_proba(rows)
    return KNOWN[target]


@pytest.mark.parametrize("target", ["price", "state"])
def test_a_fit_is_the_local_one(few_seen, client, table, target):
    data = table.drop(columns={"price": "state", "state": "price"}[target])
    local, remote = ISLaBRegressor, DaskISLaBRegressor
    if target == "state":
        local, remote = ISLaBClassifier, DaskISLaBClassifier
    wanted = local_predictions(data, target)
    lazy = frames.from_pandas(data, npartitions=5)
    estimator = remote(n_rows=600, **QUICK)
    model = estimator.fit(lazy, target)
    assert type(model) is local
    predict = "predict" if target == "price" else "predict_proba"
    found = getattr(estimator, predict)(lazy.drop(columns=target))
    assert hasattr(found, "dask")  # nothing is computed yet
    np.testing.assert_allclose(found.compute().to_numpy(), wanted, rtol=1e-7)


def test_a_target_may_be_a_series_and_explanations_are_lazy(few_seen, client, table):
    lazy = frames.from_pandas(table, npartitions=3)
    x = lazy.drop(columns=["price", "state"])
    model = DaskISLaBRegressor(n_rows=600, **QUICK).fit(x, lazy["price"])
    found = model.predict(table.drop(columns=["price", "state"]))
    wanted = local_predictions(table.drop(columns="state"), "price")
    np.testing.assert_allclose(found, wanted, rtol=1e-7)
    parts = explain_local(model, x).compute()
    own = pd.concat([model.explain_local(p.compute()).to_frame() for p in x.partitions])
    np.testing.assert_allclose(parts["contribution"], own["contribution"])


def test_a_target_must_not_be_a_covariate(client, table):
    lazy = frames.from_pandas(table, npartitions=3)
    with pytest.raises(ValueError, match="column of X as well"):
        DaskISLaBRegressor().fit(lazy, lazy["price"])


def test_empty_partitions_do_no_harm(client, table):
    lazy = frames.from_pandas(table, npartitions=4)
    kept = lazy[lazy["noise"] > lazy["noise"].max().compute() - 1e-9]
    found = DaskBatches(kept).total(len, lambda n: n)
    assert found == 1


def test_a_worker_that_dies_changes_nothing(few_seen, table):
    """The fit goes on with the other worker, which reads the lost partitions again."""
    data = table.drop(columns="state")
    lazy = frames.from_pandas(data, npartitions=6)
    rows = data.drop(columns="price")
    killed = []

    class Dying(DaskBatches):
        def total(self, read, task):
            found = super().total(read, task)
            if type(task.task).__name__ == "_Seen" and not killed:
                name, worker = next(iter(cluster.workers.items()))
                killed.append(name)
                client.sync(worker.close, nanny=False)
                del cluster.workers[name]
            return found

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = ISLaBRegressor(**QUICK).fit(Dying(lazy, n_rows=600), "price").predict(rows)
    assert killed
    np.testing.assert_allclose(found, local_predictions(data, "price"), rtol=1e-7)
