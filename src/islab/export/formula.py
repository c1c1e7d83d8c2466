"""The network as a formula, in plain text and in LaTeX."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from islab.core import families
from islab.core.expressions import MISSING_TEXT, Cell, Lookup, spell
from islab.core.names import printable
from islab.export.portable import readable
from islab.export.unit_sums import Sum, sums


def to_text(source: Any, digits: int | None = None) -> str:
    """The readable network as lines of plain formulas, hidden units first.

    Parameters
    ----------
    source : fitted estimator, or SparseNetwork
        Of an estimator, the first lines say how covariates follow from columns of the table.
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
    return "\n".join(_lines(source, _TEXT, digits))


def to_latex(source: Any, digits: int | None = None) -> str:
    """The readable network as a LaTeX ``align*`` environment (package amsmath).

    Parameters
    ----------
    source : fitted estimator, or SparseNetwork
        Of an estimator, the first lines say how covariates follow from columns of the table.
    digits : int, optional
        Significant digits; without it numbers are written in full.
    """
    lines = _lines(source, _LATEX, digits)
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
    cases: Callable[[list[tuple[str, str]], str], str]  # values with conditions, and the rest
    words: Callable[[str], str]
    spelling: str  # method of the families


def _lines(source: Any, notation: _Notation, digits: int | None) -> list[str]:
    network, content = readable(source)
    shape, names = network.architecture, network.scale
    all_sums = sums(network)
    number = _number(digits, notation.power)
    outputs = [notation.name(name) for name in names.outputs]
    noise = network.noise_in_units()
    if digits is not None:
        noise = np.array([float(f"{each:.{digits}g}") for each in noise])
    likelihood = families.likelihood(network.likelihood).given(noise)
    activate = [getattr(each, notation.spelling) for each in shape.activations]
    respond = getattr(likelihood, notation.spelling)

    def name_of(covariate: bool, index: int) -> str:
        if covariate:
            return notation.name(names.names[index])
        return notation.unit(all_sums[index].layer, all_sums[index].label)

    spelled = _Spelled(notation, number)
    lines = [
        notation.name(name) + notation.equals + spell(expression, spelled)
        for name, expression in content.covariates.items()
        if expression != Cell(name)
    ]
    shift = "" if content.offset is None else " + " + spell(content.offset, spelled)
    for unit in all_sums:
        right = _sum(unit, name_of, number, notation.times)
        if unit.layer < shape.n_layers - 1:
            left = notation.unit(unit.layer, unit.label)
            right = activate[unit.layer](right)
        else:
            left, right = notation.eta(outputs[unit.label]), right + shift
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


class _Spelled:
    """Spells how covariates are made, to be read."""

    def __init__(self, notation: _Notation, number: Callable[[float], str]) -> None:
        self.notation, self.number = notation, number

    def constant(self, value: float) -> str:
        if value != value:
            return self.notation.words("missing")
        return ("-" if value < 0 else "") + self.number(abs(value))

    def symbol(self, name: str) -> str:
        return name

    def cell(self, cell: Cell) -> str:
        name = self.notation.name(cell.column)
        return (
            f"{self.notation.words('days since 1970 of ')}{name}" if cell.kind == "days" else name
        )

    def lookup(self, lookup: Lookup) -> str:
        name, words = self.notation.name(lookup.column), self.notation.words
        groups: dict[float, list[str]] = {}
        for level, value in lookup.values:
            if level != MISSING_TEXT:
                groups.setdefault(value, []).append(self.notation.name(level))
        if lookup.missing != lookup.default:
            groups.setdefault(lookup.missing, []).append(words("missing"))
        cases = [
            (self.constant(value), f"{name}{words(' is ')}{words(' or ').join(levels)}")
            for value, levels in sorted(groups.items(), reverse=True)
        ]
        return self.notation.cases(cases, self.constant(lookup.default))

    def call(self, function: str, arguments: list[str]) -> str:
        if function in ("+", "-", "*", "/"):
            sign = self.notation.times if function == "*" else f" {function} "
            return f"({arguments[0]}{sign}{arguments[1]})"
        if function == "where":
            return self.notation.cases([(arguments[1], arguments[0])], arguments[2])
        if function == "missing":
            return f"{arguments[0]}{self.notation.words(' is missing')}"
        if function == "greater":
            return f"{arguments[0]} > {arguments[1]}"
        name = self.notation.words({"largest": "max"}.get(function, function))
        return f"{name}({', '.join(arguments)})"


