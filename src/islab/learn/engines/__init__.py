"""The seam between the training loop and what computes: one protocol, several engines."""

from islab.learn.engines.base import Engine, Parameters, Problem, Steps
from islab.learn.engines.choice import EngineChoice

__all__ = ["Engine", "EngineChoice", "Parameters", "Problem", "Steps"]
