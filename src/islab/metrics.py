"""Deprecated: scores are in :mod:`islab.evaluate`."""

import warnings

from islab.evaluate import *  # noqa: F403
from islab.evaluate import __all__  # noqa: F401

warnings.warn("islab.metrics is now islab.evaluate", FutureWarning, stacklevel=2)
