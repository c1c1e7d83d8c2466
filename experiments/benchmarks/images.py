"""Times MNIST epochs of the convolutional network against deterministic torch networks.

The plain networks have the same convolutions and the same input-skip head, learned by Adam; one
has torch's default order of memory, the other channels last. All read the same 60,000 x 28 x 28
random bytes in batches of 128 and take turns within one run, 50 batches at a time, after which
the Bayesian ones learn their priors. The median of the rounds, in seconds of CPU on one thread, is
scaled to the 469 batches of an epoch. ``python -m experiments.benchmarks.images [--quick]`` prints
a table and stores ``results/images.json``.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experiments.benchmarks.steps import RESULTS
from islab.core.convolution.geometry import ImageArchitecture
from islab.learn.engines.torch.convolution import ConvolutionEngine
from islab.learn.images import image_stage, starting_posterior
from islab.learn.loop import epoch_order, run_stage
from islab.learn.variational import SpikeAndSlab
from islab.tables.images import ArraySource, make_source

ROWS, CLASSES, BATCH, STEPS = 60_000, 10, 128, 50
WANTED = 2.5


class PlainNetwork(nn.Module):
    """Two convolutions and an input-skip head with one hidden layer."""

    def __init__(self, channels: tuple[int, int] = (32, 64), hidden: int = 32) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels[0], 3, stride=2, padding=1)
        self.second = nn.Conv2d(channels[0], channels[1], 3, stride=2, padding=1)
        n_features = channels[1] * 7 * 7
        self.hidden = nn.Linear(n_features, hidden)
        self.output = nn.Linear(n_features + hidden, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        features = F.relu(self.second(F.relu(self.first(images)))).flatten(1)
        return self.output(torch.cat([F.relu(self.hidden(features)), features], dim=1))


def plain_runner(source: ArraySource, channels_last: bool) -> Callable[[], None]:
    """A function that takes a round of steps with a plain network."""
    torch.manual_seed(0)
    network = PlainNetwork()
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
    adam = torch.optim.Adam(network.parameters(), lr=0.001, fused=True)
    order = epoch_order(0, 0, source.n_rows)

    def run() -> None:
        for number, rows in enumerate(np.split(order[: STEPS * BATCH], STEPS)):
            images, codes = source.batch(number, rows)
            # Channels come last in these batches, which a copy turns into torch's default.
            batch = torch.from_numpy(images).permute(0, 3, 1, 2)
            batch = batch if channels_last else batch.clone(memory_format=torch.contiguous_format)
            adam.zero_grad()
            F.cross_entropy(network(batch), torch.from_numpy(codes)).backward()
            adam.step()

    return run


def bayesian_runner(source: ArraySource, posterior: str) -> Callable[[], None]:
    """The same with the convolutional engine and its training loop."""
    net = ImageArchitecture.build(
        source.image_shape, (32, 64), 3, 2, hidden=(32,), n_outputs=CLASSES
    )
    stage = image_stage(STEPS, BATCH, rate=0.05)
    start = starting_posterior(net, source.counts(), seed=0)
    flow = posterior == "flow"
    engine = ConvolutionEngine(start, source, seed=0, flow=flow, betas=stage.betas)

    def run() -> None:
        run_stage(SpikeAndSlab(engine, stage), stage, n_rows=source.n_rows, seed=0)

    return run


def seconds_per_epoch(
    runners: dict[str, Callable[[], None]], n_batches: int, rounds: int
) -> dict[str, float]:
    """Median seconds of CPU, the runners taking turns."""
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, run in runners.items():
            start = time.process_time()
            run()
            times[name].append((time.process_time() - start) / STEPS * n_batches)
    return {name: float(np.median(values)) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(ROWS, 28, 28), dtype=np.uint8)
    source = make_source(images, rng.integers(CLASSES, size=ROWS), BATCH)
    assert isinstance(source, ArraySource)
    runners = {
        "plain": plain_runner(source, channels_last=False),
        "plain, channels last": plain_runner(source, channels_last=True),
        "independent": bayesian_runner(source, "independent"),
        "flow": bayesian_runner(source, "flow"),
    }
    seconds = seconds_per_epoch(runners, source.n_batches, rounds=2 if arguments.quick else 5)
    results: dict = {"seconds_per_epoch": {}, "ratio_to_plain": {}}
    for name, value in seconds.items():
        results["seconds_per_epoch"][name] = round(value, 2)
        results["ratio_to_plain"][name] = round(value / seconds["plain"], 3)
        wanted = f" (wanted: at most {WANTED})" if name == "independent" else ""
        print(
            f"{name:21s} {value:7.1f} s an epoch, {value / seconds['plain']:5.2f}x plain{wanted}",
            flush=True,
        )
    results["machine"] = {"cpu": platform.machine(), "python": platform.python_version()}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "images.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
