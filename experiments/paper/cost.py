"""What a step costs and what a model takes to keep: measured, and by the paper's formulas."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper.cells import Results, circumstances
from experiments.paper.settings import SPIKE_AND_SLAB, methods_of
from experiments.paper.tasks import Task
from islab.evaluate.runner import Record

NAME = "cost"
DATASETS = ("linear-0.0", "wbc", "abalone", "mice")
METHODS = SPIKE_AND_SLAB
WARM_UP, STEPS, QUICK_STEPS = 3, 40, 2
BITS = 64
BYTE = 8


def full_bits(n_weights: int, n_flow: int = 0) -> int:
    """Bits for all parameters of a spike-and-slab network: three numbers for each weight.

    The paper's ``64 (3 (p + q) + f)``, with ``f`` parameters of flows; biases are not counted.
    """
    return BITS * (3 * n_weights + n_flow)


def sparse_bits(n_weights: int, n_used: int, n_flow: int = 0) -> int:
    """Bits for the median network: two numbers for each used weight, one bit for each place.

    The paper's ``a 2 (p + q) + 65 ((1 - a) 2 (p + q) + f)``, where ``a`` must be the share of
    pruned weights for the formula to say what the paper's text says.
    """
    return 2 * (n_weights - n_used) + (BITS + 1) * (2 * n_used + n_flow)


def study(
    folder: Path,
    *,
    methods: Sequence[str] = METHODS,
    quick: bool = False,
    force: bool = False,
) -> Iterator[str]:
    """Steps of the paper's networks and files of default models, by the spike-and-slab methods."""
    parts = product(DATASETS, methods_of(NAME, methods, METHODS))
    for record in Results(folder).study(NAME, parts, partial(measure, quick=quick), force):
        yield (
            f"{record['task']}, {record['method']}: "
            f"{1000 * record['seconds_per_step']:.3g} ms a step; "
            f"all {record['file_bits']:,} bits (formula {record['formula_bits']:,}), median "
            f"network {record['sparse_file_bits']:,} ({record['sparse_formula_bits']:,})"
        )


def measure(dataset: str, method: str, quick: bool = False) -> Record:
    """One line: seconds per step of the paper's network, and bits of a default model's files."""
    from experiments.paper.methods import make_estimator
    from experiments.paper.tasks import load_task

    task = load_task(dataset, "default", quick)
    model = make_estimator(method, task, "default", 0, quick)
    model.fit(task.x_train, task.y_train)
    network = model.network_
    n_weights, n_flow = network.n_weights_initial, _flow_parameters(model, method)
    batch, seconds = step_time(dataset, method, quick)
    return {
        "dataset": NAME,
        "task": dataset,
        "method": method,
        "batch_size": batch,
        "seconds_per_step": seconds,
        "weights": n_weights,
        "flow_parameters": n_flow,
        "used_weights": network.n_used_weights,
        "formula_bits": full_bits(n_weights, n_flow),
        "file_bits": _file_bits(model, sparse=False),
        "sparse_formula_bits": sparse_bits(n_weights, network.n_used_weights, n_flow),
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
