"""Forward and back through several networks of one architecture at once, in closed form.

The networks, *replicas*, have the same rows and their own weights. Inputs of a layer may be scaled,
and weights may be normal variables: units then vary by local reparametrisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from islab.core.architecture import Architecture, Block
from islab.core.arrays import Float


@dataclass(frozen=True, eq=False)
class Spread:
    """How normal weights vary around their means."""

    weights: Float  # (replicas, weights), variances
    biases: Float  # (replicas, units), variances
    normals: Float  # (rows, units), standard normal numbers, the same for all replicas


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of a loss by everything that went into a pass."""

    weights: Float  # (replicas, weights)
    biases: Float  # (replicas, units)
    scales: Float  # (replicas, rows, inputs), empty for a pass without scales
    variances: Float  # (replicas, weights), empty for a pass without spread
    bias_variances: Float  # (replicas, units), empty for a pass without spread


class Pass:
    """The way of rows through replicas of a network.

    Parameters
    ----------
    net : Architecture
    weights, biases : (replicas, weights), (replicas, units)
    x : (rows, covariates)
    scales : (replicas, rows, inputs), optional
        Factors on the inputs of all layers, one layer after the other.
    spread : Spread, optional
        None if weights are what they are.

    Attributes
    ----------
    eta : (replicas, rows, outputs)
        The linear predictor.
    """

    def __init__(
        self,
        net: Architecture,
        weights: Float,
        biases: Float,
        x: Float,
        *,
        scales: Float | None = None,
        spread: Spread | None = None,
    ) -> None:
        self.net, self.weights, self.scales, self.spread = net, weights, scales, spread
        self.n_rows = len(x)
        self.sources: dict[Block, Float] = {}
        self.sent: dict[Block, Float] = {}
        self.z: list[Float] = []
        self.sd: list[Float] = []
        for layer, (units, blocks) in enumerate(zip(net.units, _blocks(net), strict=True)):
            mean = biases[:, None, units]
            variance = np.zeros(()) if spread is None else spread.biases[:, None, units]
            for block, inputs in blocks:
                hidden = block.source == "hidden"
                source = net.activations[layer - 1].value(self.z[-1]) if hidden else x
                sent = source if scales is None else source * scales[..., inputs]
                mean = mean + sent @ _turned(block.view(weights))
                if spread is not None:
                    variance = variance + sent * sent @ _turned(block.view(spread.weights))
                self.sources[block], self.sent[block] = source, sent
            if spread is not None:
                self.sd.append(np.sqrt(variance))
                mean = mean + self.sd[-1] * spread.normals[:, units]
            self.z.append(mean)
        self.eta = self.z[-1]

    def back(self, flow: Float) -> Slopes:
        """Derivatives, if ``flow`` (replicas, rows, outputs) is the loss's by ``eta``."""
        net, scales, spread = self.net, self.scales, self.spread
        slopes = self._empty_slopes(flow)
        sums = np.ones(self.n_rows, dtype=flow.dtype)  # a product with it is the fastest sum
        for layer in reversed(range(net.n_layers)):
            units = net.units[layer]
            slopes.biases[:, units] = sums @ flow
            if spread is not None:
                half = flow * spread.normals[:, units] / (2 * self.sd[layer])
                slopes.bias_variances[:, units] = sums @ half
            for block, inputs in _blocks(net)[layer]:
                sent = self.sent[block]
                block.view(slopes.weights)[...] = _turned(flow) @ sent
                if spread is not None:
                    block.view(slopes.variances)[...] = _turned(half) @ (sent * sent)
                if scales is None and block.source == "covariate":
                    continue
                by_sent = flow @ block.view(self.weights)
                if spread is not None:
                    by_sent += 2 * sent * (half @ block.view(spread.weights))
                if scales is not None:
                    slopes.scales[..., inputs] = by_sent * self.sources[block]
                    by_sent *= scales[..., inputs]
                if block.source == "hidden":
                    by_hidden, hidden = by_sent, self.sources[block]
            if layer:
                flow = by_hidden * net.activations[layer - 1].slope(self.z[layer - 1], hidden)
        return slopes

    def _empty_slopes(self, flow: Float) -> Slopes:
        net, n_replicas = self.net, len(self.weights)
        n_inputs = 0 if self.scales is None else self.scales.shape[-1]
        n_varying = 0 if self.spread is None else 1
        shapes = (
            (n_replicas, net.n_weights),
            (n_replicas, net.n_units),
            (n_replicas, self.n_rows, n_inputs),
            (n_replicas, n_varying * net.n_weights),
            (n_replicas, n_varying * net.n_units),
        )
        return Slopes(*(np.empty(shape, dtype=flow.dtype) for shape in shapes))


def input_layers(net: Architecture) -> NDArray[np.intp]:
    """The layer of each input, inputs of all layers one layer after the other, (inputs,)."""
    return np.repeat(
        np.arange(net.n_layers), [net.n_inputs(layer) for layer in range(net.n_layers)]
    )


def standard_normals(rng: np.random.Generator, shape: tuple[int, ...]) -> Float:
    """Standard normal numbers in single precision, a third of the generator's own time for them.

    Notes
    -----
    Box and Muller's way: the root of ``-2 log u`` is the radius of two numbers, and their angle is
    uniform.
    """
    size = int(np.prod(shape))
    radius, angle = rng.random((2, (size + 1) // 2), dtype=np.float32)
    radius = np.sqrt(-2 * np.log(1 - radius))
    angle *= np.float32(2 * np.pi)
    both = np.stack([np.cos(angle), np.sin(angle)])
    both *= radius
    return both.reshape(-1)[:size].reshape(shape)


@cache
def _blocks(net: Architecture) -> tuple[tuple[tuple[Block, slice], ...], ...]:
    """The blocks of each layer, hidden inputs first, and where their inputs are among all."""
    layers, start = [], 0
    for layer in range(net.n_layers):
        own = [net.block(layer, source) for source in ("hidden", "covariate")]
        places = []
        for block in own:
            if block is not None:
                places.append((block, slice(start, start + block.n_sources)))
                start += block.n_sources
        layers.append(tuple(places))
    return tuple(layers)


def _turned(matrices: Float) -> Float:
    return np.swapaxes(matrices, -1, -2)
