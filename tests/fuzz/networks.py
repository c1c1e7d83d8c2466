"""Calls of compiled networks and quantiles with random shapes, valid and not.

Under AddressSanitizer and UBSan a wrong read or write ends the process. With and without them a
call ends in the numbers that numpy computes or in a ValueError; what was given is never changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.native import _networks
from islab.core.network import forward, slopes
from tests.fuzz.kernel import _alike, _size
from tests.fuzz.outcome import Outcome

Given = dict[str, Any]
CLOSE = 1e-11


def fuzz_networks(count: int, seed: int = 0) -> Outcome:
    """Makes ``count`` calls."""
    outcome = Outcome("networks")
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
    numbers = np.random.default_rng(rng.randrange(2**32))
    net, given = _networks_of(rng, numbers)
    try:
        made = _networks.Networks(**given)
    except (ValueError, TypeError):
        yield "make: refused"
    else:
        for call in (_predictor, _slopes, _contributions):
            yield f"{call.__name__.strip('_')}: {_ending(call, rng, numbers, net, given, made)}"
    for call in (_locations, _counts, _ranks, _exponentials):
        yield f"{call.__name__.strip('_')}: {_ending(call, rng, numbers)}"


def _ending(call: Any, *given: Any) -> str:
    try:
        with np.errstate(all="ignore"):
            wrong = call(*given)
    except (ValueError, TypeError):
        return "refused"
    except Exception as error:
        return f"FAILED with {type(error).__name__}: {error!s:.200}"
    return f"FAILED: {wrong}" if wrong else "done"


def _networks_of(rng: Random, numbers: np.random.Generator) -> tuple[Architecture, Given]:
    """What networks are made of; now and then it does not fit together."""
    net = Architecture(
        n_covariates=rng.choice((0, 1, 2, 5, 17)),
        hidden=tuple(rng.choice((0, 1, 3, 8)) for _ in range(rng.randrange(4))),
        n_outputs=rng.choice((1, 2, 3, 9)),
        input_skip=rng.random() < 0.7,
        activation=rng.choice(families.activations()),
    )
    n_draws = rng.choice((0, 1, 2, 7))
    kept = numbers.random((n_draws, net.n_weights)) < rng.choice((0.1, 0.5, 1.0))
    draws, slots = np.nonzero(kept)
    ends = np.cumsum(np.bincount(draws, minlength=n_draws))
    if rng.random() < 0.1 and len(slots):
        slots[rng.randrange(len(slots))] = rng.choice((-1, net.n_weights, 2**40))
    if rng.random() < 0.05 and len(ends):
        ends[rng.randrange(len(ends))] += rng.choice((-1, 1, -(2**40), 2**40))
    kernel = families.activation(net.activation).kernel
    assert kernel is not None
    given = {
        "covariates": net.n_covariates,
        "hidden": list(net.hidden),
        "outputs": net.n_outputs,
        "input_skip": net.input_skip,
        "activation": kernel.name,
        "constant": kernel.constant,
        "slots": slots,
        "weights": numbers.standard_normal(_size(len(slots), rng)),
        "ends": ends[: _size(len(ends), rng)],
        "biases": numbers.standard_normal((n_draws, _size(net.n_units, rng))),
        "instructions": rng.choice(_networks.instruction_sets()),
    }
    if rng.random() < 0.03:
        given[rng.choice(("covariates", "outputs"))] = rng.choice((-1, 0, 2**31, 2**62))
    return net, given


def _dense(net: Architecture, given: Given) -> tuple[np.ndarray, np.ndarray]:
    flat = np.zeros((len(given["ends"]), net.n_weights))
    draws = np.repeat(np.arange(len(flat)), np.diff(given["ends"], prepend=0))
    np.add.at(flat, (draws, given["slots"]), given["weights"])  # an edge may stand twice
    return flat, given["biases"]


def _rows(net: Architecture, rng: Random, numbers: np.random.Generator) -> np.ndarray:
    shape = (rng.choice((0, 1, 2, 9, 65)), _size(net.n_covariates, rng))
    x = numbers.standard_normal(shape)
    if rng.random() < 0.1 and x.size:
        x.flat[rng.randrange(x.size)] = rng.choice((np.nan, np.inf, -np.inf, 1e300))
    return x


def _differs(found: np.ndarray, expected: np.ndarray, addends: np.ndarray | float = 0.0) -> str:
    """Says so where numbers differ by more than the rounding of what was added up."""
    finite = np.isfinite(expected)
    size = np.broadcast_to(np.maximum(np.abs(expected), addends), expected.shape)[finite]
    close = np.abs(found[finite] - expected[finite]) <= CLOSE * (1 + size)
    return "" if close.all() else "other numbers than numpy has"


def _addends(net: Architecture, given: Given, *rows: np.ndarray) -> np.ndarray:
    """The most that all that is added up on the way to an output can come to, without signs.

    Where large numbers cancel, what is left carries their rounding.
    """
    flat, biases = _dense(net, given)
    largest = np.abs(rows[0]) if len(rows) == 1 else np.maximum(*map(np.abs, rows))
    return forward(net, np.abs(flat), np.abs(biases), largest)


def _predictor(
    rng: Random, numbers: np.random.Generator, net: Architecture, given: Given, made: Any
) -> str:
    x = _rows(net, rng, numbers)
    before = x.copy()
    found = made.predictor(x)
    expected = forward(net, *_dense(net, given), x)
    wrong = _differs(found, expected, _addends(net, given, x))
    return wrong if _alike(before, x) else "an input was changed"


def _slopes(
    rng: Random, numbers: np.random.Generator, net: Architecture, given: Given, made: Any
) -> str:
    x = _rows(net, rng, numbers)
    found = made.slopes(x)[1]
    if not np.isfinite(x).all():
        return ""
    return _differs(found, slopes(net, *_dense(net, given), x)[1][..., made.used])


def _contributions(
    rng: Random, numbers: np.random.Generator, net: Architecture, given: Given, made: Any
) -> str:
    start, end = _rows(net, rng, numbers), _rows(net, rng, numbers)
    if rng.random() < 0.8:
        start = start[:1] if rng.random() < 0.5 else np.resize(start, end.shape)
    found = made.contributions(start, end)
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        return ""
    flat = _dense(net, given)
    expected = forward(net, *flat, end) - forward(net, *flat, start)
    return _differs(found.sum(axis=2), expected, _addends(net, given, start, end))


def _spread(shape: tuple[int, int], rng: Random, numbers: np.random.Generator) -> np.ndarray:
    draws, columns = (rng.choice((1, _size(size, rng))) for size in shape)
    return numbers.uniform(0.1, 2.0, size=(draws, columns))


def _levels(rng: Random, numbers: np.random.Generator) -> np.ndarray:
    levels = np.sort(numbers.uniform(0.001, 0.999, size=rng.choice((0, 1, 2, 5))))
    return levels if rng.random() < 0.9 else levels[::-1] + rng.choice((0, 1, np.nan))


def _matrix(rng: Random, numbers: np.random.Generator) -> np.ndarray:
    return numbers.standard_normal((rng.choice((0, 1, 2, 33)), rng.choice((0, 1, 9, 17))))


def _locations(rng: Random, numbers: np.random.Generator) -> str:
    centres, levels = _matrix(rng, numbers), _levels(rng, numbers)
    if rng.random() < 0.1 and centres.size:
        centres.flat[0] = rng.choice((np.nan, np.inf, 1e300))
    found = _networks.location_quantiles(
        kind=rng.choice(("normal", "student_4", "other")),
        centres=centres,
        inverse_scale=_spread(centres.shape, rng, numbers),
        levels=levels,
        reaches=np.zeros(_size(len(levels), rng)),
        instructions=rng.choice(_networks.instruction_sets()),
    )
    fine = np.isfinite(centres).all(axis=0)
    return "" if np.isfinite(found[:, fine]).all() else "numbers that are not finite"


def _counts(rng: Random, numbers: np.random.Generator) -> str:
    rates = np.exp(_matrix(rng, numbers) + rng.choice((-5, 1, 6, 9)))
    if rng.random() < 0.1 and rates.size:
        rates.flat[0] = rng.choice((np.nan, np.inf, 0.0, 1e300, -1.0))
    dispersion = _spread(rates.shape, rng, numbers) if rng.random() < 0.5 else None
    found = _networks.count_quantiles(
        rates=rates,
        dispersion=dispersion,
        levels=_levels(rng, numbers),
        instructions=rng.choice(_networks.instruction_sets()),
    )
    fine = np.isnan(found) | ((found >= 0) & (found == np.floor(found)))
    return "" if fine.all() else "quantiles that are no counts"


def _ranks(rng: Random, numbers: np.random.Generator) -> str:
    values, levels = _matrix(rng, numbers), _levels(rng, numbers)
    found = _networks.quantiles(numbers=values, levels=levels)
    return _differs(found, np.quantile(values, levels, axis=0))


def _exponentials(rng: Random, numbers: np.random.Generator) -> str:
    values = _matrix(rng, numbers) * rng.choice((1, 100, 1000))
    instructions = rng.choice(_networks.instruction_sets())
    found = _networks.exponentials(values=values, instructions=instructions)
    expected = np.exp(values)
    if not (np.isinf(found) == np.isinf(expected)).all():
        return "infinite where numpy is not"
    return _differs(found, expected)
