"""Posteriors of methods that decide for each weight whether it stays."""

from __future__ import annotations

import numpy as np

from islab.core.architecture import Architecture
from islab.core.arrays import Float, Mask
from islab.core.equations import inverse_softplus
from islab.core.paths import active_weights, fed_units
from islab.core.posterior import Posterior
from islab.learn.engines.base import LARGEST_LAMBDA, Parameters
from islab.learn.shrink import sent_constants

NO_SPREAD = -1000.0  # the rho of a sigma of 0


def rho_of(sigma: Float) -> Float:
    """The ``rho`` of standard deviations that may be 0."""
    positive = sigma > 0
    return np.where(positive, inverse_softplus(np.where(positive, sigma, 1.0)), NO_SPREAD)


def lambda_of(kept: Mask) -> Float:
    """The ``lambda`` of weights that are certainly in or out."""
    return np.where(kept, LARGEST_LAMBDA, -LARGEST_LAMBDA)


def with_structure(
    architecture: Architecture,
    likelihood: str,
    noise: Float,
    *,
    mu: Float,
    sigma: Float,
    bias_mu: Float,
    bias_sigma: Float,
    kept: Mask,
) -> Posterior:
    """A posterior whose kept weights on active paths are certainly in and all others out.

    What units without any covariate send on is folded into the biases above them.
    """
    rho, bias_rho = rho_of(sigma), rho_of(bias_sigma)
    mu = np.where(kept, mu, 0.0)
    now = Parameters(mu, rho, lambda_of(kept), bias_mu, bias_rho, noise)
    constants = sent_constants(architecture, now, ~fed_units(architecture, kept))
    active = active_weights(architecture, kept)
    return Posterior(
        architecture=architecture,
        mu=np.where(active, mu, 0.0),
        rho=rho,
        lam=lambda_of(active),
        bias_mu=bias_mu + constants,
        bias_rho=bias_rho,
        likelihood=likelihood,
        noise=noise,
    )
