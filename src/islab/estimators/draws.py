"""Draws of the model for any rows: the same networks each time, whatever rows they are asked of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from islab.core.network import forward
from islab.core.scale import Scale
from islab.core.sparse import SparseNetwork
from islab.estimators.learned import WeightDistribution

Float = NDArray[np.floating]
Result = TypeVar("Result")

NUMBERS_AT_ONCE = 5_000_000


def predictor_draws(
    model: WeightDistribution | SparseNetwork,
    scale: Scale,
    covariates: Float,
    n_draws: int,
    seed: int,
) -> Float:
    """Linear predictor in the user's units, (draws, rows, outputs).

    A row gets the same numbers whichever rows stand beside it.
    """
    used = model.covariates if isinstance(model, SparseNetwork) else slice(None)
    x = scale.standardise(covariates, used)
    net = model.architecture
    rng = np.random.default_rng(seed)
    draws = np.empty((n_draws, len(x), net.n_outputs))
    # How the draws are split must not depend on the rows: it decides the random numbers.
    for part in _parts(n_draws, net.n_weights, NUMBERS_AT_ONCE):
        draws[part] = forward(net, *model.draw(part.stop - part.start, rng), x)
    return scale.restore(draws)


def by_rows(
    covariates: Float, numbers_per_row: int, task: Callable[[Float], Result]
) -> list[Result]:
    """The task's results for consecutive rows, few enough at a time to fit in memory."""
    return [
        task(covariates[part]) for part in _parts(len(covariates), numbers_per_row, NUMBERS_AT_ONCE)
    ]


def _parts(total: int, cost: int, most: int) -> Iterator[slice]:
    """Slices of a range, each of which costs at most so many numbers."""
    size = max(1, most // max(cost, 1))
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))
