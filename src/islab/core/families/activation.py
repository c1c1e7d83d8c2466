"""What an activation is, and the five that come with the package.

To add one, write a subclass of :class:`Activation` and register it in ``families/__init__.py``.
Without a ``kernel`` the torch engine learns networks with it and numpy predicts. A compiled version
is a struct and a line of the list in ``families.h``: in ``learn/engines/native`` for learning, in
``core/native`` for predictions.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from islab.core import equations
from islab.core.expressions import Expression, call, exp, greater, largest, sigmoid, where
from islab.core.families.spelling import Kernel

Float = NDArray[np.floating]

LEAKY_SLOPE = 0.01


class Activation:
    """The contract.

    Attributes
    ----------
    name : str
        In files and parameters.
    bends : tuple of float, optional
        Where a piecewise-linear function changes its slope; None for a curved one.
    kernel : Kernel, optional
        The compiled version.
    gain, rest : float
        Around 0 the function is ``rest + z / gain``, as far as training by descent from small
        weights must make up for it; 1 and 0 where it need not.
    javascript : str
        A JavaScript object with ``value(z)`` and ``slope(z)``; it goes into reports as it is.
    """

    name: str
    bends: ClassVar[tuple[float, ...] | None] = None
    kernel: Kernel | None = None
    gain: ClassVar[float] = 1.0
    rest: ClassVar[float] = 0.0
    javascript: str

    @property
    def piecewise_linear(self) -> bool:
        """Whether networks with it are exactly linear around each row."""
        return self.bends is not None

    def value(self, z: Float) -> Float:
        """The function."""
        raise NotImplementedError

    def slope(self, z: Float, value: Float | None = None) -> Float:
        """Its derivative at ``z``, where its ``value`` may be known."""
        raise NotImplementedError

    def formula(self, z: str) -> str:
        """The function as plain text."""
        raise NotImplementedError

    def latex(self, z: str) -> str:
        """The function in LaTeX."""
        raise NotImplementedError

    def expression(self, z: Expression) -> Expression:
        """The function for exports in Python, SQL and ONNX, without overflow."""
        raise NotImplementedError

    def torch(self, z: Any) -> Any:
        """The function of a tensor."""
        raise NotImplementedError


class Relu(Activation):
    """The positive part."""

    name = "relu"
    bends = (0.0,)
    kernel = Kernel("relu")
    javascript = "{ value: (z) => (z > 0 ? z : 0), slope: (z) => (z > 0 ? 1 : 0) }"

    def value(self, z: Float) -> Float:
        return np.maximum(z, 0)

    def slope(self, z: Float, value: Float | None = None) -> Float:
        return (z > 0).astype(z.dtype)

    def formula(self, z: str) -> str:
        return f"max(0, {z})"

    def latex(self, z: str) -> str:
        return rf"\max\left(0, {z}\right)"

    def expression(self, z: Expression) -> Expression:
        return largest(z, 0.0)

    def torch(self, z: Any) -> Any:
        return z.relu()


class LeakyRelu(Activation):
    """The positive part, and a share of the negative one.

    Parameters
    ----------
    name : str
        Of another one, to be registered.
    below : float
        The share.
    """

    bends = (0.0,)

    def __init__(self, name: str = "leaky_relu", below: float = LEAKY_SLOPE) -> None:
        self.name, self.below = name, below
        self.kernel = Kernel("leaky_relu", below)
        self.javascript = (
            f"{{ value: (z) => (z > 0 ? z : {below} * z), slope: (z) => (z > 0 ? 1 : {below}) }}"
        )

    def value(self, z: Float) -> Float:
        return np.where(z > 0, z, self.below * z)

    def slope(self, z: Float, value: Float | None = None) -> Float:
        return np.where(z > 0, 1.0, self.below).astype(z.dtype)

    def formula(self, z: str) -> str:
        return f"leaky_relu({z}, {self.below})"

    def latex(self, z: str) -> str:
        return rf"\operatorname{{LeakyReLU}}_{{{self.below}}}\left({z}\right)"

    def expression(self, z: Expression) -> Expression:
        return where(greater(z, 0.0), z, self.below * z)

    def torch(self, z: Any) -> Any:
        import torch.nn.functional as F

        return F.leaky_relu(z, self.below)


class Sigmoid(Activation):
    """From 0 to 1."""

    name = "sigmoid"
    kernel = Kernel("sigmoid")
    gain = 4.0
    rest = 0.5
    javascript = """{
  value: (z) => 1 / (1 + Math.exp(-z)),
  slope(z) { return this.value(z) * (1 - this.value(z)); },
}"""

    def value(self, z: Float) -> Float:
        return equations.sigmoid(z)

    def slope(self, z: Float, value: Float | None = None) -> Float:
        probability = equations.sigmoid(z) if value is None else value
        return probability * (1 - probability)

    def formula(self, z: str) -> str:
        return f"1/(1 + exp(-({z})))"

    def latex(self, z: str) -> str:
        return rf"\operatorname{{sigmoid}}\left({z}\right)"

    def expression(self, z: Expression) -> Expression:
        return sigmoid(z)

    def torch(self, z: Any) -> Any:
        return z.sigmoid()


class Tanh(Activation):
    """From -1 to 1."""

    name = "tanh"
    kernel = Kernel("tanh")
    javascript = "{ value: Math.tanh, slope: (z) => 1 - Math.tanh(z) ** 2 }"

    def value(self, z: Float) -> Float:
        return np.tanh(z)

    def slope(self, z: Float, value: Float | None = None) -> Float:
        return 1 - (np.tanh(z) if value is None else value) ** 2

    def formula(self, z: str) -> str:
        return f"tanh({z})"

    def latex(self, z: str) -> str:
        return rf"\tanh\left({z}\right)"

    def expression(self, z: Expression) -> Expression:
        small = exp(-2.0 * call("abs", z))
        size = (1.0 - small) / (1.0 + small)
        return where(greater(0.0, z), -size, size)

    def torch(self, z: Any) -> Any:
        return z.tanh()


class Identity(Activation):
    """The sum itself."""

    name = "identity"
    bends = ()
    kernel = Kernel("identity")
    javascript = "{ value: (z) => z, slope: () => 1 }"

    def value(self, z: Float) -> Float:
        return z

    def slope(self, z: Float, value: Float | None = None) -> Float:
        return np.ones_like(z)

    def formula(self, z: str) -> str:
        return z

    def latex(self, z: str) -> str:
        return z

    def expression(self, z: Expression) -> Expression:
        return z

    def torch(self, z: Any) -> Any:
        return z
