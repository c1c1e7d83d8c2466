"""What a family must have before it is known by name: all parts, and derivatives that agree."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from islab.core.families.activation import Activation
from islab.core.families.likelihood import Likelihood

ACTIVATION_NEEDS = ("value", "slope", "formula", "latex", "expression", "torch")
LIKELIHOOD_NEEDS = (
    *("initial_bias", "nll", "mean", "variance", "sample", "predictive_quantiles"),
    *("formula", "latex", "expressions"),
)
SUMS = np.array([-2.3, -1.1, -0.4, 0.3, 0.7, 1.9])
STEP, TOLERANCE = 1e-6, 1e-4


def check(family: Any) -> None:
    """Refuses what is no whole family, with all that is missing in one message.

    Derivatives are compared with differences at a few points: ``slope`` of an activation, away from
    its bends, and ``gradient`` of a likelihood of numbers or counts, at targets that it draws.
    """
    if not isinstance(family, Likelihood | Activation):
        raise TypeError(
            f"Got {family!r}, expected an object of a subclass of Likelihood or Activation."
        )
    name = getattr(family, "name", None)
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise ValueError(f"Got name={name!r}, expected lower-case letters, digits and _.")
    missing = _missing(family)
    if missing:
        raise ValueError(f"Got the family {name!r} without {', '.join(missing)}; add what it says.")
    if isinstance(family, Activation):
        _check_slope(family)
    elif family.target != "classes":
        _check_gradient(family)


def _missing(family: Likelihood | Activation) -> list[str]:
    base: Any = Likelihood if isinstance(family, Likelihood) else Activation
    attributes: tuple[str, ...] = ("javascript",)
    methods: tuple[str, ...] = ACTIVATION_NEEDS
    if isinstance(family, Likelihood):
        attributes, methods = (*attributes, "target", "words"), LIKELIHOOD_NEEDS
        if getattr(family, "target", None) != "classes":
            attributes, methods = (*attributes, "python_share"), (*methods, "variance_expression")
    own = type(family)
    return [name for name in attributes if not hasattr(family, name)] + [
        f"{name}()" for name in methods if getattr(own, name) is getattr(base, name)
    ]


def _check_slope(family: Activation) -> None:
    z = np.array([at for at in SUMS if at not in (family.bends or ())])
    rise = (family.value(z + STEP) - family.value(z - STEP)) / (2 * STEP)
    _compare(family.name, "slope", family.slope(z), rise, "value", z)


def _check_gradient(family: Likelihood) -> None:
    eta = np.repeat(SUMS[:, None], family.n_predictors, axis=1)
    noise = np.ones(family.n_noise(family.n_predictors) or family.n_predictors)
    y = np.repeat(
        family.sample(eta, noise, np.random.default_rng(0))[:, :1], family.n_predictors, axis=1
    )
    found = family.gradient(y, eta, noise)
    for output, step in enumerate(STEP * np.eye(family.n_predictors)):
        rise = (family.nll(y, eta + step, noise) - family.nll(y, eta - step, noise)) / (2 * STEP)
        _compare(family.name, "gradient", found[:, output], rise, "nll", SUMS)


def _compare(name: str, what: str, found: Any, right: Any, of: str, z: Any) -> None:
    wrong = np.abs(found - right) > TOLERANCE * (1 + np.abs(right))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"Got the family {name!r} whose {what}() is {found[at]:.6g} at {z[at]}, expected the "
            f"derivative of its {of}(), {right[at]:.6g}."
        )
