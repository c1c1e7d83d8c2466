"""The seam between the training loop and what computes: one protocol, several engines."""

from islab.learn.engines.base import DenseEngine, Engine, Parameters, Problem, Steps
from islab.learn.engines.choice import EngineChoice

__all__ = ["DenseEngine", "Engine", "EngineChoice", "Parameters", "Problem", "Steps"]
