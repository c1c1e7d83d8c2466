"""Explanations: the whole network as tables, and exact linear explanations of single rows."""

from islab.core.summary import Summary, summarise
from islab.explain.global_ import GlobalExplanation, explain_global
from islab.explain.integrated import IntegratedGradients, integrated_gradients
from islab.explain.local import LocalExplanation, explain_local
from islab.explain.variance_shares import Drivers

__all__ = [
    "Drivers",
    "GlobalExplanation",
    "IntegratedGradients",
    "LocalExplanation",
    "Summary",
    "explain_global",
    "explain_local",
    "integrated_gradients",
    "summarise",
]
