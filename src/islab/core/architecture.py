"""The shape of an input-skip network and where each weight lies in memory.

All weights of a network live in one flat vector. First come the covariate weights of every layer
as the rows of one matrix, ``C`` (units, covariates), so that a single matrix product serves all
layers; then the hidden weights of each layer after the first, ``H_l`` (width, previous width).
A *block* is a run of that vector with a prior of its own: the covariate or the hidden weights of
one layer. Units (hidden and output) are numbered layer after layer; biases are one vector of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import index
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core import families

Source = Literal["covariate", "hidden"]
ArrayT = TypeVar("ArrayT")


@dataclass(frozen=True)
class Block:
    """A contiguous run of weights that share a prior."""

    layer: int
    source: Source
    start: int
    n_targets: int
    n_sources: int

    @property
    def size(self) -> int:
        return self.n_targets * self.n_sources

    @property
    def weights(self) -> slice:
        """Where the block lies in a flat vector of weights."""
        return slice(self.start, self.start + self.size)

    def view(self, flat: ArrayT) -> ArrayT:
        """The block of ``flat`` (..., weights) as (..., targets, sources)."""
        part = flat[..., self.weights]  # type: ignore[index]
        return part.reshape((*part.shape[:-1], self.n_targets, self.n_sources))


class Blocks(Protocol):
    """An architecture as its priors see it: blocks of one flat vector of weights."""

    @property
    def blocks(self) -> tuple[Block, ...]: ...

    @property
    def n_units(self) -> int: ...

    @property
    def hidden(self) -> tuple[int, ...]: ...

    def by_block(self, values: ArrayLike) -> NDArray: ...


@dataclass(frozen=True)
class Architecture:
    """Widths and wiring of a network with ``v`` covariates and ``m`` outputs.

    Parameters
    ----------
    n_covariates : int
    hidden : tuple of int
        Width of each hidden layer; empty for the linear model. A width of 0 is a layer that
        lost all its units: later layers still see the covariates.
    n_outputs : int
    input_skip : bool
        Whether the covariates enter every layer or only the first.
    activation : str or tuple of str
        Name of the hidden units' activation, or one for each hidden layer; the output layer is
        linear.

    Examples
    --------
    >>> Architecture(n_covariates=4, hidden=(20, 20, 20, 20), n_outputs=1).n_weights
    1544
    """

    n_covariates: int
    hidden: tuple[int, ...]
    n_outputs: int
    input_skip: bool = True
    activation: str | tuple[str, ...] = "leaky_relu"

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "hidden", tuple(index(width) for width in self.hidden))
        except TypeError:
            raise ValueError(
                f"Got hidden={self.hidden!r}, expected whole numbers such as (20, 20)."
            ) from None
        self._name_activations()
        if self.n_covariates < 0 or self.n_outputs < 1 or any(h < 0 for h in self.hidden):
            raise ValueError(
                f"Got n_covariates={self.n_covariates}, hidden={self.hidden}, "
                f"n_outputs={self.n_outputs}, expected non-negative sizes and at least one output."
            )

    def _name_activations(self) -> None:
        """Checks the names of activations; one name stands for layers that share it."""
        if isinstance(self.activation, str):
            families.activation(self.activation)
            return
        names = tuple(families.activation(name).name for name in self.activation)
        if not names or (self.hidden and len(names) != len(self.hidden)):
            raise ValueError(
                f"Got activation={names!r}, expected one name, or one for each of "
                f"{len(self.hidden)} hidden layers."
            )
        object.__setattr__(self, "activation", names[0] if len({*names}) == 1 else names)

    @property
    def activations(self) -> tuple[families.Activation, ...]:
        """Of each hidden layer."""
        return tuple(families.activation(name) for name in self.activation_names)

    @property
    def activation_names(self) -> tuple[str, ...]:
        """Name of each hidden layer's activation."""
        n_hidden, names = len(self.hidden), self.activation
        return (names,) * n_hidden if isinstance(names, str) else names[:n_hidden]

    @property
    def kernel(self) -> families.Kernel | None:
        """The compiled version of the activation that all layers share, if there is one."""
        name = self.activation
        return families.activation(name).kernel if isinstance(name, str) else None

    @property
    def piecewise_linear(self) -> bool:
        """Whether its networks are exactly linear around each row."""
        layers = zip(self.activations, self.hidden, strict=True)
        return all(each.piecewise_linear for each, width in layers if width)

    @property
    def n_layers(self) -> int:
        return len(self.hidden) + 1

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of each layer, the outputs last."""
        return (*self.hidden, self.n_outputs)

    @property
    def n_units(self) -> int:
        return sum(self.widths)

    @cached_property
    def units(self) -> tuple[slice, ...]:
        """The unit numbers of each layer."""
        ends = np.cumsum((0, *self.widths)).tolist()
        return tuple(slice(start, stop) for start, stop in pairwise(ends))

    @property
    def n_covariate_rows(self) -> int:
        """Rows of ``C``: all units with the skip, the first layer's without."""
        return self.n_units if self.input_skip else self.widths[0]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Covariate blocks by layer, then hidden blocks by layer, in memory order."""
        layers_with_covariates = self.n_layers if self.input_skip else 1
        widths, blocks, start = self.widths, [], 0
        for layer in range(layers_with_covariates):
            blocks.append(Block(layer, "covariate", start, widths[layer], self.n_covariates))
            start += blocks[-1].size
        for layer in range(1, self.n_layers):
            blocks.append(Block(layer, "hidden", start, widths[layer], widths[layer - 1]))
            start += blocks[-1].size
        return tuple(blocks)

    @property
    def n_weights(self) -> int:
        return sum(block.size for block in self.blocks)

    def block(self, layer: int, source: Source) -> Block | None:
        """The block of a layer, or None where the layer has no such inputs."""
        matches = (b for b in self.blocks if b.layer == layer and b.source == source)
        return next(matches, None)

    def hidden_block(self, layer: int) -> Block:
        """The hidden weights of a layer after the first."""
        return self.blocks[layer - 1 + (self.n_layers if self.input_skip else 1)]

    def n_inputs(self, layer: int) -> int:
        """Inputs of a layer: previous hidden units and, if they enter there, covariates."""
        return sum(block.n_sources for block in self.blocks if block.layer == layer)

    def covariate_matrix(self, flat: ArrayT) -> ArrayT:
        """``C`` (..., units, covariates) as a view of ``flat`` (..., weights)."""
        part = flat[..., : self.n_covariate_rows * self.n_covariates]  # type: ignore[index]
        return part.reshape((*part.shape[:-1], self.n_covariate_rows, self.n_covariates))

    def by_block(self, values: ArrayLike) -> NDArray:
        """One value per block, repeated for each of the block's weights."""
        return np.repeat(np.asarray(values), [block.size for block in self.blocks])

    def weight_index(self, layer: int) -> NDArray[np.intp]:
        """Flat positions of a layer's weights as (targets, [hidden, covariates])."""
        numbers = np.arange(self.n_weights)
        parts = [self.block(layer, source) for source in ("hidden", "covariate")]
        return np.concatenate([part.view(numbers) for part in parts if part], axis=1)

    @cached_property
    def ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Source and target of each weight; sources count the covariates, then the units."""
        sources = np.empty(self.n_weights, dtype=np.intp)
        targets = np.empty(self.n_weights, dtype=np.intp)
        units = np.arange(self.n_units)
        for block in self.blocks:
            senders = np.arange(self.n_covariates)
            if block.source == "hidden":
                senders = self.n_covariates + units[self.units[block.layer - 1]]
            block.view(sources)[...] = senders
            block.view(targets)[...] = units[self.units[block.layer]][:, None]
        return sources, targets

    @cached_property
    def input_index(self) -> NDArray[np.intp]:
        """For each weight the number of its input, inputs counted layer after layer.

        Within a layer the hidden inputs come first, then the covariates.
        """
        starts = np.cumsum([0, *(self.n_inputs(layer) for layer in range(self.n_layers))])
        inputs = np.empty(self.n_weights, dtype=np.intp)
        for layer in range(self.n_layers):
            inputs[self.weight_index(layer)] = starts[layer] + np.arange(self.n_inputs(layer))
        return inputs

    def keep_units(self, masks: list[NDArray[np.bool_]]) -> Kept:
        """The architecture with only the masked hidden units, and what that keeps.

        Parameters
        ----------
        masks : list of bool array
            For each hidden layer, which units stay.
        """
        sizes = tuple(len(mask) for mask in masks)
        if sizes != self.hidden:
            raise ValueError(f"Got masks of {sizes} units, expected {self.hidden}.")
        kept = [np.flatnonzero(mask) for mask in masks]
        kept.append(np.arange(self.n_outputs))
        weights = []
        numbers = np.arange(self.n_weights)
        for block in self.blocks:
            part = block.view(numbers)[kept[block.layer]]
            weights.append(part[:, kept[block.layer - 1]] if block.source == "hidden" else part)
        units = [own.start + which for own, which in zip(self.units, kept, strict=True)]
        smaller = replace(self, hidden=tuple(len(which) for which in kept[:-1]))
        return Kept(smaller, np.concatenate([w.ravel() for w in weights]), np.concatenate(units))


@dataclass(frozen=True)
class Kept:
    """What stays of a network: its new architecture, and flat positions in the old one."""

    architecture: Architecture
    weights: NDArray[np.intp]
    units: NDArray[np.intp]
