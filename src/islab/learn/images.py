"""From images to posteriors: one stage of training on the convolutional engine for each start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.convolution.geometry import ImageArchitecture
from islab.core.convolution.posterior import ImagePosterior
from islab.core.posterior import Initial
from islab.core.priors import EmpiricalBayes
from islab.learn.checkpoint import Checkpoint, close, own_folder
from islab.learn.engines.base import ImageSource
from islab.learn.history import History, ProgressBar
from islab.learn.loop import STEPS_AT_ONCE, Progress, TrainingError, run_stage
from islab.learn.stage import Schedule, Stage
from islab.learn.variational import SpikeAndSlab


@dataclass(frozen=True)
class ImageFit:
    """What training made of the images; see :class:`~islab.learn.fit.Fit`."""

    posterior: ImagePosterior
    elbo: float
    history: History
    interrupted: bool
    error: float | None = None


def image_stage(n_steps: int, batch_size: int, rate: float) -> Stage:
    """How convolutional networks are trained."""
    return Stage(
        n_steps=n_steps,
        batch_size=batch_size,
        rate=rate,
        lambda_rate=rate,
        schedule=Schedule("cosine", warm_up=0.02),
        kl_ramp=0.5,
        psi=0.2,
        empirical_bayes=EmpiricalBayes(),
        shrink=None,
    )


def shared_seed(seed: int, device: str) -> int:
    """The seed of the first of the processes that share the batches: all start alike."""
    from islab.learn.engines.torch.distributed import Team

    return Team.present(device).same(seed)


def starting_posterior(
    net: ImageArchitecture,
    counts: NDArray[np.intp],
    seed: int,
    initial: Initial | None = None,
    kernels: Initial | None = None,
) -> ImagePosterior:
    """Where training starts: the constant model's predictor, from the rows of each class.

    Kernels have a start of their own if one is given.
    """
    likelihood = families.likelihood_of_classes(len(counts))
    rng = np.random.default_rng(seed)
    start = ImagePosterior.initialise(net, rng, initial or Initial(), likelihood.name, kernels)
    share = np.log(counts)
    start.head.bias_mu[net.head.units[-1]] = (
        share - share.mean() if likelihood.one_hot else share[1] - share[0]
    )
    return start


def fit_images(
    starts: Sequence[ImagePosterior],
    source: ImageSource,
    stage: Stage,
    *,
    seeds: Sequence[int],
    flow: bool = False,
    flow_width: int | None = None,
    augment: Callable[[Any], Any] | None = None,
    device: str = "cpu",
    verbose: bool = False,
    checkpoint: str | Path | None = None,
    keep_interrupted: bool = False,
) -> list[ImageFit]:
    """Learns a posterior from images for each start, one after the other.

    Parameters
    ----------
    starts : sequence of ImagePosterior
    source : ImageSource
    stage : Stage
    seeds : sequence of int
        One for each start. Same seed, same result.
    flow : bool
        Whether normalizing flows tie the weights together.
    flow_width : int, optional
        Hidden units of the networks inside the flows.
    augment : callable, optional
        Changes each batch before it is learned from.
    device : str
        A device of torch.
    verbose, checkpoint, keep_interrupted : optional
        See :func:`islab.learn.fit.fit`. What an interrupted start has come to is left out if an
        earlier one has ended.
    """
    from islab.learn.engines.torch.convolution import FLOW_WIDTH, ConvolutionEngine
    from islab.learn.engines.torch.distributed import Team

    team = Team.present(device)
    if team.size > 1 and checkpoint is not None:
        raise ValueError(
            f"Got a checkpoint with {team.size} processes, expected one process; try without "
            "torchrun, or checkpoint=None."
        )
    owner, folder = "", None
    if checkpoint is not None:
        net = starts[0].architecture
        settings = (net, stage, tuple(seeds), flow, flow_width, device, augment is None)
        owner = _owner(source, settings)
        folder = own_folder(checkpoint, owner)
    fits: list[ImageFit] = []
    n_steps = stage.n_steps * len(starts)
    with ProgressBar(n_steps, enabled=verbose and team.rank == 0) as bar:
        for number, (start, seed) in enumerate(zip(starts, seeds, strict=True)):
            engine = ConvolutionEngine(
                start,
                source,
                seed=seed,
                augment=augment,
                flow=flow,
                device=device,
                betas=stage.betas,
                flow_width=flow_width or FLOW_WIDTH,
                team=team,
            )
            name = f"images-{number}.npz" if number else "images.npz"
            progress = run_stage(
                SpikeAndSlab(engine, stage),
                stage,
                n_rows=source.n_rows,
                seed=seed,
                shuffle=source.shuffled,
                checkpoint=None if folder is None else Checkpoint(folder / name, owner),
                report=bar.report,
                keep_interrupted=keep_interrupted,
            )
            if progress.interrupted and fits:
                fits[0] = replace(fits[0], interrupted=True)
                break
            fits.append(_fit_of(engine, progress, source))
            if progress.interrupted:
                break
    close(folder, fits[0].interrupted)
    return fits


def _fit_of(engine: Any, progress: Progress, source: ImageSource) -> ImageFit:
    if not len(progress.history):
        if progress.interrupted:
            raise KeyboardInterrupt
        raise TrainingError(
            "Training ended before anything was learned; try more epochs or a smaller learning "
            "rate."
        )
    # The last records each come from a few batches; together they are less noisy.
    recent = progress.history.column("elbo")[-max(1, source.n_batches // STEPS_AT_ONCE) :]
    error = float(recent.std(ddof=1) / np.sqrt(len(recent))) if len(recent) > 1 else None
    return ImageFit(
        engine.posterior(), float(recent.mean()), progress.history, progress.interrupted, error
    )


def _owner(source: ImageSource, settings: tuple[Any, ...]) -> str:
    """What stands for the images and the settings of a fit."""
    owner = sha256(repr(settings).encode())
    for part in source.content():
        owner.update(part)
    return owner.hexdigest()
