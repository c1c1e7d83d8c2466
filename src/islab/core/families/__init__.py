"""Likelihoods and activations by name: each is one object that owns everything about itself.

Files and parameters hold names; whoever needs more asks for the object here, and nothing else in
the package decides by a name. ``register`` adds a family for the running process, which then
fits, predicts, explains, exports, saves and reports like the others.
"""

from __future__ import annotations

from islab.core.families.activation import (
    Activation,
    Identity,
    LeakyRelu,
    Relu,
    Sigmoid,
    Tanh,
)
from islab.core.families.bernoulli import Bernoulli
from islab.core.families.categorical import Categorical
from islab.core.families.contract import check
from islab.core.families.gaussian import Gaussian
from islab.core.families.heteroscedastic import Heteroscedastic
from islab.core.families.likelihood import ClassLikelihood, Likelihood, Target, Uncertainty, Words
from islab.core.families.negative_binomial import NegativeBinomial
from islab.core.families.ordinal import Ordinal
from islab.core.families.poisson import Poisson
from islab.core.families.spelling import Kernel, StandardNoise
from islab.core.families.student import StudentT
from islab.core.families.zero_inflated import ZeroInflatedNegativeBinomial, ZeroInflatedPoisson

__all__ = [
    "Activation",
    "ClassLikelihood",
    "Kernel",
    "Likelihood",
    "StandardNoise",
    "Uncertainty",
    "Words",
    "activation",
    "activations",
    "likelihood",
    "likelihood_of_classes",
    "likelihoods",
    "likelihoods_of_classes",
    "register",
    "unregister",
]

_LIKELIHOODS: dict[str, Likelihood] = {}
_ACTIVATIONS: dict[str, Activation] = {}


def register(family: Likelihood | Activation) -> None:
    """Makes a likelihood or an activation known by its name.

    Worker processes of a fit know it only if they import the module that registers it. Model files
    hold the name alone: it has to be registered before they are loaded.

    Raises
    ------
    ValueError
        If the name is taken or not plain, if a part of the family is missing, or if its derivatives
        are not those of its values.
    """
    check(family)
    if family.name in _shelf(family):
        raise ValueError(f"Got a second family named {family.name!r}, expected a new name.")
    _shelf(family)[family.name] = family


def unregister(family: Likelihood | Activation) -> None:
    """Takes a family back that was registered."""
    del _shelf(family)[family.name]


def likelihood(name: str) -> Likelihood:
    """The likelihood of that name."""
    if name not in _LIKELIHOODS:
        raise ValueError(f"Got likelihood={name!r}, expected one of {', '.join(_LIKELIHOODS)}.")
    return _LIKELIHOODS[name]


def activation(name: str) -> Activation:
    """The activation of that name."""
    if name not in _ACTIVATIONS:
        raise ValueError(f"Got activation={name!r}, expected one of {', '.join(_ACTIVATIONS)}.")
    return _ACTIVATIONS[name]


def likelihoods(*targets: Target) -> tuple[str, ...]:
    """Names of the likelihoods for these targets, of all without any."""
    return tuple(n for n, each in _LIKELIHOODS.items() if not targets or each.target in targets)


def activations(*, piecewise_linear: bool = False) -> tuple[str, ...]:
    """Names of all activations, or of the piecewise-linear ones."""
    return tuple(
        n for n, each in _ACTIVATIONS.items() if each.piecewise_linear or not piecewise_linear
    )


def likelihood_of_classes(n_classes: int, *, ordered: bool = False) -> ClassLikelihood:
    """The likelihood of a target with so many classes; two of them need no order."""
    if n_classes <= 2:
        return _TWO_CLASSES
    return _ORDERED_CLASSES if ordered else _MANY_CLASSES


def likelihoods_of_classes() -> tuple[str, ...]:
    """Names of the likelihoods for several classes, without and with an order."""
    return (_MANY_CLASSES.name, _ORDERED_CLASSES.name)


def _shelf(family: Likelihood | Activation) -> dict:
    return _LIKELIHOODS if isinstance(family, Likelihood) else _ACTIVATIONS


_TWO_CLASSES, _MANY_CLASSES, _ORDERED_CLASSES = Bernoulli(), Categorical(), Ordinal()

for _family in (
    *(_TWO_CLASSES, _MANY_CLASSES, _ORDERED_CLASSES),
    *(Gaussian(), Poisson(), NegativeBinomial(), StudentT(), Heteroscedastic()),
    *(ZeroInflatedPoisson(), ZeroInflatedNegativeBinomial()),
):
    _LIKELIHOODS[_family.name] = _family
for _function in (Relu(), LeakyRelu(), Sigmoid(), Tanh(), Identity()):
    _ACTIVATIONS[_function.name] = _function