def _number(digits: int | None, power: Callable[[int], str]) -> Callable[[float], str]:
    def write(value: float) -> str:
        text = repr(value) if digits is None else f"{value:.{digits}g}"
        mantissa, _, exponent = text.partition("e")
        return mantissa + (power(int(exponent)) if exponent else "")

    return write


_LATEX_CHARACTERS = {
    **{"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&"},
    **{"#": r"\#", "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}"},
    **{"~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}"},
    **{"|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}", "\u00df": r"\ss{}"},
    **{"\u00e6": r"\ae{}", "\u00c6": r"\AE{}", "\u00f8": r"\o{}", "\u00d8": r"\O{}"},
    **{"\u0153": r"\oe{}", "\u0152": r"\OE{}", "\u0142": r"\l{}", "\u0141": r"\L{}"},
    **{"\u00b0": r"\ensuremath{^\circ}", "\u00b5": r"\ensuremath{\mu}"},
    **{"\u00b1": r"\ensuremath{\pm}", "\u00d7": r"\ensuremath{\times}", "\u2013": "--"},
    **{"\u2014": "---", "\u2018": "`", "\u2019": "'", "\u201c": "``", "\u201d": "''"},
    **{"\u2026": r"\dots{}"},
}
# Commands for the accents that Unicode writes after a letter.
_LATEX_ACCENTS = {
    **{"\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0308": r"\""},
    **{"\u030a": r"\r", "\u0327": r"\c", "\u030c": r"\v", "\u0304": r"\=", "\u0306": r"\u"},
    **{"\u0307": r"\.", "\u030b": r"\H"},
}


def _latex_name(name: str) -> str:
    return r"\text{" + "".join(map(_latex_character, printable(name))) + "}"


def _latex_character(character: str) -> str:
    """The character in ASCII that every LaTeX compiles, by its number if TeX does not know it."""
    if character in _LATEX_CHARACTERS:
        return _LATEX_CHARACTERS[character]
    if character.isascii():
        return character
    letter, *accents = list(unicodedata.normalize("NFKD", character))
    if letter.isascii() and not accents and letter.isalnum():
        return letter
    if letter.isascii() and letter.isalpha() and accents[0] in _LATEX_ACCENTS and not accents[1:]:
        return _LATEX_ACCENTS[accents[0]] + "{" + letter + "}"
    greek = unicodedata.name(character, "").removeprefix("GREEK SMALL LETTER ").lower()
    if greek in _GREEK:
        return rf"\ensuremath{{\{greek}}}"
    return f"[U+{ord(character):04X}]"


_GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "mu"),
    *("nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
)


_TEXT = _Notation(
    equals=" = ",
    times="*",
    name=lambda name: "`" + printable(name).replace("`", "``") + "`",
    unit=lambda layer, label: f"h{layer}_{label}",
    eta=lambda output: f"eta({output})",
    power=lambda exponent: f"e{exponent}",
    response=lambda symbol, output: f"{symbol}({output})",
    cases=lambda cases, rest: "".join(f"{v} if {when}, " for v, when in cases) + f"else {rest}",
    words=lambda words: words,
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
    cases=lambda cases, rest: (
        r"\begin{cases} "
        + "".join(rf"{value} & \text{{if }} {when} \\ " for value, when in cases)
        + rf"{rest} & \text{{otherwise}} \end{{cases}}"
    ),
    words=lambda words: rf"\text{{{words}}}",
    spelling="latex",
)
