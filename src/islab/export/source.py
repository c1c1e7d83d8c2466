"""The network as Python source that imports nothing but ``math``."""

from __future__ import annotations

from islab.core import families
from islab.core.sparse import SparseNetwork
from islab.export.unit_sums import Sum, sums

_TEMPLATE = '''"""A network exported by islab. Depends on nothing but the standard library."""

import math

COVARIATES = [{covariates}]
OUTPUTS = [{outputs}]
{responses}


def _sigmoid(z):
    small = math.exp(-abs(z))
    return 1 / (1 + small) if z >= 0 else small / (1 + small)


def _activation(z):
    {activation}


def predictor(x):
    """The linear predictor of each output for one row.

    x has a value for each of COVARIATES, in their order.
    """
    if len(x) != len(COVARIATES):
        raise ValueError(f"Got {{len(x)}} values, expected {{len(COVARIATES)}}; see COVARIATES.")
{sums}
    return [{results}]


def predict(x):
    """What is predicted for one row: {response_words}."""
    eta = predictor(x)
    {response}


def predict_named(row):
    """The predictions by their names for a row that maps covariates' names to values."""
    return dict(zip({names}, predict([row[name] for name in COVARIATES])))
'''


def to_python(network: SparseNetwork) -> str:
    """Source of a module with ``predictor(x)``, ``predict(x)`` and ``predict_named(row)``.

    Names of covariates and outputs appear only as ASCII string literals, whatever they hold.

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
    written = sums(network)
    likelihood = network.known_likelihood()
    predicted = likelihood.response_names(network.scale.outputs)
    own = predicted != network.scale.outputs
    last = network.architecture.n_layers - 1
    lines = [_line(unit, number, unit.layer < last) for number, unit in enumerate(written)]
    first_output = len(written) - network.architecture.n_outputs
    return _TEMPLATE.format(
        covariates=_literals(network.scale.names),
        outputs=_literals(network.scale.outputs),
        responses=f"RESPONSES = [{_literals(predicted)}]\n" if own else "",
        names="RESPONSES" if own else "OUTPUTS",
        activation=families.activation(network.architecture.activation).python,
        sums="\n".join(lines),
        results=", ".join(f"u{number}" for number in range(first_output, len(written))),
        response=likelihood.python,
        response_words=likelihood.words.prediction,
    )


def _literals(names: tuple[str, ...]) -> str:
    return "".join(f"\n    {name!a}," for name in map(str, names)) + "\n"


def _line(unit: Sum, number: int, hidden: bool) -> str:
    terms = [repr(unit.constant)]
    for term in unit.terms:
        source = f"x[{term.source}]" if term.covariate else f"u{term.source}"
        terms.append(f"{term.weight!r} * {source}")
    total = " + ".join(terms)
    return f"    u{number} = " + (f"_activation({total})" if hidden else total)
