"""Short runs of compiled chains with random shapes and starts, valid and not.

A call ends in finite draws inside the network or in one of the errors of the interface; what was
given is never changed. Data and priors are reasonable: the chain does not check them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from random import Random
from typing import Any

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.learn.engines import Problem
from islab.learn.sample.chains import ChainPrior, Effort, Start, make_chain
from tests.fuzz.kernel import _alike, _size, _targets
from tests.fuzz.outcome import Outcome

EXPECTED = (ValueError, KeyError)


@dataclass
class Tried:
    """A chain and what it was given."""

    chain: Any
    net: Architecture
    problem: Problem


def fuzz_chains(count: int, seed: int = 0) -> Outcome:
    """Makes ``count`` calls."""
    outcome = Outcome("chains")
    number = 0
    while outcome.tries < count:
        rng = Random(f"{seed}/{number}")
        for ending in _calls(rng):
            outcome.counts[ending.partition(" FAILED")[0].rstrip(":")] += 1
            if "FAILED" in ending:
                outcome.failures.append(f"seed={seed} number={number}: {ending}")
        number += 1
    return outcome


def _calls(rng: Random) -> Iterator[str]:
    try:
        tried = _made(rng)
    except EXPECTED:
        yield "make: refused"
        return
    except Exception as error:
        yield f"make: FAILED with {type(error).__name__}: {error!s:.200}"
        return
    for _ in range(rng.randrange(2, 6)):
        call = rng.choice(CALLS)
        yield f"{call.__name__.strip('_')}: {_ending(call, tried, rng)}"


def _ending(call: Any, tried: Tried, rng: Random) -> str:
    given = [tried.problem.x.copy(), tried.problem.y.copy()]
    try:
        found = call(tried, rng)
    except EXPECTED:
        ending = "refused"
    except Exception as error:
        return f"FAILED with {type(error).__name__}: {error!s:.200}"
    else:
        ending = "done"
        if not all(np.isfinite(each).all() for each in found.values()):
            return "FAILED: numbers that are not finite"
        slots = found.get("slots", np.zeros(0))
        if len(slots) and not 0 <= slots.min() <= slots.max() < tried.net.n_weights:
            return "FAILED: an edge outside the network"
    if not all(map(_alike, given, [tried.problem.x, tried.problem.y])):
        return "FAILED: an input was changed"
    return ending


def _made(rng: Random) -> Tried:
    numbers = np.random.default_rng(rng.randrange(2**32))
    likelihood = families.likelihood(rng.choice(families.likelihoods()))
    net = Architecture(
        n_covariates=rng.choice((0, 1, 2, 5, 17)),
        hidden=tuple(rng.choice((0, 1, 2, 5)) for _ in range(rng.randrange(4))),
        n_outputs=rng.choice((1, 2, 3)),
        input_skip=rng.random() < 0.7,
        activation=rng.choice(families.activations()),
    )
    rows = rng.choice((1, 2, 7, 33))
    problem = Problem(
        numbers.standard_normal((rows, net.n_covariates)),
        _targets(likelihood.target, rows, net.n_outputs, numbers),
        numbers.random(_size(rows, rng)) if rng.random() < 0.3 else None,
    )
    prior = ChainPrior(df=rng.choice((0.0, 0.0, 4.0)))
    start, seed = _start(net, numbers, rng), rng.randrange(2**63)
    return Tried(make_chain(problem, likelihood.name, net, start, seed, prior), net, problem)


def _start(net: Architecture, numbers: np.random.Generator, rng: Random) -> Start:
    """The model without weights, or edges and numbers that fit together or do not."""
    start = Start(
        np.zeros(0, dtype=np.intp),
        np.zeros(0),
        np.zeros(net.n_units),
        np.ones(len(net.blocks)),
        np.ones(net.n_outputs),
    )
    if rng.random() < 0.6:
        return start
    n_edges = rng.choice((1, 2, 9))
    weight = rng.choice((1.0, 1.0, 1.0, np.nan))
    below = net.n_weights + (rng.choice((1, 2**40)) if rng.random() < 0.1 else 0)
    tau2 = rng.choice((1.0, 1.0, 1.0, 0.0, -1.0, np.nan))
    return Start(
        numbers.integers(-1 if rng.random() < 0.05 else 0, max(1, below), size=n_edges),
        weight * numbers.standard_normal(_size(n_edges, rng)),
        numbers.standard_normal(_size(net.n_units, rng)),
        np.full(_size(len(net.blocks), rng), tau2),
        np.ones(_size(net.n_outputs, rng)),
    )


def _run(tried: Tried, rng: Random) -> dict[str, np.ndarray]:
    odd = rng.random() < 0.1
    effort = {field.name: rng.choice((-1, 0, 3, 9)) for field in fields(Effort)}
    return tried.chain.run(
        steps=rng.choice((-1, 0) if odd else (1, 3, 8)),
        every=rng.choice((0, -1) if odd else (1, 2)),
        warming=rng.random() < 0.5,
        keep_rows=rng.random() < 0.5,
        **effort,
    )


def _replace_target(tried: Tried, rng: Random) -> dict[str, np.ndarray]:
    y = np.ascontiguousarray(tried.problem.y.T)
    if rng.random() < 0.3:
        y = y.ravel()[: _size(y.size, rng)]
    tried.chain.replace_target(y)
    return {"predictor": tried.chain.predictor()}


def _restore(tried: Tried, rng: Random) -> dict[str, np.ndarray]:
    state = tried.chain.state()
    if rng.random() < 0.6:
        name = rng.choice(list(state))
        if rng.random() < 0.5:
            state[name] = state[name][: _size(len(state[name]), rng)]
        else:
            del state[name]
    tried.chain.restore(state)
    return tried.chain.state()


CALLS = (_run, _run, _run, _run, _replace_target, _restore)
