"""How variational training runs, where the recipe is not to decide: the parameter ``training``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from islab.core.posterior import Initial
from islab.estimators.parameter_checks import Rules, count, flag, one_of, positive, real
from islab.learn.shrink import Shrink
from islab.learn.stage import Schedule, Stage

RECIPES = ("default", "paper")


@dataclass(frozen=True)
class Training:
    """The keys of the dict, and what they stand for; None leaves it to the recipe.

    Attributes
    ----------
    recipe : {"default", "paper"}
        The paper's has one stage, fixed priors, uniform means and no choice between candidates.
    inclusion_rate : float
        Learning rate of the inclusion parameters.
    milestones : tuple of float
        Shares of a stage at which rates are multiplied by ``drop``; () for a constant rate.
    drop : float
    means : {"he", "glorot"} or (low, high)
        Where means of weights start.
    sigma : float
        Standard deviation of weights at the start.
    bias_scale : float
        Standard deviation of the biases' prior.
    bias_inclusion : float
        Prior probability that a bias is needed; all are certain if not given.
    refine : int
        Epochs in which the median network, its structure fixed, learns on.
    flow_width : int
        Hidden units of the networks inside a flow.
    shrink_from : float
        Share of a stage before which no hidden unit is dropped.
    noise : float
        Noise variance that is not learned along with the weights, but found after them.
    standardize : bool
        Whether columns and numeric targets are standardised.
    """

    recipe: str = "default"
    inclusion_rate: float | None = None
    milestones: tuple[float, ...] | None = None
    drop: float = 0.5
    means: Any = None
    sigma: float | None = None
    bias_scale: float | None = None
    bias_inclusion: float | None = None
    refine: int | None = None
    flow_width: int | None = None
    shrink_from: float | None = None
    noise: float | None = None
    standardize: bool = True

    @classmethod
    def of(cls, value: Any) -> Training:
        """The settings that "auto", the name of a recipe or a dict stands for."""
        if isinstance(value, str):
            return cls(recipe="default" if value == "auto" else value)
        return cls(**{"milestones": None, **value})

    def stage(self, stage: Stage, share: float) -> Stage:
        """A stage with these settings, whose inclusion rate is this share of the network's."""
        changes: dict[str, Any] = {}
        if self.inclusion_rate is not None:
            changes["lambda_rate"] = share * float(self.inclusion_rate)
        if self.milestones is not None:
            steps = tuple(float(share) for share in self.milestones)
            changes["schedule"] = Schedule("step", milestones=steps, drop=self.drop)
        if self.bias_scale is not None:
            changes["bias_tau"] = float(self.bias_scale)
        if self.bias_inclusion is not None:
            changes["bias_psi"] = float(self.bias_inclusion)
        if self.noise is not None:
            changes["noise_rate"] = 0.0
        if self.shrink_from is not None and stage.shrink is not None:
            changes["shrink"] = Shrink(start=float(self.shrink_from))
        return replace(stage, **changes)

    def initial(self, initial: Initial) -> Initial:
        """A start with these settings."""
        changes: dict[str, Any] = {}
        if self.means is not None:
            given = isinstance(self.means, str)
            changes["means"] = self.means if given else tuple(map(float, self.means))
        if self.sigma is not None:
            changes["sigma"] = float(self.sigma)
        if self.bias_inclusion is not None:
            changes["biases_selected"] = True
        return replace(initial, **changes)


def valid_training(value: Any) -> bool:
    """ "auto", the name of a recipe, or a dict of known keys."""
    if isinstance(value, str):
        return value in ("auto", *RECIPES)
    return isinstance(value, dict)


def check_training(value: Any, only: Sequence[str] = ()) -> None:
    """Refuses keys and values that no fit can use.

    Parameters
    ----------
    value : "auto", str or dict
    only : sequence of str, optional
        Keys that a kind of network knows; all if not given.
    """
    if not isinstance(value, dict):
        return
    known = tuple(only) or tuple(field.name for field in fields(Training))
    for key, own in value.items():
        if key not in known:
            raise ValueError(
                f"Got training with the key {key!r}, expected some of {', '.join(known)}."
            )
        rule, expected = _RULES[key]
        if not rule(own):
            raise ValueError(f"Got training={{{key!r}: {own!r}}}, expected {expected}.")


def _share(value: Any) -> bool:
    return real(value) and 0 <= value <= 1


def _shares(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(map(_share, value))


def _means(value: Any) -> bool:
    pair = isinstance(value, Sequence) and len(value) == 2 and all(map(real, value))
    return value in ("he", "glorot") if isinstance(value, str) else pair and value[0] <= value[1]


_RULES: Rules = {
    "recipe": (one_of(*RECIPES), f"one of {', '.join(RECIPES)}"),
    "inclusion_rate": (positive, "a positive learning rate"),
    "milestones": (_shares, "shares of the training such as (0.5, 0.7, 0.9)"),
    "drop": (lambda value: positive(value) and value <= 1, "a factor above 0, up to 1"),
    "means": (_means, "'he', 'glorot' or (low, high)"),
    "sigma": (positive, "a positive standard deviation"),
    "bias_scale": (positive, "a positive standard deviation"),
    "bias_inclusion": (lambda value: real(value) and 0 < value < 1, "a number between 0 and 1"),
    "refine": (lambda value: count(value) or value == 0, "a number of epochs, 0 for none"),
    "flow_width": (count, "a whole number of at least 1"),
    "shrink_from": (_share, "a share of the training from 0 to 1"),
    "noise": (positive, "a positive variance"),
    "standardize": (flag, "True or False"),
}
