"""Sampling: chains over structures, weights, slab scales and noise of sparse networks."""

from islab.learn.sample.chains import ChainPrior, Effort, Start, sample_chains

__all__ = ["ChainPrior", "Effort", "Start", "sample_chains"]
