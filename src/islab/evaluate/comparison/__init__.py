"""Methods side by side on the user's own data."""

from islab.evaluate.comparison.methods import METHODS, make_method
from islab.evaluate.comparison.result import Comparison
from islab.evaluate.comparison.run import compare

__all__ = ["METHODS", "Comparison", "compare", "make_method"]
