"""Parameters that may differ between blocks of weights: one value for all, or a dict.

Keys of the dict are "covariates" or "hidden" (what the weights come from; "kernels" in networks of
images), the number of a layer, 0 for the first and -1 for the output layer, or both as a pair:
``{"hidden": 0.1, (0, "covariates"): 0.5}``. The pair counts more than the layer, the layer more
than the source. What no key names is "auto".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from islab.core.architecture import Architecture

SOURCES = ("covariates", "hidden", "kernels")
Place = tuple[int, str]


@dataclass(frozen=True)
class ByBlock:
    """A value for each block, and whether the user has given it."""

    values: tuple[float, ...]
    given: tuple[bool, ...]

    @property
    def any_given(self) -> bool:
        return any(self.given)


def by_block(name: str, value: Any, places: Sequence[Place], auto: float) -> ByBlock:
    """What a parameter says of the blocks at these places.

    Parameters
    ----------
    name : str
        Of the parameter, for errors.
    value : "auto", float or dict
    places : sequence of (layer, source)
    auto : float
        Where nothing is given.
    """
    if isinstance(value, str):
        value = {}
    if not isinstance(value, dict):
        return ByBlock((float(value),) * len(places), (True,) * len(places))
    given = {_key(key, places): number for key, number in value.items()}
    _check_places(name, given, places, value)
    found = [next((given[key] for key in _names(place) if key in given), None) for place in places]
    values = tuple(auto if number is None else float(number) for number in found)
    return ByBlock(values, tuple(number is not None for number in found))


def dense_places(hidden: tuple[int, ...], input_skip: bool) -> list[Place]:
    """Where the blocks of a network of dense layers lie."""
    blocks = Architecture(1, hidden, 1, input_skip).blocks
    return [(block.layer, _source(block.source)) for block in blocks]


def valid_blocks(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A test of what a parameter by block may be: what the rule allows, or a dict of it."""

    def valid(value: Any) -> bool:
        if isinstance(value, dict):
            return bool(value) and all(_valid_key(k) and rule(v) for k, v in value.items())
        return rule(value)

    return valid


def _source(source: str) -> str:
    return "covariates" if source == "covariate" else source


def _valid_key(key: Any) -> bool:
    if isinstance(key, tuple):
        return len(key) == 2 and _is_layer(key[0]) and key[1] in SOURCES
    return _is_layer(key) or key in SOURCES


def _is_layer(key: Any) -> bool:
    return isinstance(key, Integral) and not isinstance(key, bool)


def _names(place: Place) -> tuple[Any, ...]:
    """Keys that name a block, the most special first; a number alone is one of a dense layer."""
    layer, source = place
    return (place, source) if source == "kernels" else (place, layer, source)


def _key(key: Any, places: Sequence[Place]) -> Any:
    """The key with layers counted from the first."""
    if isinstance(key, tuple):
        own = [place for place in places if (place[1] == "kernels") == (key[1] == "kernels")]
        return _key(key[0], own), key[1]
    if _is_layer(key) and key < 0:
        dense = [layer for layer, source in places if source != "kernels"] or [
            layer for layer, _ in places
        ]
        return int(key) + 1 + max(dense, default=0)
    return int(key) if _is_layer(key) else key


def _check_places(
    name: str, given: dict[Any, Any], places: Sequence[Place], value: dict[Any, Any]
) -> None:
    known = {key for place in places for key in _names(place)}
    for own, key in zip(given, value, strict=True):
        if own not in known:
            raise ValueError(
                f"Got {name}={value!r}, expected keys of blocks that the network has, not "
                f"{key!r}; its blocks are {', '.join(map(repr, places))}."
            )
