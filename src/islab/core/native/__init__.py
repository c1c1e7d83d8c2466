"""Many small networks in C++: networks.h says how they lie in memory, evaluation.h computes."""

from __future__ import annotations

try:
    from islab.core.native import _networks
except ImportError:  # without a compiler numpy does the same, slowly
    compiled = None
else:
    compiled = _networks

__all__ = ["compiled", "instructions"]

instructions: str = "" if compiled is None else compiled.instruction_sets()[0]
