"""What families are spelled with outside numpy: the compiled kernel, and formulas of exports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from islab.core.expressions import Expression


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


@dataclass(frozen=True)
class StandardNoise:
    """Noise that is a root times a variable with a known distribution.

    The root is that of the first number of ``noise_expressions``.

    Attributes
    ----------
    share, density : callable
        Distribution function and density of that variable, as expressions.
    quantile : callable
        Its quantile at a level, a number.
    """

    share: Callable[[Expression], Expression]
    density: Callable[[Expression], Expression]
    quantile: Callable[[float], float]


@dataclass(frozen=True)
class CountShares:
    """Logarithms of the shares of counts, each from the one below, for exports.

    That of 0 is ``start``. The step to k adds ``ratio - log(k)``, and ``log(k - 1 + size)`` if
    there is a size. ``part`` of the targets are such counts, all if None; the others are 0.
    """

    start: Expression
    ratio: Expression
    size: Expression | None = None
    part: Expression | None = None
