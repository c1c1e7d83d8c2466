"""Sampling: chains over structures, weights, slab scales and noise of sparse networks."""

from islab.learn.sample.chains import ChainPrior, Effort, Start, sample_chains
from islab.learn.sample.posterior import SamplingPlan, sample_posterior

__all__ = ["ChainPrior", "Effort", "SamplingPlan", "Start", "sample_chains", "sample_posterior"]
