"""The network as a formula, in plain text and in LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from islab.core import families
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
    response: Callable[[str, str], str]
    spelling: str  # method of the families


def _lines(network: SparseNetwork, notation: _Notation, digits: int | None) -> list[str]:
    shape, names = network.architecture, network.scale
    all_sums = sums(network)
    number = _number(digits, notation.power)
    outputs = [notation.name(name) for name in names.outputs]
    likelihood = families.likelihood(network.likelihood)
    activate = getattr(families.activation(shape.activation), notation.spelling)
    respond = getattr(likelihood, notation.spelling)

    def source(covariate: bool, index: int) -> str:
        if covariate:
            return notation.name(names.names[index])
        return notation.unit(all_sums[index].layer, all_sums[index].label)

    lines = []
    for unit in all_sums:
        right = _sum(unit, source, number, notation.times)
        if unit.layer < shape.n_layers - 1:
            left = notation.unit(unit.layer, unit.label)
            right = activate(right)
        else:
            left = notation.eta(outputs[unit.label])
        lines.append(left + notation.equals + right)
    etas = [notation.eta(output) for output in outputs]
    for output, eta in zip(outputs, etas, strict=True):
        left = notation.response(likelihood.words.symbol, output)
        lines.append(left + notation.equals + respond(eta, etas))
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
    response=lambda symbol, output: f"{symbol}({output})",
    spelling="formula",
)

_LATEX = _Notation(
    equals=" &= ",
    times=r"\,",
    name=_latex_name,
    unit=lambda layer, label: f"h_{{{layer},{label}}}",
    eta=lambda output: rf"\eta_{{{output}}}",
    power=lambda exponent: rf" \times 10^{{{exponent}}}",
    response=lambda symbol, output: rf"{symbol}\left({output}\right)",
    spelling="latex",
)
