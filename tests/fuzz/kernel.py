"""Calls of the compiled kernel with random shapes, valid and not.

Under AddressSanitizer and UBSan a wrong read or write ends the process. With and without them a
call ends in numbers or in a ValueError. After an error the engine is as it was before, until it was
given a state that does not fit; what was given is never changed; and as long as data, priors and
rates are reasonable all numbers are finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.posterior import Posterior
from islab.core.priors import Prior
from islab.learn.engines import Problem, Steps
from islab.learn.engines.native import NativeEngine
from islab.learn.engines.native.flow import NativeFlowEngine
from tests.fuzz.outcome import Outcome


@dataclass
class Tried:
    """An engine and what it was given.

    Attributes
    ----------
    engine : NativeEngine
    problem : Problem
    given : list of array
        What no call may change.
    reasonable : bool
        Whether nothing so far would excuse numbers that are not finite.
    whole : bool
        Whether no state was refused so far, part of which may have been taken.
    """

    engine: NativeEngine
    problem: Problem
    given: list[np.ndarray]
    reasonable: bool
    whole: bool = True


def fuzz_kernel(count: int, seed: int = 0) -> Outcome:
    """Makes ``count`` calls."""
    outcome = Outcome("kernel")
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
    """How making an engine and a few calls of it ended."""
    try:
        tried = _made(rng)
    except ValueError:
        yield "make: refused"
        return
    except Exception as error:
        yield f"make: FAILED with {type(error).__name__}: {error!s:.200}"
        return
    for _ in range(rng.randrange(3, 9)):
        call = rng.choice(CALLS)
        yield f"{call.__name__.strip('_')}: {_ending(call, tried, rng)}"


def _ending(call: Any, tried: Tried, rng: Random) -> str:
    before, given = tried.engine.state(), [array.copy() for array in tried.given]
    try:
        with np.errstate(all="ignore"):
            found = call(tried, rng)
    except ValueError:
        tried.whole &= call is not _restore
        same = not tried.whole or _same(before, tried.engine.state())
        ending = "refused" if same else "FAILED: refused half-way"
    except Exception as error:
        ending = f"FAILED with {type(error).__name__}: {error!s:.200}"
    else:
        ending = "done" if tried.reasonable else "done, far out"
        numbers = [0.0 if found is None else found, *tried.engine.state().values()]
        if tried.reasonable and not all(np.isfinite(each).all() for each in numbers):
            ending = "FAILED: numbers that are not finite"
        if call in READING and not _same(before, tried.engine.state()):
            ending = "FAILED: a question changed the engine"
    if not all(map(_alike, given, tried.given)):
        ending = "FAILED: an input was changed"
    return ending


def _alike(one: Any, other: Any) -> bool:
    """Bit by bit: NaN is NaN."""
    return np.asarray(one).tobytes() == np.asarray(other).tobytes()


def _same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)


def _made(rng: Random) -> Tried:
    numbers = np.random.default_rng(rng.randrange(2**32))
    net = Architecture(
        n_covariates=rng.choice((0, 1, 2, 5, 17)),
        hidden=tuple(rng.choice((0, 1, 3, 8, 9, 20)) for _ in range(rng.randrange(4))),
        n_outputs=rng.choice((1, 2, 3, 9)),
        input_skip=rng.random() < 0.7,
        activation=rng.choice(families.activations()),
    )
    likelihood = families.likelihood(rng.choice(families.likelihoods()))
    rows = rng.choice((1, 2, 7, 33))
    posterior = Posterior.initialise(net, numbers, likelihood=likelihood.name)
    scale = rng.choice((1.0, 1.0, 1.0, 1e3, 1e30))
    problem = Problem(
        numbers.standard_normal((rows, net.n_covariates)) * scale,
        _targets(likelihood.target, rows, net.n_outputs, numbers),
        numbers.random(rows) if rng.random() < 0.3 else None,
    )
    given = [problem.x, problem.y, posterior.mu, posterior.rho, posterior.lam]
    given += [posterior.bias_mu, posterior.bias_rho, posterior.noise]
    given += [] if problem.sample_weight is None else [problem.sample_weight]
    kind = NativeFlowEngine if rng.random() < 0.2 else NativeEngine
    dtype = rng.choice((np.float32, np.float64, np.float64, np.float16))
    engine = kind(posterior, problem, seed=rng.randrange(2**31), dtype=dtype)
    tried = Tried(engine, problem, given, reasonable=scale == 1)
    if rng.random() < 0.95:
        with np.errstate(all="ignore"):
            _set_prior(tried, rng)
    return tried


def _targets(kind: str, rows: int, outputs: int, numbers: np.random.Generator) -> np.ndarray:
    if kind == "classes" and outputs > 1:
        return np.eye(outputs)[numbers.integers(outputs, size=rows)]
    found = numbers.standard_normal((rows, outputs))
    if kind == "classes":
        return (found > 0).astype(float)
    return np.abs(found).round() if kind == "counts" else found


def _size(right: int, rng: Random) -> int:
    """The right size, or now and then another one."""
    return right if rng.random() < 0.9 else max(0, right + rng.choice((-1, 1, 10)))


def _set_prior(tried: Tried, rng: Random) -> None:
    engine = tried.engine
    blocks = len(engine.architecture.blocks)
    tau = rng.choice((1.0, 0.1, 1e-30, -1.0, np.nan) if rng.random() < 0.1 else (1.0,))
    psi = rng.choice((0.0, 1.0, 7.0, np.nan, 1e-300) if rng.random() < 0.05 else (0.2,))
    prior = Prior(
        np.full(_size(blocks, rng), tau),
        np.full(_size(blocks, rng), psi),
        df=rng.choice((None, None, None, 3.0, 0.0, -1.0)),
    )
    engine.set_prior(prior, np.ones(_size(blocks, rng)))
    tried.reasonable &= tau >= 0.1 and psi == 0.2


def _run(tried: Tried, rng: Random) -> float:
    steps, given = _steps(tried, rng), None
    if rng.random() < 0.3:
        numbers = np.random.default_rng(rng.randrange(2**32))
        units = tried.engine.architecture.n_units
        given = numbers.standard_normal((_size(len(steps.rows), rng), _size(units, rng)))
    inputs = [steps.rows, steps.sizes, steps.rate, steps.lambda_rate, steps.kl_weight]
    inputs += [] if given is None else [given]
    copies = [array.copy() for array in inputs]
    total = tried.engine.run(steps, given)
    tried.reasonable &= bool((steps.rate == 0.01).all())
    assert all(map(_alike, inputs, copies)), "steps were changed"
    return total


def _steps(tried: Tried, rng: Random) -> Steps:
    """A few batches; sizes, rows and rates are wrong now and then."""
    n_rows, n_steps = tried.problem.n_rows, rng.choice((1, 2, 5))
    sizes = np.array([rng.randrange(1, n_rows + 1) for _ in range(n_steps)])
    numbers = np.random.default_rng(rng.randrange(2**32))
    below = n_rows + (rng.choice((1, 2**40)) if rng.random() < 0.1 else 0)
    if rng.random() < 0.05:
        sizes[0] = rng.choice((0, -1, 2**40))
    rows = numbers.integers(
        -1 if rng.random() < 0.03 else 0, below, size=min(10**4, max(0, int(sizes.sum())))
    )
    rate = rng.choice((1e9, -1.0, np.nan) if rng.random() < 0.1 else (0.01,))
    return Steps(
        rows=rows[: _size(len(rows), rng)],
        sizes=sizes,
        rate=np.full(_size(n_steps, rng), rate),
        lambda_rate=np.full(_size(n_steps, rng), 0.01),
        kl_weight=np.ones(_size(n_steps, rng)),
    )


def _kl(tried: Tried, _rng: Random) -> float:
    return tried.engine.kl()


def _expected_nll(tried: Tried, rng: Random) -> float:
    return tried.engine.expected_nll(rng.choice((1, 2, 0, -1)), rng.randrange(2**31))


def _posterior(tried: Tried, _rng: Random) -> np.ndarray:
    return tried.engine.posterior().mu


def _keep_units(tried: Tried, rng: Random) -> None:
    net = tried.engine.architecture
    masks = [
        np.array([rng.random() < 0.7 for _ in range(_size(width, rng))], dtype=bool)
        for width in net.hidden
    ]
    tried.engine.keep_units(masks, np.zeros(_size(net.n_units, rng)))


def _restore(tried: Tried, rng: Random) -> None:
    state = tried.engine.state()
    if rng.random() < 0.5:
        name = rng.choice(list(state))
        array = np.asarray(state[name])
        state[name] = array.ravel()[: _size(array.size, rng)] if rng.random() < 0.5 else array * 2
    tried.reasonable = False
    tried.engine.restore(state)


READING = (_kl, _expected_nll, _posterior)
CALLS = (_run, _run, _run, _run, *READING, _keep_units, _restore, _set_prior)
