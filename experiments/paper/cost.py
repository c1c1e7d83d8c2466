"""What a step costs and what a model takes to keep: measured, and by the paper's formulas."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper.cells import Results, circumstances
from experiments.paper.settings import (
    METHODS,
    SETTINGS,
    SPIKE_AND_SLAB,
    family,
    methods_of,
    setting,
)
from experiments.paper.tasks import Task
from islab.evaluate.runner import Record

NAME = "cost"
DATASETS = ("linear-0.0", "wbc", "abalone", "mice")
WARM_UP, STEPS, QUICK_STEPS = 3, 40, 2
BITS = 64
BYTE = 8


# Numbers for each weight, of all of them and of those that the median network keeps: a weight
# alone, or with its variance, and with its inclusion. SpaM keeps the curvature, here a diagonal
# one. Concrete dropout has no sparse network.
NUMBERS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(SPIKE_AND_SLAB, (3, 2)),
    "l1-skip": (1, 1),
    "horseshoe": (2, 2),
    "concrete-dropout": (1, None),
    "spam": (2, 2),
}


def full_bits(n_weights: int, others: int = 0, numbers: int = 3) -> int:
    """Bits for all parameters of a network, with so many numbers for each weight.

    The paper's ``64 (3 (p + q) + f)`` for spike and slab, with ``f`` parameters of flows as others;
    biases are not counted.
    """
    return BITS * (numbers * n_weights + others)


def sparse_bits(n_weights: int, n_used: int, others: int = 0, numbers: int = 2) -> int:
    """Bits for the median network: numbers for each used weight, one bit for each place.

    The paper's ``a 2 (p + q) + 65 ((1 - a) 2 (p + q) + f)``, where ``a`` must be the share of
    pruned weights for the formula to say what the paper's text says.
    """
    return numbers * (n_weights - n_used) + (BITS + 1) * (numbers * n_used + others)


def study(
    folder: Path,
    *,
    methods: Sequence[str] = METHODS,
    quick: bool = False,
    force: bool = False,
) -> Iterator[str]:
    """Steps of the paper's networks and files of default models, of all that the paper ran."""
    every = product(DATASETS, methods_of(NAME, methods, METHODS))
    parts = [each for each in every if (family(each[0]), each[1]) in SETTINGS]
    for record in Results(folder).study(NAME, parts, partial(measure, quick=quick), force):
        yield (
            f"{record['task']}, {record['method']}: "
            f"{1000 * record['seconds_per_step']:.3g} ms a step; "
            f"all {record['file_bits']:,} bits (formula {record['formula_bits']:,}), median "
            f"network {record['sparse_file_bits']:,} ({record['sparse_formula_bits'] or 'none'})"
        )


def measure(dataset: str, method: str, quick: bool = False) -> Record:
    """One line: seconds per step of the paper's network, and bits of a default model's files."""
    from experiments.paper.methods import make_estimator
    from experiments.paper.tasks import load_task

    task = load_task(dataset, "default", quick)
    model = make_estimator(method, task, "default", 0, quick)
    model.fit(task.x_train, task.y_train)
    network, n_weights = model.network_, model.network_.n_weights_initial
    n_flow, others = _flow_parameters(model, method), _others(model, method)
    numbers, sparse_numbers = NUMBERS[method]
    measured = step_time if method in SPIKE_AND_SLAB else baseline_step_time
    batch, seconds = measured(dataset, method, quick)
    return {
        "dataset": NAME,
        "task": dataset,
        "method": method,
        "batch_size": batch,
        "seconds_per_step": seconds,
        "weights": n_weights,
        "flow_parameters": n_flow,
        "used_weights": network.n_used_weights,
        "formula_bits": full_bits(n_weights, n_flow + others, numbers),
        "file_bits": _file_bits(model, sparse=False),
        "sparse_formula_bits": sparse_numbers
        and sparse_bits(n_weights, network.n_used_weights, n_flow, sparse_numbers),
        "sparse_file_bits": _file_bits(model, sparse=True),
        **circumstances(),
    }


def step_time(dataset: str, method: str, quick: bool = False) -> tuple[int, float]:
    """Rows of a batch, and seconds of one training step with the paper's settings."""
    from threadpoolctl import threadpool_limits

    from experiments.paper.hand_tuned import make_engine
    from experiments.paper.methods import make_estimator
    from experiments.paper.tasks import load_task
    from islab.learn.engines import Problem
    from islab.learn.loop import make_steps

    task = load_task(dataset, "paper", quick)
    estimator = make_estimator(method, task, "paper", 0)
    stage, posterior = estimator.recipe.network, estimator.posterior
    y, likelihood = _target(task)
    problem = Problem(np.array(task.x_train, dtype=float), y)
    with threadpool_limits(1):
        engine = make_engine(estimator.recipe, posterior, problem, likelihood, 0)
        prior = stage.prior(engine.architecture)
        engine.set_prior(prior, np.ones_like(prior.tau))
        n_steps = QUICK_STEPS if quick else STEPS
        engine.run(make_steps(stage, 0, WARM_UP, problem.n_rows, 0))
        start = time.process_time()
        engine.run(make_steps(stage, WARM_UP, n_steps, problem.n_rows, 0))
        return stage.batch_size, (time.process_time() - start) / n_steps


def baseline_step_time(dataset: str, method: str, quick: bool = False) -> tuple[int, float]:
    """The same of a baseline: what some more epochs take, the rest of a fit left out."""
    from experiments.paper.methods import make_estimator
    from experiments.paper.tasks import load_task

    task, batches = load_task(dataset, "paper", quick), setting(dataset, method).batches
    some, more = (ceil(n / batches) for n in (WARM_UP, WARM_UP + (QUICK_STEPS if quick else STEPS)))
    spent = []
    for epochs in (some, some, more + 1):  # the first time fills caches
        estimator = make_estimator(method, task, "paper", 0, epochs=epochs)
        start = time.process_time()
        estimator.fit(task.x_train, task.y_train)
        spent.append(time.process_time() - start)
    steps = (more + 1 - some) * batches
    return ceil(len(task.y_train) / batches), max(spent[2] - spent[1], 0.0) / steps


def _others(model: Any, method: str) -> int:
    """What baselines have besides weights: two scales of a hidden unit, a dropout of a layer."""
    hidden = model.posterior_.architecture.hidden
    return {"horseshoe": 2 * sum(hidden), "concrete-dropout": len(hidden) + 1}.get(method, 0)


def _target(task: Task) -> tuple[NDArray, str]:
    """Targets (rows, outputs) and their likelihood."""
    if not task.classes:
        return task.y_train[:, None], "gaussian"
    classes, codes = np.unique(task.y_train, return_inverse=True)
    if len(classes) == 2:
        return codes[:, None].astype(float), "bernoulli"
    return np.eye(len(classes))[codes], "categorical"


def _flow_parameters(model: Any, method: str) -> int:
    if not method.endswith("flow"):
        return 0
    from islab.learn.engines.flows import FLOW_WIDTH, N_TRANSFORMS, FlowGroup, tied_layers

    posterior = model.posterior_
    if posterior.multipliers is None:
        return 0
    net = posterior.architecture
    sizes = [net.n_inputs(layer) for layer in tied_layers(net)]
    groups = [FlowGroup((0,), size, "iaf", N_TRANSFORMS, FLOW_WIDTH) for size in sizes]
    return int(sum(group.free().sum() for group in groups))


def _file_bits(model: Any, sparse: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.islab"
        model.save(path, sparse=sparse)
        return BYTE * path.stat().st_size
