"""Explanations: the whole model as tables and curves, and exact ones of single rows."""

from islab.core.summary import Summary, summarise
from islab.explain.display import EffectDisplay
from islab.explain.effects import Effect
from islab.explain.global_ import GlobalExplanation, explain_global
from islab.explain.importance import Importance, Interactions
from islab.explain.integrated import integrated_gradients
from islab.explain.local import explain_local
from islab.explain.local_explanation import LocalExplanation
from islab.explain.variance_shares import Drivers

__all__ = [
    "Drivers",
    "Effect",
    "EffectDisplay",
    "GlobalExplanation",
    "Importance",
    "Interactions",
    "LocalExplanation",
    "Summary",
    "explain_global",
    "explain_local",
    "integrated_gradients",
    "summarise",
]
