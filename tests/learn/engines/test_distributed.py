"""Processes that share each batch take the steps that one process takes on all of it."""

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from islab.images import ISLaBImageClassifier
from islab.learn.engines.base import Steps
from islab.learn.engines.torch.distributed import Team
from tests.learn.engines.test_convolution import batch, engine

SIZE = 2


class Kept:
    """A source of fixed images, of which the loop chooses rows."""

    n_rows, shuffled = 60, True

    def __init__(self):
        images, y = batch(self.n_rows)
        self.pixels, self.codes = images.permute(0, 2, 3, 1).numpy(), y.argmax(1).numpy()

    def batch(self, number, rows):
        return self.pixels[rows], self.codes[rows]


@dataclass(frozen=True)
class Threads(Team):
    """A team of threads, which add up through memory."""

    shared: dict = field(default_factory=dict)
    barrier: threading.Barrier = None

    def _sum(self, flat):
        self.shared[self.rank] = flat.clone()
        self.barrier.wait()
        flat.copy_(sum(self.shared[rank] for rank in range(self.size)))
        self.barrier.wait()


def steps(sizes):
    n_steps = len(sizes)
    rows = np.random.default_rng(1).integers(0, Kept.n_rows, sum(sizes))
    rate = np.full(n_steps, 0.03)
    return Steps(rows, np.array(sizes), rate, rate / 2, np.linspace(0.2, 1, n_steps), first=0)


def trained(team, sizes, flow):
    made, _ = engine(flow=flow, team=team)
    made.source = Kept()
    nll = made.run(steps(sizes))
    return nll, made.state()


# The last batch has a single row: one of the processes then has none.
@pytest.mark.parametrize("flow", [False, True])
def test_two_workers_take_the_steps_of_one(flow):
    sizes = [8, 7, 8, 1]
    alone = trained(Team(), sizes, flow)
    shared, barrier, found = {}, threading.Barrier(SIZE), {}

    def work(rank):
        found[rank] = trained(Threads(rank, SIZE, shared, barrier), sizes, flow)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank in range(SIZE):
        assert found[rank][0] == pytest.approx(alone[0], rel=1e-12)
        for name, value in alone[1].items():
            np.testing.assert_allclose(found[rank][1][name], value, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n_rows", [0, 1, 5, 128])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_row_belongs_to_one_worker(n_rows, size):
    rows = np.arange(n_rows)
    parts = [rows[Team(rank, size).part(n_rows)] for rank in range(size)]
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def make_images():
    rng = np.random.default_rng(0)
    images = rng.random((90, 8, 8)).astype(np.float32)
    return images, np.digitize(images[:, :4].mean(axis=(1, 2)), [0.47, 0.53])


def fit(random_state):
    model = ISLaBImageClassifier(
        channels=(4,), hidden_layer_sizes=(), batch_size=32, max_epochs=3, random_state=random_state
    )
    return model.fit(*make_images())


@pytest.mark.slow
def test_two_processes_of_torchrun_fit_the_model_of_one(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[3])]),
    }
    subprocess.run(
        [*command, "-m", "tests.learn.engines.test_distributed", str(tmp_path)],
        check=True,
        env=environment,
        timeout=300,
    )
    first, second = (np.load(tmp_path / f"{rank}.npz") for rank in range(SIZE))
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name])
    # Without a random_state the processes agree on the first one's.
    assert not np.array_equal(first["free"], first["fixed"])
    alone = fit(0)
    np.testing.assert_allclose(first["fixed"], alone.posterior_.head.mu, rtol=0, atol=1e-4)
    images, _ = make_images()
    np.testing.assert_allclose(first["probability"], alone.predict_proba(images), atol=1e-4)


def main(folder):
    """What each process of ``torchrun`` does."""
    fixed, free = fit(0), fit(None)
    rank = torch.distributed.get_rank()
    assert torch.distributed.get_backend() == "gloo"
    np.savez(
        Path(folder, f"{rank}.npz"),
        fixed=fixed.posterior_.head.mu,
        free=free.posterior_.head.mu,
        probability=fixed.predict_proba(make_images()[0]),
    )
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
