"""What the training loop asks of an engine. The loop sees numpy arrays only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from islab.core import families
from islab.core.architecture import Architecture, Blocks, Kept
from islab.core.arrays import Float
from islab.core.constraints import Limits
from islab.core.families import Likelihood
from islab.core.paths import active_weights
from islab.core.posterior import Posterior
from islab.core.priors import Prior

State = dict[str, NDArray]

ADAM_BETAS = (0.9, 0.99)
ADAM_EPS = 1e-8
LARGEST_RHO = 12.0
LARGEST_LAMBDA = 31.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Data to learn from.

    Attributes
    ----------
    x : (rows, covariates)
    y : (rows, outputs)
        As the likelihood wants them: one-hot for several classes, levels for ordered ones.
    sample_weight : (rows,), optional
        Factor on each row's log likelihood.
    offset : (rows, outputs), optional
        Added to the linear predictor.
    limits : Limits, optional
        What networks may do with the covariates.
    groups : (covariates,) int, optional
        The variable that each covariate belongs to; each is one of its own if not given.
    whole : Rows, optional
        All rows, where those in ``x`` are a sample of them: see :mod:`islab.learn.scale`. They
        have all covariates, and each target once.
    """

    x: Float
    y: Float
    sample_weight: Float | None = None
    offset: Float | None = None
    limits: Limits | None = None
    groups: NDArray[np.intp] | None = None
    whole: Any = None

    def __post_init__(self) -> None:
        for name, array in (("x", self.x), ("y", self.y)):
            if array.ndim != 2:
                raise ValueError(f"Got {name} of shape {array.shape}, expected two dimensions.")
            if not np.isfinite(array).all():
                raise ValueError(
                    f"Got missing or infinite values in {name}; remove or impute them."
                )
        if len(self.x) != len(self.y):
            raise ValueError(f"Got {len(self.x)} rows of x and {len(self.y)} of y.")
        if self.offset is not None and (
            self.offset.shape != self.y.shape or not np.isfinite(self.offset).all()
        ):
            raise ValueError(
                f"Got an offset of shape {self.offset.shape}, expected finite numbers of the shape "
                f"of y, {self.y.shape}."
            )
        if len(self.x) == 0:
            raise ValueError("Got no rows to learn from.")

    @property
    def n_rows(self) -> int:
        return len(self.x)

    def of_covariates(self, columns: NDArray[np.bool_]) -> Problem:
        """The same with some of the covariates."""
        if columns.all():
            return self
        limits = None if self.limits is None else self.limits.take(columns)
        groups = None if self.groups is None else self.groups[columns]
        return replace(self, x=self.x[:, columns], limits=limits, groups=groups)

    def with_predictors(self, likelihood: Likelihood) -> Problem:
        """The same with the targets as often as the likelihood has predictors of each.

        An offset is one of the first predictor.
        """
        if likelihood.n_predictors == 1:
            return self
        offset = self.offset
        if offset is not None:
            others = np.zeros((len(offset), offset.shape[1] * (likelihood.n_predictors - 1)))
            offset = np.hstack([offset, others])
        return replace(self, y=np.tile(self.y, likelihood.n_predictors), offset=offset)

    @property
    def row_weights(self) -> Float:
        """How much each row counts, (rows,)."""
        return np.ones(self.n_rows) if self.sample_weight is None else self.sample_weight

    def initial_bias(self, likelihood: Likelihood) -> Float:
        """Predictor of the constant model that fits best, beside the offset if there is one.

        An offset makes targets of its own, which a constant model fits with a bias that is taken
        off: exact with a log link, else a start that is good enough.
        """
        if self.offset is not None and likelihood.scales_target:
            return likelihood.initial_bias(self.y - self.offset)
        bias = likelihood.initial_bias(self.y)
        if self.offset is None:
            return bias
        return bias - likelihood.initial_bias(likelihood.mean(self.offset))


@dataclass(frozen=True, eq=False)
class Steps:
    """A run of optimisation steps that needs no decision in between.

    Attributes
    ----------
    rows : (sum of sizes,) int
        Row numbers of the batches, one after the other; none for batches that are not chosen
        by the loop.
    sizes : (steps,) int
        Rows in each batch; the last of an epoch may be shorter.
    rate, lambda_rate : (steps,)
        Adam's rate for means, spreads and biases, and for lambda.
    kl_weight : (steps,)
        Factor on the KL, 1 after warm-up. The loss of a batch is
        ``sum NLL + kl_weight * (batch rows / all rows) * KL``.
    first : int
        Number of the first step.
    """

    rows: NDArray[np.intp]
    sizes: NDArray[np.intp]
    rate: Float
    lambda_rate: Float
    kl_weight: Float
    first: int = 0

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True, eq=False)
class Parameters:
    """The engine's current parameters; read, do not write."""

    mu: Float  # (weights,)
    rho: Float  # (weights,)
    lam: Float  # (weights,)
    bias_mu: Float  # (units,)
    bias_rho: Float  # (units,)
    noise: Float  # (numbers,)
    bias_lam: Float | None = None  # (units,), where biases are selected


