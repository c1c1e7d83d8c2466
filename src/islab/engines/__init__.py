"""The seam between the training loop and what computes: one protocol, several engines."""

from islab.engines.base import Engine, Parameters, Problem, Steps

__all__ = ["Engine", "Parameters", "Problem", "Steps"]
