"""Samples that grow: where chains begin, when more rows are enough, and what is kept."""

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.learn.engines import Problem
from islab.learn.sample import ChainPrior
from islab.learn.scale import growing
from islab.learn.scale.growing import Growth, first_size, set_apart


def test_larger_networks_begin_on_more_rows():
    assert [first_size(20_000, n_weights) for n_weights in (9, 30, 200)] == [2500, 6000, 20_000]
    assert first_size(700, 9) == 700


def test_rows_to_compare_on_are_not_seen():
    problem = Problem(np.arange(30_000.0)[:, None], np.zeros((30_000, 1)))
    seen, fresh = set_apart(problem)
    assert (seen.n_rows, fresh.n_rows) == (20_000, 5000)
    assert not set(seen.x.ravel()) & set(fresh.x.ravel())


@pytest.fixture
def growth(monkeypatch):
    """On up to 400 rows of a line, with chains as short as can be."""
    monkeypatch.setattr(growing, "FEWEST_ROWS", 100)
    monkeypatch.setattr(growing, "ROWS_OF_A_WEIGHT", 1)
    monkeypatch.setattr(growing, "STEPS", (2, 4))
    monkeypatch.setattr(growing, "MORE_STEPS", (1, 4))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    y = (x[:, 0] + rng.normal(size=500))[:, None]
    seen, fresh = Problem(x[:400], y[:400]), Problem(x[400:], y[400:])
    return Growth(seen, fresh, "gaussian", Architecture(2, (2,), 1), ChainPrior(), seed=0)


@pytest.fixture
def networks(growth):
    start = Posterior.initialise(growth.architecture, np.random.default_rng(0))
    return [start.median()] * 2


@pytest.mark.parametrize(
    ("gains", "kept"),
    [
        ([0.0, -0.1], 100),
        ([0.3, 0.1, -0.15], 200),
        ([0.0, 0.0005], 200),
        ([-0.2, 0.1, 0.0015, 0.0], 400),
        ([0.0, 0.1, 0.1, 0.1, 0.0, 0.0], 400),
    ],
)
def test_chains_go_on_while_that_helps(growth, networks, monkeypatch, gains, kept):
    """Until two rounds together have gained next to nothing; the best chains are kept.

    The first gain is that over what variational runs found.
    """
    density = iter(np.cumsum([0.0, *gains]))
    asked = []

    def density_of(self, structures):
        asked.append(len(structures))
        return np.full(100, next(density))

    monkeypatch.setattr(Growth, "_structure_density", density_of)
    found = growth.run(networks)
    assert found.rows.n_rows == kept
    assert asked == [2] + [6] * len(gains)
    assert [chain.n_draws for chain in found.chains] == [4, 4]


def test_an_interrupt_keeps_what_fewer_rows_gave_if_asked_to(growth, networks, monkeypatch):
    calls = []

    def interrupted(self, chains):
        calls.append(len(chains))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return np.zeros(100)

    monkeypatch.setattr(Growth, "_structure_density", interrupted)
    with pytest.raises(KeyboardInterrupt):
        growth.run(networks)
    calls.clear()
    keeping = Growth(**vars(growth) | {"keep_interrupted": True})
    with pytest.warns(UserWarning, match="interrupted"):
        found = keeping.run(networks)
    assert found.interrupted
    assert found.rows.n_rows == 100


def test_structures_that_fit_better_have_the_higher_density(growth, networks):
    """Fresh rows tell a network that uses the covariate from one without."""
    chains = growth.run(networks).chains
    empty = [chain.take(np.arange(3)) for chain in chains]
    for chain in empty:
        object.__setattr__(chain, "slots", chain.slots[:0])
        object.__setattr__(chain, "weights", chain.weights[:0])
        object.__setattr__(chain, "ends", np.zeros(3, dtype=np.intp))
    full, none = (growth._structure_density(growth._last(each)) for each in (chains, empty))
    better = full.mean() - none.mean()
    assert better > 0.2  # log(2) / 2 is what the line tells
