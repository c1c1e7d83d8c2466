"""Formulas as small trees, written once and spelled in Python, SQL, ONNX and plain text.

A column kind says how a covariate follows from a cell of the table, a family how a response
follows from its predictors; whoever exports a model brings a :class:`Speller` for its language.
Nothing here is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

T = TypeVar("T")

CellKind = Literal["number", "boolean", "days"]
MISSING_TEXT = "(missing)"  # how text spells a missing value where there is no other way
FUNCTIONS = (
    *("+", "-", "*", "/", "exp", "log", "sqrt", "abs", "floor", "sin", "cos"),
    *("largest", "greater", "missing", "where"),
)


class Expression:
    """A number that follows from others; operators make larger ones."""

    def __add__(self, other: Value) -> Expression:
        return call("+", self, other)

    def __radd__(self, other: Value) -> Expression:
        return call("+", other, self)

    def __sub__(self, other: Value) -> Expression:
        return call("-", self, other)

    def __rsub__(self, other: Value) -> Expression:
        return call("-", other, self)

    def __mul__(self, other: Value) -> Expression:
        return call("*", self, other)

    def __rmul__(self, other: Value) -> Expression:
        return call("*", other, self)

    def __truediv__(self, other: Value) -> Expression:
        return call("/", self, other)

    def __rtruediv__(self, other: Value) -> Expression:
        return call("/", other, self)

    def __neg__(self) -> Expression:
        return call("-", 0.0, self)


@dataclass(frozen=True)
class Constant(Expression):
    """A number; NaN is a missing one, and so is all that is computed from it."""

    value: float


@dataclass(frozen=True)
class Symbol(Expression):
    """A value that has a name where the expression is used."""

    name: str


@dataclass(frozen=True)
class Cell(Expression):
    """A cell of the table as a number, missing if it holds none.

    Attributes
    ----------
    column : str
    kind : {"number", "boolean", "days"}
        A number, or a duration in days; 0 or 1, or a boolean; or a date, in days since 1970.
    """

    column: str
    kind: CellKind = "number"


@dataclass(frozen=True)
class Lookup(Expression):
    """The number that stands for the text of a cell.

    Attributes
    ----------
    column : str
    values : tuple of (str, float)
        Numbers of known texts, which differ.
    default : float
        Of all other text.
    missing : float
        Where there is none.
    """

    column: str
    values: tuple[tuple[str, float], ...]
    default: float
    missing: float


@dataclass(frozen=True)
class Call(Expression):
    """One of ``FUNCTIONS`` of some expressions.

    ``largest`` takes two or more, ``greater`` and ``missing`` give conditions, and
    ``where`` takes a condition, the value where it holds and the value elsewhere. What is missing
    is not greater than anything.
    """

    function: str
    arguments: tuple[Expression, ...]


Value = Expression | float | int
# Gives a name to an expression that is used more than once, and the symbol that stands for it.
Let = Callable[[str, Expression], Expression]


def call(function: str, *arguments: Value) -> Call:
    """A function of expressions and numbers."""
    if function not in FUNCTIONS:
        raise ValueError(f"Got function={function!r}, expected one of {', '.join(FUNCTIONS)}.")
    return Call(function, tuple(map(_expression, arguments)))


def where(condition: Expression, then: Value, otherwise: Value) -> Expression:
    """``then`` where the condition holds, else ``otherwise``."""
    return call("where", condition, then, otherwise)


def greater(first: Value, second: Value) -> Expression:
    """Whether the first is greater; not if one of them is missing."""
    return call("greater", first, second)


def largest(*values: Value) -> Expression:
    """The largest of some numbers."""
    return call("largest", *values)


def exp(value: Value) -> Expression:
    return call("exp", value)


def sigmoid(z: Expression) -> Expression:
    """``1 / (1 + exp(-z))``, without overflow."""
    small = exp(-call("abs", z))
    return where(greater(0.0, z), small, 1.0) / (1.0 + small)


def polynomial(z: Expression, coefficients: tuple[float, ...]) -> Expression:
    """By Horner's rule, the highest power first."""
    total: Expression = Constant(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * z + coefficient
    return total


class Speller(Protocol[T]):
    """A language that expressions are spelled in."""

    def constant(self, value: float) -> T: ...

    def symbol(self, name: str) -> T: ...

    def cell(self, cell: Cell) -> T: ...

    def lookup(self, lookup: Lookup) -> T: ...

    def call(self, function: str, arguments: list[T]) -> T: ...


def spell(expression: Expression, speller: Speller[T]) -> T:
    """The expression in a language."""
    match expression:
        case Constant(value):
            return speller.constant(value)
        case Symbol(name):
            return speller.symbol(name)
        case Cell():
            return speller.cell(expression)
        case Lookup():
            return speller.lookup(expression)
        case Call(function, arguments):
            return speller.call(function, [spell(each, speller) for each in arguments])
    raise TypeError(f"Got {expression!r}, expected an expression.")


def cells(expression: Expression) -> list[Cell | Lookup]:
    """What the expression reads of the table, each once."""
    if isinstance(expression, Cell | Lookup):
        return [expression]
    inner = expression.arguments if isinstance(expression, Call) else ()
    return list(dict.fromkeys(cell for each in inner for cell in cells(each)))


def symbols(expression: Expression) -> set[str]:
    """Names that the expression uses."""
    if isinstance(expression, Symbol):
        return {expression.name}
    inner = expression.arguments if isinstance(expression, Call) else ()
    return {name for each in inner for name in symbols(each)}


def _expression(value: Any) -> Expression:
    return value if isinstance(value, Expression) else Constant(float(value))
