"""Methods side by side on the user's own data."""

from islab.comparison.methods import METHODS, make_method
from islab.comparison.result import Comparison
from islab.comparison.run import compare

__all__ = ["METHODS", "Comparison", "compare", "make_method"]
