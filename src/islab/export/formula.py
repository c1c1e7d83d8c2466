"""The network as a formula, in plain text and in LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from islab.core.architecture import LEAKY_SLOPE
from islab.core.likelihoods import LARGEST_LOG_RATE
from islab.core.names import printable
from islab.core.sparse import SparseNetwork
from islab.export.sums import Sum, sums


def to_text(network: SparseNetwork, digits: int | None = None) -> str:
    """The network as lines of plain formulas, hidden units first.

    Parameters
    ----------
    network : SparseNetwork
    digits : int, optional
        Significant digits; without it numbers are written in full.

    Notes
    -----
    Names stand in backquotes, with a backquote in a name doubled and control characters made
    spaces. ``eta`` is the predictor of an output, and the last lines give the response: ``P(...)``
    a probability, ``E(...)`` an expectation.

    Examples
    --------
    >>> import numpy as np
    >>> from islab.core.architecture import Architecture
    >>> from islab.core.posterior import Posterior
    >>> posterior = Posterior.initialise(
    ...     Architecture(2, (), 1), np.random.default_rng(0), likelihood="bernoulli"
    ... )
    >>> print(to_text(posterior.median(), digits=3))
    eta(`y0`) = 0.64*`x0` + 0.105*`x1`
    P(`y0`) = 1/(1 + exp(-eta(`y0`)))
    """
    return "\n".join(_lines(network, _TEXT, digits))


def to_latex(network: SparseNetwork, digits: int | None = None) -> str:
    """The network as a LaTeX ``align*`` environment (package amsmath).

    Parameters
    ----------
    network : SparseNetwork
    digits : int, optional
        Significant digits; without it numbers are written in full.
    """
    lines = _lines(network, _LATEX, digits)
    return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"


@dataclass(frozen=True)
class _Notation:
    """How a language writes the parts of a formula."""

    equals: str
    times: str
    name: Callable[[str], str]
    unit: Callable[[int, int], str]
    eta: Callable[[str], str]
    power: Callable[[int], str]
    activations: dict[str, Callable[[str], str]]
    exp: Callable[[str], str]
    responses: dict[str, Callable[[str, str, str], tuple[str, str]]]


def _lines(network: SparseNetwork, notation: _Notation, digits: int | None) -> list[str]:
    shape, names = network.architecture, network.scale
    all_sums = sums(network)
    number = _number(digits, notation.power)
    outputs = [notation.name(name) for name in names.outputs]

    def source(covariate: bool, index: int) -> str:
        if covariate:
            return notation.name(names.names[index])
        return notation.unit(all_sums[index].layer, all_sums[index].label)

    lines = []
    for unit in all_sums:
        right = _sum(unit, source, number, notation.times)
        if unit.layer < shape.n_layers - 1:
            left = notation.unit(unit.layer, unit.label)
            right = notation.activations[shape.activation](right)
        else:
            left = notation.eta(outputs[unit.label])
        lines.append(left + notation.equals + right)
    total = " + ".join(notation.exp(notation.eta(output)) for output in outputs)
    response = notation.responses[network.likelihood]
    for output in outputs:
        left, right = response(output, notation.eta(output), total)
        lines.append(left + notation.equals + right)
    return lines


def _sum(
    unit: Sum,
    source: Callable[[bool, int], str],
    number: Callable[[float], str],
    times: str,
) -> str:
    parts = [(unit.constant, "")] if unit.constant or not unit.terms else []
    parts += [(term.weight, times + source(term.covariate, term.source)) for term in unit.terms]
    first = ("-" if parts[0][0] < 0 else "") + number(abs(parts[0][0])) + parts[0][1]
    rest = [(" - " if w < 0 else " + ") + number(abs(w)) + what for w, what in parts[1:]]
    return first + "".join(rest)


def _number(digits: int | None, power: Callable[[int], str]) -> Callable[[float], str]:
    def write(value: float) -> str:
        text = repr(value) if digits is None else f"{value:.{digits}g}"
        mantissa, _, exponent = text.partition("e")
        return mantissa + (power(int(exponent)) if exponent else "")

    return write


_LATEX_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
}


def _latex_name(name: str) -> str:
    return r"\text{" + "".join(_LATEX_CHARACTERS.get(c, c) for c in printable(name)) + "}"


_TEXT = _Notation(
    equals=" = ",
    times="*",
    name=lambda name: "`" + printable(name).replace("`", "``") + "`",
    unit=lambda layer, label: f"h{layer}_{label}",
    eta=lambda output: f"eta({output})",
    power=lambda exponent: f"e{exponent}",
    exp=lambda eta: f"exp({eta})",
    activations={
        "relu": lambda z: f"max(0, {z})",
        "leaky_relu": lambda z: f"leaky_relu({z}, {LEAKY_SLOPE})",
        "sigmoid": lambda z: f"1/(1 + exp(-({z})))",
        "tanh": lambda z: f"tanh({z})",
        "identity": lambda z: z,
    },
    responses={
        "bernoulli": lambda y, eta, total: (f"P({y})", f"1/(1 + exp(-{eta}))"),
        "categorical": lambda y, eta, total: (f"P({y})", f"exp({eta})/({total})"),
        "gaussian": lambda y, eta, total: (f"E({y})", eta),
        "poisson": lambda y, eta, total: (
            f"E({y})",
            f"exp(min({eta}, {LARGEST_LOG_RATE}))*(1 + max(0, {eta} - {LARGEST_LOG_RATE}))",
        ),
    },
)

_LATEX = _Notation(
    equals=" &= ",
    times=r"\,",
    name=_latex_name,
    unit=lambda layer, label: f"h_{{{layer},{label}}}",
    eta=lambda output: rf"\eta_{{{output}}}",
    power=lambda exponent: rf" \times 10^{{{exponent}}}",
    exp=lambda eta: f"e^{{{eta}}}",
    activations={
        "relu": lambda z: rf"\max\left(0, {z}\right)",
        "leaky_relu": lambda z: rf"\operatorname{{LeakyReLU}}_{{{LEAKY_SLOPE}}}\left({z}\right)",
        "sigmoid": lambda z: rf"\operatorname{{sigmoid}}\left({z}\right)",
        "tanh": lambda z: rf"\tanh\left({z}\right)",
        "identity": lambda z: z,
    },
    responses={
        "bernoulli": lambda y, eta, total: (
            rf"P\left({y}\right)",
            rf"\frac{{1}}{{1 + e^{{-{eta}}}}}",
        ),
        "categorical": lambda y, eta, total: (
            rf"P\left({y}\right)",
            rf"\frac{{e^{{{eta}}}}}{{{total}}}",
        ),
        "gaussian": lambda y, eta, total: (rf"E\left({y}\right)", eta),
        "poisson": lambda y, eta, total: (
            rf"E\left({y}\right)",
            rf"e^{{\min\left({eta}, {LARGEST_LOG_RATE}\right)}}"
            rf"\left(1 + \max\left(0, {eta} - {LARGEST_LOG_RATE}\right)\right)",
        ),
    },
)
