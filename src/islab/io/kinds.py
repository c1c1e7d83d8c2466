"""The kinds of models that a file may hold.

A package that has estimators registers their names when it is imported. A name in a file is only
looked up here: nothing else can be imported or called by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray]

# Imported when a file asks for a kind that is not registered yet.
_PACKAGES = ("islab.estimators", "islab.baselines")


class State(Protocol):
    """A module that turns fitted estimators into JSON's types and arrays, and back."""

    def state_of(self, model: Any, *, sparse: bool) -> tuple[dict[str, Any], Arrays]:
        """Description and arrays of a fitted estimator."""

    def from_state(self, cls: type, description: dict[str, Any], arrays: Arrays) -> Any:
        """The fitted estimator; ValueError if description and arrays are none."""


@dataclass(frozen=True)
class Kind:
    """A class of estimators that files hold."""

    name: str  # of the class
    home: str  # module that has the class
    state: str  # module that is its :class:`State`

    def estimator(self) -> type:
        return getattr(import_module(self.home), self.name)

    def state_of(self, model: Any, *, sparse: bool) -> tuple[dict[str, Any], Arrays]:
        """Description and arrays of a model, in the types that a file has."""
        description, arrays = import_module(self.state).state_of(model, sparse=sparse)
        stored = {name: _stored(np.asarray(array)) for name, array in arrays.items()}
        return {"estimator": self.name, **description}, stored

    def from_state(self, description: dict[str, Any], arrays: Arrays) -> Any:
        return import_module(self.state).from_state(self.estimator(), description, arrays)


_KINDS: dict[str, Kind] = {}


def register(homes: dict[str, str], *, state: str) -> None:
    """Makes classes known to files.

    Parameters
    ----------
    homes : dict
        The module of each class, by the class's name.
    state : str
        The module with ``state_of`` and ``from_state``.
    """
    _KINDS.update({name: Kind(name, home, state) for name, home in homes.items()})


def find_kind(name: str) -> Kind:
    """The kind of this name, or ValueError."""
    for package in _PACKAGES:
        if name in _KINDS:
            break
        import_module(package)
    if name not in _KINDS:
        raise ValueError(f"it holds a {name!r}, expected one of {', '.join(_KINDS)}")
    return _KINDS[name]


def _stored(array: NDArray) -> NDArray:
    return array if array.dtype.kind == "f" else array.astype(np.int64)
