"""The model as Python source that imports nothing but the standard library."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from islab.core.expressions import Cell, Expression, Lookup, Symbol, spell
from islab.export.portable import Portable, portable

_HEAD = '''"""A model exported by islab. It needs nothing but the standard library."""

import datetime
import math

COLUMNS = [{columns}]
{results}


def _number(value, column):
    """A cell as a number, NaN if it is missing."""
    if value is None or value == "" or value != value:
        return math.nan
    if value in ("True", "False"):
        return float(value == "True")
    if isinstance(value, datetime.timedelta):
        return value / datetime.timedelta(days=1)
    number = float(value)
    if math.isinf(number):
        raise ValueError(f"Got {{value}} in column {{column!r}}, expected finite numbers.")
    return number


def _days(value, column):
    """A date in days since 1970, NaN if it is missing."""
    if isinstance(value, str) and value:
        value = datetime.datetime.fromisoformat(value)
    if not hasattr(value, "year") or value != value:
        return _number(value, column)
    if not hasattr(value, "hour"):
        value = datetime.datetime(value.year, value.month, value.day)
    first = datetime.datetime(1970, 1, 1)
    return (value.replace(tzinfo=None) - first) / datetime.timedelta(days=1)


def _text(value, column):
    """A cell as text, None if it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, (str, bool)):
        return str(value)
    try:
        return str(int(value)) if float(value).is_integer() else str(value)
    except (TypeError, ValueError):
        return str(value)


def _covariates(row):
    """What the networks read, from a row of the table."""
    if not hasattr(row, "keys"):
        if len(row) != len(COLUMNS):
            raise ValueError(f"Got {{len(row)}} values, expected {{len(COLUMNS)}}; see COLUMNS.")
        row = dict(zip(COLUMNS, row))
{cells}
    return [{covariates}], {offset}
{activations}

def _response(eta, noise):
    """What is predicted, from the predictors of all outputs and the noise."""
{response}


{predictors}


# What was learned besides the weights, for each network.
_NOISE = {noise}
'''

_ONE_NETWORK = '''def predictor(row):
    """The linear predictor of each output."""
    x, offset = _covariates(row)
{sums}
    return [{etas}]


def _predictors(row):
    return [predictor(row)]'''

_DRAWN = '''# Networks drawn from the posterior: for each unit its activation, if it is hidden,
# its constant, and the numbers and weights of its inputs, which are covariates first, then units.
_DRAWS = [{draws}]


def _predictors(row):
    """The linear predictor of each output under each draw."""
    x, offset = _covariates(row)
    etas = []
    for units in _DRAWS:
        values = list(x)
        for activation, constant, inputs in units:
            total = constant + sum(weight * values[source] for source, weight in inputs)
            values.append(total if activation is None else activation(total))
        etas.append([value + shift for value, shift in zip(values[-{n_outputs}:], ({shifts}))])
    return etas'''

_MEANS = """

def _responses(row):
    return [_response(eta, noise) for eta, noise in zip(_predictors(row), _NOISE)]


def _means(row):
    responses = _responses(row)
    return [sum(each) / len(responses) for each in zip(*responses)]
"""

_NUMBERS = '''

def predict(row):
    """{prediction}; a row maps columns to values, or has values in their order."""
    return _means(row){first}
'''

_CLASSES = '''

def predict_proba(row):
    """Probabilities of CLASSES; a row maps columns to values, or has values in their order."""
    means = _means(row)
    return {probabilities}


def predict(row):
    """The most probable class of a row."""
    probabilities = predict_proba(row)
    return CLASSES[probabilities.index(max(probabilities))]
'''

_CLASS_INTERVALS = '''

def _quantile(values, level):
    values = sorted(values)
    place = level * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def predict_interval(row, level=0.9):
    """Credible interval of {what}."""
    ends = (1 - level) / 2, (1 + level) / 2
    responses = zip(*_responses(row))
    return [tuple(_quantile(each, end) for end in ends) for each in responses]{first}
'''

_NUMBER_INTERVALS = '''

def _noise(eta, noise):
    """What the distribution of each target has besides its mean."""
    return [{noise}]


# The probability that a target is at most a value.
{share}


def _quantile(draws, level):
    """Quantile of an equal mixture, by bisection."""

    def below(value):
        return sum(_share(value, mean, *noise) for mean, noise in draws) / len(draws) < level

    means = [mean for mean, _ in draws]
    step = max(means) - min(means) + 1.0
    low, high = {start}, max(means) + step
    while not below(low):
        low, step = low - step, 2 * step
    while below(high):
        high, step = high + step, 2 * step
    {whole}while low < (middle := {middle}) < high:
        if below(middle):
            low = middle
        else:
            high = middle
    return high


