"""Models in forms that need no islab.

Every form takes a fitted estimator, and then reads rows of the table as they are: categories,
missing values, dates and scales are dealt with inside. It also takes a network, which reads
covariates in the user's units.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from islab.core.dependencies import needed
from islab.export.formula import to_latex, to_text
from islab.export.graph import to_dot, to_graphml, to_networkx
from islab.export.onnx_model import to_onnx
from islab.export.source import to_python
from islab.export.sql import to_sql
from islab.io.files import replacing

__all__ = [
    "export",
    "to_dot",
    "to_graphml",
    "to_latex",
    "to_networkx",
    "to_onnx",
    "to_python",
    "to_sql",
    "to_text",
    "to_torch",
]


def to_torch(source: Any) -> Any:
    """A plain ``torch.nn.Module``; see :class:`islab.export.torch_module.TorchNetwork`."""
    needed("torch", "A torch module", "islab-bnn[torch]")
    from islab.export.torch_module import TorchNetwork

    return TorchNetwork(source)


FORMS: dict[str, Callable[..., Any]] = {
    "formula": to_text,
    "latex": to_latex,
    "python": to_python,
    "sql": to_sql,
    "onnx": to_onnx,
    "torch": to_torch,
    "graphml": to_graphml,
}


def export(source: Any, to: str, path: str | Path | None = None, **options: Any) -> Any:
    """The model in one of ``FORMS``, written to ``path`` if one is given.

    Parameters
    ----------
    source : fitted estimator, or SparseNetwork
    to : {"formula", "latex", "python", "sql", "onnx", "torch", "graphml"}
    path : path, optional
        Replaced in one move if it exists.
    **options
        Those of the form's function.
    """
    if to not in FORMS:
        raise ValueError(f"Got to={to!r}, expected one of {', '.join(FORMS)}.")
    found = FORMS[to](source, **options)
    if path is not None:
        with replacing(path) as file:
            file.write(_content(found))
    return found


def _content(found: Any) -> bytes:
    """What a file of it holds."""
    if isinstance(found, str):
        return found.encode()
    return found.to_bytes() if hasattr(found, "to_bytes") else found.SerializeToString()