class ImageSource(Protocol):
    """Where batches of images come from.

    ``n_rows`` and ``n_batches`` are those of one epoch; ``shuffled`` says whether the loop chooses
    the rows of a batch.
    """

    @property
    def n_rows(self) -> int: ...
    @property
    def n_batches(self) -> int: ...
    @property
    def shuffled(self) -> bool: ...
    def content(self) -> Iterator[bytes]:
        """What tells these images from others, for checkpoints."""

    def batch(self, number: int, rows: NDArray[np.intp]) -> tuple[Float, NDArray[np.intp]]:
        """Images (rows, height, width, channels) and the positions of their classes.

        ``number`` is that of the step, ``rows`` those that the loop has chosen for it, if any.
        """

    def some(self, n_rows: int) -> tuple[Float, NDArray[np.intp]]:
        """So many of the images, or all if there are fewer, and the positions of their classes."""


class Engine(Protocol):
    """Holds a spike-and-slab posterior and its optimiser, and improves it."""

    @property
    def architecture(self) -> Blocks: ...

    def set_prior(self, prior: Prior, mu_step: Float) -> None:
        """Priors by block, and the factor by block on Adam's step for the means."""

    def run(self, steps: Steps) -> float:
        """Takes the steps; returns the mean NLL of their rows, non-finite if one failed."""

    def parameters(self) -> Parameters: ...

    def n_used_weights(self, kept: NDArray[np.bool_]) -> int:
        """How many of the kept weights (weights,) lie on an active path."""

    def kl(self) -> float:
        """KL of the present parameters from the prior."""

    def state(self) -> State:
        """Everything that the next step depends on."""

    def restore(self, state: State) -> None:
        """Goes back to a state; the prior must be set again before the next step."""


class DenseEngine(Engine, Protocol):
    """An engine for tables, whose network may lose hidden units while it learns."""

    parallel: ClassVar[str]
    """How several fits share the machine: "threads" or "processes"."""

    @property
    def architecture(self) -> Architecture: ...

    def posterior(self) -> Posterior:
        """A copy of what has been learned."""

    def expected_nll(self, passes: int, seed: int) -> float:
        """NLL of all rows, averaged over passes with fresh random numbers."""

    def kl_draws(self, draws: int) -> Float:
        """Unbiased estimates of the KL; a single one where it is known exactly."""

    def keep_units(self, masks: list[NDArray[np.bool_]], bias_shift: Float) -> None:
        """Drops hidden units with their optimiser state, after adding to all units' biases.

        The prior must be set again before the next step.
        """


class DenseParameters:
    """What both engines for tables do alike: all parameters lie in one vector.

    Parameters
    ----------
    posterior : Posterior
        Where to start; copied.
    problem : Problem
    seed : int
    noise_rate : float
        Share by which Gaussian noise variances move to their optimum at each step; 0 fixes them.
    betas : (float, float)
        How long Adam remembers gradients and their squares.
    """

    architecture: Architecture

    def __init__(self, posterior: Posterior, problem: Problem, noise_rate: float) -> None:
        self.likelihood = families.likelihood(posterior.likelihood)
        self.noise_rate = noise_rate if self.likelihood.learns_noise else 0.0
        self.n_rows, self.n_weights_initial = problem.n_rows, posterior.n_weights_initial
        self.selects_biases = posterior.bias_lam is not None

    def parameters(self) -> Parameters:
        raise NotImplementedError

    def kl(self) -> float:
        raise NotImplementedError

    def kl_draws(self, draws: int) -> Float:
        return np.array([self.kl()])

    def posterior(self) -> Posterior:
        now = self.parameters()
        return Posterior(
            architecture=self.architecture,
            likelihood=self.likelihood.name,
            n_weights_initial=self.n_weights_initial,
            **{
                each.name: value.astype(float)
                for each in fields(now)
                if (value := getattr(now, each.name)) is not None
            },
        )

    def n_used_weights(self, kept: NDArray[np.bool_]) -> int:
        return int(active_weights(self.architecture, kept).sum())

    def _sizes(self) -> list[int]:
        """How many numbers mu, rho, lam, bias_mu, bias_rho and, if there is one, bias_lam have."""
        net = self.architecture
        return [net.n_weights] * 3 + [net.n_units] * (2 + self.selects_biases)

    def _places(self, kept: Kept) -> NDArray[np.intp]:
        """Where the parameters that stay lie in the vector."""
        starts = np.cumsum([0, *self._sizes()[:-1]])
        index = [kept.weights] * 3 + [kept.units] * (2 + self.selects_biases)
        return np.concatenate([start + own for start, own in zip(starts, index, strict=True)])


def flat_parameters(posterior: Posterior) -> Float:
    """The vector of a posterior's parameters, a flow's mean multipliers in its means."""
    means = posterior.mu * posterior.mean_multiplier()
    parts = [means, posterior.rho, posterior.lam, posterior.bias_mu, posterior.bias_rho]
    if posterior.bias_lam is not None:
        parts.append(posterior.bias_lam)
    return np.concatenate(parts)
