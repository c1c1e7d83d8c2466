"""Plots with matplotlib: axes go in, axes come out, nothing is shown."""

from islab.plots.graph import path_graph
from islab.plots.inclusion import inclusion_map

__all__ = ["inclusion_map", "path_graph"]
