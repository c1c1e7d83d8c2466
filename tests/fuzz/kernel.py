"""Calls of the compiled kernel with random shapes, valid and not.

Under AddressSanitizer and UBSan a wrong read or write ends the process; without them the calls
must end in finite numbers or in one of Python's errors.
"""

from __future__ import annotations

from random import Random

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines import Problem, Steps
from islab.learn.engines.native import NativeEngine
from islab.learn.engines.native.flow import NativeFlowEngine
from tests.fuzz.outcome import Outcome

EXPECTED = (ValueError, TypeError, IndexError, KeyError, OverflowError, RuntimeError)


def fuzz_kernel(count: int, seed: int = 0) -> Outcome:
    """Makes ``count`` calls."""
    outcome = Outcome("kernel")
    number = 0
    while outcome.tries < count:
        rng = Random(f"{seed}/{number}")
        try:
            engine, problem = _engine(rng)
        except EXPECTED:
            outcome.counts["make: refused"] += 1
        else:
            for _ in range(rng.randrange(3, 9)):
                call = rng.choice(CALLS)
                ending = _tried(call, engine, problem, rng)
                outcome.counts[f"{call.__name__.strip('_')}: {ending}"] += 1
                if "FAILED" in ending:
                    outcome.failures.append(f"seed={seed} number={number}: {ending}")
        number += 1
    return outcome


def _tried(call, engine, problem, rng: Random) -> str:
    try:
        with np.errstate(all="ignore"):
            call(engine, problem, rng)
    except EXPECTED:
        return "refused"
    except Exception as error:
        return f"FAILED with {type(error).__name__}: {error!s:.200}"
    return "done"


def _engine(rng: Random) -> tuple[NativeEngine, Problem]:
    numbers = np.random.default_rng(rng.randrange(2**32))
    net = Architecture(
        n_covariates=rng.choice((0, 1, 2, 5, 17)),
        hidden=tuple(rng.choice((0, 1, 3, 8, 9, 20)) for _ in range(rng.randrange(4))),
        n_outputs=rng.choice((1, 2, 3, 9)),
        input_skip=rng.random() < 0.7,
        activation=rng.choice(families.activations()),
    )
    rows = rng.choice((1, 2, 7, 33))
    posterior = Posterior.initialise(net, numbers, likelihood=rng.choice(families.likelihoods()))
    scale = rng.choice((1.0, 1.0, 1e3, 1e30))
    problem = Problem(
        numbers.standard_normal((rows, net.n_covariates)) * scale,
        np.abs(numbers.standard_normal((rows, net.n_outputs))).round(),
        numbers.random(rows) if rng.random() < 0.3 else None,
    )
    kind = NativeFlowEngine if rng.random() < 0.2 else NativeEngine
    dtype = rng.choice((np.float32, np.float64, np.float64, np.float16))
    engine = kind(posterior, problem, seed=rng.randrange(2**31), dtype=dtype)
    if rng.random() < 0.95:
        _set_prior(engine, problem, rng)
    return engine, problem


def _size(right: int, rng: Random) -> int:
    """The right size, or now and then another one."""
    return right if rng.random() < 0.9 else max(0, right + rng.choice((-1, 1, 10)))


def _set_prior(engine, _problem, rng: Random) -> None:
    blocks = len(engine.architecture.blocks)
    tau = np.full(
        _size(blocks, rng),
        rng.choice((1.0, 0.1, 1e-30, -1.0, np.nan) if rng.random() < 0.1 else (1.0,)),
    )
    prior = Prior(tau, np.full(_size(blocks, rng), 0.2), df=rng.choice((None, None, 3.0)))
    engine.set_prior(prior, np.ones(_size(blocks, rng)))


def _run(engine, problem, rng: Random) -> None:
    n_steps = rng.choice((1, 2, 5))
    sizes = np.array([rng.randrange(1, problem.n_rows + 1) for _ in range(n_steps)])
    numbers = np.random.default_rng(rng.randrange(2**32))
    below = problem.n_rows + (rng.choice((1, 2**40)) if rng.random() < 0.1 else 0)
    if rng.random() < 0.05:
        sizes[0] = rng.choice((0, -1, 2**40))
    rows = numbers.integers(
        -1 if rng.random() < 0.03 else 0, below, size=min(10**4, max(0, int(sizes.sum())))
    )
    steps = Steps(
        rows=rows[: _size(len(rows), rng)],
        sizes=sizes,
        rate=np.full(_size(n_steps, rng), rng.choice((0.01, 1e9, -1.0, np.nan))),
        lambda_rate=np.full(_size(n_steps, rng), 0.01),
        kl_weight=np.ones(_size(n_steps, rng)),
    )
    given = None
    if rng.random() < 0.3:
        units = engine.architecture.n_units
        given = numbers.standard_normal((_size(len(rows), rng), _size(units, rng)))
    engine.run(steps, given)


def _kl(engine, _problem, _rng: Random) -> None:
    engine.kl()


def _expected_nll(engine, _problem, rng: Random) -> None:
    engine.expected_nll(rng.choice((1, 2, 0, -1)), rng.randrange(2**31))


def _keep_units(engine, problem, rng: Random) -> None:
    net = engine.architecture
    masks = [
        np.array([rng.random() < 0.7 for _ in range(_size(width, rng))], dtype=bool)
        for width in net.hidden
    ]
    engine.keep_units(masks, np.zeros(_size(net.n_units, rng)))
    if rng.random() < 0.8:
        _set_prior(engine, problem, rng)


def _restore(engine, _problem, rng: Random) -> None:
    state = engine.state()
    if rng.random() < 0.5:
        name = rng.choice(list(state))
        array = np.asarray(state[name])
        state[name] = array.ravel()[: _size(array.size, rng)] if rng.random() < 0.5 else array * 2
    engine.restore(state)


CALLS = (_run, _run, _run, _kl, _expected_nll, _keep_units, _restore, _set_prior)
