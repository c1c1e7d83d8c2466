"""Plots with matplotlib: axes go in, axes come out, nothing is shown."""

from islab.plots.bars import driver_bars, local_bars
from islab.plots.effects import effect_curve, effect_curves, importance_bars, joint_effects
from islab.plots.graph import path_graph
from islab.plots.history import training_history
from islab.plots.images import contribution_map, pixel_maps, receptive_maps
from islab.plots.inclusion import inclusion_map
from islab.plots.predictive import calibration_curve, predictive_intervals

__all__ = [
    "calibration_curve",
    "contribution_map",
    "driver_bars",
    "effect_curve",
    "effect_curves",
    "importance_bars",
    "inclusion_map",
    "joint_effects",
    "local_bars",
    "path_graph",
    "pixel_maps",
    "predictive_intervals",
    "receptive_maps",
    "training_history",
]
