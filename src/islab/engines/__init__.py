"""The seam between the training loop and what computes: one protocol, several engines."""

from islab.engines.base import Engine, Parameters, Problem, Steps
from islab.engines.choice import EngineChoice

__all__ = ["Engine", "EngineChoice", "Parameters", "Problem", "Steps"]
