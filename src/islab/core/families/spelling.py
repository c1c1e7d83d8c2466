"""What families are spelled with outside Python: the compiled kernel, and graphs of ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Kernel:
    """The compiled version of a family.

    Attributes
    ----------
    name : str
        Its line in ``learn/engines/native/families.h``, and of an activation in
        ``core/native/families.h``.
    constant : float
        The number that its struct is built with; 0 for those that need none.
    """

    name: str
    constant: float = 0.0


class OnnxGraph(Protocol):
    """An ONNX graph under construction, in float64; values go by their names."""

    def node(self, operator: str, inputs: list[str], name: str = "", **attributes: Any) -> str:
        """Adds a node and gives the name of its value."""

    def constant(self, value: Any) -> str:
        """Adds a constant and gives its name."""
