"""Recipes: everything that decides how a model is learned, declared before there are data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from islab.core.posterior import Initial
from islab.core.priors import EmpiricalBayes
from islab.learn.prune import Prune
from islab.learn.shrink import Shrink
from islab.learn.stage import Schedule, Stage

PLENTY_OF_ROWS = 16_000
DEFAULT_SPARSITY = 0.75
SMALLEST_BATCH, LARGEST_BATCH = 64, 512
FEW_COVARIATES, MANY_COVARIATES = 64, 500


@dataclass(frozen=True)
class Recipe:
    """Everything that decides how a model is learned, apart from the data and the seed.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers; empty for a linear model.
    network : Stage
        Trains the network (or the linear model, if there is no hidden layer).
    initial : Initial
        Where the network starts.
    linear : Stage, optional
        Trains a linear model first. The network's output layer starts from it, and it is the
        answer if no network has a higher ELBO.
    linear_initial : Initial
        Where the linear model starts.
    n_restarts : int
        Networks to train; the one with the highest ELBO wins.
    prune : Prune, optional
        Tries the winner with fewer weights.
    refine : Stage, optional
        Trains the used weights of the winner once more, with the structure fixed.
    flow : Stage, optional
        Goes on from the winner with a flow, where the posterior shall have one. Without this
        stage the networks learn with the flow from their first step.
    threshold : float
        Weights with a larger inclusion probability are in the median network that is refined.
    noise : float, optional
        Noise variance while weights are learned, of likelihoods that scale their targets. Where
        the stages do not learn it, the best one given the weights is taken at the end.
    """

    hidden: tuple[int, ...]
    network: Stage
    initial: Initial = field(default_factory=Initial)
    linear: Stage | None = None
    linear_initial: Initial = field(default_factory=Initial)
    n_restarts: int = 1
    prune: Prune | None = None
    refine: Stage | None = None
    flow: Stage | None = None
    activation: str | tuple[str, ...] = "leaky_relu"
    input_skip: bool = True
    threshold: float = 0.5
    noise: float | None = None

    def shortened(self, share: float) -> Recipe:
        """The same with a share of the steps of the linear model and the networks."""
        network = replace(self.network, n_steps=max(1, round(share * self.network.n_steps)))
        if self.linear is None:
            return replace(self, network=network)
        linear = replace(self.linear, n_steps=max(1, round(share * self.linear.n_steps)))
        return replace(self, network=network, linear=linear)

    def n_steps(self, posterior: str = "independent") -> int:
        """Steps of all stages and restarts for a posterior of this kind."""
        networks = self.network.n_steps * (self.n_restarts if self.hidden else 1)
        flow = self.flow if posterior == "flow" else None
        extra = sum(stage.n_steps for stage in (self.linear, self.refine, flow) if stage)
        return networks + extra


def default_recipe(
    n_rows: int,
    n_classes: int = 0,
    n_covariates: int = 1,
    n_outputs: int = 1,
    *,
    hidden: tuple[int, ...] = (20, 20),
    sparsity: float | str = "auto",
) -> Recipe:
    """The recipe for data of this size, the same constants for everything.

    Parameters
    ----------
    n_rows : int
    n_classes : int
        Classes of a categorical target, 0 for other targets.
    n_covariates : int
        The more covariates move a predictor at once, the smaller are the steps.
    n_outputs : int
    hidden : tuple of int
        Widths of the hidden layers; empty for the linear model alone.
    sparsity : "auto" or float
        From 0, the most accurate network, to 1, the one that is easiest to read. It moves the
        prior on the inclusion probabilities, the weight of the KL (below 0.5) and what
        fit a weight less may cost (above 0.5); beyond the default linear models are pruned too.
    """
    level = DEFAULT_SPARSITY if sparsity == "auto" else float(sparsity)
    if not 0 <= level <= 1:
        raise ValueError(f"Got sparsity={sparsity!r}, expected 'auto' or a number from 0 to 1.")
    learn_priors = EmpiricalBayes(psi_shape=(1.0, 100.0**level))
    kl_weight = min(1.0, 0.75 + level / 2)
    effort = max(1.0, np.sqrt(n_rows / PLENTY_OF_ROWS))
    step = min(1.0, np.sqrt(FEW_COVARIATES / n_covariates))
    # All weights of a linear model start in use, and thousands of them add up to noise in which
    # nothing can be learned: of very many columns only some are expected to be needed.
    thin = min(1.0, MANY_COVARIATES / n_covariates)
    # Where many weights could do the same, the KL must not choose before the data have.
    late = n_classes > 2 or (n_outputs > 1 and n_covariates > FEW_COVARIATES)
    batch = min(n_rows, max(SMALLEST_BATCH, min(round(LARGEST_BATCH * effort), n_rows // 4)))
    linear = Stage(
        n_steps=round(2000 * effort),
        batch_size=batch,
        rate=0.1 * step,
        lambda_rate=0.05,
        kl_ramp=0.5 if late else 0.0,
        kl_weight=kl_weight,
        psi=0.5 * thin,
        empirical_bayes=learn_priors,
        shrink=None,
    )
    flow = Stage(
        n_steps=round(500 * effort),
        batch_size=batch,
        rate=0.001 * step,
        lambda_rate=0.001,
        kl_ramp=0.0,
        kl_weight=kl_weight,
        empirical_bayes=replace(learn_priors, tau_from=0.0, psi_from=0.0),
        shrink=Shrink(start=0.0),
    )
    prune = None
    if level > 0.5:
        trial = replace(flow, n_steps=round(600 * effort), rate=0.02 * step, lambda_rate=0.02)
        tolerance = 8 * (level - 0.5)
        prune = Prune(trial, tolerance=tolerance, linear=level > DEFAULT_SPARSITY)
    start = Initial(covariate_inclusion=(2.0, 2.0), means="he", output_scale=(0.1, 0.3))
    linear_start = start
    if thin < 1:
        inclusion = 2.0 + float(np.log(thin))
        linear_start = replace(
            start,
            covariate_inclusion=(inclusion, inclusion),
            sigma=start.sigma * float(np.sqrt(thin)),
        )
    if not hidden:
        return Recipe(hidden=(), network=linear, initial=linear_start, prune=prune, flow=flow)
    return Recipe(
        hidden=hidden,
        network=Stage(
            n_steps=round(6000 * effort),
            batch_size=batch,
            linear_ends=True,
            rate=0.05 * step,
            kl_weight=kl_weight,
            psi=0.4 * 0.25**level,
            empirical_bayes=learn_priors,
        ),
        initial=start,
        linear=linear,
        linear_initial=linear_start,
        n_restarts=3,
        prune=prune,
        flow=flow,
    )


def paper_recipe(
    *,
    hidden: tuple[int, ...],
    n_steps: int,
    batch_size: int,
    rate: float,
    tau: float,
    psi: float,
    covariate_inclusion: tuple[float, float],
    hidden_inclusion: tuple[float, float] = (0.0, 0.0),
    **stage: object,
) -> Recipe:
    """The paper's way: one stage, fixed priors, uniform means, rate halved at 50, 70 and 90 %.

    Biases have the slab for their prior, and Adam its usual memory.
    """
    settings: dict = {
        "lambda_rate": rate,
        "betas": (0.9, 0.999),
        "bias_tau": tau,
        "schedule": Schedule("step", milestones=(0.5, 0.7, 0.9), drop=0.5),
        "kl_ramp": 0.0,
        "empirical_bayes": None,
        "scale_mu_step": False,
        **stage,
    }
    network = Stage(n_steps=n_steps, batch_size=batch_size, rate=rate, tau=tau, psi=psi, **settings)
    initial = Initial(
        covariate_inclusion=covariate_inclusion,
        hidden_inclusion=hidden_inclusion,
        means=(-1.2, 1.2),
        output_scale=(1.0, 1.0),
        sigma=float(np.log1p(np.exp(-9.0))),
    )
    return Recipe(
        hidden=hidden, network=network, initial=initial, activation="sigmoid", n_restarts=1
    )
