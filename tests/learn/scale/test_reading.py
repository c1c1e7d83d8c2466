"""The network to read: what is worth its price, and what draws use."""

from dataclasses import replace

import numpy as np
import pytest

from islab.core.architecture import Architecture
from islab.core.chain_draws import ChainDraws
from islab.learn.engines import Problem
from islab.learn.scale.passes import ArrayRows
from islab.learn.scale.reading import readable
from islab.learn.scale.weights import Structures, climb

NONE = np.zeros(0, dtype=np.intp)


@pytest.fixture
def rows():
    """Weights of 1, .3 and .1 at 1,000 rows: worth about 350, 43 and 5 nats; the fourth is 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4))
    y = x @ [1.0, 0.3, 0.1, 0.0] + rng.normal(size=1000)
    return ArrayRows(Problem(x, y[:, None]))


def linear_chain(*draws):
    """A chain of linear networks, each of which uses some of four covariates."""
    slots = np.concatenate(draws)
    n = len(draws)
    return ChainDraws(
        slots=slots,
        weights=np.full(len(slots), 0.01),
        ends=np.cumsum([len(each) for each in draws]),
        biases=np.zeros((n, 1)),
        noise=np.ones((n, 1)),
        tau2=np.ones((n, 1)),
        log_likelihood=np.zeros(n),
        row_log_likelihood=np.zeros((n, 0)),
        moves={},
    )


def found(rows, *chains, price, forced=NONE):
    structures = Structures.of(chains, Architecture(4, (), 1), "gaussian", 0.0)
    owner = np.repeat(np.arange(len(chains)), [chain.n_draws for chain in chains])
    climbs = climb(structures, rows)
    own, alpha = readable(
        structures, climbs, owner, chains, rows, price=price, threshold=0.5, forced=forced
    )
    return sorted(own.networks.slots.tolist()), alpha


@pytest.mark.parametrize(
    ("price", "kept"), [(2.0, [0, 1, 2]), (20.0, [0, 1]), (90.0, [0]), (900.0, [])]
)
def test_weights_that_are_not_worth_their_price_are_left_out(rows, price, kept):
    assert found(rows, linear_chain([0, 1, 2, 3]), price=price)[0] == kept


def test_weights_that_few_draws_use_are_left_out(rows):
    chain = linear_chain([0, 1, 2], [0, 2], [0], [0, 2, 3])
    slots, alpha = found(rows, chain, price=0.5)
    assert slots == [0, 2]
    assert alpha.tolist() == [1.0, 0.75]


def test_the_better_chain_is_read(rows):
    assert found(rows, linear_chain([2]), linear_chain([0, 1]), price=5.0)[0] == [0, 1]


def test_what_must_be_included_is_read(rows):
    assert found(rows, linear_chain([0, 3]), price=20.0, forced=np.array([3]))[0] == [0, 3]


def test_weights_are_those_at_the_mode(rows):
    chain = replace(linear_chain([0, 1]), noise=np.ones((1, 1)))
    structures = Structures.of([chain], Architecture(4, (), 1), "gaussian", 0.0)
    own, _ = readable(
        structures,
        climb(structures, rows),
        np.zeros(1, dtype=np.intp),
        [chain],
        rows,
        price=1.0,
        threshold=0.5,
        forced=NONE,
    )
    x, y = rows.problem.x, rows.problem.y
    exact = np.linalg.lstsq(np.c_[x[:, :2], np.ones(1000)], y)[0][:2, 0]
    np.testing.assert_allclose(own.networks.weights, exact, atol=5e-3)
