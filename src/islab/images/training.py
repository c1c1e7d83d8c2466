"""Training of convolutional networks in the loop of all networks."""

from __future__ import annotations

from islab.images.data import ArraySource, Source
from islab.learn.engines.base import Engine
from islab.learn.history import History
from islab.learn.loop import Report, TrainingError, run_stage
from islab.learn.stage import Stage
from islab.learn.variational import SpikeAndSlab


def train_images(
    engine: Engine, stage: Stage, source: Source, *, seed: int, report: Report | None = None
) -> History:
    """Carries out a stage on an engine that holds the starting posterior and the images."""
    progress = run_stage(
        SpikeAndSlab(engine, stage),
        stage,
        n_rows=source.n_rows,
        seed=seed,
        shuffle=isinstance(source, ArraySource),
        report=report,
    )
    if not len(progress.history):
        raise TrainingError(
            "Training ended before anything was learned; try more epochs or a smaller learning "
            "rate."
        )
    return progress.history
