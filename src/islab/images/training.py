"""The training loop of convolutional networks: batches come from outside, epoch after epoch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from islab.core.convolution.paths import active_image_weights
from islab.core.convolution.posterior import ImagePosterior
from islab.core.equations import sigmoid
from islab.core.priors import EmpiricalBayes, Prior
from islab.images.data import Source
from islab.learn.history import History
from islab.learn.loop import MOST_FAILURES, STEPS_AT_ONCE, TrainingError
from islab.learn.stage import Stage

if TYPE_CHECKING:
    from torch import Tensor

    from islab.learn.engines.base import State
    from islab.learn.engines.torch.convolution import ConvolutionEngine

logger = logging.getLogger(__name__)

Augment = Callable[["Tensor"], "Tensor"]


@dataclass(frozen=True)
class TrainedImages:
    """The end of training."""

    posterior: ImagePosterior
    elbo: float
    history: History


@dataclass
class _Progress:
    """Where training stands between two looks at it."""

    priors: list[Prior]
    step: int = 0
    slow_down: float = 1.0
    failures: int = 0
    nll: float = 0.0
    n_seen: int = 0
    good: list[State] = field(default_factory=list)
    history: History = field(default_factory=History)


def train_images(
    engine: ConvolutionEngine,
    stage: Stage,
    source: Source,
    *,
    seed: int,
    augment: Augment | None = None,
    report: Callable[[int, dict[str, float]], None] | None = None,
) -> TrainedImages:
    """Takes the steps of a stage, batch by batch.

    Parameters
    ----------
    engine : ConvolutionEngine
        Holds the starting posterior.
    stage : Stage
        Its steps, rates, ramp and priors; units are not dropped.
    source : ArraySource or StreamSource
    seed : int
        Decides the order of rows.
    augment : callable, optional
        Changes each batch (rows, channels, height, width) before it is learned from.
    report : callable, optional
        Called now and then with the steps taken and the latest record.
    """
    shapes = [part.architecture for part in engine.engines]
    priors = [stage.prior(shape) for shape in shapes]
    progress = _Progress(priors)
    engine.set_priors(priors, stage.scale_mu_step)
    progress.good = engine.state()
    try:
        for epoch in range(-(-stage.n_steps // source.n_batches)):
            for images, codes in source.batches(seed, epoch):
                if progress.step < stage.n_steps:
                    _step(engine, stage, progress, images, codes, source, augment)
                done = progress.step >= stage.n_steps
                if progress.n_seen and (progress.step % STEPS_AT_ONCE == 0 or done):
                    _look(engine, stage, progress, source.n_rows, report)
        if progress.n_seen:  # a stream may bring fewer batches than the first time
            _look(engine, stage, progress, source.n_rows, report)
    except KeyboardInterrupt:
        engine.restore(progress.good)
        warnings.warn(
            "Training was interrupted; what was learned so far is kept.", UserWarning, stacklevel=2
        )
    if not len(progress.history):
        raise TrainingError(
            "Training ended before anything was learned; try more epochs or a smaller learning "
            "rate."
        )
    elbo = progress.history.column("elbo")
    # The last records each come from a few batches; together they are less noisy.
    recent = elbo[-max(1, source.n_batches // STEPS_AT_ONCE) :]
    return TrainedImages(engine.posterior(), float(np.mean(recent)), progress.history)


def _step(
    engine: ConvolutionEngine,
    stage: Stage,
    progress: _Progress,
    images: Any,
    codes: Any,
    source: Source,
    augment: Augment | None,
) -> None:
    import torch

    batch = torch.from_numpy(images).permute(0, 3, 1, 2).to(engine.device, engine.dtype)
    if augment is not None:
        batch = _augmented(augment, batch)
    n_classes = len(source.classes)
    labels = torch.from_numpy(codes).to(engine.device)
    if n_classes == 2:
        y = labels[:, None].to(engine.dtype)
    else:
        y = torch.nn.functional.one_hot(labels, n_classes).to(engine.dtype)
    share = progress.step / stage.n_steps
    factor = float(stage.schedule(share)) * progress.slow_down
    ramp = min(1.0, share / stage.kl_ramp) if stage.kl_ramp else 1.0
    kl_weight = stage.kl_weight * ramp * len(codes) / source.n_rows
    nll = engine.step(batch, y, stage.rate * factor, stage.lambda_rate * factor, kl_weight)
    progress.nll += float(nll)
    progress.n_seen += len(codes)
    progress.step += 1


def _augmented(augment: Augment, batch: Tensor) -> Tensor:
    changed = augment(batch)
    if getattr(changed, "shape", None) != batch.shape:
        raise ValueError(
            f"Got {getattr(changed, 'shape', type(changed).__name__)} from augment for a batch of "
            f"shape {tuple(batch.shape)}, expected a tensor of the same shape."
        )
    return changed.to(batch)


def _look(
    engine: ConvolutionEngine,
    stage: Stage,
    progress: _Progress,
    n_rows: int,
    report: Callable[[int, dict[str, float]], None] | None,
) -> None:
    """New priors and a record, or back to the last good state if numbers are not finite."""
    nll, kl = progress.nll / progress.n_seen * n_rows, engine.kl()
    progress.nll, progress.n_seen = 0.0, 0
    if not (np.isfinite(nll) and np.isfinite(kl)):
        _back_out(engine, stage, progress)
        return
    progress.failures = 0
    share = progress.step / stage.n_steps
    if stage.empirical_bayes is not None:
        progress.priors = _learned(engine, stage.empirical_bayes, progress.priors, share)
        engine.set_priors(progress.priors, stage.scale_mu_step)
    progress.good = engine.state()
    kept = [np.asarray(sigmoid(part.lam)) > 0.5 for part in engine.parameters()]
    n_kept = sum(int(part.sum()) for part in kept)
    n_used = sum(int(part.sum()) for part in active_image_weights(engine.architecture, kept))
    steps = progress.step - (progress.history.column("step")[-1] if len(progress.history) else 0)
    progress.history.add(
        step=progress.step,
        elbo=-(nll + kl),
        nll=nll,
        kl=kl,
        density=n_kept / engine.architecture.n_weights,
        used_weights=n_used,
        hidden_units=sum(engine.architecture.head.hidden),
        noise=1.0,
        rate=stage.rate * float(stage.schedule(share)) * progress.slow_down,
    )
    if report is not None:
        report(int(steps), {"elbo": -(nll + kl), "used_weights": n_used})


def _learned(
    engine: ConvolutionEngine, learn: EmpiricalBayes, priors: list[Prior], share: float
) -> list[Prior]:
    """The priors that the present posterior suggests, for each part."""
    found = []
    for part, prior, now in zip(engine.engines, priors, engine.parameters(), strict=True):
        net = part.architecture
        sizes = np.array([block.size for block in net.blocks])
        found.append(learn.update(prior, net, now.mu, now.rho, now.lam, sizes, share))
    return found


def _back_out(engine: ConvolutionEngine, stage: Stage, progress: _Progress) -> None:
    progress.failures += 1
    progress.slow_down /= 2
    if progress.failures > MOST_FAILURES:
        raise TrainingError(
            f"The loss was not finite {progress.failures} times in a row, the last time at a "
            f"learning rate of {stage.rate * progress.slow_down * 2:.2g}; look for extreme pixels, "
            "or try a smaller learning rate."
        )
    engine.restore(progress.good)
    engine.set_priors(progress.priors, stage.scale_mu_step)
    logger.warning(
        "non-finite loss before step %d: went back and halved the learning rate", progress.step
    )