def predict_interval(row, level=0.9):
    """Central predictive interval of {what}, noise included."""
    ends = (1 - level) / 2, (1 + level) / 2
    draws = zip(_predictors(row), _NOISE)
    draws = [zip(_response(*each), _noise(*each)) for each in draws]
    return [tuple(_quantile(each, end) for end in ends) for each in zip(*draws)]{first}
'''


def to_python(source: Any, *, model: str | None = None, n_draws: int | None = None) -> str:
    """Source of a module that predicts rows of the table with the standard library only.

    It has ``predict(row)``, and ``predict_proba(row)`` of a classifier; with draws
    ``predict_interval(row, level)``, and of one network ``predictor(row)``. A row maps names of
    columns to values, or is a sequence of values in the order of ``COLUMNS``. None and NaN are
    missing values.

    Parameters
    ----------
    source : fitted estimator, or SparseNetwork
        The columns of a network are its covariates.
    model : {"full", "median"}, optional
        Average over draws of the full posterior, or the readable network.
    n_draws : int, optional
        Draws to write down, 100 of the full posterior if not given; as many as the model has
        (``model.n_draws``) give the numbers of ``predict``. The readable network is written at the
        mean of its weights, unless draws of these are asked for.

    Notes
    -----
    Names and categories appear only as ASCII string literals, whatever they hold.

    Examples
    --------
    >>> import numpy as np
    >>> from islab.core.architecture import Architecture
    >>> from islab.core.posterior import Posterior
    >>> network = Posterior.initialise(Architecture(2, (3,), 1), np.random.default_rng(0)).median()
    >>> module = {}
    >>> exec(to_python(network), module)
    >>> x = [0.5, -1.0]
    >>> bool(np.allclose(module["predict"](x), network.predictor(np.array([x]))))
    True
    """
    content = portable(source, model, n_draws)
    text = _head(content) + _MEANS
    first = "[0]" if content.flat else ""
    if content.classes is None:
        words = content.family.words.prediction
        text += _NUMBERS.format(prediction=words[0].upper() + words[1:], first=first)
        return text + (_number_intervals(content, first) if content.n_draws > 1 else "")
    text += _CLASSES.format(
        probabilities="[1 - means[0], *means]" if content.two_classes else "means"
    )
    if content.n_draws == 1:
        return text
    what = "the probability of the second class" if content.two_classes else "each probability"
    return text + _CLASS_INTERVALS.format(what=what, first="[0]" if content.two_classes else "")


class _Python:
    """Spells expressions in Python."""

    def __init__(self, names: dict[tuple[str, str], str]) -> None:
        self.names = names  # of variables, by column and reader

    def constant(self, value: float) -> str:
        return "math.nan" if isnan(value) else repr(float(value))

    def symbol(self, name: str) -> str:
        return name

    def cell(self, cell: Cell) -> str:
        return self.names[cell.column, _reader(cell)]

    def lookup(self, lookup: Lookup) -> str:
        text = self.names[lookup.column, _reader(lookup)]
        known = ", ".join(f"{level!a}: {self.constant(value)}" for level, value in lookup.values)
        found = f"{{{known}}}.get({text}, {self.constant(lookup.default)})"
        return f"({self.constant(lookup.missing)} if {text} is None else {found})"

    def call(self, function: str, arguments: list[str]) -> str:
        if function in ("+", "-", "*", "/"):
            return f"({arguments[0]} {function} {arguments[1]})"
        if function == "where":
            condition, then, otherwise = arguments
            return f"({then} if {condition} else {otherwise})"
        if function == "greater":
            return f"{arguments[0]} > {arguments[1]}"
        if function == "missing":
            return f"math.isnan({arguments[0]})"
        names = {"abs": "abs", "largest": "max"}
        return f"{names.get(function, f'math.{function}')}({', '.join(arguments)})"


def _reader(cell: Cell | Lookup) -> str:
    """The function of the module that reads a cell."""
    if isinstance(cell, Lookup):
        return "_text"
    return "_days" if cell.kind == "days" else "_number"


def _head(content: Portable) -> str:
    readers = dict.fromkeys((cell.column, _reader(cell)) for cell in content.cells)
    names = {key: f"cell{number}" for number, key in enumerate(readers)}
    lines = [
        f"    {name} = {reader}(row[{column!a}], {column!a})"
        for (column, reader), name in names.items()
    ]
    python = _Python(names)
    if content.classes is None:
        results = f"OUTPUTS = [{_literals(content.results)}]"
    else:
        results = f"CLASSES = [{_literals(content.classes)}]"
    covariates = [spell(each, python) for each in content.covariates.values()]
    return _HEAD.format(
        columns=_literals(content.columns),
        results=results,
        cells="\n".join(lines),
        covariates="".join(f"\n        {each}," for each in covariates) + "\n    ",
        offset="0.0" if content.offset is None else spell(content.offset, python),
        activations=_activations(content, python),
        response=_response(content, python),
        predictors=_one_network(content) if content.n_draws == 1 else _drawn(content),
        noise=_noise_of_draws(content),
    )


def _activation_names(content: Portable) -> list[str]:
    """The function of the module that each hidden layer has."""
    if len({each.name for each in content.activations}) == 1:
        return ["_activation"] * len(content.activations)
    return [f"_activation{number}" for number in range(len(content.activations))]


def _activations(content: Portable, python: _Python) -> str:
    functions = dict(zip(_activation_names(content), content.activations, strict=True))
    return "".join(
        f"\n\ndef {name}(z):\n    return {spell(each.expression(Symbol('z')), python)}\n"
        for name, each in functions.items()
    )


def _literals(values: tuple[Any, ...]) -> str:
    return "".join(f"\n    {value!a}," for value in values) + "\n"


def _given(content: Portable) -> tuple[list[Symbol], list[Symbol]]:
    """The predictors and the noise of a draw."""
    etas = [Symbol(f"eta[{number}]") for number in range(len(content.outputs))]
    return etas, [Symbol(f"noise[{number}]") for number in range(content.noise.shape[1])]


def _noise_of_draws(content: Portable) -> str:
    noise = content.noise.tolist()
    if all(row == noise[0] for row in noise):
        return f"[{noise[0]!r}]" + (f" * {len(noise)}" if len(noise) > 1 else "")
    return "[" + "".join(f"\n    {row!r}," for row in noise) + "\n]"


def _response(content: Portable, python: _Python) -> str:
    lines = []

    def let(name: str, expression: Expression) -> Expression:
        lines.append(f"    {name} = {spell(expression, python)}")
        return Symbol(name)

    found = [spell(each, python) for each in content.responses(*_given(content), let)]
    return "\n".join([*lines, f"    return [{', '.join(found)}]"])


def _one_network(content: Portable) -> str:
    """The sum of each unit on a line of its own."""
    lines: list[str] = []
    below: list[str] = []
    last, activations = len(content.layers) - 1, _activation_names(content)
    for number, layer in enumerate(content.layers):
        here = []
        for unit in range(layer.bias.shape[1]):
            covariates, hidden = layer.covariate[0, unit], layer.hidden[0, unit]
            terms = [repr(float(layer.bias[0, unit]))]
            terms += [f"{float(covariates[k])!r} * x[{k}]" for k in np.flatnonzero(covariates)]
            terms += [f"{float(hidden[k])!r} * {below[k]}" for k in np.flatnonzero(hidden)]
            here.append(f"eta{unit}" if number == last else f"h{number}_{unit}")
            total = " + ".join(terms)
            shift = " + offset" if unit < content.n_targets else ""
            line = total + shift if number == last else f"{activations[number]}({total})"
            lines.append(f"    {here[-1]} = {line}")
        below = here
    return _ONE_NETWORK.format(sums="\n".join(lines), etas=", ".join(below))


def _drawn(content: Portable) -> str:
    draws, activations = [], [*_activation_names(content), "None"]
    for draw in range(content.n_draws):
        units, first = [], len(content.covariates)
        for number, layer in enumerate(content.layers):
            width, n_below = layer.hidden.shape[1:]
            below = first - n_below
            for unit in range(width):
                row = layer.covariate[draw, unit]
                inputs = [(int(k), float(row[k])) for k in np.flatnonzero(row)]
                row = layer.hidden[draw, unit]
                inputs += [(int(below + k), float(row[k])) for k in np.flatnonzero(row)]
                bias = float(layer.bias[draw, unit])
                units.append(f"({activations[number]}, {bias!r}, {inputs!r})")
            first += width
        draws.append(f"\n    [{', '.join(units)}],")
    n_outputs = len(content.outputs)
    shifts = "".join("offset, " if k < content.n_targets else "0.0, " for k in range(n_outputs))
    return _DRAWN.format(draws="".join(draws) + "\n", n_outputs=n_outputs, shifts=shifts.rstrip())


def _number_intervals(content: Portable, first: str) -> str:
    python, own = _Python({}), content.family.noise_expressions(*_given(content))
    noise = [f"({', '.join(spell(each, python) for each in target)},)" for target in own]
    whole = content.family.target == "counts"
    return _NUMBER_INTERVALS.format(
        noise=", ".join(noise),
        share=content.family.python_share,
        what="the target" if content.flat else "each target",
        first=first,
        start="-1" if whole else "min(means) - step",
        whole="high = math.ceil(high)\n    " if whole else "",
        middle="(low + high) // 2" if whole else "(low + high) / 2",
    )
