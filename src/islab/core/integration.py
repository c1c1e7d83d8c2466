"""Integrated gradients of draws of a network, without quadrature where the network is bent.

Between two points a piecewise-linear network is linear but for a few bends. Layer by layer, the
shares of the way at which units change their slope cut it into pieces; on each piece the gradient
is constant, so its integral is a sum. The last hidden layer needs no cuts: on a piece its units
sum up straight lines, and the mean slope along a straight line is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from islab.core import families
from islab.core.architecture import Architecture
from islab.core.arrays import Float
from islab.core.compaction import LivingDraws, living_draws
from islab.core.network import slopes

DRAWS_AT_ONCE = 50  # neighbouring draws use nearly the same units
NUMBERS_AT_ONCE = 100_000  # stay in the caches
QUADRATURE_POINTS = 32


def integrated_contributions(
    architecture: Architecture, weights: Float, biases: Float, start: Float, end: Float
) -> Float:
    """What each covariate adds to the predictor on the straight way from a start to each row.

    Parameters
    ----------
    architecture : Architecture
    weights, biases : (draws, weights), (draws, units)
    start : (covariates,) or (rows, covariates)
        Standardised, as ``end``.
    end : (rows, covariates)

    Returns
    -------
    (draws, rows, outputs, covariates)
        Sums over covariates are the predictor at the end less the predictor at the start.

    Notes
    -----
    For a network :math:`f`, start :math:`b` and end :math:`x` the contribution of covariate j is
    :math:`(x_j - b_j) \\int_0^1 \\partial_j f(b + t (x - b)) dt` (Sundararajan et al. 2017). It is
    exact if the activation is piecewise linear; else the integral is by Gauss-Legendre quadrature
    with 32 points, an approximation.

    Examples
    --------
    A unit that is off on the first half of the way contributes half of its slope:

    >>> import numpy as np
    >>> net = Architecture(n_covariates=1, hidden=(1,), n_outputs=1, activation="relu")
    >>> weights, biases = np.array([[1.0, 0.0, 1.0]]), np.zeros((1, 2))
    >>> integrated_contributions(net, weights, biases, np.array([-1.0]), np.array([[1.0]])).item()
    1.0
    """
    start = np.broadcast_to(start, end.shape)
    n_draws, n_rows = len(weights), len(end)
    shape = (n_draws, n_rows, architecture.n_outputs, architecture.n_covariates)
    found = np.zeros(shape)
    for first in range(0, n_draws, DRAWS_AT_ONCE):
        draws = slice(first, first + DRAWS_AT_ONCE)
        part = living_draws(architecture, weights[draws], biases[draws])
        for rows in _row_blocks(part, n_rows):
            way = _Way(part, start[rows][:, part.covariates], end[rows][:, part.covariates])
            found[draws, rows][..., part.covariates] = way.contributions()
    return found


def _row_blocks(part: LivingDraws, n_rows: int) -> Iterator[slice]:
    """Rows in blocks whose pieces fit in memory, as far as can be known before they are cut."""
    net = part.architecture
    pieces = 1 + sum(net.hidden[:-1])
    widest = max(net.n_outputs * (net.n_covariates + max(net.widths)), net.n_units)
    step = max(1, NUMBERS_AT_ONCE // max(1, len(part.weights) * pieces * widest))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


@dataclass(frozen=True, eq=False)
class _Way:
    """The ways from starts to ends (rows, covariates), through some draws."""

    part: LivingDraws
    start: Float
    end: Float

    def contributions(self) -> Float:
        """(draws, rows, outputs, covariates)"""
        net = self.part.architecture
        gradient = self._mean_gradient() if net.piecewise_linear else self._quadrature()
        gradient *= (self.end - self.start)[:, None]
        return gradient

    def _quadrature(self) -> Float:
        net, weights, biases = self.part.architecture, self.part.weights, self.part.biases
        nodes, shares = np.polynomial.legendre.leggauss(QUADRATURE_POINTS)
        gradient = np.zeros((len(weights), len(self.end), net.n_outputs, net.n_covariates))
        for node, share in zip((nodes + 1) / 2, shares / 2, strict=True):
            x = self.start + node * (self.end - self.start)
            gradient += share * slopes(net, weights, biases, x)[1]
        return gradient

    def _mean_gradient(self) -> Float:
        """Mean over the way of the gradient, (draws, rows, outputs, covariates)."""
        net, weights = self.part.architecture, self.part.weights
        lengths, unit_slopes = self._pieces()
        flow = np.broadcast_to(
            np.eye(net.n_outputs), (*lengths.shape, net.n_outputs, net.n_outputs)
        )
        covariates = net.covariate_matrix(weights)
        gradient = np.zeros((*lengths.shape[:2], net.n_outputs, net.n_covariates))
        for layer in reversed(range(net.n_layers)):
            if net.input_skip or layer == 0:
                mean = np.einsum("drk,drkou->drou", lengths, flow)
                gradient += mean @ covariates[:, None, net.units[layer]]
            if layer:
                wires = net.hidden_block(layer).view(weights)[:, None, None]
                flow = (flow @ wires) * unit_slopes[layer - 1][..., None, :]
        return gradient

    def _pieces(self) -> tuple[Float, list[Float]]:
        """Lengths of the pieces (draws, rows, pieces), and each hidden layer's mean slopes there.

        Slopes are (draws, rows, pieces, width). Ways with fewer pieces than others end with pieces
        of length 0.
        """
        net, weights = self.part.architecture, self.part.weights
        activations, last = net.activations, len(net.hidden) - 1
        offset, rate = self._straight()
        times = np.broadcast_to(np.array([0.0, 1.0]), (len(weights), len(self.end), 2))
        for layer in range(last):
            z = self._sums(times, offset, rate, layer)[-1]
            times = _cut(times, z, activations[layer].bends or ())
        ends = [(z[:, :, :-1], z[:, :, 1:]) for z in self._sums(times, offset, rate, last)]
        found = [
            activations[layer].slope((before + after) / 2)
            for layer, (before, after) in enumerate(ends[:last])
        ]
        found += [_mean_slopes(activations[last], before, after) for before, after in ends[last:]]
        return np.diff(times, axis=-1), found

    def _straight(self) -> tuple[Float, Float]:
        """What biases and covariates give to units at the start, and how it grows on the way."""
        net, weights = self.part.architecture, self.part.weights
        shape = (len(weights), len(self.end), net.n_units)
        offset, rate = np.empty(shape), np.zeros(shape)
        offset[...] = self.part.biases[:, None]
        covariates = np.swapaxes(net.covariate_matrix(weights), -1, -2)
        offset[..., : net.n_covariate_rows] += self.start @ covariates
        rate[..., : net.n_covariate_rows] = (self.end - self.start) @ covariates
        return offset, rate

    def _sums(self, times: Float, offset: Float, rate: Float, last: int) -> list[Float]:
        """What the units of the layers up to one sum up at times, (draws, rows, times, width)."""
        net, weights = self.part.architecture, self.part.weights
        found: list[Float] = []
        for layer in range(last + 1):
            units = net.units[layer]
            z = rate[:, :, None, units] * times[..., None]
            z += offset[:, :, None, units]
            if layer:
                wires = net.hidden_block(layer).view(weights)
                z += (
                    net.activations[layer - 1].value(found[-1])
                    @ np.swapaxes(wires, -1, -2)[:, None]
                )
            found.append(z)
        return found


def _cut(times: Float, z: Float, bends: tuple[float, ...]) -> Float:
    """Times with those added at which a unit passes one of its bends."""
    distance = (z[..., None] - np.array(bends)).reshape(*z.shape[:-1], -1)
    before, after = distance[:, :, :-1], distance[:, :, 1:]
    crosses = before * after < 0
    share = np.divide(before, before - after, out=np.ones(before.shape), where=crosses)
    left, length = times[:, :, :-1, None], np.diff(times, axis=-1)[..., None]
    # What is no bend goes to the end of the way, where it makes pieces of length 0.
    found = np.where(crosses, left + share * length, 1.0).reshape(*times.shape[:2], -1)
    every = np.sort(np.concatenate([times, found], axis=-1), axis=-1)
    n_inside = int((every < 1).sum(axis=-1).max(initial=1))
    return every[..., : n_inside + 1]


def _mean_slopes(activation: families.Activation, before: Float, after: Float) -> Float:
    """Mean slope of a piecewise-linear activation on the line from one sum to another."""
    bends = activation.bends or ()
    if len(bends) != 1:
        return _mean_slopes_of_many(activation, np.array(bends), before, after)
    mean = activation.slope((before + after) / 2)
    low, high = before - bends[0], after - bends[0]
    crosses = low * high < 0
    low, high = low[crosses], high[crosses]
    share = low / (low - high)
    first, second = activation.slope(before[crosses]), activation.slope(after[crosses])
    mean[crosses] = share * first + (1 - share) * second
    return mean


def _mean_slopes_of_many(
    activation: families.Activation, bends: Float, before: Float, after: Float
) -> Float:
    """The same for any number of bends."""
    low, high = before[..., None] - bends, after[..., None] - bends
    crosses = low * high < 0
    ends = np.zeros((*before.shape, len(bends) + 2))
    np.divide(low, low - high, out=ends[..., 1:-1], where=crosses)
    ends[..., -1] = 1.0
    ends.sort(axis=-1)
    middle = (ends[..., 1:] + ends[..., :-1]) / 2
    slope = activation.slope(before[..., None] + middle * (after - before)[..., None])
    return (slope * np.diff(ends, axis=-1)).sum(axis=-1)
